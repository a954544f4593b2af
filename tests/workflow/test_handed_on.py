"""What a run takes on was handed on to it: no other run passes for the next one, and none takes a vote with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from activities.interfaces import Message
from countersign.cli.temporal_run import start_run
from countersign.domain.control import Control
from countersign.domain.decision import Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import eventually, until_state
from tests.workflow.acting import approval, records, vote
from tests.workflow.going_on import gone_on, inputs
from workflows.carrying import Carried, RunInput

pytestmark = pytest.mark.long


def forgeries(carried: Carried, installation: Installation) -> dict[str, Carried]:
    """What somebody with access to the namespace can start a run with: what they saw in a history, and changed."""
    proposed = carried.proposed
    assert proposed is not None
    vote = installation.decision(installation.proposal("op-1"), "carl")
    backdated = Message(
        id="backdated", name="decide", transport="signal", body=f'{{"statement":"{vote["statement"]}"}}',
        received_at=installation.proposal("op-1").proposed_at + timedelta(milliseconds=1),
    )  # fmt: skip
    granted = {"proposed": proposed.model_copy(update={"status": ApprovalStatus.GRANTED})}
    lea = Control(by="person", person="lea", version=2, since=datetime.now(UTC))
    changes: dict[str, dict[str, Any]] = {
        "as it was": {},
        "another line": {"line": "01a22d53-0000-0000-0000-000000000000"},
        "granted": granted,
        "executing": granted | {"state": State.EXECUTING},
        "may be outside": granted | {"state": State.OUTCOME_UNKNOWN},
        "agent's turn": {"state": State.RUNNING},
        "a late vote with an early time": {"waiting": (backdated,)},
        "a person in control": {"state": State.HUMAN_TAKEOVER, "control": lea, "acted_on": 2},
    }
    return {name: carried.model_copy(update=change) for name, change in changes.items()}


@pytest.mark.guarantee("G22", "G23")
async def test_a_run_to_which_nothing_was_handed_on_moves_nothing_whatever_it_says(
    restless: Installation, tmp_path: Path
) -> None:
    installation = restless.with_policy(tmp_path, approvals=2)
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        await vote(installation, run, "bob")
        await gone_on(run)
        carried = (await inputs(installation, run))[-1]
        await run.terminate()
        order, before = installation.register("op-1"), approval(installation)
        for name, forged in forgeries(carried, installation).items():
            given = RunInput(**dict(order), carried=forged)
            other = await installation.start_unchecked(given)
            await other.signal("decide", {"statement": "a.b.c"})
            result = await other.result()
            assert (name, result.state, result.reason) == (name, State.FAILED, "not_handed_on")
        assert approval(installation) == before
        assert installation.ledger.operations.get("acme", "op-1").state == State.WAITING_APPROVAL
        assert installation.ledger.executions.get("acme", "op-1") is None
        await start_run(installation.client, installation.ledger.operations.get("acme", "op-1"))
        await eventually(lambda: approval(installation).proposal.approval_id != before.proposal.approval_id)
        assert approval(installation).votes == ()
        again = installation.client.get_workflow_handle(run.id)
        stale = await vote(installation, again, "carl", proposal=before.proposal)
    assert stale.ruling == Ruling.NOT_THIS_APPROVAL
    # Each names its run; a task during which a message comes is done again, and so is its step.
    refused = {one["sentence"] for one in records(installation, "step.failed") if one["subject"] == "take_on"}
    assert len(refused) == len(forgeries(carried, installation))


@pytest.mark.guarantee("G23")
async def test_a_continued_run_that_is_reset_takes_no_vote_with_it(restless: Installation, tmp_path: Path) -> None:
    installation = restless.with_policy(tmp_path, approvals=2)
    async with installation.workers("agent"):
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        await vote(installation, run, "bob")
        await gone_on(run)
        before = approval(installation)
        run_id = (await run.describe()).run_id
        await installation.client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=installation.client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=run.id, run_id=run_id),
                reason="tried again", workflow_task_finish_event_id=4, request_id="reset-1",
            )
        )  # fmt: skip
        result = await installation.client.get_workflow_handle(run.id, result_type=dict).result()
        assert (result["state"], result["reason"]) == ("FAILED", "not_handed_on")
        assert approval(installation) == before
        await start_run(installation.client, installation.ledger.operations.get("acme", "op-1"))
        await eventually(lambda: approval(installation).proposal.approval_id != before.proposal.approval_id)
    assert approval(installation).votes == ()
