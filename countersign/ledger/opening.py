"""How a proposal is put before people: stored once, in place of what came before it, and told.

Apart from the approvals' later life because here alone it matters which run asks, and under whose control.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from countersign.domain.action import Action
from countersign.domain.errors import Conflict
from countersign.domain.escalation import Severity
from countersign.domain.execution import MAY_BE_THERE
from countersign.domain.notice import Notice, NoticeKind
from countersign.domain.policy import Answer
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal
from countersign.domain.values import Sha256
from countersign.ledger.approval_rows import close, find, names, of_operation
from countersign.ledger.control_rows import check_control
from countersign.ledger.edited import carry_over
from countersign.ledger.question_rows import supersede
from countersign.ledger.room import check_room
from countersign.ledger.store import Writing
from countersign.ledger.tables import approvals, executions


def open_approval(
    writing: Writing, proposal: Proposal, run_id: str, view: Sha256, now: datetime, room: int
) -> Approval:
    """Open an approval in this transaction; as in ports.Approvals."""
    writing.lock_known_operation(proposal.operation)
    writing.check_running(proposal.operation)
    stored = _opened(writing.connection, proposal, run_id)
    if stored is not None:
        return stored
    check_control(writing, proposal.operation, proposal.control_version)
    _check_nothing_unknown(writing, proposal)
    older = of_operation(writing.connection, proposal.tenant, proposal.operation)
    approval = _insert(writing, proposal, run_id, view, now)
    for one in older:
        close(writing, one, ApprovalStatus.SUPERSEDED, proposal.proposed_by, now, by=proposal.approval_id)
    # Of a run before this one, since an agent that waits proposes nothing.
    supersede(writing, proposal.operation, proposal.proposed_by, now, by=proposal.approval_id)
    _record_opening(writing, approval, run_id, view, now)
    if proposal.edited_from:
        approval = carry_over(writing, approval, run_id, now)
    if approval.status == ApprovalStatus.PENDING:
        check_room(writing, room)
        writing.notify(_opening_told(proposal, now))
    return approval


def _check_nothing_unknown(writing: Writing, proposal: Proposal) -> None:
    """While it is unknown whether one action took effect, no other is put before people (G32)."""
    other = select(executions.c.action_hash).where(
        executions.c.tenant == writing.tenant,
        executions.c.operation == proposal.operation,
        executions.c.action_hash != proposal.action_hash,
        executions.c.status.in_([status.value for status in MAY_BE_THERE]),
    )
    unknown = writing.connection.execute(other).scalar()
    if unknown is not None:
        raise Conflict(
            f"operation {proposal.operation}: action {unknown} may have taken effect; another one can be proposed once"
            " that is settled as not executed"
        )


def _opening_told(proposal: Proposal, now: datetime) -> Notice:
    return Notice(
        kind=NoticeKind.APPROVAL_OPENED,
        tenant=proposal.tenant,
        operation=proposal.operation,
        roles=tuple(dict.fromkeys(need.role for need in proposal.assessment.needs)),
        severity=Severity.MEDIUM,
        code=proposal.approval_id,
        deadline=proposal.deadline,
        at=now,
    )


def _opened(connection: Connection, proposal: Proposal, run_id: str) -> Approval | None:
    same = select(approvals.c.approval_id).where(
        approvals.c.tenant == proposal.tenant,
        approvals.c.operation == proposal.operation,
        approvals.c.run_id == run_id,
        approvals.c.approval_version >= proposal.approval_version,
    )
    approval_id = connection.execute(same.order_by(approvals.c.approval_version)).scalar()
    stored = None if approval_id is None else find(connection, proposal.tenant, approval_id)
    if stored is not None and stored.proposal.approval_version > proposal.approval_version:
        raise Conflict(
            f"approval version {proposal.approval_version} of operation {proposal.operation} comes too late: version "
            f"{stored.proposal.approval_version} is open; look at that one"
        )
    return stored


def _insert(writing: Writing, proposal: Proposal, run_id: str, view: Sha256, now: datetime) -> Approval:
    by_rule = proposal.assessment.answer == Answer.BY_RULE
    status = ApprovalStatus.GRANTED if by_rule else ApprovalStatus.PENDING
    inserted = writing.insert_once(
        approvals,
        approval_id=proposal.approval_id,
        operation=proposal.operation,
        run_id=run_id,
        approval_version=proposal.approval_version,
        number=_next_number(writing),
        status=status.value,
        proposal=proposal,
        view=view,
        opened_at=now,
        changed_at=now,
        void_reason="",
        **_looked_up_by(proposal.action),
    )
    if not inserted:
        raise Conflict(f"approval id {proposal.approval_id} stands for another proposal already; use a new id")
    return Approval(proposal=proposal, status=status)


def _next_number(writing: Writing) -> int:
    writing.lock_openings()
    latest = select(func.max(approvals.c.number)).where(approvals.c.tenant == writing.tenant)
    return (writing.connection.execute(latest).scalar() or 0) + 1


def _looked_up_by(action: Action) -> dict[str, Any]:
    """What earlier approvals are found by when another action is assessed."""
    amount = action.amount
    return {
        "likeness": action.likeness(), "tool": action.tool, "target": action.target,
        "currency": amount.currency if amount else None, "minor": amount.minor if amount else None,
    }  # fmt: skip


def _record_opening(writing: Writing, approval: Approval, run_id: str, view: Sha256, now: datetime) -> None:
    proposal, by_rule = approval.proposal, approval.status == ApprovalStatus.GRANTED
    kind, subject = ("approval.granted_by_rule", "policy") if by_rule else ("approval.opened", proposal.proposed_by)
    writing.record(
        kind,
        proposal.operation,
        subject,
        now,
        **names(proposal),
        run_id=run_id,
        view=view,
        policy=proposal.action.policy_version,
        rules=[*proposal.assessment.rules],
    )
