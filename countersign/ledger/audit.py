"""The audit log: reading the chain back and verifying it against the checkpoint outside the database.

Apart from the store, which writes records, because a verifier believes nothing that a writer has said: each column of
each row goes through the chain's rules again.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

from pydantic import JsonValue, ValidationError
from sqlalchemy import Row, select

from countersign.domain.audit import AuditRecord, ChainBroken, Checkpoint, Loss, Restore, verify_chain
from countersign.domain.canonical import canonical_bytes
from countersign.domain.errors import Conflict, InputRefused, NotFound
from countersign.domain.strict_json import parse
from countersign.domain.values import Sha256
from countersign.ledger.checkpoints import missing
from countersign.ledger.restores import ACCEPTING, go_on, loss_behind
from countersign.ledger.rows import Rows, rows_of
from countersign.ledger.store import Store, absent
from countersign.ledger.tables import audit_records, operations, persons, restores, tenants

BATCH = 1_000
"""Rows held in memory at a time."""

MAX_DETAIL = 1024 * 1024


class SqlAuditLog:
    """ports.AuditLog on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(
        self, tenant: str, type: str, operation: str, subject: str, detail: dict[str, JsonValue], now: datetime
    ) -> AuditRecord:
        """Append one record; as in ports.AuditLog."""
        with self._store.writing(tenant) as writing:
            writing.record(type, operation, subject, now, **detail)
        return writing.records[0]

    def records(self, tenant: str, operation: str | None = None) -> Generator[AuditRecord]:
        """The records in order of sequence, all or one operation's; ChainBroken where one cannot be read."""
        for row in self._rows(tenant, operation):
            yield _record(row, row.sequence)

    def verify(self, tenant: str) -> Checkpoint:
        """Recompute the chain; as in ports.AuditLog."""
        checkpoints = self._store.checkpoints
        # Read first: records that are written meanwhile only make the chain longer than its checkpoint.
        checkpoint = checkpoints.read(tenant)
        count, head = self._recomputed(tenant, checkpoint)
        if checkpoint is None and count > 0 and checkpoints.read(tenant) is None:
            raise missing(tenant, checkpoints.path(tenant), count)
        if checkpoint is None and count == 0:
            self._check_known(tenant)
        return Checkpoint(installation=self._store.installation, tenant=tenant, count=count, head=head)

    def lost(self, tenant: str) -> Loss | None:
        """What the chain lacks; as in ports.AuditLog."""
        checkpoint = self._store.checkpoints.read(tenant)
        count, _ = self._recomputed(tenant, None)
        if checkpoint is None:
            return None
        if count == 0:
            raise NotFound(
                f"tenant {tenant} has no audit record left, and nobody there who could say so: move"
                f" {self._store.checkpoints.path(tenant)} away, keep it, and set the tenant up anew"
            )
        with closing(self._rows(tenant, latest=ACCEPTING)) as rows:
            return loss_behind([_record(row, row.sequence) for row in rows], checkpoint)

    def restored(self, tenant: str, token: str, now: datetime) -> Restore:
        """Go on behind a loss; as in ports.AuditLog."""
        loss = self.lost(tenant)
        if loss is None:
            raise Conflict(f"tenant {tenant}: nothing is missing behind its last record, so nothing is to be accepted")
        return go_on(self._store, tenant, loss, token, now)

    def restores(self, tenant: str) -> Sequence[Restore]:
        """The times that were lost; as in ports.AuditLog."""
        of_tenant = select(restores.c.since, restores.c.until).where(restores.c.tenant == tenant)
        with self._store.reading(tenant) as connection:
            rows = connection.execute(of_tenant.order_by(restores.c.number)).all()
        return [Restore(since=row.since, until=row.until) for row in rows]

    def rows(self, tenant: str, operation: str) -> Rows:
        """What the tables hold; as in ports.AuditLog."""
        with self._store.reading(tenant) as connection:
            return rows_of(connection, tenant, operation)

    def _recomputed(self, tenant: str, checkpoint: Checkpoint | None) -> tuple[int, Sha256]:
        """Count and head of the chain, every link of it recomputed."""
        # Closed at once where the chain breaks: the rest of the rows would keep a transaction open.
        with closing(self._rows(tenant)) as rows:
            records = (_record(row, place) for place, row in enumerate(rows, start=1))
            return verify_chain(records, tenant=tenant, origin=self._store.installation, checkpoint=checkpoint)

    def _check_known(self, tenant: str) -> None:
        """No record and no checkpoint: of a tenant that has anything else, both were taken away."""
        with self._store.reading(tenant) as connection:
            for name in (operations.c.tenant, persons.c.tenant, tenants.c.name):
                if connection.execute(select(name).where(name == tenant).limit(1)).first():
                    kept = f"the tenant is in {name.table.name}, and has no record"
                    raise ChainBroken(1, f"audit record 1 of {tenant} is missing: {kept}")
        raise absent("tenant", tenant)

    def _rows(self, tenant: str, operation: str | None = None, *, latest: int = 0) -> Generator[Row[Any]]:
        query = select(audit_records).where(audit_records.c.tenant == tenant)
        if operation is not None:
            query = query.where(audit_records.c.operation == operation)
        sequence = audit_records.c.sequence
        ordered = query.order_by(sequence.desc()).limit(latest) if latest else query.order_by(sequence)
        with self._store.reading(tenant) as connection:
            yield from connection.execution_options(yield_per=BATCH).execute(ordered)


def _record(row: Row[Any], place: int) -> AuditRecord:
    fields = dict(row._mapping)
    try:
        detail = parse(fields["detail"].encode(), where="detail", max_bytes=MAX_DETAIL)
        if canonical_bytes(detail).decode() != fields["detail"]:
            raise InputRefused("detail is not in canonical form")
        return AuditRecord.model_validate({**fields, "detail": detail})
    except (InputRefused, ValidationError, AttributeError, UnicodeError):
        raise ChainBroken(place, f"audit record {place} was changed: it has not the form of a record") from None
