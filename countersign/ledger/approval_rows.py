"""Rows of approvals and votes: how they are read and how their status moves.

Apart because approvals, decisions and executions all need them inside transactions of their own.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Select, select, update

from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.ledger.store import Writing
from countersign.ledger.tables import approvals, votes


def find(connection: Connection, tenant: str, approval_id: str) -> Approval | None:
    """That approval with its votes."""
    wanted = _of_tenant(tenant).where(approvals.c.approval_id == approval_id)
    row = connection.execute(wanted).first()
    return None if row is None else _approval(connection, row)


def newest(connection: Connection, tenant: str, operation: str) -> Approval | None:
    """The current approval of an operation."""
    wanted = _of_tenant(tenant).where(approvals.c.operation == operation)
    row = connection.execute(wanted.order_by(approvals.c.number.desc()).limit(1)).first()
    return None if row is None else _approval(connection, row)


def of_operation(connection: Connection, tenant: str, operation: str) -> list[Approval]:
    """All approvals that an operation ever had."""
    wanted = _of_tenant(tenant).where(approvals.c.operation == operation).order_by(approvals.c.number)
    return [_approval(connection, row) for row in connection.execute(wanted).all()]


def set_status(writing: Writing, approval_id: str, status: ApprovalStatus) -> None:
    """Move an approval; the caller holds its operation's lock and has looked at its present status."""
    is_it = (approvals.c.tenant == writing.tenant) & (approvals.c.approval_id == approval_id)
    writing.connection.execute(update(approvals).where(is_it).values(status=status.value))


def _of_tenant(tenant: str) -> Select[Any]:
    return select(approvals).where(approvals.c.tenant == tenant)


def _approval(connection: Connection, row: Row[Any]) -> Approval:
    its_own = (votes.c.tenant == row.tenant) & (votes.c.approval_id == row.approval_id)
    cast = connection.execute(select(votes.c.vote).where(its_own).order_by(votes.c.number)).scalars()
    return Approval(proposal=row.proposal, status=ApprovalStatus(row.status), votes=tuple(cast))
