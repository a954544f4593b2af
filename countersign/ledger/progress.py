"""What goes on while a run is drafted and graded, for whoever watches; the audit knows nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, select

from countersign.domain.progress import Progress, ProgressKind
from countersign.ledger.store import Store
from countersign.ledger.tables import progress


class SqlProgress:
    """ports.ProgressLog on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(
        self, tenant: str, operation: str, kind: ProgressKind, draft_version: int, name: str, detail: str, now: datetime
    ) -> None:
        """Append one event; NotFound where there is no such operation."""
        with self._store.writing(tenant) as writing:
            # Under its lock, so that a watcher who has seen a number never misses a lower one.
            writing.lock_known_operation(operation)
            latest = select(func.max(progress.c.number)).where(_of(tenant, operation))
            number = (writing.connection.execute(latest).scalar() or 0) + 1
            event = Progress(
                tenant=tenant, operation=operation, number=number, at=now, kind=kind, draft_version=draft_version,
                name=name, detail=detail,
            )  # fmt: skip
            writing.insert_once(progress, operation=operation, number=number, event=event)

    def since(self, tenant: str, operation: str, offset: int, limit: int = 500) -> Sequence[Progress]:
        """Those with a number above `offset`, in order."""
        wanted = select(progress.c.event).where(_of(tenant, operation), progress.c.number > offset)
        with self._store.reading(tenant) as connection:
            return list(connection.execute(wanted.order_by(progress.c.number).limit(limit)).scalars())

    def forget(self, tenant: str, operation: str) -> int:
        """Delete all of an operation; how many there were."""
        with self._store.writing(tenant) as writing:
            return writing.connection.execute(delete(progress).where(_of(tenant, operation))).rowcount


def _of(tenant: str, operation: str) -> ColumnElement[bool]:
    return (progress.c.tenant == tenant) & (progress.c.operation == operation)
