"""Messages that come at once, too early, too late or under another name: each is ruled on, and its sender told."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from activities.interfaces import Message, MessageBatch
from countersign.domain.audit import AuditRecord
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.identity import workflow_id
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import RunStatus, Step
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_messages, until_state
from workflows.carrying import RunInput
from workflows.governed_action import GovernedAction
from workflows.names import RUN_QUEUE

UNSIGNED = {"statement": "a.b.c"}


async def ask(run: WorkflowHandle[Any, Any], message: dict[str, str], name: str = "decide") -> Outcome:
    outcome: Outcome = await run.execute_update(name, message, result_type=Outcome)
    return outcome


def rulings(installation: Installation, operation: str) -> list[AuditRecord]:
    """What the ledger recorded of every message."""
    records = installation.ledger.audit.records("acme", operation)
    return [record for record in records if record.type.startswith("decision.")]


@pytest.mark.guarantee("G10", "G17", "G47")
async def test_of_twenty_decisions_at_once_one_settles_and_each_sender_is_told(installation: Installation) -> None:
    async with installation.workers("agent"):
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        proposal = installation.proposal("op-1")
        # Approvals only: a rejection that is first would end the run, and the others would meet a closed one.
        messages = [installation.decision(proposal, person) for person in ("bob", "carl") for _ in range(10)]
        by_update, by_signal = messages[::2], messages[1::2]
        asked = [asyncio.create_task(ask(run, message)) for message in by_update]
        await asyncio.gather(*(run.signal("decide", message) for message in by_signal))
        answers = await asyncio.gather(*asked)
        await until_messages(run, len(messages))
        async with installation.workers("gateway"):
            result = await run.result()
    recorded = rulings(installation, "op-1")
    assert len(recorded) == len(messages)
    (settling,) = [record for record in recorded if record.type == "decision.accepted"]
    others = {record.detail["ruling"] for record in recorded if record is not settling}
    assert others <= {Ruling.ALREADY_SETTLED, Ruling.ALREADY_VOTED}
    assert len(answers) == len(by_update)
    assert result.state == State.SUCCEEDED
    assert len(installation.published()) == 1


async def test_an_update_that_races_the_end_is_answered_or_refused_and_never_left_waiting(
    sqlite_installation: Installation,
) -> None:
    async def asked_until_the_end(run: WorkflowHandle[Any, Any]) -> int:
        answered = 0
        while True:
            try:
                outcome = await ask(run, UNSIGNED)
            except WorkflowUpdateFailedError:
                continue  # the run ended in the moment between taking the update and ruling on it
            except RPCError as gone:
                if gone.status != RPCStatusCode.NOT_FOUND:
                    raise
                return answered
            assert outcome.ruling == Ruling.BAD_STATEMENT
            answered += 1

    async with sqlite_installation.workers(), asyncio.timeout(60):
        run = await sqlite_installation.start("op-1", channel="internal")
        answers = await asyncio.gather(*(asked_until_the_end(run) for _ in range(5)))
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(rulings(sqlite_installation, "op-1")) >= sum(answers) > 0


async def test_an_update_of_another_name_is_told_which_names_there_are(sqlite_installation: Installation) -> None:
    async with sqlite_installation.workers("agent"):
        run = await sqlite_installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        outcome = await ask(run, sqlite_installation.decision(sqlite_installation.proposal("op-1"), "bob"), "approve")
        status = await run.query("status", result_type=RunStatus)
    assert outcome.ruling == Ruling.UNKNOWN_MESSAGE
    assert "known: decide, take_over" in outcome.detail
    assert (status.state, status.refused) == (State.WAITING_APPROVAL, 1)


@pytest.mark.guarantee("G16", "G47")
async def test_a_decision_sent_together_with_the_start_is_recorded_and_decides_nothing(
    sqlite_installation: Installation,
) -> None:
    async with sqlite_installation.workers("agent"):
        first = await sqlite_installation.start("op-1")
        await until_state(first, State.WAITING_APPROVAL)
        early = sqlite_installation.decision(sqlite_installation.proposal("op-1"), "bob", operation="op-2")
        order = sqlite_installation.register("op-2")
        run = await sqlite_installation.client.start_workflow(
            GovernedAction.run,
            RunInput(**dict(order)),
            id=workflow_id("acme", "op-2"),
            task_queue=RUN_QUEUE,
            start_signal="decide",
            start_signal_args=[early],
        )
        status = await until_state(run, State.WAITING_APPROVAL)
        await until_messages(run, 1)
    assert status.messages == 1
    (record,) = rulings(sqlite_installation, "op-2")
    assert record.detail["ruling"] in (Ruling.NOTHING_PENDING, Ruling.NOT_THIS_APPROVAL)
    current = sqlite_installation.ledger.approvals.current("acme", "op-2")
    assert current is not None
    assert current.status == ApprovalStatus.PENDING


async def test_a_proposal_that_people_approved_before_the_run_heard_of_it_is_granted_by_people(
    sqlite_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill right behind a vote: the step that opens the proposal is done again and finds it approved."""
    ledger = sqlite_installation.ledger
    really_open = ledger.approvals.open

    def opened_and_approved(*arguments: Any) -> Any:
        proposal = really_open(*arguments).proposal
        body = json.dumps(sqlite_installation.decision(proposal, "bob"))
        vote = Message(id="before", name="decide", transport="signal", body=body, received_at=datetime.now(UTC))
        batch = MessageBatch(tenant="acme", operation=proposal.operation, messages=(vote,))
        decided = sqlite_installation.deciding().decide(batch)
        assert decided.status == ApprovalStatus.GRANTED
        return really_open(*arguments)

    monkeypatch.setattr(ledger.approvals, "open", opened_and_approved)
    async with sqlite_installation.workers():
        run = await sqlite_installation.start("op-1")
        result = await run.result()
        steps = await run.query("timeline", result_type=list[Step])
    assert result.state == State.SUCCEEDED
    assert [(step.state, step.reason) for step in steps[1:3]] == [
        (State.WAITING_APPROVAL, "needs_people"),
        (State.EXECUTING, "granted"),
    ]
