"""The rubric's step: one grader call on the whole draft, and our gate on its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue
from temporalio import activity

from activities.failures import refusals
from activities.heartbeats import heartbeats
from activities.interfaces import Graded, Grading, StepOrder
from activities.runs import Runs
from activities.watching import StepWatched
from countersign.cases.case import Case, drafted_case, read_draft
from countersign.domain.model_call import Prices
from countersign.domain.progress import ProgressKind
from countersign.domain.rubric import Rubric, gate
from countersign.ports import Grader, Ledger


class _Grading(NamedTuple):
    """What the grader is asked."""

    text: str
    rubric: Rubric
    task: Mapping[str, JsonValue]
    case: str


class GradingSteps(Grading):
    """Grades the very text that the case names, and keeps the grader's answer as it came."""

    def __init__(
        self,
        ledger: Ledger,
        runs: Runs,
        cases: Mapping[str, Case],
        grader: Grader,
        rubrics: Mapping[str, Rubric],
        *,
        prices: Prices,
    ) -> None:
        """
        Args:
            ledger: where drafts and grades are kept.
            runs: whose step it is, and when.
            cases: the kinds of work that there are, by name.
            grader: who grades, whatever the case.
            rubrics: the rubric of each case that is drafted, by the case's name.
            prices: what model calls cost.
        """
        self._ledger = ledger
        self._runs = runs
        self._cases = cases
        self._grader = grader
        self._rubrics = rubrics
        self._prices = prices

    @activity.defn
    async def grade(self, order: StepOrder) -> Graded:
        """See Grading."""
        with refusals(self._runs, order.tenant, order.operation, "grade"):
            await asyncio.to_thread(self._runs.check_run, order.tenant, order.operation, order.line)
            asked = await asyncio.to_thread(self._asked, order)
            check = self._runs.check_control
            watched = StepWatched(self._ledger, self._runs, self._prices, order, asked.case, "grade", check)
            async with heartbeats():
                await watched.happened(ProgressKind.GRADING, detail=f"v{order.draft_version}")
                answer = await self._grader.grade(asked.text, asked.rubric, asked.task, watched)
            grade = gate(asked.rubric, answer)
            await watched.tell(ProgressKind.GRADED, grade.verdict.value, f"v{order.draft_version}")
            await asyncio.to_thread(
                self._ledger.drafts.save_grade,
                order.tenant,
                order.operation,
                order.draft_version,
                grade,
                asked.rubric.label(),
                order.control_version,
                self._runs.now(),
            )
        return Graded(verdict=grade.verdict, model=answer.model)

    def _asked(self, order: StepOrder) -> _Grading:
        operation = self._ledger.operations.get(order.tenant, order.operation)
        case = drafted_case(self._cases, operation)
        draft = read_draft(case.form, self._ledger.drafts.get(order.tenant, order.operation, order.draft_version))
        return _Grading(case.graded_text(operation, draft), self._rubrics[case.name], case.task(operation), case.name)
