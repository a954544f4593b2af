"""How much of a tenant waits for people at once: beyond what there is room for nothing more is brought up (G41)."""

from __future__ import annotations

from sqlalchemy import Connection, Table, func, select

from countersign.domain.errors import TooManyPending
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import QuestionStatus
from countersign.ledger.store import Writing
from countersign.ledger.tables import approvals, questions


def check_room(writing: Writing, room: int) -> None:
    """TooManyPending where more of the tenant waits than there is room for, what this transaction brings up included.

    The caller holds the lock of the openings: of two at once, one takes the last place and the other sees that.
    """
    waiting = _count(writing.connection, approvals, writing.tenant, ApprovalStatus.PENDING)
    waiting += _count(writing.connection, questions, writing.tenant, QuestionStatus.PENDING)
    if waiting > room:
        raise TooManyPending(
            f"tenant {writing.tenant}: {waiting - 1} proposals and questions wait for people already, at most {room} "
            "may (COUNTERSIGN_MAX_PENDING); decide some of them or end their runs, then ask anew"
        )


def _count(connection: Connection, table: Table, tenant: str, status: str) -> int:
    pending = select(func.count()).where(table.c.tenant == tenant, table.c.status == status)
    return connection.execute(pending).scalar_one()
