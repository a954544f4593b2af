"""The run: from a registered request to one effect, readable from top to bottom.

The order of the steps is this code's alone: only `satisfied` reaches propose, only a grant reaches execute, and every
other end says which it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple, TypeVar

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import (
        Decided,
        Deciding,
        Drafting,
        Graded,
        Grading,
        Message,
        MessageBatch,
        Opening,
        OpenOrder,
        ProposeOrder,
        Proposing,
        RunOrder,
        RunPlan,
        StateRecord,
        StepOrder,
        Validating,
    )
    from countersign.domain.decision import Outcome, Ruling
    from countersign.domain.execution import EffectResult
    from countersign.domain.proposal import ApprovalStatus
    from countersign.domain.rubric import Verdict
    from countersign.domain.run import ProposalView, RunResult, RunStatus, Step
    from countersign.domain.state import TRANSITIONS, Event, State, after

from workflows import names, options
from workflows.approval_window import ApprovalWindow
from workflows.cancelling import honour_cancel, to_its_end
from workflows.effect import carry_out
from workflows.mailbox import Mailbox
from workflows.visibility import search_attributes

_END_OF_WINDOW = {
    ApprovalStatus.GRANTED: (Event.GRANTED, "granted"),
    ApprovalStatus.EDITED: (Event.EDITED, "edited"),
    ApprovalStatus.REJECTED: (Event.REJECTED, "rejected"),
    ApprovalStatus.WITHDRAWN: (Event.WITHDRAWN, "withdrawn"),
    ApprovalStatus.EXPIRED: (Event.EXPIRED, "undecided_at_deadline"),
    ApprovalStatus.CANCELLED: (Event.CANCELLED, "cancelled"),
    ApprovalStatus.SUPERSEDED: (Event.CANCELLED, "superseded"),
    # Whatever has become of a grant since, the gateway answers it: with the receipt, or that it is void.
    ApprovalStatus.VOIDED: (Event.GRANTED, "granted"),
    ApprovalStatus.CONSUMED: (Event.GRANTED, "granted"),
}

MAX_ASKED_ANEW = 5
"""How often one run asks anew because its grant was void; something that never holds still ends it."""

STEP_FAILURES = (ActivityError, ApplicationError)
"""What a failed step raises; a local one comes without the wrapping ActivityError (seen in SDK 1.35)."""

Done = TypeVar("Done")


class Prepared(NamedTuple):
    """A draft that may be proposed; all empty where the case has none."""

    draft_version: int = 0
    draft_model: str = ""
    grade_model: str = ""


class GaveUp(Exception):
    """The run ends without a proposal; the argument is the reason code."""


@workflow.defn(name=names.WORKFLOW_TYPE)
class GovernedAction:
    """One operation's run. All state is made here, since messages can come before `run` starts."""

    @workflow.init
    def __init__(self, order: RunOrder) -> None:
        self._order = order
        self._state = State.CREATED
        self._reason = ""
        self._timeline: list[Step] = []
        self._mailbox = Mailbox()
        self._refused = 0
        self._draft_version = 0
        self._asks = 0
        self._voided = 0
        self._window: ApprovalWindow | None = None
        self._approval_steps = asyncio.Lock()
        """Opening an approval and ruling on messages take turns: a vote between them would be told to no window."""

    @workflow.run
    async def run(self, order: RunOrder) -> RunResult:  # noqa: ARG002 - Temporal wants what `__init__` takes
        """Carry the operation to its end."""
        attending = asyncio.create_task(self._attend())
        try:
            result = await self._carry()
        except GaveUp as gave_up:
            result = await self._gave_up(str(gave_up))
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            await self._cancelled()
            await self._drained()
            raise
        await self._drained()
        attending.cancel()
        return result

    async def _carry(self) -> RunResult:
        plan = await self._open()
        prepared = await self._prepare(plan) if plan.drafted else Prepared()
        while True:
            window = await self._propose(prepared)
            event, reason = await self._agreed(window)
            if event == Event.EDITED:
                await self._move(event, reason)
                continue
            if event != Event.GRANTED:
                return await self._end(event, reason)
            effect = await carry_out(self._order, window.approval_id, self._move)
            if not effect.voided:
                return self._result(effect)
            self._voided += 1
            if self._voided > MAX_ASKED_ANEW:
                raise GaveUp("voided_too_often")

    async def _agreed(self, window: ApprovalWindow) -> tuple[Event, str]:
        """What came of an ask: `granted`, with the run EXECUTING by then, or an event that is still to be entered."""
        if not window.roles:
            await self._move(Event.GRANTED_BY_RULE, "granted_by_rule")
            return Event.GRANTED, ""
        await self._move(Event.PROPOSED, self._reason_of_ask())
        event, reason = _END_OF_WINDOW[await self._decision(window)]
        if event == Event.GRANTED:
            await self._move(event, reason)
        return event, reason

    def _reason_of_ask(self) -> str:
        """Why people are asked: for the first time, about an edit, or anew because the grant was void."""
        return "needs_people" if self._asks == 1 else self._reason

    async def _open(self) -> RunPlan:
        order = OpenOrder(run=self._order, now=workflow.now())
        step = workflow.execute_local_activity_method(Opening.open_run, order, **options.LEDGER_STEP)
        plan = await _done(step, "not_registered")
        self._enter(Event.STARTED, "")
        return plan

    async def _prepare(self, plan: RunPlan) -> Prepared:
        """Draft, check and grade until a version is satisfied; feedback goes to the next by way of the ledger."""
        reason = "no_rounds"
        for version in range(1, plan.max_rounds + 1):
            self._draft_version = version
            step = self._step(version)
            written = await _done(workflow.execute_activity_method(Drafting.draft, step, **options.MODEL_STEP))
            checked = await _done(workflow.execute_activity_method(Validating.validate, step, **options.CHECK_STEP))
            if checked.codes:
                reason = "checks_failed"
                continue
            graded = await self._grade(step, plan.max_grader_tries)
            if graded.verdict == Verdict.SATISFIED:
                return Prepared(version, written.model, graded.model)
            if graded.verdict != Verdict.NEEDS_REVISION:
                raise GaveUp(f"rubric_{graded.verdict.value}")
            reason = Verdict.MAX_ITERATIONS_REACHED.value
        raise GaveUp(reason)

    async def _grade(self, step: StepOrder, tries: int) -> Graded:
        for _ in range(tries):
            graded = await _done(workflow.execute_activity_method(Grading.grade, step, **options.MODEL_STEP))
            if graded.verdict != Verdict.GRADER_ERROR:
                break
        return graded

    async def _propose(self, prepared: Prepared) -> ApprovalWindow:
        self._asks += 1
        order = ProposeOrder(
            step=self._step(prepared.draft_version),
            approval_version=self._asks,
            draft_model=prepared.draft_model,
            grade_model=prepared.grade_model,
            now=workflow.now(),
        )
        return await _done(to_its_end(self._opened(order)), "proposal_failed")

    async def _opened(self, order: ProposeOrder) -> ApprovalWindow:
        async with self._approval_steps:
            proposed = await workflow.execute_local_activity_method(Proposing.propose, order, **options.LEDGER_STEP)
            self._window = ApprovalWindow(self._order, proposed)
        return self._window

    async def _decision(self, window: ApprovalWindow) -> ApprovalStatus:
        """What people decide until the deadline; what came before it is ruled on before it expires."""
        await window.closes()
        async with self._approval_steps:
            while self._mailbox.waits_since_before(window.deadline):
                await self._rule()
            await window.expire()
        return window.status

    async def _drained(self) -> None:
        """Every message that came has its ruling, and every sender of an update the answer."""
        ruled_on = workflow.wait_condition(lambda: not self._mailbox.waiting and workflow.all_handlers_finished())
        await to_its_end(ruled_on)

    async def _cancelled(self) -> None:
        """Temporal's own cancel: what waits is closed, and the end is recorded."""
        if self._window is not None:
            await self._window.cancel()
        if (self._state, Event.CANCELLED) in TRANSITIONS:
            await self._move(Event.CANCELLED, "cancelled")

    async def _attend(self) -> None:
        """Rule on messages as they come, all through the run."""
        while True:
            await workflow.wait_condition(lambda: self._mailbox.waiting > 0)
            async with self._approval_steps:
                await self._rule()

    async def _rule(self) -> None:
        """Rule on the oldest messages."""
        batch = self._mailbox.batch()
        if not batch:
            return
        decided = await self._decided(batch)
        self._refused += sum(outcome.ruling != Ruling.ACCEPTED for outcome in decided.outcomes)
        if self._window is not None and decided.status is not None:
            self._window.heard(decided.status)
        self._mailbox.done(batch, decided.outcomes)

    async def _decided(self, batch: tuple[Message, ...]) -> Decided:
        order = MessageBatch(tenant=self._order.tenant, operation=self._order.operation, messages=batch)
        if self._mailbox.flooded:
            return await workflow.execute_activity_method(Deciding.decide, order, **options.FLOOD_STEP)
        return await workflow.execute_local_activity_method(Deciding.decide, order, **options.LEDGER_STEP)

    def _step(self, version: int) -> StepOrder:
        return StepOrder(
            tenant=self._order.tenant,
            operation=self._order.operation,
            run_id=workflow.info().run_id,
            draft_version=version,
        )

    async def _move(self, event: Event, reason: str) -> None:
        """Enter the next state and write it down; then honour a cancel if it still can be."""
        self._enter(event, reason)
        record = StateRecord(
            tenant=self._order.tenant,
            operation=self._order.operation,
            state=self._state,
            reason=reason,
            now=workflow.now(),
        )
        await to_its_end(workflow.execute_local_activity_method(Opening.record_state, record, **options.LEDGER_STEP))
        if (self._state, Event.CANCELLED) in TRANSITIONS:
            honour_cancel()

    def _enter(self, event: Event, reason: str) -> None:
        """Go where the table says, and show it to operators."""
        self._state, self._reason = after(self._state, event), reason
        self._timeline.append(Step(at=workflow.now(), state=self._state, reason=reason))
        waiting = self._window if self._state == State.WAITING_APPROVAL else None
        workflow.upsert_search_attributes(search_attributes(self._order, self._state, waiting))
        workflow.set_current_details(f"{self._state.value} {reason}".rstrip())

    async def _gave_up(self, reason: str) -> RunResult:
        is_open = self._state != State.CREATED
        try:
            return await self._end(Event.GAVE_UP, reason)
        except STEP_FAILURES:
            if is_open:
                raise
            # Nobody registered the operation, or it is another run's: the refused opening is all the record there is.
            return RunResult(state=self._state, reason=self._reason)

    async def _end(self, event: Event, reason: str) -> RunResult:
        await self._move(event, reason)
        return RunResult(state=self._state, reason=reason)

    def _result(self, effect: EffectResult) -> RunResult:
        receipt = effect.receipt
        return RunResult(
            state=self._state,
            reason=self._reason,
            reference=receipt.reference if receipt else "",
            key=receipt.key if receipt else "",
        )

    @workflow.signal(dynamic=True)
    def on_signal(self, name: str, args: Sequence[RawValue]) -> None:
        """Any signal at all; see workflows/mailbox.py."""
        self._mailbox.put(name, args, "signal")

    @workflow.update(dynamic=True)
    async def on_update(self, name: str, args: Sequence[RawValue]) -> Outcome:
        """Any update at all; the sender gets the outcome at once."""
        return await self._mailbox.ask(name, args)

    @workflow.query
    def status(self) -> RunStatus:
        """Where the run stands."""
        return RunStatus(
            tenant=self._order.tenant,
            operation=self._order.operation,
            case=self._order.case,
            state=self._state,
            reason=self._reason,
            draft_version=self._draft_version,
            approval_id=self._window.approval_id if self._window else "",
            messages=self._mailbox.received,
            waiting=self._mailbox.waiting,
            refused=self._refused,
        )

    @workflow.query
    def proposal(self) -> ProposalView | None:
        """What people are asked to decide, by ids and hashes."""
        return self._window.view() if self._window else None

    @workflow.query
    def timeline(self) -> list[Step]:
        """The states the run went through."""
        return self._timeline


async def _done(step: Awaitable[Done], failure: str = "step_failed") -> Done:
    """A step on the way to the proposal: its failure is the run's end, and a cancel is honoured however it ended."""
    try:
        result = await step
    except STEP_FAILURES as error:
        honour_cancel()
        raise GaveUp(_code(error, failure)) from None
    honour_cancel()
    return result


def _code(error: BaseException | None, fallback: str) -> str:
    """The code of the refusal at the bottom of a step's failure; a time-out wraps the last one that was tried again."""
    while error is not None and not isinstance(error, ApplicationError):
        error = error.__cause__
    return error.type.lower() if error is not None and error.type else fallback
