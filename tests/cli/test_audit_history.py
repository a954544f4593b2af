"""The audit beside Temporal's histories: each message has its record and the reverse, and what the server no longer has
is not passed off as checked."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowHandle

from countersign import bootstrap
from countersign.cli.proving.history_check import Came, Checked, KeptRun, check, untold_or_gone
from countersign.domain.audit import GENESIS, AuditRecord, link
from countersign.domain.operation import Operation
from countersign.domain.values import Sha256
from countersign.settings import load_settings
from countersign.temporal_client import connect
from tests.cli.command_line import Answer, CommandLine
from tests.cli.office import ROOT

ACME = ("--tenant", "acme")
STATED, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64


def run(*came: Came, status: str = "COMPLETED", **changes: Any) -> KeptRun:
    """A run of one operation."""
    fields = {"operation": "op", "run_id": "r1", "type": "GovernedAction", "status": status, "came": came}
    return KeptRun(**{**fields, **changes})


def signal(statement: str = STATED, *before: str) -> Came:
    return Came(transport="signal", statement_hash=statement, before=before)


def update(statement: str = STATED) -> Came:
    return Came(transport="update", statement_hash=statement)


def records(*said: tuple[str, str, str | None]) -> list[AuditRecord]:
    """Records of messages: id, transport, and hash of the statement, which one that was refused unread lacks."""
    made: list[AuditRecord] = []
    for sequence, (message_id, transport, statement) in enumerate(said, start=1):
        detail = {"message_id": message_id, "transport": transport}
        detail |= {"statement_hash": statement} if statement else {}
        fields = {
            "tenant": "acme", "sequence": sequence, "recorded_at": "2026-11-30T09:00:00.000000Z", "origin": "local",
            "type": "decision.refused", "operation": "op", "subject": "unknown", "detail": detail,
        }  # fmt: skip
        made.append(link(fields, made[-1].hash if made else GENESIS))
    return made


def problems(runs: Sequence[KeptRun], *said: tuple[str, str, str | None]) -> tuple[str, ...]:
    return check(runs, records(*said)).problems


def test_messages_that_have_their_records_agree() -> None:
    found = check(
        [run(signal(), update(OTHER), signal(""))],
        records(("r1:1", "signal", STATED), ("r1:2", "update", OTHER), ("r1:3", "signal", None)),
    )
    assert found == Checked(
        runs=1, messages=3, waiting=0, gone_runs=0, gone_messages=0, by_no_run=0, problems=()
    )  # fmt: skip


@pytest.mark.guarantee("G42")
def test_an_operation_that_was_registered_and_is_gone_is_named_and_one_that_never_was_too() -> None:
    moment = datetime(2026, 11, 30, 9, tzinfo=UTC)
    there = [
        Operation(tenant="acme", operation=name, case="report", request_hash=Sha256(STATED), requester="rita",
                  statement="a.b.c", registered_at=moment)
        for name in ("kept", "planted")
    ]  # fmt: skip
    registered = [
        one.model_copy(update={"type": "operation.registered", "operation": name})
        for one, name in zip(records(("r1:1", "signal", None), ("r1:2", "signal", None)), ("kept", "gone"), strict=True)
    ]
    assert list(untold_or_gone(there, registered)) == [
        "operation gone: audit record 2 says that it was registered, and it is not there",
        "operation planted: it is there, and no audit record says that it was registered",
    ]
    assert list(untold_or_gone(there[:1], registered[:1])) == []


@pytest.mark.guarantee("G47")
def test_a_message_without_a_record_is_named_also_the_last_one_of_a_run_that_ended() -> None:
    (problem,) = problems([run(signal(), signal(OTHER))], ("r1:1", "signal", STATED))
    assert problem == f"operation op: message r1:2 came as signal with statement {OTHER}, and has no audit record"


@pytest.mark.guarantee("G47")
@pytest.mark.parametrize("status", ["RUNNING", "TERMINATED", "COMPLETED"])
def test_a_gap_before_a_ruling_is_named_whether_the_run_has_ended_or_not(status: str) -> None:
    (problem,) = problems([run(signal(), signal(OTHER), status=status)], ("r1:2", "signal", OTHER))
    assert "message r1:1" in problem


@pytest.mark.parametrize("status", ["RUNNING", "TERMINATED", "FAILED", "TIMED_OUT"])
def test_what_came_last_to_a_run_without_its_own_end_waits_for_a_ruling(status: str) -> None:
    found = check([run(signal(), signal(OTHER), status=status)], records(("r1:1", "signal", STATED)))
    assert (found.messages, found.waiting, found.problems) == (1, 1, ())


def test_what_was_carried_on_into_an_open_run_waits_there() -> None:
    handed_on, going_on = run(signal(), status="CONTINUED_AS_NEW"), run(run_id="r2", status="RUNNING", carried=1)
    found = check([handed_on, going_on], [])
    assert (found.waiting, found.problems) == (1, ())
    assert len(problems([handed_on, run(run_id="r2", carried=1)])) == 1


@pytest.mark.guarantee("G47")
def test_a_record_without_a_message_is_named() -> None:
    (problem,) = problems([run(signal())], ("r1:1", "signal", STATED), ("r1:2", "signal", OTHER))
    assert problem.startswith("operation op: audit record 2 (decision.refused) is about message r1:2, which the run's")


@pytest.mark.parametrize("said", [("r1:1", "update", STATED), ("r1:1", "signal", OTHER)])
def test_a_record_that_says_otherwise_is_named_with_both(said: tuple[str, str, str]) -> None:
    found = problems([run(signal())], said)
    assert f"came as signal with statement {STATED}, and audit record 1 has it as {said[1]}" in found[0]
    assert "audit record 1 (decision.refused) is about message r1:1" in found[1]


def test_a_second_record_of_one_message_is_one_too_many() -> None:
    (problem,) = problems([run(signal())], ("r1:1", "signal", STATED), ("r1:1", "signal", OTHER))
    assert "audit record 2" in problem


def test_messages_of_runs_that_the_server_forgot_are_counted_apart_and_not_as_checked() -> None:
    said = [("old:1", "signal", STATED), ("old:2", "signal", OTHER), ("older:1", "update", STATED)]
    found = check([run()], records(*said, ("cli:a-late-statement", "cli", STATED)))
    assert (found.messages, found.gone_messages, found.gone_runs, found.by_no_run) == (0, 3, 2, 1)
    assert found.problems == ()


def test_a_run_that_carries_others_on_counts_on_once_the_ledger_has_said_that_it_may() -> None:
    going_on = run(signal(), signal(OTHER), signal(""), carried=4)
    agreed = records(("r1:1", "signal", STATED), ("r1:6", "signal", OTHER), ("r1:7", "signal", None))
    assert check([going_on], agreed).messages == 3
    late = records(("r1:5", "signal", STATED), ("r1:6", "signal", OTHER), ("r1:7", "signal", None))
    assert check([going_on], late).messages == 3


def test_what_a_reset_copied_has_its_record_under_the_run_that_it_came_to() -> None:
    reset = run(signal(STATED, "r0"), signal(OTHER), run_id="r1")
    found = check([reset], records(("r0:1", "signal", STATED), ("r1:2", "signal", OTHER)))
    assert (found.messages, found.gone_messages, found.problems) == (2, 0, ())


def test_a_run_of_somebody_elses_under_the_operations_name_is_named() -> None:
    assert problems([run(type="Rogue")]) == ("operation op: run r1 is of type 'Rogue', none of ours",)


OPERATION = "compared"


def compared(cli: CommandLine) -> dict[str, Any]:
    """What `audit verify --history` finds."""
    answer = cli("audit", "verify", *ACME, "--history", "--json")
    (found,) = answer.json()
    history: dict[str, Any] = found["history"]
    assert answer.code == (3 if history["problems"] else 0), answer
    return history


async def sent_and_reset() -> None:
    """Messages of all kinds, and then the run begun again from its last step, which copies them."""
    client = await connect()
    handle: WorkflowHandle[Any, Any] = client.get_workflow_handle(f"acme:{OPERATION}")
    for name, body in (("decide", "junk"), ("decide", {"statement": "a.b.c"}), ("no_such", None), ("decide", 7)):
        await handle.signal(name, body)
    await handle.signal("decide", args=["one", "two"])
    await handle.execute_update("decide", {"unsigned": {"person": "bob"}})
    ended = 0
    async for event in handle.fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            ended = event.event_id
    order = ResetWorkflowExecutionRequest(
        namespace=client.namespace, reason="a test", request_id=OPERATION, workflow_task_finish_event_id=ended
    )
    order.workflow_execution.workflow_id = f"acme:{OPERATION}"
    await client.workflow_service.reset_workflow_execution(order)


@pytest.mark.guarantee("G47")
@pytest.mark.long
def test_real_runs_agree_with_their_audit_and_a_ledger_without_one_record_does_not(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.done("start", ROOT / "examples" / "request.yaml", "--operation", OPERATION)
    cli.done("wait", OPERATION, *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
    before = copied(cli.home, tmp_path / "before")
    asyncio.run(sent_and_reset())
    assert "another run asks about this proposal" in cli("approve", OPERATION, *ACME, "--as", "bob").err
    cli.done("cancel", OPERATION, *ACME, "--as", "lea")
    assert cli("wait", OPERATION, *ACME, "--timeout", "5m").code == 5

    agreed = compared(cli)
    assert agreed["problems"] == []
    assert agreed["messages"] >= 7

    append_made_up(copied(cli.home, tmp_path / "after"), cli)
    (problem,) = compared(cli)["problems"]
    assert ":99, which the run's history does not have so" in problem

    cli.monkeypatch.setenv("COUNTERSIGN_HOME", str(before))
    shown: Answer = cli("audit", "verify", *ACME, "--history")
    assert shown.code == 3
    assert shown.out.count(f"acme: DIFFERENT: operation {OPERATION}: message ") >= 7
    assert "came as update with statement" in shown.out


def copied(home: Path, to: Path) -> Path:
    """A backup of the installation: its ledger with the checkpoints and the key that belong to it."""
    to.mkdir()
    with closing(sqlite3.connect(home / "ledger.db")) as database:
        database.execute("VACUUM INTO ?", (str(to / "ledger.db"),))
    for part in ("keys", "checkpoints"):
        shutil.copytree(home / part, to / part)
    return to


def append_made_up(home: Path, cli: CommandLine) -> None:
    """A record of a message that never came, as whoever can write to the ledger in our name could leave it."""
    cli.monkeypatch.setenv("COUNTERSIGN_HOME", str(home))
    ledger = bootstrap.open_ledger(load_settings())
    came = [one for one in ledger.audit.records("acme", OPERATION) if one.detail.get("transport") == "signal"]
    detail = {"message_id": f"{str(came[0].detail['message_id']).rpartition(':')[0]}:99", "transport": "signal"}
    ledger.audit.append("acme", "decision.refused", OPERATION, "unknown", {**detail}, datetime.now(UTC))
    ledger.close()


def test_without_a_server_it_is_not_said_to_agree(cli: CommandLine) -> None:
    cli.monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    answer = cli("audit", "verify", *ACME, "--history")
    assert (answer.code, answer.out) == (1, "")
    assert "no Temporal server answers" in answer.err
