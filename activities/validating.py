"""The deterministic checks' step: a draft against what it rests on, before anyone grades anything."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from temporalio import activity

from activities.answers import SignedAnswers
from activities.failures import refusals
from activities.heartbeats import heartbeats
from activities.interfaces import Checked, StepOrder, Validating
from activities.materials import opened
from activities.runs import Runs
from countersign.cases.case import Case, DraftedCase, drafted_case, read_draft
from countersign.domain.draft import Violation
from countersign.ports import Ledger, Material


class ValidatingSteps(Validating):
    """Checks a stored draft as its case does, and keeps the findings as feedback."""

    def __init__(self, ledger: Ledger, runs: Runs, cases: Mapping[str, Case], installation: str) -> None:
        """
        Args:
            ledger: where drafts and findings are kept.
            runs: whose step it is, and when.
            cases: the kinds of work that there are, by name.
            installation: the audience that people's answers must name.
        """
        self._ledger = ledger
        self._runs = runs
        self._cases = cases
        self._signed = SignedAnswers(ledger, installation, "validate")

    @activity.defn
    async def validate(self, order: StepOrder) -> Checked:
        """See Validating."""
        with refusals(self._runs, order.tenant, order.operation, "validate"):
            await asyncio.to_thread(self._runs.check_run, order.tenant, order.operation, order.line)
            operation = await asyncio.to_thread(self._ledger.operations.get, order.tenant, order.operation)
            case = drafted_case(self._cases, operation)
            believed = await asyncio.to_thread(self._signed.believed, operation, self._runs.now())
            async with heartbeats(), opened(case, operation, believed) as material:
                violations = await asyncio.to_thread(self._checked, order, case, material)
        codes = tuple(violation.code for violation in violations)
        return Checked(codes=codes, stops=next((code for code in codes if code in case.stops), ""))

    def _checked(self, order: StepOrder, case: DraftedCase[Any, Any], material: Material) -> tuple[Violation, ...]:
        version = (order.tenant, order.operation, order.draft_version)
        draft, written = self._ledger.drafts.get(*version), self._ledger.drafts.written(*version)
        # Orders in the material were orders to the agent; a person who saw them has answered them with their own draft.
        by_agent = written is not None and written.author == "agent"
        violations = case.check(read_draft(case.form, draft), material, by_agent=by_agent)
        self._ledger.drafts.save_checks(*version, violations, order.control_version, self._runs.now())
        return violations
