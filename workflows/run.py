"""One run as all its parts see it: what it knows, who is in control, what waits, and where it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Decided, Opening, RunPlan, StateRecord, StepOrder
    from countersign.domain.control import FIRST_VERSION, first_control
    from countersign.domain.run import Step
    from countersign.domain.state import TRANSITIONS, Event, State, after

from workflows import options
from workflows.approval_window import ApprovalWindow
from workflows.attending import Attending
from workflows.cancelling import honour_cancel, to_its_end
from workflows.carrying import MAX_TIMELINE, Carried, Course, RunInput
from workflows.control import Holding, TurnedAside
from workflows.mailbox import Mailbox
from workflows.question_window import QuestionWindow
from workflows.visibility import search_attributes
from workflows.window import Window

Done = TypeVar("Done")


class Move(NamedTuple):
    """Where a part of the run leads."""

    event: Event
    reason: str = ""


class GaveUp(Exception):
    """The run cannot go on by itself; the argument is the reason code."""


class Run:
    """One run."""

    def __init__(self, start: RunInput) -> None:
        """Begun anew; what another run carried here is taken up once the ledger says that it was handed on."""
        self.order = start.order
        self.line = workflow.info().run_id
        self.state = State.CREATED
        self.reason = ""
        self.timeline: list[Step] = []
        self.course = Course()
        self.window: ApprovalWindow | None = None
        """The latest ask."""
        self.question: QuestionWindow | None = None
        """The agent's latest question."""
        self.answers = 0
        """How many answers to the agent were accepted."""
        self.holding = Holding(first_control(workflow.now()), acted_on=FIRST_VERSION)
        self.settlements = 0
        """How often people said what became of an effect."""
        self.mailbox = Mailbox()
        self.attending = Attending(self.order, self.mailbox, self.due, self._heard, self.cancelling)

    @property
    def approval_id(self) -> str:
        """The latest ask's, or that of an earlier run whose effect this one goes on with; empty before the first."""
        return self.window.approval_id if self.window is not None else self.course.resumed

    def step(self, version: int) -> StepOrder:
        """The order of a step on a version of the draft."""
        return StepOrder(
            tenant=self.order.tenant,
            operation=self.order.operation,
            line=self.line,
            draft_version=version,
            control_version=self.holding.acted_on,
            resumed=self.course.pauses,
        )

    async def move(self, event: Event, reason: str) -> None:
        """Enter the next state and write it down; then honour a cancel if it still can be."""
        self.enter(event, reason)
        record = StateRecord(
            tenant=self.order.tenant,
            operation=self.order.operation,
            state=self.state,
            reason=reason,
            now=workflow.now(),
        )
        await to_its_end(workflow.execute_local_activity_method(Opening.record_state, record, **options.LEDGER_STEP))
        if self.can(Event.CANCELLED):
            honour_cancel()

    def enter(self, event: Event, reason: str) -> None:
        """Go where the table says, and show it to operators."""
        self.state, self.reason = after(self.state, event), reason
        self.timeline.append(Step(at=workflow.now(), state=self.state, reason=reason))
        workflow.upsert_search_attributes(search_attributes(self.order, self.state, *self._people()))
        workflow.set_current_details(f"{self.state.value} {reason}".rstrip())

    def cancelling(self) -> bool:
        """Whether a cancel that came is about to end the run; one that came while executing waits for the gateway."""
        is_asked = workflow.cancellation_reason() is not None
        return is_asked and self.state != State.EXECUTING and self.can(Event.CANCELLED)

    def can(self, event: Event) -> bool:
        """Whether `event` means anything in this state."""
        return (self.state, event) in TRANSITIONS

    async def unless_turned(self, step: Coroutine[Any, Any, Done]) -> Done:
        """Do a step, but give it up at once where control changes hands; what still comes of it is discarded.

        Raises:
            TurnedAside: it was given up.
        """
        task = asyncio.create_task(step)
        try:
            await workflow.wait_condition(lambda: task.done() or self.holding.turned)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        if self.holding.turned:
            task.cancel()
            # Looked at, so that nothing is logged of an error that nobody waits for any more.
            task.add_done_callback(lambda given_up: given_up.cancelled() or given_up.exception())
            raise TurnedAside
        return task.result()

    def asks(self) -> Window | None:
        """What people are asked to answer or to decide now, if anything."""
        if self.question is not None and self.course.answering:
            return self.question
        return self.window if self.window is not None and self.window.pending else None

    def due(self) -> datetime | None:
        """When something is to be done next unless a message comes before: that is when its true time matters."""
        if self.state == State.HUMAN_TAKEOVER:
            return self.holding.control.lease_until
        asks = self.asks()
        if asks is not None:
            return asks.due
        escalated = self.course.escalated
        return escalated.deadline if self.state == State.ESCALATED and escalated is not None else None

    def grown_long(self) -> bool:
        """Whether the run should go on in another one, and can: nobody waits for an answer of this one, nothing is due,
        and no cancel waits for its outcome, which the next run would not know of."""
        due = self.due()
        return (
            workflow.info().is_continue_as_new_suggested()
            and workflow.cancellation_reason() is None
            and workflow.all_handlers_finished()
            and self.mailbox.can_be_carried
            and (due is None or due > workflow.now())
            and workflow.cancellation_reason() is None
        )

    def carried(self, plan: RunPlan) -> Carried:
        """All of it, for the run that goes on with it."""
        window, question, holding = self.window, self.question, self.holding
        return Carried(
            line=self.line,
            plan=plan,
            state=self.state,
            reason=self.reason,
            timeline=tuple(self.timeline[-MAX_TIMELINE:]),
            course=self.course,
            received=self.mailbox.received,
            refused=self.attending.refused,
            waiting=self.mailbox.carried(),
            proposed=window.carried() if window is not None else None,
            ticked=window.ticked if window is not None else 0,
            asked=question.carried() if question is not None else None,
            asked_ticked=question.ticked if question is not None else 0,
            control=holding.control,
            acted_on=holding.acted_on,
            ending=holding.ending,
            orders=tuple(holding.orders),
        )

    def take_up(self, carried: Carried) -> None:
        """Go on in the middle of what another run handed on."""
        self.line, self.course = carried.line, carried.course
        self.state, self.reason, self.timeline = carried.state, carried.reason, list(carried.timeline)
        self.mailbox.take_up(carried.received, carried.waiting)
        self.attending.refused = carried.refused
        self.holding = Holding(carried.control, carried.acted_on, carried.ending, carried.orders)
        if carried.proposed is not None:
            self.window = ApprovalWindow(self.order, carried.proposed, carried.ticked)
        if carried.asked is not None:
            self.question = QuestionWindow(self.order, carried.asked, carried.asked_ticked)

    def _heard(self, decided: Decided) -> None:
        """Take note of what messages did."""
        if self.window is not None and decided.status is not None:
            self.window.heard(decided.status)
        if self.question is not None and decided.question is not None:
            self.question.heard(decided.question)
        self.answers += sum(told.command == "answer" for told in decided.told)
        self.course.raised |= any(told.command == "raise_budget" for told in decided.told)
        self.settlements += sum(told.command == "settle" for told in decided.told)
        if decided.control is None:
            return
        self.holding.heard(decided)
        if self.holding.turned or any(told.command == "amend" for told in decided.told):
            # Not otherwise: the agent's next version is under way, and the ledger does not know of it yet.
            self.course.draft_version = decided.draft_version

    def _people(self) -> tuple[tuple[str, ...], datetime | None]:
        """Who moves next, by role, and until when; nothing where it is not people's turn."""
        if self.state == State.HUMAN_TAKEOVER:
            return (), self.holding.control.lease_until
        if self.state not in (State.WAITING_ANSWER, State.WAITING_APPROVAL, State.ESCALATED):
            return (), None
        asks = self.asks()
        if asks is not None:
            return asks.roles, asks.deadline
        escalated = self.course.escalated
        if escalated is None:
            return (), None
        return ((escalated.role,) if escalated.role else ()), escalated.deadline
