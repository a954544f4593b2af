"""What agents kept goes some time after the end of its operation; what has not ended keeps it, however long that is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from countersign.agents.checkpoint_keys import ThreadKeys
from countersign.agents.checkpoints import checkpoints_at
from countersign.agents.failures import AttemptSuperseded
from countersign.agents.retention import Retention
from countersign.agents.threads import threads_at
from countersign.cli.app import run
from countersign.domain.errors import NotFound, Unavailable
from countersign.domain.progress import ProgressKind
from countersign.domain.report import Draft
from countersign.domain.retention import NOTHING, Forgotten, RetentionOrder
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from countersign.settings import Settings
from tests.agents.paused import WHOLE, Rows, answered, paused
from tests.ledger.builders import NOW, opened, operation
from tests.ledger.founding import found
from tests.support.ledgers import with_tables

KEYS = ThreadKeys({"k1": b"k" * 32})
OTHER = "acme-2"
KEEP = RetentionOrder(keep="30d")


@pytest.fixture
def ledger(ledger_url: str, tmp_path: Path) -> Iterator[SqlLedger]:
    """A ledger with two tenants whose names begin alike."""
    made = opened(ledger_url, tmp_path / "checkpoints")
    found(made)
    found(made, OTHER)
    yield made
    made.close()


def run_of(ledger: SqlLedger, name: str, state: State, days: int, tenant: str = "acme") -> None:
    """An operation that was asked for long ago, and has stood in `state` for that many days."""
    ledger.operations.register(operation(name, tenant=tenant, registered_at=NOW - timedelta(days=200)))
    ledger.operations.move(tenant, name, state, "", NOW - timedelta(days=days))
    ledger.progress.add(tenant, name, ProgressKind.DRAFTING, 1, "", "", NOW)


async def opened_thread(url: str, thread: str) -> None:
    async with checkpoints_at(url, KEYS).open(thread, 1, Draft):
        pass


def kept(url: str, tenant: str = "acme") -> dict[str, int]:
    """How many threads each operation has."""
    return {operation: len(threads) for operation, threads in threads_at(url).of_tenant(tenant).items()}


async def test_only_threads_of_operations_that_ended_long_enough_ago_go(ledger: SqlLedger, ledger_url: str) -> None:
    run_of(ledger, "old", State.SUCCEEDED, 31)
    run_of(ledger, "old-one", State.FAILED, 29)
    run_of(ledger, "paused", State.WAITING_ANSWER, 120)
    await paused(ledger_url, KEYS, "acme:old:run:1:v1")
    for thread in ("acme:old:run:1:v2", "acme:old-one:run:1:v1", "acme:lost-by-the-ledger:run:1:v1"):
        await opened_thread(ledger_url, thread)
    await paused(ledger_url, KEYS, "acme:paused:run:1:v1")

    forgotten = Retention(ledger, threads_at(ledger_url)).forget(KEEP, "clock", NOW)

    assert forgotten == Forgotten(operations=1, threads=2)
    assert kept(ledger_url) == {"old-one": 1, "paused": 1, "lost-by-the-ledger": 1}
    assert b"acme:old:" not in b"".join(str(row).encode() for row in all_rows(ledger_url))
    assert [len(ledger.progress.since("acme", name, 0)) for name in ("old", "old-one", "paused")] == [0, 1, 1]
    assert await answered(ledger_url, KEYS, "acme:paused:run:1:v1") == WHOLE


def all_rows(url: str) -> list[tuple[object, ...]]:
    """Every row that any thread has left, by the tables of both engines."""
    rows = Rows(url)
    tables = ["{checkpoints}", "{writes}", *([] if rows.sqlite else ["agent_threads.checkpoints"])]
    return [row for table in tables for row in rows(f"SELECT thread_id FROM {table}")]


async def test_it_is_in_the_audit_once_for_each_tenant_and_a_repeat_finds_nothing(
    ledger: SqlLedger, ledger_url: str
) -> None:
    for tenant in ("acme", OTHER):
        run_of(ledger, "old", State.CANCELLED, 31, tenant)
        await opened_thread(ledger_url, f"{tenant}:old:run:1:v1")
    retention = Retention(ledger, threads_at(ledger_url))

    assert retention.forget(RetentionOrder(keep="30d", tenant="acme"), "operator", NOW) == Forgotten(
        operations=1, threads=1
    )
    assert kept(ledger_url, OTHER) == {"old": 1}
    assert retention.forget(KEEP, "clock", NOW) == Forgotten(operations=1, threads=1)
    assert retention.forget(KEEP, "clock", NOW) == NOTHING

    for tenant, by in (("acme", "operator"), (OTHER, "clock")):
        (record,) = [each for each in ledger.audit.records(tenant) if each.type == "threads.deleted"]
        assert (record.subject, record.operation) == (by, "")
        assert record.detail == {"operations": 1, "threads": 1, "keep": "30d"}
        ledger.audit.verify(tenant)


async def test_an_attempt_that_still_runs_writes_nothing_into_what_was_deleted(
    ledger: SqlLedger, ledger_url: str
) -> None:
    run_of(ledger, "old", State.WITHDRAWN, 31)
    thread = "acme:old:run:1:v1"
    async with checkpoints_at(ledger_url, KEYS).open(thread, 1, Draft) as saver:
        Retention(ledger, threads_at(ledger_url)).forget(KEEP, "clock", NOW)
        config = {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": "1"}}
        with pytest.raises(AttemptSuperseded):
            await saver.aput_writes(config, [("messages", "late")], "task")  # type: ignore[arg-type]  # a plain config
    assert all_rows(ledger_url) == []


def test_where_nothing_was_ever_drafted_there_is_nothing_and_none_is_made(
    ledger: SqlLedger, ledger_url: str, tmp_path: Path
) -> None:
    assert Retention(ledger, threads_at(ledger_url)).forget(KEEP, "clock", NOW) == NOTHING
    file = tmp_path / "threads.db"
    assert Retention(ledger, threads_at(f"sqlite:///{file}")).forget(KEEP, "clock", NOW) == NOTHING
    assert not file.exists()


def test_an_unknown_tenant_and_a_database_that_is_none_are_told_in_words(ledger: SqlLedger, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="tenant 'acne' is not there"):
        Retention(ledger, threads_at("sqlite:///x")).forget(RetentionOrder(keep="1d", tenant="acne"), "clock", NOW)
    (tmp_path / "threads.db").write_bytes(b"no database at all, but long enough to be one" * 99)
    for url in (f"sqlite:///{tmp_path / 'threads.db'}", "postgresql://nobody@127.0.0.1:1/none"):
        with pytest.raises(Unavailable, match="cannot be used"):
            Retention(ledger, threads_at(url)).forget(KEEP, "clock", NOW)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """An installation of its own for commands, on SQLite."""
    made = Settings(home=tmp_path / "home", _env_file=None)
    with_tables(made.home / "ledger.db")
    monkeypatch.setenv("COUNTERSIGN_HOME", str(made.home))
    monkeypatch.setenv("DATABASE_URL", "")
    return made


async def test_the_command_says_how_much_went(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    from countersign import bootstrap

    ledger = bootstrap.open_ledger(settings)
    assert isinstance(ledger, SqlLedger)
    found(ledger)
    run_of(ledger, "old", State.SUCCEEDED, 31)
    ledger.close()
    await opened_thread(settings.threads_url, "acme:old:run:1:v1")
    await opened_thread(settings.threads_url, "acme:old:run:1:v2")

    assert run(["retention", "--keep", "1d", "--tenant", "acme"]) == 0
    assert capsys.readouterr().out == "deleted 2 threads of 1 operations that ended over 1d ago\n"
    assert run(["retention", "--keep", "1d", "--json"]) == 0
    assert capsys.readouterr().out == '{\n  "operations": 0,\n  "threads": 0\n}\n'
    assert run(["retention", "--keep", "soon"]) == 2
    assert "--keep: 'soon' is no time" in capsys.readouterr().err
