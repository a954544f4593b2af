"""What the ledger knows of earlier approvals when another one is assessed: money spent, money approved, rejections.

Apart from the approvals' own life because these questions look across operations, and change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, or_, select

from countersign.domain.action import Action
from countersign.domain.directory import Person
from countersign.domain.durations import duration
from countersign.domain.policy import Spent, Window
from countersign.domain.proposal import YES, Approval, ApprovalStatus, Rejection, Vote
from countersign.ledger.store import absent
from countersign.ledger.tables import approvals, votes

_UNDER_WAY = (ApprovalStatus.PENDING.value, ApprovalStatus.GRANTED.value)


def spent(
    connection: Connection, action: Action, windows: Sequence[Window], before: Approval | None, now: datetime
) -> tuple[Spent, ...]:
    """What other operations' actions come to in each window; as in ports.Approvals."""
    others = _of_others(action) & (approvals.c.tool == action.tool)
    if before is not None:
        others &= _opened_before(connection, before)
    return tuple(Spent(window=window, minor=_sum(connection, action, others, window, now)) for window in windows)


def approved_by(connection: Connection, person: Person, action: Action, now: datetime) -> int:
    """What the person approved within their limit's window; as in ports.Approvals."""
    limit = None if action.amount is None else person.limit(action.amount.currency)
    if limit is None or limit.within is None:
        return 0
    its = (votes.c.tenant == approvals.c.tenant) & (votes.c.approval_id == approvals.c.approval_id)
    counted = select(approvals.c.minor, votes.c.vote).join(votes, its).where(
        _of_others(action),
        approvals.c.status.in_((*_UNDER_WAY, ApprovalStatus.CONSUMED.value)),
        votes.c.person == person.id,
        votes.c.decided_at >= now - duration(limit.within),
    )  # fmt: skip
    return sum(row.minor for row in connection.execute(counted) if row.vote.decision in YES)


def rejection_like(connection: Connection, action: Action, since: datetime) -> Rejection | None:
    """The latest rejection of an action like this one; as in ports.Approvals."""
    its = (votes.c.tenant == approvals.c.tenant) & (votes.c.approval_id == approvals.c.approval_id)
    rejected = select(approvals.c.operation, votes.c.vote).join(votes, its).where(
        approvals.c.tenant == action.tenant,
        approvals.c.likeness == action.likeness(),
        approvals.c.status == ApprovalStatus.REJECTED.value,
        votes.c.decided_at >= since,
    )  # fmt: skip
    # An approval is over with its first rejection, so its last vote is the one.
    for row in connection.execute(rejected.order_by(votes.c.decided_at.desc(), votes.c.number.desc())):
        vote: Vote = row.vote
        if vote.decision == "reject":
            return Rejection(
                operation=row.operation, person=vote.person, at=vote.decided_at, comment_hash=vote.comment_hash
            )
    return None


def _of_others(action: Action) -> ColumnElement[bool]:
    """Amounts of the same tenant and currency, of other operations."""
    currency = "" if action.amount is None else action.amount.currency
    return (
        (approvals.c.tenant == action.tenant)
        & (approvals.c.operation != action.operation)
        & (approvals.c.currency == currency)
    )


def _opened_before(connection: Connection, approval: Approval) -> ColumnElement[bool]:
    """In one order for all, so that of two approvals at least the later one counts the other."""
    tenant, approval_id = approval.proposal.tenant, approval.proposal.approval_id
    is_it = (approvals.c.tenant == tenant) & (approvals.c.approval_id == approval_id)
    number: int | None = connection.execute(select(approvals.c.number).where(is_it)).scalar()
    if number is None:
        raise absent("approval", approval_id)
    earlier: ColumnElement[bool] = approvals.c.number < number
    return earlier


def _sum(connection: Connection, action: Action, others: ColumnElement[bool], window: Window, now: datetime) -> int:
    executed = (approvals.c.status == ApprovalStatus.CONSUMED.value) & (
        approvals.c.changed_at >= now - duration(window.within)
    )
    counted = others & or_(approvals.c.status.in_(_UNDER_WAY), executed)
    if window.per == "target":
        counted &= approvals.c.target == action.target
    # Not SUM: the engines disagree about its type, and SQLite about numbers beyond 2^63.
    return sum(connection.execute(select(approvals.c.minor).where(counted)).scalars())
