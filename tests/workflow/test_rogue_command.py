"""Workers and workflows that make up commands: nobody is in control, and nothing ends, by their word (G22)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.interfaces import Decided, EffectOrder, MessageBatch, Told
from countersign import bootstrap
from countersign.domain.command import ENDS_AS, CommandKind
from countersign.domain.control import Control
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import RunResult
from countersign.domain.state import State
from countersign.worker_process import worker
from tests.support.installation import Installation
from tests.support.model_server import running_model_server
from tests.support.waiting import until_state
from tests.workflow.acting import Run, approval, done, proposed, until_idle
from tests.workflow.press import approved
from tests.workflow.scripted_model import ScriptedModel, asking
from tests.workflow.test_rogue_worker import StraightToTheEffect
from workflows.governed_action import GovernedAction
from workflows.names import RUN_QUEUE

pytestmark = pytest.mark.guarantee("G22")
LEA = {"by": "person", "person": "lea"}
AGENT = {"by": "agent"}


def forged(version: int, who: dict[str, str], *told: CommandKind, **changes: Any) -> Decided:
    """That control is with `who`, and what the person there is said to want."""
    control = Control(**who, version=version, since=datetime.now(UTC))  # type: ignore[arg-type]
    wishes = tuple(Told(command=kind, person="lea", draft_version=1) for kind in told)
    return Decided(outcomes=(), status=None, control=control, told=wishes, **changes)


@asynccontextmanager
async def lying_workers(installation: Installation, lie: Decided) -> AsyncIterator[None]:
    """All steps as they are, but whatever message comes is answered with the lie; with an honest gateway."""

    @activity.defn(name="decide")
    def decide(batch: MessageBatch) -> Decided:
        outcomes = tuple(Outcome(ruling=Ruling.ACCEPTED) for _ in batch.messages)
        return lie.model_copy(update={"outcomes": outcomes})

    honest = bootstrap.agent_activities(installation.settings, installation.ledger)
    steps: list[Callable[..., Any]] = [decide, *(step for step in honest if step.__name__ != "decide")]
    with ThreadPoolExecutor(8) as threads:
        lying = worker(installation.client, RUN_QUEUE, steps, threads, workflows=[GovernedAction])
        async with lying, installation.workers("gateway"):
            yield


async def assert_fails_as_a_workflow(run: Run) -> None:
    """Which operators are alerted to."""
    with pytest.raises(WorkflowFailureError):
        await run.result()


async def test_nobody_has_taken_over_whom_the_ledger_does_not_know_of(sqlite_installation: Installation) -> None:
    async with lying_workers(sqlite_installation, forged(2, LEA, "propose")):
        run = await proposed(sqlite_installation)
        await run.signal("take_over", {"statement": "of nobody"})
        await assert_fails_as_a_workflow(run)
    standing = sqlite_installation.ledger.controls.standing("acme", "op-1")
    assert (standing.control.by, standing.control.version) == ("agent", 1)
    assert approval(sqlite_installation).status == ApprovalStatus.PENDING
    assert sqlite_installation.ledger.operations.get("acme", "op-1").state == State.WAITING_APPROVAL
    assert sqlite_installation.published() == []


@pytest.mark.guarantee("G22", "G30")
async def test_a_run_that_a_person_holds_is_not_released_to_the_agent(sqlite_installation: Installation) -> None:
    with running_model_server(ScriptedModel(held=[1])) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            run = await asked.start("op-1")
            await asyncio.to_thread(server.wait_for_calls, 1)
            await done(asked, run, "lea", "take_over")
            await until_state(run, State.HUMAN_TAKEOVER)
            server.release()
            await until_idle(run)
        async with lying_workers(asked, forged(3, AGENT)):
            await run.signal("release", {"statement": "of nobody"})
            result: RunResult = await run.result()
    assert (result.state, result.reason) == (State.FAILED, "control_changed")
    assert server.calls == 1
    assert asked.ledger.controls.standing("acme", "op-1").control.person == "lea"
    assert asked.ledger.approvals.current("acme", "op-1") is None
    assert asked.published() == []


async def test_what_a_person_is_said_to_propose_is_proposed_by_nobody(sqlite_installation: Installation) -> None:
    """Lea holds the run; another one is said to, and to want it proposed in their name."""
    async with sqlite_installation.workers():
        run = await proposed(sqlite_installation)
        await done(sqlite_installation, run, "lea", "take_over")
        await until_state(run, State.HUMAN_TAKEOVER)
    lie = forged(3, {"by": "person", "person": "leo"})
    wish = Told(command="propose", person="leo", draft_version=1)
    async with lying_workers(sqlite_installation, lie.model_copy(update={"told": (wish,)})):
        await run.signal("propose", {"statement": "of nobody"})
        await until_state(run, State.HUMAN_TAKEOVER)
        await until_idle(run)
    assert approval(sqlite_installation).status == ApprovalStatus.SUPERSEDED
    assert approval(sqlite_installation).proposal.approval_version == 1
    assert sqlite_installation.published() == []


@pytest.mark.parametrize("kind", ["withdraw", "supersede", "cancel"])
async def test_nobody_has_ended_what_the_ledger_does_not_know_of(
    sqlite_installation: Installation, kind: CommandKind
) -> None:
    async with lying_workers(sqlite_installation, forged(1, AGENT, ending=ENDS_AS[kind])):
        run = await proposed(sqlite_installation)
        await run.signal(kind, {"statement": "of nobody"})
        await assert_fails_as_a_workflow(run)
    assert sqlite_installation.ledger.operations.get("acme", "op-1").state == State.WAITING_APPROVAL
    assert approval(sqlite_installation).status == ApprovalStatus.PENDING


@pytest.mark.guarantee("G22", "G29")
async def test_what_was_granted_before_a_take_over_nobodys_workflow_can_have_executed(
    sqlite_installation: Installation,
) -> None:
    client = sqlite_installation.client
    async with sqlite_installation.workers("agent"):
        run = await approved(sqlite_installation, "op-1")
        await until_state(run, State.EXECUTING)
        granted = approval(sqlite_installation).proposal.approval_id
        await done(sqlite_installation, run, "lea", "take_over")
        order = EffectOrder(tenant="acme", operation="op-1", approval_id=granted)
        theirs = Worker(
            client, task_queue="theirs", workflows=[StraightToTheEffect], workflow_runner=UnsandboxedWorkflowRunner()
        )
        async with theirs, sqlite_installation.workers("gateway"):
            effect = await client.execute_workflow(StraightToTheEffect.run, order, id="theirs", task_queue="theirs")
    assert effect.status is None
    assert sqlite_installation.published() == []
    assert sqlite_installation.ledger.executions.get("acme", "op-1") is None
