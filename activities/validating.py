"""The deterministic checks' step: every figure recomputed on the pinned data, before anyone grades anything."""

from __future__ import annotations

from datetime import UTC, datetime

from temporalio import activity

from activities.failures import refusals
from activities.interfaces import Checked, StepOrder, Validating
from activities.requests import stored_request
from countersign.cases.report import case
from countersign.ports import Evidence, Ledger


class ValidatingSteps(Validating):
    """Checks a stored draft and keeps the findings as feedback."""

    def __init__(self, ledger: Ledger, evidence: Evidence) -> None:
        self._ledger = ledger
        self._evidence = evidence

    @activity.defn
    def validate(self, order: StepOrder) -> Checked:
        """See Validating."""
        with refusals(self._ledger, order.tenant, order.operation, "validate"):
            request = stored_request(self._ledger, order.tenant, order.operation)
            draft = self._ledger.drafts.get(order.tenant, order.operation, order.draft_version)
            dataset = self._evidence.open(order.tenant, request.dataset)
            try:
                violations = case.check(draft, request, dataset.single_value)
            finally:
                dataset.close()
            self._ledger.drafts.save_checks(
                order.tenant, order.operation, order.draft_version, violations, datetime.now(UTC)
            )
        return Checked(codes=tuple(violation.code for violation in violations))
