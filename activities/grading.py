"""The rubric's step: one grader call on the whole draft, and our gate on its answer."""

from __future__ import annotations

import asyncio

from temporalio import activity

from activities.failures import refusals
from activities.heartbeats import heartbeats
from activities.interfaces import Graded, Grading, StepOrder
from activities.requests import stored_request
from activities.runs import Runs
from countersign.cases.report import case
from countersign.domain.rubric import Rubric, gate
from countersign.ports import Grader, Ledger


class GradingSteps(Grading):
    """Grades the very text that would go out, and keeps the grader's answer as it came."""

    def __init__(self, ledger: Ledger, runs: Runs, grader: Grader, rubric: Rubric) -> None:
        self._ledger = ledger
        self._runs = runs
        self._grader = grader
        self._rubric = rubric

    @activity.defn
    async def grade(self, order: StepOrder) -> Graded:
        """See Grading."""
        with refusals(self._runs, order.tenant, order.operation, "grade"):
            await asyncio.to_thread(self._runs.check_run, order.tenant, order.operation, order.line)
            request = await asyncio.to_thread(stored_request, self._ledger, order.tenant, order.operation)
            draft = await asyncio.to_thread(self._ledger.drafts.get, order.tenant, order.operation, order.draft_version)
            async with heartbeats():
                await asyncio.to_thread(self._runs.check_control, order)
                answer = await self._grader.grade(case.document(draft, request).decode(), self._rubric, request)
            grade = gate(self._rubric, answer)
            await asyncio.to_thread(
                self._ledger.drafts.save_grade,
                order.tenant,
                order.operation,
                order.draft_version,
                grade,
                self._rubric.label(),
                order.control_version,
                self._runs.now(),
            )
        return Graded(verdict=grade.verdict, model=answer.model)
