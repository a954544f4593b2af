"""The run: from a registered request to one effect, readable from top to bottom.

The order of the steps is this code's alone: only `satisfied` reaches propose, only a grant reaches execute, and every
other end says which it is. What comes next follows from the state; so a run that goes on in another one, its history
having grown long, needs no more than its state and what it knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Opening, OpenOrder, RunPlan
    from countersign.domain.command import Ending
    from countersign.domain.decision import Outcome
    from countersign.domain.proposal import ApprovalStatus
    from countersign.domain.question import QuestionStatus
    from countersign.domain.run import ProposalView, QuestionView, RunResult, RunStatus, Step
    from countersign.domain.state import Event, State

from workflows import answering, asking, carrying, escalating, following, names, options, owning
from workflows.cancelling import honour_cancel, to_its_end
from workflows.carrying import Carried, RunInput
from workflows.control import Holding, TurnedAside
from workflows.effect import Effect
from workflows.preparing import STEP_FAILURES, done, moved_on, prepared
from workflows.question_window import QuestionWindow
from workflows.run import GaveUp, Move, Run


@workflow.defn(name=names.WORKFLOW_TYPE)
class GovernedAction:
    """One operation's run. All state is made here, since messages can come before `run` starts."""

    @workflow.init
    def __init__(self, start: RunInput) -> None:
        self._run = Run(start)
        self._effect = Effect(self._run)

    @workflow.run
    async def run(self, start: RunInput) -> RunResult:
        """Carry the operation to its end."""
        # Before any message: nothing of what is carried may count unless it was handed on to this very run (G23).
        taken_on = start.carried is None or await self._take_on(start.carried)
        attending = asyncio.create_task(self._run.attending.forever())
        try:
            if taken_on:
                await self._carry(start)
            else:
                self._run.enter(Event.GAVE_UP, "not_handed_on")
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            if not await self._cancelled():
                await self._run.attending.drained()
                raise
        await self._run.attending.drained()
        attending.cancel()
        return self._result()

    async def _carry(self, start: RunInput) -> None:
        try:
            plan = await self._open() if start.carried is None else start.carried.plan
        except GaveUp as not_opened:
            await self._end_unopened(str(not_opened))
            return
        if self._run.can(Event.CANCELLED):
            honour_cancel()
        while not self._run.state.terminal:
            try:
                move = await self._next(plan)
            except TurnedAside:
                await self._turn()
            except GaveUp as gave_up:
                await self._give_up(str(gave_up))
            else:
                await self._enter(move)
        if self._run.state == State.SUCCEEDED:
            await following.begin(plan.followers)

    async def _next(self, plan: RunPlan) -> Move | None:
        """What the one whose turn it is in this state does; where it leads, or nothing, to look again."""
        run, window, question = self._run, self._run.window, self._run.question
        # Not before the gateway has said whether anything was sent: it refuses what was taken back.
        if run.holding.turned and run.can(Event.TAKEN_OVER) and run.state != State.EXECUTING:
            raise TurnedAside
        # Not while the agent is at work: what a draft has come to so far is not handed on.
        if run.state != State.RUNNING and run.grown_long():
            await self._hand_on(plan)
        match run.state:
            case State.RUNNING:
                return await self._agents_turn(plan)
            case State.HUMAN_TAKEOVER:
                return await owning.work(run, plan)
            case State.WAITING_ANSWER | State.ESCALATED if question is not None and run.course.answering:
                return await answering.be_answered(run, question)
            case State.WAITING_APPROVAL | State.ESCALATED if window is not None and run.course.asking:
                return await asking.be_decided(run, window)
            case State.ESCALATED:
                return await escalating.be_taken_up(run)
            case State.EXECUTING:
                return await self._effect.execute()
            case State.WAITING_RETRY:
                return await self._effect.pause()
            case _:
                return await self._effect.find_out()

    async def _open(self) -> RunPlan:
        order = OpenOrder(run=self._run.order, now=workflow.now())
        step = workflow.execute_local_activity_method(Opening.open_run, order, **options.LEDGER_STEP)
        plan = await done(step, "not_registered")
        holding = self._run.holding
        self._run.holding = Holding(plan.control, holding.acted_on, plan.ending)
        if plan.standing is None:
            self._run.enter(Event.STARTED, "")
        else:
            await self._run.move(*self._effect.go_on_with(plan.standing))
        return plan

    async def _agents_turn(self, plan: RunPlan) -> Move | None:
        """Draft until something is ready, and propose it; what was edited, or became void, is proposed anew."""
        course = self._run.course
        if course.ready is None:
            course.ready = await self._run.unless_turned(prepared(self._run, plan))
        if course.ready is None:
            return Move(Event.ASKED, "agent_asks")
        if plan.gathers and await self._run.unless_turned(moved_on(self._run, plan)):
            return None
        return await asking.ask(self._run, course.ready)

    # Entering a state takes a turn with the rulings: of a message and a state, one is then surely first.

    async def _enter(self, move: Move | None) -> None:
        """Enter where a part of the run leads, unless control has changed hands; what the gateway did stands anyhow."""
        run = self._run
        async with run.attending.turns:
            overtaken = run.holding.turned and run.state not in (State.EXECUTING, State.OUTCOME_UNKNOWN)
            if move is not None and not overtaken:
                await run.move(*move)

    async def _turn(self) -> None:
        """Act on a change of hands, or on an end that people made."""
        run, course = self._run, self._run.course
        async with run.attending.turns:
            if run.holding.ending is not None:
                await run.move(*_ended(run.holding.ending))
                return
            control = run.holding.act()
            course.ready, course.escalated, course.asking = None, None, False
            course.rounds, course.voided, course.asked_anew_for = 0, 0, ""
            course.unfinished, course.pauses, course.answering, course.raised = False, 0, False, False
            if control.by == "person":
                await run.move(Event.TAKEN_OVER, "taken_over")
            elif control.by == "agent":
                await run.move(Event.RELEASED, "released")
            else:
                await run.move(*await escalating.gave_up(run, escalating.LEASE_OVER))

    async def _give_up(self, code: str) -> None:
        """The run cannot go on: a person in control sees why; otherwise it is brought before people, or has failed."""
        run = self._run
        async with run.attending.turns:
            await run.attending.rule_all()
            if run.holding.turned:
                # It may be only since control has changed hands that a step was refused.
                return
            if run.holding.control.by == "person" and code != escalating.UNDECIDED:
                await run.move(Event.TAKEN_OVER, code)
            else:
                await run.move(*await escalating.gave_up(run, code))

    async def _end_unopened(self, code: str) -> None:
        try:
            if code == "not_authorised":
                # There is nothing to take over yet, but whoever gives people their roles is to hear of it.
                await escalating.brought_before_people(self._run, code)
            await self._run.move(Event.GAVE_UP, code)
        except STEP_FAILURES:
            # Nobody registered the operation, or it is another run's: the refused opening is all the record there is.
            return

    async def _cancelled(self) -> bool:
        """Temporal's own cancel: what waits is closed, and the end is recorded; True if the run had ended otherwise.

        It comes after whatever the server recorded before it: a command that ended the run, or the deadline, at which
        the run expired unless it is held for people then.
        """
        run, window, question = self._run, self._run.window, self._run.question
        async with run.attending.turns:
            asked_at = (await run.attending.times()).cancelled_at or workflow.now()
            if window is not None and window.pending and window.deadline <= asked_at:
                await run.attending.rule_before(window.deadline)
                await window.expire()
            if question is not None and run.course.answering and question.deadline <= asked_at:
                await run.attending.rule_before(question.deadline)
                if question.pending:
                    await question.expire()
            await run.attending.rule_before(asked_at)
            ending = run.holding.ending
            if ending is not None and run.can(_ended(ending).event):
                await run.move(*_ended(ending))
                return True
            people_are_asked = run.state in (State.WAITING_APPROVAL, State.ESCALATED)
            if window is not None and people_are_asked and window.status == ApprovalStatus.REJECTED:
                await run.move(Event.REJECTED, "rejected")
                return True
            if window is not None and window.status == ApprovalStatus.EXPIRED and not window.freezes:
                await run.move(Event.EXPIRED, escalating.UNDECIDED)
                return True
            if question is not None and run.can(Event.EXPIRED) and _nobody_answered(question):
                await run.move(Event.EXPIRED, escalating.UNANSWERED)
                return True
            if window is not None:
                await window.cancel()
            if run.can(Event.CANCELLED):
                await run.move(Event.CANCELLED, "cancelled")
        return False

    async def _hand_on(self, plan: RunPlan) -> None:
        """Go on in another run, unless a cancel comes: the next run would not know of it."""
        run = self._run
        await carrying.hand_on(run.order, run.line)
        while True:
            await run.attending.answered()
            await to_its_end(run.attending.dated())
            if run.can(Event.CANCELLED):
                honour_cancel()
            if workflow.cancellation_reason() is not None:
                return
            if run.grown_long():
                break
            # More has come in the meantime than can be handed on.
            async with run.attending.turns:
                await run.attending.rule_all()
        workflow.continue_as_new(RunInput(**dict(run.order), carried=run.carried(plan)))

    async def _take_on(self, carried: Carried) -> bool:
        """Go on with what another run handed on to this one; False if none did, whoever says so."""
        try:
            await carrying.take_on(self._run.order, carried.line)
        except STEP_FAILURES:
            return False
        self._run.take_up(carried)
        return True

    def _result(self) -> RunResult:
        run, effect = self._run, self._effect.result
        receipt = effect.receipt if effect is not None else None
        return RunResult(
            state=run.state,
            reason=run.reason,
            reference=receipt.reference if receipt else "",
            key=receipt.key if receipt else "",
        )

    @workflow.signal(dynamic=True)
    def on_signal(self, name: str, args: Sequence[RawValue]) -> None:
        """Any signal at all; see workflows/mailbox.py."""
        self._run.mailbox.put(name, args, "signal")

    @workflow.update(dynamic=True)
    async def on_update(self, name: str, args: Sequence[RawValue]) -> Outcome:
        """Any update at all; the sender gets the outcome at once."""
        return await self._run.mailbox.ask(name, args)

    @workflow.query
    def status(self) -> RunStatus:
        """Where the run stands."""
        run, control = self._run, self._run.holding.control
        return RunStatus(
            tenant=run.order.tenant,
            operation=run.order.operation,
            case=run.order.case,
            state=run.state,
            reason=run.reason,
            draft_version=run.course.draft_version,
            approval_id=run.approval_id,
            control=control.person or control.by,
            control_version=control.version,
            messages=run.mailbox.received,
            waiting=run.mailbox.waiting,
            refused=run.attending.refused,
        )

    @workflow.query
    def proposal(self) -> ProposalView | None:
        """What people are asked to decide, by ids and hashes."""
        return self._run.window.view() if self._run.window else None

    @workflow.query
    def question(self) -> QuestionView | None:
        """What the agent asked last, by ids and hashes."""
        return self._run.question.view() if self._run.question else None

    @workflow.query
    def timeline(self) -> list[Step]:
        """The states the run went through."""
        return self._run.timeline


def _nobody_answered(question: QuestionWindow) -> bool:
    """Whether the run ends by that; one that is held ends by people, or by the cancel."""
    return question.status == QuestionStatus.EXPIRED and not question.freezes


def _ended(ending: Ending) -> Move:
    return Move(Event.WITHDRAWN if ending.state == State.WITHDRAWN else Event.CANCELLED, ending.reason)
