"""Escalations: what was brought before people because a run could not go on, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, select, update

from countersign.domain.durations import duration
from countersign.domain.errors import InputRefused
from countersign.domain.escalation import Escalation, Reason, Route, suggested
from countersign.domain.notice import Notice, NoticeKind
from countersign.domain.values import Sha256
from countersign.ledger.columns import moment_text
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import escalations


class SqlEscalations:
    """ports.Escalations on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(
        self, tenant: str, operation: str, reason: Reason, route: Route, code: str, attempts: int, last_error: str,
        snapshot: Sha256, now: datetime,
    ) -> Escalation:  # fmt: skip
        """Open one; as in ports.Escalations.

        Raises:
            Conflict: the operation has ended.
        """
        with self._store.writing(tenant) as writing:
            writing.lock_known_operation(operation)
            earlier = of_operation(writing.connection, tenant, operation)
            same = [one for one in earlier if (one.outcome, one.reason, one.code) == ("open", reason, code)]
            if same:
                return same[0]
            writing.check_running(operation)
            escalation = Escalation(
                tenant=tenant,
                operation=operation,
                number=len(earlier) + 1,
                reason=reason,
                code=code,
                role=route.role,
                severity=route.severity,
                deadline=None if route.within is None else now + duration(route.within),
                attempts=attempts,
                last_error=last_error,
                snapshot=snapshot,
                suggested_action=suggested(reason, code),
                raised_at=now,
            )
            values = {"operation": operation, "number": escalation.number}
            writing.insert_once(escalations, **values, outcome=escalation.outcome, escalation=escalation)
            _record(writing, "raised", escalation, "run", now)
            writing.notify(_told(NoticeKind.ESCALATION_RAISED, escalation, (route.role, *route.tell), now))
        return escalation

    def close_unanswered(self, tenant: str, operation: str, number: int, now: datetime) -> Escalation:
        """The deadline passed; as in ports.Escalations.

        Raises:
            InputRefused: also for one without a deadline, which waits for people.
        """
        with self._store.writing(tenant) as writing:
            writing.lock_known_operation(operation)
            found = of_operation(writing.connection, tenant, operation)
            escalation = next((one for one in found if one.number == number), None)
            if escalation is None:
                raise absent("escalation", f"{operation} {number}")
            if escalation.outcome != "open":
                return escalation
            if escalation.deadline is None or now < escalation.deadline:
                until = escalation.deadline.isoformat() if escalation.deadline is not None else "somebody comes"
                raise InputRefused(f"escalation {number} of operation {operation} waits until {until}, so not over yet")
            closed = escalation.model_copy(update={"outcome": "unanswered"})
            _close(writing, closed)
            _record(writing, "unanswered", closed, "clock", now)
            writing.notify(_told(NoticeKind.ESCALATION_UNANSWERED, closed, (closed.role,), now))
        return closed

    def of_operation(self, tenant: str, operation: str) -> Sequence[Escalation]:
        """All of an operation, oldest first."""
        with self._store.reading(tenant) as connection:
            return of_operation(connection, tenant, operation)

    def waiting(self, tenant: str) -> Sequence[Escalation]:
        """All that are open, the nearest deadline first, those without one last."""
        query = select(escalations.c.escalation).where(
            escalations.c.tenant == tenant, escalations.c.outcome == "open"
        )  # fmt: skip
        with self._store.reading(tenant) as connection:
            found = list(connection.execute(query).scalars())
        # Sorted here: PostgreSQL's order of names depends on how the database was made.
        return sorted(found, key=lambda one: (one.deadline is None, one.deadline or one.raised_at, one.operation))


def of_operation(connection: Connection, tenant: str, operation: str) -> list[Escalation]:
    """All of an operation, oldest first."""
    is_it = (escalations.c.tenant == tenant) & (escalations.c.operation == operation)
    return [*connection.execute(select(escalations.c.escalation).where(is_it).order_by(escalations.c.number)).scalars()]


def answer(
    writing: Writing,
    operation: str,
    outcome: Literal["taken_over", "ended", "went_on"],
    person: str | None,
    now: datetime,
) -> None:
    """Close whatever of an operation is open, since a person came, or its run has ended or goes on by itself.

    The caller holds the operation's lock.
    """
    for one in of_operation(writing.connection, writing.tenant, operation):
        if one.outcome == "open":
            closed = one.model_copy(update={"outcome": outcome, "answered_by": person})
            _close(writing, closed)
            _record(writing, "answered", closed, person or "run", now)


def _close(writing: Writing, closed: Escalation) -> None:
    is_it = (escalations.c.tenant == writing.tenant) & (escalations.c.operation == closed.operation)
    changed = update(escalations).where(is_it, escalations.c.number == closed.number)
    writing.connection.execute(changed.values(outcome=closed.outcome, escalation=closed))


def _record(writing: Writing, what: str, escalation: Escalation, subject: str, now: datetime) -> None:
    writing.record(
        f"escalation.{what}",
        escalation.operation,
        subject,
        now,
        number=escalation.number,
        reason=escalation.reason.value,
        code=escalation.code,
        role=escalation.role,
        severity=escalation.severity.value,
        deadline=None if escalation.deadline is None else moment_text(escalation.deadline),
        attempts=escalation.attempts,
        last_error=escalation.last_error,
        snapshot=escalation.snapshot,
        outcome=escalation.outcome,
    )


def _told(kind: NoticeKind, escalation: Escalation, roles: tuple[str, ...], now: datetime) -> Notice:
    return Notice(
        kind=kind,
        tenant=escalation.tenant,
        operation=escalation.operation,
        roles=tuple(dict.fromkeys(roles)),
        severity=escalation.severity,
        code=escalation.reason.value,
        deadline=escalation.deadline,
        at=now,
    )
