"""The deterministic checks' step: every figure recomputed on the pinned data, before anyone grades anything."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from temporalio import activity

from activities.datasets import opened
from activities.failures import refusals
from activities.heartbeats import heartbeats
from activities.interfaces import Checked, StepOrder, Validating
from activities.requests import stored_request
from activities.runs import check_run
from countersign.cases.report import case
from countersign.domain.draft import ReportRequest, Violation
from countersign.ports import DatasetReader, Evidence, Ledger


class ValidatingSteps(Validating):
    """Checks a stored draft and keeps the findings as feedback."""

    def __init__(self, ledger: Ledger, evidence: Evidence) -> None:
        self._ledger = ledger
        self._evidence = evidence

    @activity.defn
    async def validate(self, order: StepOrder) -> Checked:
        """See Validating."""
        with refusals(self._ledger, order.tenant, order.operation, "validate"):
            check_run(order.tenant, order.operation, order.run_id)
            async with heartbeats():
                request = await asyncio.to_thread(stored_request, self._ledger, order.tenant, order.operation)
                async with opened(self._evidence, order.tenant, request.dataset) as dataset:
                    violations = await asyncio.to_thread(self._checked, order, request, dataset)
        return Checked(codes=tuple(violation.code for violation in violations))

    def _checked(self, order: StepOrder, request: ReportRequest, dataset: DatasetReader) -> tuple[Violation, ...]:
        version = (order.tenant, order.operation, order.draft_version)
        violations = case.check(self._ledger.drafts.get(*version), request, dataset.single_value)
        self._ledger.drafts.save_checks(*version, violations, datetime.now(UTC))
        return violations
