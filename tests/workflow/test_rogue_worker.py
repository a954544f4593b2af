"""Workers and clients that lie: whatever they tell a run, the gateway looks for itself and sends nothing (G22)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import WorkflowFailureError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.interfaces import (
    Checked,
    Decided,
    DraftWritten,
    EffectOrder,
    Executing,
    Graded,
    MessageBatch,
    OpenOrder,
    Proposed,
    ProposeOrder,
    QuestionAsked,
    QuestionMarked,
    QuestionOrder,
    RunPlan,
    StateRecord,
    StepOrder,
)
from countersign import bootstrap
from countersign.domain.control import first_control
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.execution import EffectResult
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import QuestionStatus
from countersign.domain.rubric import Verdict
from countersign.domain.run import RunResult
from countersign.domain.state import State
from countersign.domain.values import Sha256
from countersign.worker_process import worker
from tests.support.installation import Installation
from tests.support.waiting import until_state
from workflows import options
from workflows.governed_action import GovernedAction
from workflows.names import RUN_QUEUE

HASH = Sha256("sha256:" + "0" * 64)


class Liar:
    """Steps under our names that say whatever leads to an effect; `approval_id` is the one they claim."""

    def __init__(
        self,
        approval_id: str = "apr-forged",
        *,
        by_rule: bool = False,
        decided: ApprovalStatus = ApprovalStatus.GRANTED,
        asks: bool = False,
        question: QuestionStatus = QuestionStatus.PENDING,
    ) -> None:
        self.by_rule = by_rule
        self._asks = asks
        self._question = question
        self._approval_id = approval_id
        self._decided = decided

    @activity.defn
    def open_run(self, order: OpenOrder) -> RunPlan:
        return RunPlan(drafted=True, max_rounds=1, max_grader_tries=1, control=first_control(order.now))

    @activity.defn
    def record_state(self, record: StateRecord) -> None:
        """Record nothing."""

    @activity.defn
    def draft(self, order: StepOrder) -> DraftWritten:
        if not self._asks or order.resumed:
            return DraftWritten(content=HASH, model="liar")
        later = datetime.now(UTC) + timedelta(seconds=1)
        asked = QuestionAsked(
            number=1, question=HASH, calls=1, roles=("lead",), status=QuestionStatus.PENDING, deadline=later
        )  # fmt: skip
        return DraftWritten(content="", model="liar", asked=asked)

    @activity.defn
    def expire_question(self, order: QuestionOrder) -> QuestionMarked:
        return QuestionMarked(status=self._question, escalated=False, roles=())

    @activity.defn
    def validate(self, order: StepOrder) -> Checked:
        return Checked(codes=())

    @activity.defn
    def grade(self, order: StepOrder) -> Graded:
        return Graded(verdict=Verdict.SATISFIED, model="liar")

    @activity.defn
    def propose(self, order: ProposeOrder) -> Proposed:
        later = datetime.now(UTC) + timedelta(hours=1)
        return Proposed(
            approval_id=self._approval_id, approval_version=1, action_hash=HASH, view=HASH,
            roles=() if self.by_rule else ("reviewer",),
            status=ApprovalStatus.GRANTED if self.by_rule else ApprovalStatus.PENDING,
            deadline=later, execute_by=later,
        )  # fmt: skip

    @activity.defn
    def decide(self, batch: MessageBatch) -> Decided:
        accepted = Outcome(ruling=Ruling.ACCEPTED, status=self._decided)
        return Decided(outcomes=tuple(accepted for _ in batch.messages), status=self._decided)


def with_lies(installation: Installation, liar: Liar, *names: str) -> list[Callable[..., Any]]:
    """The steps of the drafting role, with those of these names told by the liar."""
    honest = bootstrap.agent_activities(installation.settings, installation.ledger)
    return [getattr(liar, step.__name__) if step.__name__ in names else step for step in honest]


async def run_by_a_liar(installation: Installation, liar: Liar, *names: str) -> RunResult:
    """A whole run of `op-1` by a worker that lies in these steps, with an honest gateway; a message is no signature."""
    with ThreadPoolExecutor(8) as threads:
        steps = with_lies(installation, liar, *names)
        lying = worker(installation.client, RUN_QUEUE, steps, threads, workflows=[GovernedAction])
        async with lying, installation.workers("gateway"):
            run = await installation.start("op-1")
            if not liar.by_rule:
                await until_state(run, State.WAITING_APPROVAL)
                await run.signal("decide", {"decision": "approve"})
            result: RunResult = await run.result()
    return result


def assert_refused(installation: Installation, result: RunResult, reason: str) -> None:
    """The run failed for that reason, nothing was sent, and the gateway wrote down that it refused."""
    assert (result.state, result.reason) == (State.FAILED, reason)
    assert_nothing_sent(installation, reason)


def assert_nothing_sent(installation: Installation, reason: str) -> None:
    assert installation.published() == []
    assert installation.ledger.executions.get("acme", "op-1") is None
    records = list(installation.ledger.audit.records("acme"))
    (refused,) = [record for record in records if record.type == "effect.refused"]
    assert str(refused.detail["reason"]).startswith(reason)
    types = [record.type for record in records]
    assert "effect.intended" not in types
    assert types.count("alarm.raised") == 1


@pytest.mark.guarantee("G22")
async def test_a_forged_grant_of_a_real_proposal_is_refused(sqlite_installation: Installation) -> None:
    result = await run_by_a_liar(sqlite_installation, Liar(), "decide")
    assert_refused(sqlite_installation, result, "approval_pending")


ENDS = [ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED, ApprovalStatus.WITHDRAWN]
SETTLED = [status for status in ApprovalStatus if status not in (ApprovalStatus.PENDING, *ENDS)]


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("status", SETTLED)
async def test_whatever_status_a_worker_makes_up_the_run_ends_and_nothing_goes_out(
    sqlite_installation: Installation, status: ApprovalStatus
) -> None:
    result = await run_by_a_liar(sqlite_installation, Liar(decided=status), "decide")
    assert result.state.terminal
    assert result.state != State.SUCCEEDED
    assert sqlite_installation.published() == []
    assert sqlite_installation.ledger.executions.get("acme", "op-1") is None


@pytest.mark.guarantee("G22", "G24")
@pytest.mark.parametrize("status", ENDS)
async def test_nobody_is_said_to_have_decided_what_the_ledger_does_not_say(
    sqlite_installation: Installation, status: ApprovalStatus
) -> None:
    """The run fails as a workflow, which operators are alerted to, and the operation has not ended."""
    with pytest.raises(WorkflowFailureError):
        await run_by_a_liar(sqlite_installation, Liar(decided=status), "decide")
    assert sqlite_installation.ledger.operations.get("acme", "op-1").state == State.WAITING_APPROVAL
    assert sqlite_installation.published() == []


ALL_STEPS = ("open_run", "record_state", "draft", "validate", "grade", "propose", "decide")


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("by_rule", [False, True], ids=["by people", "by rule"])
async def test_a_forged_proposal_that_no_ledger_knows_is_refused(
    sqlite_installation: Installation, by_rule: bool
) -> None:
    result = await run_by_a_liar(sqlite_installation, Liar(by_rule=by_rule), *ALL_STEPS)
    assert_refused(sqlite_installation, result, "approval_not_found")


@pytest.mark.guarantee("G22", "G23")
async def test_a_run_that_claims_the_pending_approval_of_another_is_refused(sqlite_installation: Installation) -> None:
    async with sqlite_installation.workers("agent"):
        victim = await sqlite_installation.start("op-2")
        await until_state(victim, State.WAITING_APPROVAL)
    liar = Liar(sqlite_installation.proposal("op-2").approval_id, by_rule=True)
    result = await run_by_a_liar(sqlite_installation, liar, *ALL_STEPS)
    assert_refused(sqlite_installation, result, "approval_pending")
    assert sqlite_installation.ledger.executions.get("acme", "op-2") is None


@pytest.mark.guarantee("G22", "G24")
@pytest.mark.parametrize("status", [QuestionStatus.ANSWERED, QuestionStatus.SUPERSEDED, QuestionStatus.EXPIRED])
async def test_a_made_up_question_with_a_made_up_end_leads_to_no_effect_and_to_no_end_in_the_ledger(
    sqlite_installation: Installation, status: QuestionStatus
) -> None:
    """Made up to be answered, the draft that nobody wrote is refused; to be expired, the run fails as a workflow."""
    installation, liar = sqlite_installation, Liar(asks=True, question=status)
    with ThreadPoolExecutor(8) as threads:
        steps = with_lies(installation, liar, "draft", "expire_question")
        lying = worker(installation.client, RUN_QUEUE, steps, threads, workflows=[GovernedAction])
        async with lying, installation.workers("gateway"):
            run = await installation.start("op-1", channel="internal")
            if status == QuestionStatus.EXPIRED:
                with pytest.raises(WorkflowFailureError):
                    await run.result()
            else:
                result = await run.result()
                assert result.state in (State.FAILED, State.CANCELLED)
    assert installation.ledger.operations.get("acme", "op-1").state != State.EXPIRED
    assert installation.published("internal") == []
    assert installation.ledger.executions.get("acme", "op-1") is None


@workflow.defn
class StraightToTheEffect:
    """A workflow of nobody's that asks for the effect and for nothing before it."""

    @workflow.run
    async def run(self, order: EffectOrder) -> EffectResult:
        """Ask the gateway."""
        return await workflow.execute_activity_method(Executing.execute, order, **options.EFFECT_STEP)


@pytest.mark.guarantee("G22", "G47")
async def test_a_workflow_of_somebody_elses_that_asks_for_the_effect_is_refused(
    sqlite_installation: Installation,
) -> None:
    client = sqlite_installation.client
    async with sqlite_installation.workers():
        await until_state(await sqlite_installation.start("op-1"), State.WAITING_APPROVAL)
        order = EffectOrder(
            tenant="acme", operation="op-1", approval_id=sqlite_installation.proposal("op-1").approval_id
        )
        theirs = Worker(
            client, task_queue="theirs", workflows=[StraightToTheEffect], workflow_runner=UnsandboxedWorkflowRunner()
        )
        async with theirs:
            effect = await client.execute_workflow(
                StraightToTheEffect.run, order, id="acme:op-1-theirs", task_queue="theirs"
            )
    assert (effect.status, effect.reason) == (None, "approval_pending")
    assert_nothing_sent(sqlite_installation, "approval_pending")
