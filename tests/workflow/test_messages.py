"""Messages of any form: none wedges a run, each leaves a record, and a correct decision then still works."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.client import WorkflowHandle

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.run import RunStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_messages, until_state

MESSAGES = 2_000
JSON = {"encoding": b"json/plain"}
DEEP = b"[" * 5_000 + b"]" * 5_000
BODIES = [
    b"", b"null", b"true", b"7", b'"approve"', b"[]", b"{}", b'{"decision":"approve"}', b'{"statement":null}',
    b'{"statement":7}', b'{"statement":""}', b'{"statement":"a.b.c"}', b'{"statement":"a","statement":"b"}',
    b'{"statement":"x","extra":1}', b"{", b"\xff\xfe", b"NaN", b'{"statement":NaN}', b'{"statement":"\\ud800"}',
    b'{"statement":"\\u0000"}', b'{"statement":"' + b"a" * 9_000 + b'"}', b"x" * 40_000, DEEP,
    b'{"statement":' + DEEP + b"}", b'{"statement":' + b"9" * 6_000 + b"}", '{"statement":"ａ.ｂ.ｃ"}'.encode(),
]  # fmt: skip
ENCODINGS = [JSON, {}, {"encoding": b"binary/null"}, {"encoding": b"binary/encrypted"}, {"encoding": b"\xff"},
             {"encoding": b"json/protobuf", "messageType": b"x"}]  # fmt: skip
NAMES = [
    "decide",
    "decide",
    "decide",
    "answer",
    "Decide",
    "decide ",
    "",
    "审批",
    "\u202edecide",
    "x" * 300,
    "__temporal",
]


def random_message(chance: random.Random) -> tuple[str, Payloads | None]:
    if chance.random() < 0.1:
        return chance.choice(NAMES), None
    count = chance.choice([0, 1, 1, 1, 1, 2, 3])
    payloads = [
        Payload(metadata=chance.choice([JSON, *ENCODINGS]), data=chance.choice([*BODIES, chance.randbytes(40)]))
        for _ in range(count)
    ]
    return chance.choice(NAMES), Payloads(payloads=payloads)


async def send_raw(
    installation: Installation, run: WorkflowHandle[Any, Any], name: str, payloads: Payloads | None
) -> None:
    await installation.client.workflow_service.signal_workflow_execution(
        SignalWorkflowExecutionRequest(
            namespace=installation.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run.id),
            signal_name=name,
            input=payloads,
        )
    )


async def failed_tasks(run: WorkflowHandle[Any, Any]) -> list[str]:
    """Failures of workflow tasks, but for those by which the server itself makes room for more than 100 signals."""
    failed = [
        event.workflow_task_failed_event_attributes
        async for event in run.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    ]
    makes_room = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND
    return [each.failure.message for each in failed if each.cause != makes_room]


@pytest.mark.long
@pytest.mark.guarantee("G19", "G47")
@pytest.mark.timeout(300)
async def test_two_thousand_malformed_signals_leave_records_and_a_run_that_still_decides(
    installation: Installation,
) -> None:
    chance = random.Random(20261130)
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        sent = 0
        while sent < MESSAGES:
            batch = [random_message(chance) for _ in range(50)]
            # An empty signal name is refused by the server itself and so never reaches a run.
            reaching = [(name, payloads) for name, payloads in batch if name]
            await asyncio.gather(*(send_raw(installation, run, name, payloads) for name, payloads in reaching))
            sent += len(reaching)
        status = await until_messages(run, sent)
        assert (status.refused, status.state) == (sent, State.WAITING_APPROVAL)
        proposal = installation.proposal("op-1")
        outcome = await run.execute_update("decide", installation.decision(proposal, "bob"), result_type=Outcome)
        result = await run.result()
    assert outcome.ruling == Ruling.ACCEPTED
    assert result.state == State.SUCCEEDED
    assert await failed_tasks(run) == []
    records = [record.type for record in installation.ledger.audit.records("acme", "op-1")]
    assert records.count("decision.refused") == sent
    assert installation.ledger.audit.verify("acme").count >= sent


@pytest.mark.guarantee("G19", "G47")
@pytest.mark.parametrize("letter", [b"\x01", b'"', "\U0001f600".encode()], ids=["control", "quote", "astral"])
async def test_bodies_that_grow_when_they_are_written_as_json_wedge_no_run(
    sqlite_installation: Installation, letter: bytes
) -> None:
    """What is 16 kB on the wire can be six times that in a step's input, which the server bounds."""
    installation = sqlite_installation
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
    body = Payloads(payloads=[Payload(metadata=JSON, data=letter * (15_900 // len(letter)))])
    for _each in range(60):
        await send_raw(installation, run, "decide", body)
    async with installation.workers():
        await until_messages(run, 60)
        proposal = installation.proposal("op-1")
        outcome = await run.execute_update("decide", installation.decision(proposal, "bob"), result_type=Outcome)
        result = await run.result()
    assert outcome.ruling == Ruling.ACCEPTED
    assert result.state == State.SUCCEEDED
    assert await failed_tasks(run) == []


@pytest.mark.guarantee("G17")
async def test_the_same_decision_twice_counts_once_and_the_second_is_a_replay(installation: Installation) -> None:
    async with installation.workers("agent"):
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        message = installation.decision(installation.proposal("op-1"), "bob")
        first = await run.execute_update("decide", message, result_type=Outcome)
        second = await run.execute_update("decide", message, result_type=Outcome)
    assert (first.ruling, second.ruling) == (Ruling.ACCEPTED, Ruling.REPLAY)


@pytest.mark.guarantee("G16", "G20")
async def test_one_signal_to_every_run_moves_only_the_one_it_names(installation: Installation) -> None:
    async with installation.workers():
        runs = [await installation.start(f"op-{number}") for number in range(3)]
        for run in runs:
            await until_state(run, State.WAITING_APPROVAL)
        message = installation.decision(installation.proposal("op-1"), "bob")
        for run in runs:
            await run.signal("decide", message)
        result = await runs[1].result()
        others = [await until_messages(run, 1) for run in (runs[0], runs[2])]
    assert result.state == State.SUCCEEDED
    assert [status.state for status in others] == [State.WAITING_APPROVAL] * 2
    assert len(installation.published()) == 1


@pytest.mark.guarantee("G19", "G21")
async def test_an_unsigned_approval_with_any_identity_changes_nothing(installation: Installation) -> None:
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        await run.signal("decide", {"decision": "approve", "approver": "bob", "identity": "bob"})
        status = await until_messages(run, 1)
    assert (status.state, status.refused) == (State.WAITING_APPROVAL, 1)


@pytest.mark.parametrize(
    ("person", "changes", "ruling"),
    [
        ("rita", {}, Ruling.REQUESTER_MAY_NOT_DECIDE),
        ("bob", {"approval_version": 2}, Ruling.NOT_THIS_VERSION),
        ("bob", {"action_hash": "sha256:" + "0" * 64}, Ruling.NOT_THIS_ACTION),
        ("bob", {"approval_id": "apr-other"}, Ruling.NOT_THIS_APPROVAL),
        ("bob", {"operation": "op-9"}, Ruling.NOT_THIS_APPROVAL),
        ("bob", {"installation": "elsewhere"}, Ruling.BAD_STATEMENT),
        ("bob", {"tenant": "other"}, Ruling.BAD_STATEMENT),
        ("bob", {"person": "carl"}, Ruling.BAD_STATEMENT),
        ("bob", {"key_id": "carl-1"}, Ruling.BAD_STATEMENT),
    ],
)
@pytest.mark.guarantee("G16", "G18", "G23")
async def test_a_statement_for_something_else_is_refused_with_its_reason(
    sqlite_installation: Installation, person: str, changes: dict[str, Any], ruling: Ruling
) -> None:
    async with sqlite_installation.workers("agent"):
        run = await sqlite_installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        message = sqlite_installation.decision(sqlite_installation.proposal("op-1"), person, **changes)
        outcome = await run.execute_update("decide", message, result_type=Outcome)
        status = await run.query("status", result_type=RunStatus)
    assert outcome.ruling == ruling
    assert status.state == State.WAITING_APPROVAL


@pytest.mark.guarantee("G46")
async def test_history_holds_no_text_of_request_draft_or_data(sqlite_installation: Installation) -> None:
    async with sqlite_installation.workers():
        run = await sqlite_installation.start("op-1", data="date,region,amount\n2026-01-05,Zanzibar-West,120.50\n")
        await until_state(run, State.WAITING_APPROVAL)
        decision = sqlite_installation.decision(sqlite_installation.proposal("op-1"), "bob")
        await run.execute_update("decide", decision, result_type=Outcome)
        await run.result()
    history = json.dumps((await run.fetch_history()).to_json_dict())
    for text in ("Zanzibar", "120.5", "How did sales", "PRIVATE KEY"):
        assert text not in history
