"""Whose run hears of votes, and at what time: a run that was reset, or is somebody's own, takes over nobody's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from activities.interfaces import Message, MessageBatch
from countersign.domain.administration import DirectoryChange, KeyRevocation
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_state
from tests.workflow.acting import approval, proposed, vote


def told(installation: Installation, name: str, message: dict[str, str], at: datetime, run_id: str = "") -> Outcome:
    """What the step answers to a message that a run, of this id if one is given, says it took in then."""
    body = f'{{"statement":"{message["statement"]}"}}'
    said = Message(id=f"m:{at.isoformat()}", name=name, transport="signal", body=body, received_at=at)
    batch = MessageBatch(tenant="acme", operation="op-1", messages=(said,))
    (outcome,) = installation.step("op-1", run_id).run(installation.deciding().decide, batch).outcomes
    assert isinstance(outcome, Outcome)
    return outcome


@pytest.mark.guarantee("G22", "G26")
async def test_a_run_of_somebodys_own_cannot_date_a_vote_back(sqlite_installation: Installation) -> None:
    """The honest run is gone, the deadline has passed, and only its own word says that the vote came before."""
    installation = sqlite_installation.with_policy(sqlite_installation.settings.home, decide_within="3s")
    async with installation.workers("agent"):
        run = await proposed(installation)
        await run.terminate()
    proposal = installation.proposal("op-1")
    await installation.after(proposal.deadline)
    late = installation.decision(proposal, "bob")
    outcome = told(installation, "decide", late, proposal.deadline - timedelta(milliseconds=1), run_id="another")
    assert outcome.ruling == Ruling.NOTHING_PENDING
    assert approval(installation).status == ApprovalStatus.PENDING
    assert approval(installation).votes == ()


@pytest.mark.guarantee("G06", "G18", "G29")
async def test_a_key_that_was_revoked_commands_nothing_whenever_it_is_said_to_have(
    sqlite_installation: Installation,
) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        await proposed(installation)
    command, before = installation.command("op-1", "lea", "take_over"), datetime.now(UTC)
    revoked = KeyRevocation(person="lea", key_id="lea-1")
    installation.decree(DirectoryChange(keys_revoked=(revoked,)))
    outcome = told(installation, "take_over", command, before)
    assert (outcome.ruling, outcome.detail.partition(":")[0]) == (Ruling.BAD_STATEMENT, "key_not_valid")
    assert installation.ledger.controls.standing("acme", "op-1").control.by == "agent"
    assert approval(installation).status == ApprovalStatus.PENDING


@pytest.mark.guarantee("G23")
async def test_a_run_that_is_reset_counts_no_vote_of_the_one_before(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    """Two are needed; one voted before the reset, the other after it: nothing goes out."""
    installation = sqlite_installation.with_policy(tmp_path, approvals=2)
    async with installation.workers():
        run = await proposed(installation)
        await vote(installation, run, "bob")
        completed = [
            event.event_id
            for event in (await run.fetch_history()).events
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        ]
        reset = ResetWorkflowExecutionRequest(
            namespace=installation.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run.id, run_id=run.first_execution_run_id or ""),
            reason="tried again",
            workflow_task_finish_event_id=completed[-1],
            request_id="reset-1",
        )
        await installation.client.workflow_service.reset_workflow_execution(reset)
        again = installation.client.get_workflow_handle(run.id)
        await until_state(again, State.WAITING_APPROVAL)
        second = await vote(installation, again, "carl")
    assert second.ruling == Ruling.NOTHING_PENDING
    assert [one.person for one in approval(installation).votes] == ["bob"]
    assert installation.published() == []
