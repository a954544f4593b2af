"""The gateway's part: from a grant to its effect; try, wait, look up, until it is known what happened.

Once the gateway was asked, a cancel or a command comes too late: giving up would leave an effect that nobody knows of.
Only where it is sure that nothing was sent do they, whenever they came, still turn the run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from temporalio import workflow
from temporalio.workflow import ActivityHandle

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import EarlierEffect, EffectOrder, Executing
    from countersign.domain.execution import FROZEN, LOST_TIME, OUTSIDE_REFUSED, EffectResult, ExecutionStatus
    from countersign.domain.state import Event

from workflows import escalating, options
from workflows.asking import taken_back
from workflows.cancelling import to_its_end
from workflows.control import TurnedAside
from workflows.owning import has_taken_back
from workflows.run import GaveUp, Move, Run
from workflows.waiting import until

MAX_ASKED_ANEW = 5
"""How often one run asks anew because its grant was void; something that never holds still ends it."""

_EVENTS = {
    ExecutionStatus.EXECUTED: Event.EXECUTED,
    ExecutionStatus.NOT_SENT: Event.NOT_SENT,
    ExecutionStatus.UNKNOWN: Event.OUTCOME_UNKNOWN,
    None: Event.REFUSED,
}


class Effect:
    """The effect of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._asked: ActivityHandle[EffectResult] | None = None
        """What the gateway is asked at present."""
        self._heard = 0
        """How many of people's statements the gateway was asked to count."""
        self.result: EffectResult | None = None
        """What the gateway answered last."""

    async def execute(self) -> Move | None:
        """Have the grant executed."""
        answer = await self._answer(Executing.execute, options.EFFECT_STEP)
        return None if answer is None else await self._entered(answer)

    def go_on_with(self, standing: EarlierEffect) -> Move:
        """Take up the effect of an earlier run: it is there, or may be, and is found out; never asked for anew."""
        course, self.result = self._run.course, standing.effect
        course.resumed = standing.approval_id
        if standing.effect.status == ExecutionStatus.EXECUTED:
            return Move(Event.EXECUTED, standing.effect.reason)
        course.wakes_at = workflow.now() + options.UNKNOWN_ESCALATES_AFTER
        return Move(Event.OUTCOME_UNKNOWN, standing.effect.reason)

    async def find_out(self) -> Move | None:
        """Have looked up what became of an unknown outcome, for as long as it takes; people are called in time."""
        answer = await self._answer(
            Executing.reconcile, options.RECONCILE_STEP, until_moment=self._calls_at(), unless=self._is_told_more
        )
        if answer is None:
            self._ask_anew_if_told_more()
            await self._call()
            return None
        self._run.course.escalated = None
        return await self._entered(answer)

    async def pause(self) -> Move:
        """Nothing was sent: wait, then try again, unless somebody takes it back meanwhile."""
        run = self._run
        await until(
            run.course.wakes_at,
            lambda: run.holding.turned or has_taken_back(run),
            "before sending again",
        )
        if run.holding.turned:
            raise TurnedAside
        return taken_back() if has_taken_back(run) else Move(Event.RETRY)

    def _is_told_more(self) -> bool:
        """Whether people have said what became of it since the gateway was asked."""
        return self._run.settlements > self._heard

    def _ask_anew_if_told_more(self) -> None:
        """Give up what is asked, which can be minutes from its next attempt; the gateway counts what people said."""
        if self._asked is not None and self._is_told_more():
            self._asked.cancel()
            # Looked at, so that nothing is logged of an error that nobody waits for any more.
            self._asked.add_done_callback(lambda given_up: given_up.cancelled() or given_up.exception())
            self._asked = None

    def _calls_at(self) -> datetime | None:
        """When people are called, or called again since nobody came in time."""
        escalated = self._run.course.escalated
        return self._run.course.wakes_at if escalated is None else escalated.deadline

    async def _call(self) -> None:
        """Call people if it is time for it."""
        run, course, calls_at = self._run, self._run.course, self._calls_at()
        if calls_at is None or calls_at > workflow.now():
            return
        if course.escalated is None or not course.escalated.number:
            course.escalated = await escalating.brought_before_people(run, "outcome_unknown")
        else:
            await escalating.unanswered(run, course.escalated)
            course.escalated = None

    async def _entered(self, effect: EffectResult) -> Move:
        """Where the gateway's answer leads."""
        run, course, self.result = self._run, self._run.course, effect
        event = Event.VOIDED if effect.voided else _EVENTS[effect.status]
        if event == Event.REFUSED:
            # A command can have taken the grant back; whatever came is ruled on before the refusal is the run's end.
            async with run.attending.turns:
                await run.attending.rule_all()
            if run.holding.turned:
                raise TurnedAside
            if has_taken_back(run):
                return taken_back()
        if event == Event.OUTCOME_UNKNOWN:
            course.wakes_at = workflow.now() + options.UNKNOWN_ESCALATES_AFTER
        if event == Event.NOT_SENT:
            course.failures += 1
            held = effect.reason == FROZEN
            course.wakes_at = workflow.now() + options.pause(course.failures, held=held)
        if event == Event.VOIDED and effect.reason == LOST_TIME:
            # No grant of this run was void: it goes on as if it had just begun.
            course.resumed = ""
        elif event == Event.VOIDED:
            course.voided += 1
            course.asked_anew_for = effect.reason
            is_refused = effect.reason == OUTSIDE_REFUSED
            if is_refused or course.voided > MAX_ASKED_ANEW:
                async with run.attending.turns:
                    await run.move(event, effect.reason)
                raise GaveUp(OUTSIDE_REFUSED if is_refused else "voided_too_often")
        return Move(event, effect.reason)

    async def _answer(
        self,
        step: Callable[[Executing, EffectOrder], EffectResult],
        how: options.StepOptions,
        until_moment: datetime | None = None,
        unless: Callable[[], bool] = lambda: False,
    ) -> EffectResult | None:
        """The gateway's answer; nothing where it is not there by that moment, the run is to go on in another one, or
        `unless` holds before it is there.

        The next run asks again, which does no harm: an effect is claimed once, whoever asks for it.
        """
        if self._asked is None:
            order = self._run.order
            asked = EffectOrder(tenant=order.tenant, operation=order.operation, approval_id=self._run.approval_id)
            self._heard = self._run.settlements
            self._asked = workflow.start_activity_method(step, asked, **how)
        task = self._asked
        await to_its_end(
            until(until_moment, lambda: task.done() or self._run.grown_long() or unless(), "outcome still unknown")
        )
        if not task.done():
            return None
        self._asked = None
        return task.result()
