"""The stored threads of agents, as a retention needs them: which there are, under which keys, and to delete them whole.

Apart from the checkpoints themselves, since it needs neither a key itself nor the agent framework, which takes seconds
to load.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import psycopg
from psycopg import sql

from countersign.agents.checkpoint_keys import key_of
from countersign.domain.errors import ConfigurationRefused, Unavailable
from countersign.domain.thread import operation_of_thread

BUSY_SECONDS = 30
SCHEMA = "agent_threads"
"""PostgreSQL's schema for all of this, so that one statement grants, dumps or drops it apart from the ledger."""
ATTEMPTS = "checkpoint_attempts"
"""Has a row for every thread that was ever opened; without it, an attempt that still runs writes nothing more."""
SQLITE_TABLES = (ATTEMPTS, "checkpoints", "writes")
POSTGRES_TABLES = (ATTEMPTS, "checkpoints", "checkpoint_blobs", "checkpoint_writes")

Found: TypeAlias = Mapping[str, Sequence[str]]


class Threads(Protocol):
    """A store of threads."""

    def of_tenant(self, tenant: str) -> Found:
        """The tenant's threads by operation; Unavailable where the database does not answer."""
        ...

    def by_key(self) -> Found:
        """Every thread by the id of each key that something of it is encrypted with; Unavailable as above."""
        ...

    def delete(self, threads: Sequence[str]) -> None:
        """Delete them with all that is kept of them, in one transaction; Unavailable as above."""
        ...


def store_at(url: str) -> tuple[Literal["sqlite", "postgresql"], Path]:
    """What kind of store `url` names, and the file of the first kind.

    Raises:
        ConfigurationRefused: it names neither.
    """
    if url.startswith("sqlite:///"):
        return "sqlite", Path(url.removeprefix("sqlite:///"))
    if url.startswith("postgresql://"):
        return "postgresql", Path()
    raise ConfigurationRefused(
        f"checkpoint store {url.partition('://')[0]!r} is not known; use sqlite:///FILE or postgresql://HOST/NAME"
    )


def threads_at(url: str) -> Threads:
    """The threads in the store that `url` names; ConfigurationRefused where it names none."""
    kind, file = store_at(url)
    return SqliteThreads(file) if kind == "sqlite" else PostgresThreads(url)


def unusable(what: str, error: Exception) -> Unavailable:
    """What a database's error means for people."""
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return Unavailable(f"{what} cannot be used ({reason}); check that it is there, writable and not full")


class SqliteThreads:
    """Threads in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of_tenant(self, tenant: str) -> Found:
        """See Threads."""
        with self._connection() as connection:
            there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (ATTEMPTS,)).fetchone()
            rows = connection.execute(f"SELECT thread_id FROM {ATTEMPTS}").fetchall() if there else []
        return _by_operation(tenant, rows)

    def by_key(self) -> Found:
        """See Threads."""
        with self._connection() as connection:
            there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (ATTEMPTS,)).fetchone()
            select = "SELECT thread_id, type FROM checkpoints UNION SELECT thread_id, type FROM writes"
            return _by_key(connection.execute(select).fetchall() if there else [])

    def delete(self, threads: Sequence[str]) -> None:
        """See Threads."""
        with self._connection() as connection:
            for table in SQLITE_TABLES:
                connection.executemany(f"DELETE FROM {table} WHERE thread_id = ?", [(each,) for each in threads])

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if not self._path.exists():
            # Nothing was ever drafted; opening would make an empty file.
            with closing(sqlite3.connect(":memory:")) as nothing:
                yield nothing
            return
        try:
            with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS)) as connection, connection:
                yield connection
        except sqlite3.Error as error:
            raise unusable(f"checkpoint file {self._path}", error) from error


class PostgresThreads:
    """Threads in PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._url = url

    def of_tenant(self, tenant: str) -> Found:
        """See Threads."""
        with self._connection() as connection:
            there = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.{ATTEMPTS}",)).fetchone()
            names = sql.SQL("SELECT thread_id FROM {}").format(sql.Identifier(SCHEMA, ATTEMPTS))
            rows = connection.execute(names).fetchall() if there and there[0] else []
        return _by_operation(tenant, rows)

    def by_key(self) -> Found:
        """See Threads."""
        with self._connection() as connection:
            there = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.{ATTEMPTS}",)).fetchone()
            select = sql.SQL(" UNION ").join(
                sql.SQL("SELECT thread_id, type FROM {}").format(sql.Identifier(SCHEMA, table))
                for table in ("checkpoint_blobs", "checkpoint_writes")
            )
            return _by_key(connection.execute(select).fetchall() if there and there[0] else [])

    def delete(self, threads: Sequence[str]) -> None:
        """See Threads."""
        with self._connection() as connection:
            for table in POSTGRES_TABLES:
                delete = sql.SQL("DELETE FROM {} WHERE thread_id = ANY(%s)").format(sql.Identifier(SCHEMA, table))
                connection.execute(delete, (list(threads),))

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        try:
            with psycopg.connect(self._url) as connection:
                yield connection
        except psycopg.Error as error:
            raise unusable("checkpoint database", error) from error


def _by_key(rows: Iterable[tuple[str, str]]) -> Found:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for thread, sealed_as in rows:
        if key := key_of(sealed_as):
            found[key].add(thread)
    return {key: sorted(threads) for key, threads in sorted(found.items())}


def _by_operation(tenant: str, rows: Iterable[tuple[str]]) -> Found:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for (thread,) in rows:
        whose, operation = operation_of_thread(thread)
        if whose == tenant:
            found[operation].append(thread)
    return found
