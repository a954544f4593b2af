"""The outbox: notices as they were written with what they tell of, and what became of their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import ColumnElement, Row, Select, select, update

from countersign.domain.control import OPERATOR
from countersign.domain.escalation import Severity
from countersign.domain.notice import Notice, NoticeKind
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import deliveries, notices
from countersign.ports import Delivery

_WAITING = "waiting"


class SqlOutbox:
    """ports.Outbox on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def unaddressed(self, tenant: str, limit: int) -> Sequence[tuple[int, Notice]]:
        """Notices for which no address was chosen yet, oldest first; as in ports.Outbox."""
        new = select(notices.c.number, notices.c.notice).where(
            notices.c.tenant == tenant, notices.c.addressed.is_(False)
        )  # fmt: skip
        with self._store.reading(tenant) as connection:
            rows = connection.execute(new.order_by(notices.c.number).limit(limit)).all()
        return [(row.number, row.notice) for row in rows]

    def address(self, tenant: str, number: int, targets: Sequence[str], now: datetime) -> None:
        """Choose the addresses of a notice, once; as in ports.Outbox."""
        is_it = (notices.c.tenant == tenant) & (notices.c.number == number)
        with self._store.writing(tenant) as writing:
            chosen = select(notices.c.addressed, notices.c.notice).where(is_it).with_for_update()
            row = writing.connection.execute(chosen).first()
            if row is None:
                raise absent("notice", number)
            if row.addressed:
                return
            writing.connection.execute(update(notices).where(is_it).values(addressed=True))
            for target in dict.fromkeys(targets):
                fields = {"attempts": 0, "status": _WAITING, "next_at": now, "error": ""}
                writing.insert_once(deliveries, number=number, target=target, **fields)
            if not targets:
                told: Notice = row.notice
                detail: dict[str, JsonValue] = {"notice": number, "kind": told.kind.value}
                writing.record("notice.unaddressed", told.operation, "relay", now, **detail)

    def untold(self, tenant: str) -> Sequence[tuple[int, Notice]]:
        """Notices that no address took, newest first; as in ports.Outbox."""
        its = (notices.c.tenant == deliveries.c.tenant) & (notices.c.number == deliveries.c.number)
        alone = notices.outerjoin(deliveries, its)
        query = select(notices.c.number, notices.c.notice).select_from(alone).where(
            notices.c.tenant == tenant, notices.c.addressed.is_(True), deliveries.c.number.is_(None)
        )  # fmt: skip
        with self._store.reading(tenant) as connection:
            rows = connection.execute(query.order_by(notices.c.number.desc())).all()
        return [(row.number, row.notice) for row in rows]

    def take(self, tenant: str, now: datetime, until: datetime, limit: int) -> Sequence[Delivery]:
        """The sole right to try what is due; as in ports.Outbox."""
        due = _told().where(
            deliveries.c.tenant == tenant, deliveries.c.status == _WAITING, deliveries.c.next_at <= now
        )  # fmt: skip
        in_turn = due.order_by(deliveries.c.next_at, deliveries.c.number, deliveries.c.target).limit(limit)
        with self._store.writing(tenant) as writing:
            # Skipped, not waited for: what another relay is about to take is not ours to try.
            rows = writing.connection.execute(in_turn.with_for_update(of=deliveries, skip_locked=True)).all()
            taken = [_delivery(row).model_copy(update={"attempts": row.attempts + 1, "next_at": until}) for row in rows]
            for one in taken:
                _write(writing, one)
        return taken

    def delivered(self, delivery: Delivery, now: datetime) -> None:
        """It arrived, whoever has taken it up since; as in ports.Outbox."""
        with self._store.writing(delivery.tenant) as writing:
            stored = _stored(writing, delivery)
            if stored.status != "delivered":
                _write(writing, stored.model_copy(update={"status": "delivered", "error": ""}))
                writing.record("notice.delivered", stored.notice.operation, "relay", now, **_names(stored))

    def failed(self, delivery: Delivery, error: str, retry_at: datetime | None, now: datetime) -> None:
        """It did not; as in ports.Outbox. What somebody else has taken up since is theirs to report."""
        with self._store.writing(delivery.tenant) as writing:
            stored = _stored(writing, delivery)
            if (stored.status, stored.attempts) != (_WAITING, delivery.attempts):
                return
            if retry_at is not None:
                _write(writing, stored.model_copy(update={"next_at": retry_at, "error": error}))
                return
            _write(writing, stored.model_copy(update={"status": "failed", "error": error}))
            writing.record("notice.failed", stored.notice.operation, "relay", now, **_names(stored), error=error)
            if stored.notice.kind != NoticeKind.DELIVERY_FAILED:
                writing.notify(_failure_told(stored, now))

    def deliveries(self, tenant: str) -> Sequence[Delivery]:
        """All of a tenant, newest notice first."""
        query = _told().where(deliveries.c.tenant == tenant)
        with self._store.reading(tenant) as connection:
            found = [_delivery(row) for row in connection.execute(query)]
        # Sorted here: PostgreSQL's order of names depends on how the database was made.
        return sorted(found, key=lambda one: (-one.number, one.target))


def _told() -> Select[Any]:
    its = (notices.c.tenant == deliveries.c.tenant) & (notices.c.number == deliveries.c.number)
    return select(deliveries, notices.c.notice).join(notices, its)


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery.model_validate(dict(row._mapping))


def _is(delivery: Delivery) -> ColumnElement[bool]:
    return (
        (deliveries.c.tenant == delivery.tenant)
        & (deliveries.c.number == delivery.number)
        & (deliveries.c.target == delivery.target)
    )


def _stored(writing: Writing, delivery: Delivery) -> Delivery:
    """The delivery as it stands from now until the end of the transaction."""
    row = writing.connection.execute(_told().where(_is(delivery)).with_for_update(of=deliveries)).first()
    if row is None:
        raise absent("delivery", f"{delivery.number} to {delivery.target}")
    return _delivery(row)


def _write(writing: Writing, delivery: Delivery) -> None:
    changed = {name: getattr(delivery, name) for name in ("attempts", "status", "next_at", "error")}
    writing.connection.execute(update(deliveries).where(_is(delivery)).values(**changed))


def _names(delivery: Delivery) -> dict[str, JsonValue]:
    return {
        "notice": delivery.number,
        "kind": delivery.notice.kind.value,
        "target": delivery.target,
        "attempts": delivery.attempts,
    }


def _failure_told(delivery: Delivery, now: datetime) -> Notice:
    return Notice(
        kind=NoticeKind.DELIVERY_FAILED,
        tenant=delivery.tenant,
        operation=delivery.notice.operation,
        roles=(OPERATOR,),
        severity=Severity.HIGH,
        code=f"{delivery.number}:{delivery.target}",
        at=now,
    )
