"""Bringing a database to this program's tables, and refusing one that is not its own.

Apart from the engine because it is done once at the start, alone: processes that start together wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, func, inspect, select, text
from sqlalchemy.dialects import postgresql, sqlite

from countersign.domain.errors import ConfigurationRefused, Unavailable
from countersign.ledger.checkpoints import Checkpoints, locked
from countersign.ledger.engines import in_plain_words
from countersign.ledger.tables import installation as installations

MIGRATIONS = Path(__file__).with_name("migrations")
HEAD = "0005"
"""The newest revision in `migrations`."""

_ADVISORY_LOCK = 0x636F756E74657273
"""PostgreSQL's lock number for a starting ledger: `counters` in ASCII."""


def prepare(engine: Engine, installation: str, checkpoints: Checkpoints) -> None:
    """Migrate to HEAD and claim the database for `installation`.

    Raises:
        ConfigurationRefused: the database is newer than this program, another installation's, of another encoding, or
            empty while there are checkpoints of records that it should hold.
        Unavailable: it cannot be reached, opened or written.
    """
    with in_plain_words(engine), _alone(engine):
        if engine.name == "sqlite":
            # On the driver's own connection, since the engine's begin with a transaction.
            with closing(engine.raw_connection()) as connection:
                connection.cursor().execute("PRAGMA journal_mode = WAL")
        with engine.begin() as connection:
            if engine.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
                _check_encoding(connection)
            migrate(connection)
            _claim(connection, installation, checkpoints)


def revision(connection: Connection) -> str | None:
    """The database's revision; None where there are no tables of ours."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """SQLite changes its journal mode outside any transaction, and does not wait while somebody else does."""
    if engine.name != "sqlite":
        yield
        return
    path = Path(engine.url.database or "")
    try:
        with locked(path.with_name(path.name + ".lock")):
            yield
    except OSError as error:
        raise Unavailable(
            f"ledger {path} cannot be opened: {error.strerror}; its folder must be there and writable"
        ) from error


def migrate(connection: Connection) -> None:
    """Bring the tables to HEAD; ConfigurationRefused where they are newer than this program."""
    present = revision(connection)
    if present == HEAD:
        return
    # Imported late: a start that has nothing to migrate does not wait for it.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if present is not None and present not in known:
        raise ConfigurationRefused(
            f"ledger: the database has revision {present}, newer than this program's {HEAD}; install the newer program"
        )
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _claim(connection: Connection, name: str, checkpoints: Checkpoints) -> None:
    """Write the installation's name, or compare; a write in any case, so that a read-only database is met here."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    fresh = connection.execute(select(installations.c.name)).first() is None
    if fresh and checkpoints.exist():
        raise ConfigurationRefused(
            "ledger: the database is empty, but there are checkpoints of audit records that it should hold; restore "
            "the database, or move the checkpoints away to begin anew"
        )
    written = insert(installations).values(id=1, name=name)
    kept = written.on_conflict_do_update(index_elements=["id"], set_={"name": installations.c.name})
    owner = connection.execute(kept.returning(installations.c.name)).scalar_one()
    if owner != name:
        raise ConfigurationRefused(
            f"ledger: the database belongs to installation {owner!r}, not {name!r}; check both settings"
        )


def _check_encoding(connection: Connection) -> None:
    encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise ConfigurationRefused(f"ledger: the database's encoding is {encoding}; create it with ENCODING 'UTF8'")
