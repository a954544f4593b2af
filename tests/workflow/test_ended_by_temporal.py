"""Temporal's own cancel and terminate, past the ledger: what was done is on record, and nothing of the run happens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError

from countersign.domain.decision import Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import running_model_server
from tests.support.waiting import until_state
from tests.workflow.acting import Run, approval, done, until_idle, vote
from tests.workflow.ending import Way, assert_no_late_effect, in_every_way
from tests.workflow.press import approved
from tests.workflow.scripted_model import ScriptedModel, asking, draft

pytestmark = pytest.mark.long

UNSUPPORTED = draft(body="Sales came to {{total}} in all, and 17 customers left.")


async def cancelled_by_temporal(installation: Installation, run: Run) -> None:
    """Cancelled, and on record."""
    await run.cancel()
    with pytest.raises(WorkflowFailureError) as failure:
        await run.result()
    assert isinstance(failure.value.cause, CancelledError)
    operation = installation.ledger.operations.get("acme", "op-1")
    assert (operation.state, operation.reason) == (State.CANCELLED, "cancelled")
    assert installation.published() == []
    installation.ledger.audit.verify("acme")


async def test_temporals_cancel_while_a_person_is_in_control(sqlite_installation: Installation) -> None:
    async with sqlite_installation.workers():
        run = await sqlite_installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        late = sqlite_installation.decision(sqlite_installation.proposal("op-1"), "bob")
        await done(sqlite_installation, run, "lea", "take_over")
        await until_state(run, State.HUMAN_TAKEOVER)
        await cancelled_by_temporal(sqlite_installation, run)
        with pytest.raises(RPCError):
            await run.signal("decide", late)
    assert approval(sqlite_installation).status == ApprovalStatus.SUPERSEDED
    assert_no_late_effect(sqlite_installation)


async def test_temporals_cancel_while_escalated(sqlite_installation: Installation) -> None:
    with running_model_server(ScriptedModel(drafts=[UNSUPPORTED])) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            run = await asked.start("op-1")
            await until_state(run, State.ESCALATED)
            await cancelled_by_temporal(asked, run)


@pytest.mark.guarantee("G23")
async def test_terminated_with_a_grant_that_no_gateway_took_up_it_is_never_executed(
    sqlite_installation: Installation,
) -> None:
    """The ledger says how far it came; nothing of the run is done by a gateway that comes after it."""
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await approved(installation, "op-1")
        await until_state(run, State.EXECUTING)
        await run.terminate("by an operator")
        async with installation.workers("gateway"):
            internal = await installation.start("op-2", channel="internal")
            await internal.result()
    described = await run.describe()
    assert described.status == WorkflowExecutionStatus.TERMINATED
    assert installation.ledger.operations.get("acme", "op-1").state == State.EXECUTING
    assert installation.published() == []
    assert installation.ledger.executions.get("acme", "op-1") is None


@pytest.mark.guarantee("G23")
async def test_terminated_with_a_vote_and_started_again_people_are_asked_anew(
    installation: Installation, tmp_path: Path
) -> None:
    two = installation.with_policy(tmp_path, approvals=2)
    async with two.workers():
        order = two.register("op-1")
        run = await two.start_unchecked(order)
        await until_state(run, State.WAITING_APPROVAL)
        await vote(two, run, "bob")
        old = two.proposal("op-1")
        await run.terminate("by mistake")
        again = await two.start_unchecked(order)
        await until_state(again, State.WAITING_APPROVAL)
        late = await vote(two, again, "carl", proposal=old)
        assert (await vote(two, again, "carl")).status == ApprovalStatus.PENDING
        assert two.published() == []
        assert (await vote(two, again, "bob")).status == ApprovalStatus.GRANTED
        assert (await again.result()).state == State.SUCCEEDED
    assert two.proposal("op-1").approval_id != old.approval_id
    assert late.ruling == Ruling.NOT_THIS_APPROVAL
    assert len(two.published()) == 1


@pytest.mark.guarantee("G30")
async def test_terminated_while_a_person_is_in_control_and_started_again_it_is_still_theirs(
    sqlite_installation: Installation,
) -> None:
    with running_model_server(ScriptedModel(held=[1])) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            order = asked.register("op-1")
            run = await asked.start_unchecked(order)
            await asyncio.to_thread(server.wait_for_calls, 1)
            await done(asked, run, "lea", "take_over")
            await run.terminate("by mistake")
            server.release()
            again = await asked.start_unchecked(order)
            status = await until_state(again, State.HUMAN_TAKEOVER)
            await until_idle(again)
    assert (status.control, status.control_version) == ("lea", 2)
    assert asked.ledger.controls.standing("acme", "op-1").draft_version == 0
    assert server.calls == 1


@in_every_way
async def test_terminated_before_it_could_act_on_its_end_and_started_again_it_ends_so(
    sqlite_installation: Installation, way: Way
) -> None:
    """What people made of an operation outlives the run that they told."""
    installation = sqlite_installation
    installation.register("op-9")
    async with installation.workers("agent"):
        run = await approved(installation, "op-1")
        await until_state(run, State.EXECUTING)
        await done(installation, run, way[1], way[0], **way[2])
        await run.terminate("by mistake")
        order = installation.register("op-1")
        again: Any = await installation.start_unchecked(order)
        result = await again.result()
    assert (result.state, result.reason) == (way[3], way[4])
    assert_no_late_effect(installation)
