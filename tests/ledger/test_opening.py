"""Opening a ledger: its tables, and every database that it must not work on, refused in plain words."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, event, select, text
from sqlalchemy.exc import StatementError

from countersign.domain.errors import ConfigurationRefused, Conflict, CountersignError, NotFound, Unavailable
from countersign.domain.state import State
from countersign.ledger import SqlLedger, engines, open_ledger, schema
from countersign.ledger.engines import make_engine
from countersign.ledger.tables import audit_records, drafts, metadata, statements
from tests.ledger.builders import NOW, OPERATION, SIGNING_KEY, TENANT, draft, opened, operation
from tests.ledger.founding import found
from tests.support.postgres import as_superuser


def test_the_tables_are_the_sum_of_the_migrations(ledger: SqlLedger, database: Engine) -> None:
    with database.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_the_program_knows_its_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == schema.HEAD


def test_a_ledger_is_found_again_as_it_was_left(ledger_url: str, checkpoints: Path) -> None:
    first = opened(ledger_url, checkpoints)
    found(first)
    first.operations.register(operation())
    first.close()
    again = opened(ledger_url, checkpoints)
    assert again.operations.list(TENANT) == [operation()]
    again.close()


def test_whether_anything_can_be_written_is_tried_and_leaves_nothing(empty_ledger: SqlLedger, database: Engine) -> None:
    empty_ledger.check_writable()
    with database.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM documents")).scalar_one() == 0
        connection.execute(text("DROP TABLE documents"))
    with pytest.raises(Unavailable):
        empty_ledger.check_writable()


def test_many_that_open_an_empty_database_at_once_all_get_it(bare_ledger_url: str, checkpoints: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        ledgers = list(threads.map(lambda _: opened(bare_ledger_url, checkpoints), range(8)))
    for number, ledger in enumerate(ledgers):
        ledger.audit.append(TENANT, "note.made", "", "rita", {"number": number}, NOW)
    assert ledgers[0].audit.verify(TENANT).count == 8
    for ledger in ledgers:
        ledger.close()


def test_another_installations_database_is_refused(ledger: SqlLedger, ledger_url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationRefused, match="belongs to installation 'house', not 'other'"):
        open_ledger(ledger_url, installation="other", checkpoints=tmp_path / "other", signing_key=SIGNING_KEY)


def test_a_database_that_is_newer_than_the_program_is_refused(
    ledger: SqlLedger, database: Engine, ledger_url: str, checkpoints: Path
) -> None:
    with database.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigurationRefused, match="9999, newer than this program"):
        opened(ledger_url, checkpoints)


@pytest.mark.guarantee("G43")
def test_an_empty_database_beside_checkpoints_is_refused(ledger: SqlLedger, checkpoints: Path, tmp_path: Path) -> None:
    ledger.audit.append(TENANT, "note.made", "", "rita", {}, NOW)
    with pytest.raises(ConfigurationRefused, match="the database is empty, but there are checkpoints"):
        opened(f"sqlite:///{tmp_path / 'emptied.sqlite'}", checkpoints)


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("mysql://host/name", ConfigurationRefused, "is not supported; use sqlite:///path"),
        ("sqlite://", ConfigurationRefused, "is not supported"),
        ("sqlite:///:memory:", ConfigurationRefused, "is not supported"),
        ("what is this", ConfigurationRefused, "not a URL"),
        ("postgresql://nobody:geheim@127.0.0.1:1/none", Unavailable, "does not answer"),
    ],
)
def test_an_unusable_url_is_refused_without_its_password(
    url: str, error: type[CountersignError], words: str, checkpoints: Path
) -> None:
    with pytest.raises(error, match=words) as refused:
        opened(url, checkpoints)
    assert "geheim" not in refused.value.message
    assert "\n" not in refused.value.message


def test_a_database_that_is_not_there_is_named(postgres_url: Callable[[], str], checkpoints: Path) -> None:
    with pytest.raises(Unavailable, match="absent is not there"):
        opened(postgres_url().rsplit("/", 1)[0] + "/absent", checkpoints)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, checkpoints: Path) -> None:
    with pytest.raises(Unavailable, match=r"absent/ledger.sqlite cannot be opened: .*its folder must be there"):
        opened(f"sqlite:///{tmp_path / 'absent' / 'ledger.sqlite'}", checkpoints)


def test_a_file_that_is_no_database_is_named(tmp_path: Path, checkpoints: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"something else entirely" * 100)
    with pytest.raises(Unavailable, match="is no SQLite database"):
        opened(f"sqlite:///{tmp_path / 'ledger.sqlite'}", checkpoints)


def test_a_checkpoint_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="checkpoint folder"):
        opened(f"sqlite:///{tmp_path / 'ledger.sqlite'}", tmp_path / "file" / "checkpoints")


def test_a_read_only_postgres_database_is_refused_at_the_start(
    postgres_url: Callable[[], str], checkpoints: Path
) -> None:
    url = postgres_url()
    opened(url, checkpoints).close()
    with make_engine(url).begin() as connection:
        name = url.rsplit("/", 1)[1]
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
    with pytest.raises(Unavailable, match="is read-only"):
        opened(url, checkpoints)


def test_a_postgres_database_of_another_encoding_is_refused(postgres_url: Callable[[], str], checkpoints: Path) -> None:
    url = as_superuser(postgres_url())
    engine = make_engine(url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(
            text("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        )
    with pytest.raises(ConfigurationRefused, match="encoding is LATIN1"):
        opened(url.rsplit("/", 1)[0] + "/latin", checkpoints)


@contextmanager
def as_somebody_without_rights() -> Iterator[None]:
    """Root may write anything, so as root the effective user changes for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_sqlite_file_is_refused_at_the_start(checkpoints: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="countersign-ledger-"))
    try:
        url = f"sqlite:///{folder / 'ledger.sqlite'}"
        opened(url, folder / "checkpoints").close()
        folder.chmod(0o777)
        (folder / "ledger.sqlite.lock").chmod(0o666)
        (folder / "checkpoints").chmod(0o777)
        (folder / "ledger.sqlite").chmod(0o444)
        with pytest.raises(Unavailable, match="is read-only; make the file and"), as_somebody_without_rights():
            opened(url, folder / "checkpoints")
        (folder / "ledger.sqlite.lock").chmod(0o444)
        with pytest.raises(Unavailable, match="cannot be opened"), as_somebody_without_rights():
            opened(url, folder / "checkpoints")
    finally:
        shutil.rmtree(folder)


