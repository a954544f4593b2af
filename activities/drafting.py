"""The agent's step: one whole deep agent loop, with a heartbeat beside it, up to a draft or to a question to people."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from temporalio import activity

from activities.answers import SignedAnswers
from activities.failures import refusals
from activities.heartbeats import heartbeats
from activities.interfaces import Drafting, DraftWritten, QuestionAsked, StepOrder
from activities.materials import opened
from activities.runs import Runs
from activities.watching import StepWatched
from countersign.cases.assessing import policy_in_force
from countersign.cases.case import Case, drafted_case
from countersign.domain.errors import Conflict, DeniedByPolicy
from countersign.domain.model_call import Prices
from countersign.domain.operation import Operation
from countersign.domain.progress import ProgressKind
from countersign.domain.question import (
    AnsweredCall,
    Answering,
    Asked,
    PendingCall,
    Question,
    QuestionStatus,
    answered_calls,
)
from countersign.domain.thread import thread_id
from countersign.ports import Drafter, Ledger, Material, Waiting, Written

ATTEMPTS = 1_000_000
"""More than any step has: so the first attempt after a pause is newer than every one before it."""


class DraftingSteps(Drafting):
    """Gives the case's agent its material and the feedback on the version before, and stores what it wrote."""

    def __init__(
        self,
        ledger: Ledger,
        runs: Runs,
        cases: Mapping[str, Case],
        drafters: Mapping[str, Drafter[Any]],
        *,
        prices: Prices,
        max_pending: int,
        installation: str,
    ) -> None:
        """
        Args:
            ledger: where drafts are kept.
            runs: whose step it is, and when.
            cases: the kinds of work that there are, by name.
            drafters: the agent of each case that is drafted, by the case's name.
            prices: what model calls cost.
            max_pending: how much of a tenant may wait for people at once.
            installation: the audience that people's answers must name.
        """
        self._ledger = ledger
        self._runs = runs
        self._cases = cases
        self._drafters = drafters
        self._prices = prices
        self._max_pending = max_pending
        self._signed = SignedAnswers(ledger, installation, "draft")

    @activity.defn
    async def draft(self, order: StepOrder) -> DraftWritten:
        """See Drafting."""
        with refusals(self._runs, order.tenant, order.operation, "draft"):
            await asyncio.to_thread(self._runs.check_run, order.tenant, order.operation, order.line)
            async with heartbeats():
                return await self._written(order)

    async def _written(self, order: StepOrder) -> DraftWritten:
        """Store what the agent writes; a version that is there, by a person or before a reset, is not written again."""
        version = (order.tenant, order.operation, order.draft_version)
        written = await asyncio.to_thread(self._ledger.drafts.written, *version) or await self._drafted(order)
        if isinstance(written, DraftWritten):
            return written
        content = await asyncio.to_thread(
            self._ledger.drafts.save, *version, written.draft, written.model, order.control_version, self._runs.now()
        )
        return DraftWritten(content=content, model=written.model)

    async def _drafted(self, order: StepOrder) -> Written | DraftWritten:
        operation = await asyncio.to_thread(self._ledger.operations.get, order.tenant, order.operation)
        case = drafted_case(self._cases, operation)
        watched = StepWatched(self._ledger, self._runs, self._prices, order, case.name, "draft", self._runs.check_agent)
        believed = await asyncio.to_thread(self._signed.believed, operation, self._runs.now())
        async with opened(case, operation, believed) as material:
            return await self._asked_of_agent(order, operation, self._drafters[case.name], material, watched)

    async def _asked_of_agent(
        self,
        order: StepOrder,
        operation: Operation,
        drafter: Drafter[Any],
        material: Material,
        watched: StepWatched,
    ) -> Written | DraftWritten:
        """The agent's draft, or what it waits for."""
        run, before = (order.tenant, order.operation), order.draft_version - 1
        earlier = feedback = None
        if before:
            earlier = await asyncio.to_thread(self._ledger.drafts.get, *run, before)
            feedback = await asyncio.to_thread(self._ledger.drafts.feedback, *run, before)
        pause = await asyncio.to_thread(self._pause, order, operation)
        if pause.answers and activity.info().attempt == 1:
            await watched.tell(ProgressKind.ANSWERED, detail=f"{len(pause.answers)} calls in all")
        await watched.tell(ProgressKind.DRAFTING, detail=f"v{order.draft_version}")
        outcome = await drafter.draft(
            thread=thread_id(*run, order.line, order.control_version, order.draft_version),
            attempt=order.resumed * ATTEMPTS + activity.info().attempt,
            material=material,
            earlier=earlier,
            feedback=feedback or (),
            answers=pause.answers,
            may_ask=pause.may_ask,
            watching=watched,
        )
        if isinstance(outcome, Written):
            await watched.tell(ProgressKind.DRAFTED, detail=f"v{order.draft_version}")
            return outcome
        stored = await asyncio.to_thread(self._ask, order, pause, outcome)
        await watched.tell(ProgressKind.ASKED, detail=f"{len(stored.question.calls)} calls")
        return DraftWritten(content="", model=outcome.model, asked=_as_asked(stored, self._runs.now()))

    def _pause(self, order: StepOrder, operation: Operation) -> _Pause:
        asked = self._ledger.questions.of_operation(order.tenant, order.operation)
        answering = policy_in_force(self._ledger, order.tenant, operation.case).answering
        of_line = [one for one in asked if one.question.line == order.line]
        answers: dict[str, AnsweredCall] = {}
        for one in of_line:
            if _is_of_version(one.question, order):
                self._signed.check(operation, one, self._runs.now())
                answers |= answered_calls(one)
        may_ask = answering is not None and len(of_line) < answering.at_most
        waits = any(one.status == QuestionStatus.PENDING for one in of_line)
        return _Pause(answering, answers, may_ask, waits)

    def _ask(self, order: StepOrder, pause: _Pause, waiting: Waiting) -> Asked:
        """The question as the ledger has it; one that was asked before this attempt is not asked again."""
        if pause.answering is None:
            raise DeniedByPolicy(f"operation {order.operation}: the policy in force lets nobody answer its agent")
        if not (pause.may_ask or pause.waits):
            raise Conflict(f"operation {order.operation}: its agent has asked as often as the policy lets it")
        if all(_is_answered(call, pause.answers) for call in waiting.calls):
            raise Conflict(f"operation {order.operation}: its agent waits for what was answered; look at its thread")
        now = self._runs.now()
        question = Question(
            tenant=order.tenant,
            operation=order.operation,
            number=1,  # the ledger counts them
            line=order.line,
            draft_version=order.draft_version,
            control_version=order.control_version,
            calls=waiting.calls,
            answering=pause.answering,
            asked_at=now,
            deadline=now + pause.answering.need.open_for(),
        )
        return self._ledger.questions.ask(question, self._max_pending)


class _Pause(NamedTuple):
    """What the agent goes on with."""

    answering: Answering | None
    """Who answers it, by the policy in force."""
    answers: Mapping[str, AnsweredCall]
    may_ask: bool
    waits: bool
    """Whether a question waits already, which an earlier attempt has asked."""


def _is_answered(call: PendingCall, answers: Mapping[str, AnsweredCall]) -> bool:
    return call.id in answers and answers[call.id].is_about(call.tool, call.args)


def _is_of_version(question: Question, order: StepOrder) -> bool:
    version = (question.draft_version, question.control_version)
    return version == (order.draft_version, order.control_version)


def _as_asked(stored: Asked, now: datetime) -> QuestionAsked:
    question = stored.question
    return QuestionAsked(
        number=question.number,
        question=question.hash(),
        calls=len(question.calls),
        roles=question.asked(now),
        status=stored.status,
        deadline=question.deadline,
        ticks=tuple(tick.at for tick in question.ticks()),
        freezes=question.freezes,
    )
