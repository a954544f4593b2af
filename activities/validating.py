"""The deterministic checks' step: every figure recomputed on the pinned data, before anyone grades anything."""

from __future__ import annotations

import asyncio

from temporalio import activity

from activities.datasets import opened
from activities.failures import refusals
from activities.heartbeats import heartbeats
from activities.interfaces import Checked, StepOrder, Validating
from activities.requests import stored_request
from activities.runs import Runs
from countersign.cases.report import case
from countersign.cases.report.suspicion import STOPS
from countersign.domain.draft import ReportRequest, Violation
from countersign.ports import DatasetReader, Evidence, Ledger


class ValidatingSteps(Validating):
    """Checks a stored draft and keeps the findings as feedback."""

    def __init__(self, ledger: Ledger, runs: Runs, evidence: Evidence) -> None:
        self._ledger = ledger
        self._runs = runs
        self._evidence = evidence

    @activity.defn
    async def validate(self, order: StepOrder) -> Checked:
        """See Validating."""
        with refusals(self._runs, order.tenant, order.operation, "validate"):
            await asyncio.to_thread(self._runs.check_run, order.tenant, order.operation, order.line)
            async with heartbeats():
                request = await asyncio.to_thread(stored_request, self._ledger, order.tenant, order.operation)
                async with opened(self._evidence, order.tenant, request.dataset) as dataset:
                    violations = await asyncio.to_thread(self._checked, order, request, dataset)
        codes = tuple(violation.code for violation in violations)
        return Checked(codes=codes, stops=next((code for code in codes if code in STOPS), ""))

    def _checked(self, order: StepOrder, request: ReportRequest, dataset: DatasetReader) -> tuple[Violation, ...]:
        version = (order.tenant, order.operation, order.draft_version)
        draft, written = self._ledger.drafts.get(*version), self._ledger.drafts.written(*version)
        # Orders in the data were orders to the agent; a person who saw them has answered them with their own draft.
        texts = dataset.texts if written is not None and written.author == "agent" else None
        violations = case.check(draft, request, dataset.single_value, texts)
        self._ledger.drafts.save_checks(*version, violations, order.control_version, self._runs.now())
        return violations
