"""The clock's part of what the agent asks of people: reminders, further people, and the deadline."""

from __future__ import annotations

from temporalio import activity

from activities.failures import faults, refusals
from activities.interfaces import Questioning, QuestionMarked, QuestionOrder
from activities.runs import Runs
from countersign.domain.errors import Conflict, InputRefused, NotFound
from countersign.domain.question import Asked, Question
from countersign.ports import Ledger


class QuestioningSteps(Questioning):
    """Asks the ledger, which alone knows whether somebody answered first."""

    def __init__(self, ledger: Ledger, runs: Runs) -> None:
        self._ledger = ledger
        self._runs = runs

    @activity.defn
    def mark_question(self, order: QuestionOrder) -> QuestionMarked:
        """See Questioning."""
        with refusals(self._runs, order.tenant, order.operation, "mark_question"):
            self._runs.check_run(order.tenant, order.operation)
            self._runs.check_now(order.now)
            self._check_own(order)
            if order.tick is None:
                raise InputRefused(f"question {order.number} of operation {order.operation}: no tick is named")
            asked = self._ledger.questions.mark(order.tenant, order.operation, order.number, order.tick, order.now)
        tick = asked.question.ticks()[order.tick]
        roles = asked.question.asked(tick.at)
        return QuestionMarked(status=asked.status, escalated=tick.kind == "tier", roles=roles)

    @activity.defn
    def expire_question(self, order: QuestionOrder) -> QuestionMarked:
        """See Questioning."""
        with refusals(self._runs, order.tenant, order.operation, "expire_question"):
            self._runs.check_run(order.tenant, order.operation)
            self._check_own(order)
        with faults("expire_question"):
            self._runs.check_now(order.now)
            asked = self._ledger.questions.expire(order.tenant, order.operation, order.number, order.now)
        roles = asked.question.asked(asked.question.deadline)
        return QuestionMarked(status=asked.status, escalated=False, roles=roles)

    def _check_own(self, order: QuestionOrder) -> None:
        """Only the run whose agent asks has a say in when that is over (G23)."""
        question = self._question(order)
        if not self._runs.carries_line(order.tenant, order.operation, question.line):
            raise Conflict(f"question {order.number} of operation {order.operation} is asked by another run")

    def _question(self, order: QuestionOrder) -> Question:
        every: tuple[Asked, ...] = tuple(self._ledger.questions.of_operation(order.tenant, order.operation))
        for asked in every:
            if asked.question.number == order.number:
                return asked.question
        raise NotFound(f"operation {order.operation} has no question {order.number}; it has {len(every)}")
