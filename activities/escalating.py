"""Bringing a run before people because it cannot go on, with all that the ledger knows of it."""

from __future__ import annotations

from temporalio import activity

from activities.failures import refusals
from activities.interfaces import Escalated, EscalateOrder, Escalating, LapseOrder, UnansweredOrder
from activities.runs import Runs
from activities.snapshot import last_error, snapshot
from countersign.domain.control import Control
from countersign.domain.escalation import Reason, Route, reason_of
from countersign.ports import Ledger

NOBODY = Escalated(number=0)
"""The answer where no policy says to whom it goes."""


class EscalatingSteps(Escalating):
    """Finds out whom a policy names, and writes down what became of it."""

    def __init__(self, ledger: Ledger, runs: Runs) -> None:
        self._ledger = ledger
        self._runs = runs

    @activity.defn
    def escalate(self, order: EscalateOrder) -> Escalated:
        """See Escalating."""
        with refusals(self._runs, order.tenant, order.operation, "escalate"):
            self._runs.check_run(order.tenant, order.operation)
            self._runs.check_now(order.now)
            reason = reason_of(order.code)
            route = self._route(order, reason) if reason is not None else None
            if reason is None or route is None:
                return NOBODY
            return self._opened(order, reason, route)

    def _route(self, order: EscalateOrder, reason: Reason) -> Route | None:
        """By the policy in force now; without one there is nobody to bring it to."""
        case = self._ledger.operations.get(order.tenant, order.operation).case
        policy = self._ledger.directory.policies(order.tenant).get(case)
        return policy.escalations.get(reason) if policy is not None else None

    def _opened(self, order: EscalateOrder, reason: Reason, route: Route) -> Escalated:
        known = snapshot(self._ledger, order.tenant, order.operation, reason, order.code)
        kept = self._ledger.documents.put(order.tenant, known)
        error = last_error(tuple(self._ledger.audit.records(order.tenant, order.operation)))
        opened = self._ledger.escalations.open(
            order.tenant, order.operation, reason, route, order.code, order.attempts, error, kept, order.now
        )
        return Escalated(
            number=opened.number,
            reason=opened.reason,
            role=opened.role,
            severity=opened.severity,
            deadline=opened.deadline,
        )

    @activity.defn
    def unanswered(self, order: UnansweredOrder) -> None:
        """See Escalating."""
        with refusals(self._runs, order.tenant, order.operation, "unanswered"):
            self._runs.check_run(order.tenant, order.operation)
            self._runs.check_now(order.now)
            self._ledger.escalations.close_unanswered(order.tenant, order.operation, order.number, order.now)

    @activity.defn
    def lapse(self, order: LapseOrder) -> Control:
        """See Escalating."""
        with refusals(self._runs, order.tenant, order.operation, "lapse"):
            self._runs.check_run(order.tenant, order.operation)
            self._runs.check_now(order.now)
            return self._ledger.controls.lapse(order.tenant, order.operation, order.control_version, order.now)