def test_a_full_sqlite_disk_refuses_the_step_and_changes_nothing(tmp_path: Path, checkpoints: Path) -> None:
    ledger = opened(f"sqlite:///{tmp_path / 'ledger.sqlite'}", checkpoints)
    found(ledger)
    ledger.operations.register(operation())
    before = ledger.audit.verify(TENANT)
    ledger.close()

    @event.listens_for(ledger._store.engine, "connect")
    def full(connection: object, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # type: ignore[attr-defined]  # sqlite3's, made smaller

    with pytest.raises(Unavailable, match="has no room left on its disk"):
        ledger.documents.put(TENANT, b"x" * 1_000_000)
    assert ledger.audit.verify(TENANT) == before
    ledger.close()


def test_a_broken_constraint_is_told_in_the_domains_words(ledger: SqlLedger) -> None:
    """The parts ask before they write; this is what a forgotten check would come to."""
    ledger.audit.append(TENANT, "note.made", "", "rita", {}, NOW)
    copied = select(audit_records).where(audit_records.c.tenant == TENANT)
    with pytest.raises(Conflict, match="another entry under the same id"), ledger._store.writing(TENANT) as writing:
        writing.connection.execute(audit_records.insert().from_select(list(audit_records.c.keys()), copied))
    with pytest.raises(NotFound, match="must be there first"), ledger._store.writing(TENANT) as writing:
        writing.insert_once(drafts, operation="nowhere", version=1, hash="h", draft=draft(), model="m", written_at=NOW)


def test_a_mistake_in_the_program_is_not_dressed_up_as_the_databases(ledger: SqlLedger) -> None:
    with pytest.raises(StatementError), ledger._store.writing(TENANT) as writing:
        writing.insert_once(statements, id="s", hash="h", operation="o", seen_at="yesterday")


def test_where_all_connections_are_taken_the_wait_ends(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ledger._store.engine.pool
    monkeypatch.setattr(pool, "_timeout", 0.01)

    def take_all(taken: ExitStack) -> None:
        while True:
            taken.enter_context(ledger._store.reading(TENANT))

    with ExitStack() as taken, pytest.raises(Unavailable, match="no free connection"):
        take_all(taken)
    assert ledger.operations.list(TENANT) == []


def test_a_lock_that_is_held_too_long_is_told_in_plain_words(
    ledger: SqlLedger, database: Engine, ledger_url: str, monkeypatch: pytest.MonkeyPatch, checkpoints: Path
) -> None:
    ledger.operations.register(operation())
    monkeypatch.setattr(engines, "WAIT_SECONDS", 0.05)
    impatient = opened(ledger_url, checkpoints)
    with database.connect() as connection:
        # On SQLite the transaction alone, which begins here, keeps all other writers out.
        connection.execute(text("SELECT 1 FROM operations" + (" FOR UPDATE" if database.name != "sqlite" else "")))
        with pytest.raises(Unavailable, match="program for more than 30 s"):
            impatient.operations.move(TENANT, OPERATION, State.RUNNING, "", NOW)
        connection.rollback()
    impatient.operations.move(TENANT, OPERATION, State.RUNNING, "", NOW)
    impatient.close()
