"""Rows of approvals and votes: how they are read and how their status moves.

Apart because approvals, decisions and executions all need them inside transactions of their own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, Select, func, select, tuple_, update

from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Vote
from countersign.ledger.store import Writing
from countersign.ledger.tables import approvals, executions, votes


def find(connection: Connection, tenant: str, approval_id: str) -> Approval | None:
    """That approval with its votes."""
    wanted = _of_tenant(tenant).where(approvals.c.approval_id == approval_id)
    return next(iter(_approvals(connection, wanted)), None)


def newest(connection: Connection, tenant: str, operation: str) -> Approval | None:
    """The current approval of an operation."""
    wanted = _of_tenant(tenant).where(approvals.c.operation == operation)
    return next(iter(_approvals(connection, wanted.order_by(approvals.c.number.desc()).limit(1))), None)


def of_operation(connection: Connection, tenant: str, operation: str) -> list[Approval]:
    """All approvals that an operation ever had."""
    wanted = _of_tenant(tenant).where(approvals.c.operation == operation)
    return _approvals(connection, wanted.order_by(approvals.c.number))


def of_status(connection: Connection, tenant: str, status: ApprovalStatus) -> list[Approval]:
    """All of a tenant's approvals that stand so, in the order in which they were opened."""
    wanted = _of_tenant(tenant).where(approvals.c.status == status.value)
    return _approvals(connection, wanted.order_by(approvals.c.number))


def set_status(writing: Writing, approval_id: str, status: ApprovalStatus, now: datetime, **more: str) -> None:
    """Move an approval; the caller holds its operation's lock and has looked at its present status."""
    is_it = (approvals.c.tenant == writing.tenant) & (approvals.c.approval_id == approval_id)
    writing.connection.execute(update(approvals).where(is_it).values(status=status.value, changed_at=now, **more))


def on_its_way(writing: Writing, approval: Approval) -> bool:
    """Whether something may have been sent under it, or was."""
    sent = select(func.count()).where(
        executions.c.tenant == writing.tenant,
        executions.c.approval_id == approval.proposal.approval_id,
        executions.c.status != ExecutionStatus.NOT_SENT.value,
    )
    return writing.connection.execute(sent).scalar_one() > 0


def can_be_closed(writing: Writing, approval: Approval) -> bool:
    """Whether it is pending, or granted while surely nothing was sent under it."""
    if approval.status == ApprovalStatus.GRANTED:
        return not on_its_way(writing, approval)
    return approval.status == ApprovalStatus.PENDING


def close(
    writing: Writing, approval: Approval, status: ApprovalStatus, subject: str, now: datetime, **by: JsonValue
) -> None:
    """Settle an approval, where it can be closed, by what has taken its place or has ended the run.

    One that people had no time left for by then has expired, though its run had not come to that yet (G24).
    """
    if not can_be_closed(writing, approval):
        return
    if approval.status == ApprovalStatus.PENDING and approval.proposal.deadline <= now:
        status, subject, by = ApprovalStatus.EXPIRED, "clock", {}
    set_status(writing, approval.proposal.approval_id, status, now)
    operation = approval.proposal.operation
    writing.record(f"approval.{status.value}", operation, subject, now, **names(approval.proposal), **by)


def cast(writing: Writing, approval: Approval, vote: Vote) -> bool:
    """Insert a vote; False where the table's own rule of one vote per person forbids it (G03)."""
    return writing.insert_once(
        votes,
        approval_id=approval.proposal.approval_id,
        person=vote.person,
        number=len(approval.votes) + 1,
        decided_at=vote.decided_at,
        vote=vote,
    )


def names(proposal: Proposal) -> dict[str, JsonValue]:
    """What audit records name an approval by."""
    return {
        "approval_id": proposal.approval_id,
        "approval_version": proposal.approval_version,
        "action_hash": proposal.action_hash,
    }


def _of_tenant(tenant: str) -> Select[Any]:
    return select(approvals).where(approvals.c.tenant == tenant)


def _approvals(connection: Connection, wanted: Select[Any]) -> list[Approval]:
    """Two queries however many there are, so that no proposal is read once per vote."""
    rows = connection.execute(wanted).all()
    counted: dict[str, list[Vote]] = {row.approval_id: [] for row in rows}
    of_these = tuple_(votes.c.tenant, votes.c.approval_id).in_([(row.tenant, row.approval_id) for row in rows])
    for row in connection.execute(select(votes).where(of_these).order_by(votes.c.number)):
        counted[row.approval_id].append(row.vote)
    return [
        Approval(proposal=row.proposal, status=ApprovalStatus(row.status), votes=tuple(counted[row.approval_id]))
        for row in rows
    ]
