"""Engines for the two databases, set up so that a commit is durable and a caller never waits without end.

Apart from the store because here, and in the words for what went wrong, lies what differs between the two.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from countersign.domain.errors import ConfigurationRefused, Conflict, CountersignError, NotFound, Unavailable

WAIT_SECONDS = 30
"""How long one transaction waits for another before the ledger counts as unavailable."""

READ_ONLY = "countersign_read_only"
"""Execution option of SQLite transactions that only read."""

_SQLITE_WORDS = {
    "SQLITE_BUSY": f"is in use by another program for more than {WAIT_SECONDS} s; end that program or try again",
    "SQLITE_CANTOPEN": "cannot be opened; check that its folder is there and may be written",
    "SQLITE_CORRUPT": "is damaged; restore it from a backup",
    "SQLITE_FULL": "has no room left on its disk; make room and repeat the step",
    "SQLITE_IOERR": "cannot be read or written; check its disk",
    "SQLITE_NOTADB": "is no SQLite database; check DATABASE_URL",
    "SQLITE_READONLY": "is read-only; make the file and its folder writable",
}
_POSTGRES_WORDS = {
    "25006": "is read-only; connect to the primary server",
    "28": "does not let this user in; check user and password in DATABASE_URL",
    "3D000": "is not there; create it or check its name in DATABASE_URL",
    "42501": "does not give this user the right, or the row is another tenant's; grant it on the ledger's tables",
    "53": "has no room or connections left; make room and repeat the step",
    "55P03": f"is locked by another program for more than {WAIT_SECONDS} s; end that program or try again",
    "57P": "is shutting down or starting; try again",
    "08": "does not answer; check that it runs and its address in DATABASE_URL",
}


def make_engine(url: str) -> Engine:
    """An engine with a connection pool for `sqlite:///path` or `postgresql://user@host:port/name`.

    Raises:
        ConfigurationRefused: for any other kind of URL.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigurationRefused("DATABASE_URL: not a URL; use sqlite:///path or postgresql://host/name") from None
    if parsed.drivername == "postgresql":
        return _postgres(parsed.set(drivername="postgresql+psycopg"))
    if parsed.drivername == "sqlite" and parsed.database not in (None, "", ":memory:"):
        return _sqlite(parsed)
    raise ConfigurationRefused(
        f"DATABASE_URL: {parsed.render_as_string()!r} is not supported; use sqlite:///path or postgresql://host/name"
    )


def reading_engine(engine: Engine) -> Engine:
    """The same connections for transactions that only read, each at one moment, whatever is written meanwhile."""
    if engine.name == "sqlite":
        return engine.execution_options(**{READ_ONLY: True})
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


@contextmanager
def in_plain_words(engine: Engine) -> Iterator[None]:
    """Turn what the database raises into errors for people; domain errors pass through unchanged."""
    try:
        yield
    except StatementError as error:
        # Column types refuse values while a statement is prepared; SQLAlchemy wraps that too.
        if isinstance(error.orig, CountersignError):
            raise error.orig from None
        if not isinstance(error, DBAPIError) or error.orig is None:
            raise
        raise _broken_constraint(error.orig) or _unavailable(engine, _words(error.orig)) from error
    except sqlite3.Error as error:
        # Raised while a connection is prepared, before SQLAlchemy wraps anything.
        raise _unavailable(engine, _words(error)) from error
    except PoolTimeout as error:
        raise _unavailable(engine, f"has no free connection for {WAIT_SECONDS} s; try again") from error


def _sqlite(url: URL) -> Engine:
    # isolation_level=None: Python's sqlite3 would begin transactions by itself, and deferred ones.
    engine = create_engine(
        url, connect_args={"isolation_level": None, "timeout": WAIT_SECONDS}, pool_timeout=WAIT_SECONDS, max_overflow=50
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    # NORMAL is faster, but in WAL mode a power failure could take back a recorded intent whose effect went out.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes its lock at the start: one that has to upgrade from reading fails at once instead of waiting.
    only_reads = connection.get_execution_options().get(READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")


def _postgres(url: URL) -> Engine:
    milliseconds = WAIT_SECONDS * 1000
    return create_engine(
        url,
        # Row locks do the ordering; a stricter level would fail transactions that could just have waited.
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        pool_timeout=WAIT_SECONDS,
        max_overflow=15,
        connect_args={
            "application_name": "countersign",
            "connect_timeout": 10,
            "client_encoding": "utf8",
            "options": f"-c lock_timeout={milliseconds}",
        },
    )


def _unavailable(engine: Engine, words: str) -> Unavailable:
    url = engine.url
    name = url.database if url.drivername == "sqlite" else url.render_as_string(hide_password=True)
    return Unavailable(f"ledger {name} {words}")


def _words(error: BaseException) -> str:
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "")
        known = next((words for code, words in _SQLITE_WORDS.items() if name.startswith(code)), None)
    else:
        # A connection that was never made has no state.
        state = getattr(error, "sqlstate", None) or _state_of_failed_connection(error)
        known = next((words for code, words in _POSTGRES_WORDS.items() if state.startswith(code)), None)
    return known or f"refused: {_first_line(error)}"


def _state_of_failed_connection(error: BaseException) -> str:
    text = str(error)
    if "does not exist" in text and "database" in text:
        return "3D000"
    return "28" if "authentication failed" in text or "no pg_hba.conf entry" in text else "08"


def _broken_constraint(error: BaseException) -> CountersignError | None:
    """Second line of defence: the parts ask before they write, so only a forgotten check or a stranger gets here."""
    code = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", "")
    if code in ("23503", "SQLITE_CONSTRAINT_FOREIGNKEY"):
        return NotFound("nothing of that name is visible here; what the new entry belongs to must be there first")
    if code in ("23505", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"):
        return Conflict(f"the ledger has another entry under the same id: {_first_line(error)}; look at it first")
    return None


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
