"""The run from a registered request to its end, on a real server, with the real steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError

from countersign.cli.temporal_run import start_run
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.proposal import ApprovalStatus, Proposal
from countersign.domain.run import ProposalView
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_state
from workflows.carrying import RunInput
from workflows.governed_action import GovernedAction
from workflows.names import RUN_QUEUE


@pytest.fixture
def runs_ledger_url(ledger_url: str) -> str:
    """On both databases here."""
    return ledger_url


def audit_types(installation: Installation, operation: str) -> list[str]:
    return [record.type for record in installation.ledger.audit.records(installation.tenant, operation)]


@pytest.mark.guarantee("G15", "G45")
async def test_approved_by_a_reviewer_is_published_once_with_a_verified_audit(installation: Installation) -> None:
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        proposal = installation.proposal("op-1")
        outcome = await run.execute_update("decide", installation.decision(proposal, "bob"), result_type=Outcome)
        result = await run.result()
        asked = await run.query("proposal", result_type=ProposalView)
    assert outcome.ruling == Ruling.ACCEPTED
    assert result.state == State.SUCCEEDED
    (report,) = installation.published()
    assert report.read_bytes() == installation.ledger.documents.get("acme", proposal.document)
    view = json.loads(installation.ledger.documents.get("acme", asked.view))
    assert view["document"] == report.read_text()
    assert Proposal.model_validate_json(json.dumps(view["proposal"])) == proposal
    types = audit_types(installation, "op-1")
    assert types.index("effect.intended") < types.index("effect.executed") < types.index("run.succeeded")
    assert installation.ledger.audit.verify("acme").count == len(list(installation.ledger.audit.records("acme")))


async def test_internal_channel_is_granted_by_rule_and_asks_nobody(installation: Installation) -> None:
    async with installation.workers():
        run = await installation.start("op-1", channel="internal")
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(installation.published("internal")) == 1
    assert "approval.granted_by_rule" in audit_types(installation, "op-1")


@pytest.mark.guarantee("G10")
async def test_rejected_publishes_nothing_and_stays_rejected(installation: Installation) -> None:
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        proposal = installation.proposal("op-1")
        await run.execute_update("decide", installation.decision(proposal, "bob", "reject"), result_type=Outcome)
        result = await run.result()
    assert (result.state, result.reason) == (State.REJECTED, "rejected")
    assert installation.published() == []


@pytest.mark.guarantee("G24", "G26")
async def test_undecided_at_the_deadline_is_expired_by_nobody(installation: Installation, tmp_path: Path) -> None:
    short = installation.with_policy(tmp_path, decide_within="2s")
    async with short.workers():
        run = await short.start("op-1")
        result = await run.result()
    assert (result.state, result.reason) == (State.EXPIRED, "undecided_at_deadline")
    expired = [record for record in short.ledger.audit.records("acme", "op-1") if record.type == "approval.expired"]
    assert [record.subject for record in expired] == ["clock"]
    assert short.published() == []


@pytest.mark.guarantee("G26")
async def test_a_vote_that_comes_while_the_worker_is_down_over_the_deadline_is_late(
    installation: Installation, tmp_path: Path
) -> None:
    short = installation.with_policy(tmp_path, decide_within="3s")
    async with short.workers():
        run = await short.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
    proposal = short.proposal("op-1")
    await short.after(proposal.deadline)
    await run.signal("decide", short.decision(proposal, "bob"))
    async with short.workers():
        result = await run.result()
    assert result.state == State.EXPIRED
    assert short.published() == []
    rulings = [record.detail.get("ruling") for record in short.ledger.audit.records("acme", "op-1")]
    assert "late" in rulings


async def test_cancel_while_people_are_asked_ends_cancelled_and_no_vote_counts_any_more(
    installation: Installation,
) -> None:
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        await run.cancel()
        with pytest.raises(WorkflowFailureError):
            await run.result()
    assert (await run.describe()).status == WorkflowExecutionStatus.CANCELED
    assert installation.ledger.operations.get("acme", "op-1").state == State.CANCELLED
    assert installation.published() == []


async def test_a_run_started_for_another_request_than_the_signed_one_does_nothing(installation: Installation) -> None:
    order = installation.register("op-1")
    forged = order.model_copy(update={"request_hash": "sha256:" + "0" * 64})
    async with installation.workers():
        run = await installation.start_unchecked(forged)
        result = await run.result()
    assert (result.state, result.reason) == (State.FAILED, "conflict")
    assert installation.published() == []


async def test_a_run_of_an_operation_that_nobody_registered_ends_and_says_so(sqlite_installation: Installation) -> None:
    order = sqlite_installation.register("op-1").model_copy(update={"operation": "op-9"})
    async with sqlite_installation.workers("agent"):
        run = await sqlite_installation.start_unchecked(order)
        result = await run.result()
    assert (result.state, result.reason) == (State.FAILED, "not_found")
    assert "step.failed" in audit_types(sqlite_installation, "op-9")


@pytest.mark.guarantee("G23")
async def test_a_run_under_another_name_neither_carries_out_an_operation_nor_moves_it(
    sqlite_installation: Installation,
) -> None:
    async with sqlite_installation.workers("agent"):
        run = await sqlite_installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        order = sqlite_installation.register("op-1")
        other = await sqlite_installation.client.start_workflow(
            GovernedAction.run, RunInput(**dict(order)), id="acme:op-1-again", task_queue=RUN_QUEUE
        )
        result = await other.result()
    assert (result.state, result.reason) == (State.FAILED, "conflict")
    assert sqlite_installation.ledger.operations.get("acme", "op-1").state == State.WAITING_APPROVAL
    current = sqlite_installation.ledger.approvals.current("acme", "op-1")
    assert current is not None
    assert current.status == ApprovalStatus.PENDING


async def test_search_attributes_say_who_must_act_until_when(installation: Installation) -> None:
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        waiting = "CountersignState = 'WAITING_APPROVAL' AND CountersignRequiredRole = 'reviewer'"
        found = await installation.listed(waiting)
        assert found == ["acme:op-1"]
        await run.execute_update(
            "decide", installation.decision(installation.proposal("op-1"), "bob"), result_type=Outcome
        )
        await run.result()
        assert await installation.listed(waiting, count=0) == []


async def test_a_run_that_was_terminated_is_started_again_and_asks_anew(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        old = installation.decision(installation.proposal("op-1"), "bob")
        await run.terminate()
        await start_run(installation.client, installation.ledger.operations.get("acme", "op-1"))
        again = installation.client.get_workflow_handle(run.id)
        await until_state(again, State.WAITING_APPROVAL)
        refused = await again.execute_update("decide", old, result_type=Outcome)
        decision = installation.decision(installation.proposal("op-1"), "bob")
        await again.execute_update("decide", decision, result_type=Outcome)
        await again.result()
    assert refused.ruling == Ruling.NOT_THIS_APPROVAL
    assert installation.ledger.operations.get("acme", "op-1").state == State.SUCCEEDED
    assert len(installation.published()) == 1
