"""Facts that were gathered for an operation: which document it rests on now.

Apart from documents, which do not know what they are for, and from operations, whose runs these do not move.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, select

from countersign.domain.values import Sha256
from countersign.ledger.store import Writing
from countersign.ledger.tables import facts


def keep(writing: Writing, operation: str, sha256: Sha256, now: datetime) -> None:
    """Record the document that the operation, which the caller has locked, rests on from now on; a repeat does nothing.

    Raises:
        Conflict: the operation has ended.
    """
    latest = _latest(writing.connection, writing.tenant, operation)
    if latest is not None and latest[1] == sha256:
        return
    writing.check_running(operation)
    number = 1 if latest is None else latest[0] + 1
    writing.insert_once(facts, operation=operation, number=number, hash=sha256, gathered_at=now)
    writing.record("facts.gathered", operation, "gateway", now, facts=sha256, number=number)


def latest_facts(connection: Connection, tenant: str, operation: str) -> Sha256 | None:
    """The hash of the facts that were gathered last; nothing where there are none."""
    latest = _latest(connection, tenant, operation)
    return None if latest is None else latest[1]


def has_gathered(connection: Connection, tenant: str, operation: str, sha256: Sha256) -> bool:
    """Whether these facts were ever gathered for the operation."""
    query = select(facts.c.number).where(_is(tenant, operation) & (facts.c.hash == sha256)).limit(1)
    return connection.execute(query).first() is not None


def _latest(connection: Connection, tenant: str, operation: str) -> tuple[int, Sha256] | None:
    query = select(facts.c.number, facts.c.hash).where(_is(tenant, operation))
    row = connection.execute(query.order_by(facts.c.number.desc()).limit(1)).first()
    return None if row is None else (row.number, Sha256(row.hash))


def _is(tenant: str, operation: str) -> ColumnElement[bool]:
    return (facts.c.tenant == tenant) & (facts.c.operation == operation)
