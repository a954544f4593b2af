"""Approvals: proposals put before people, opened, superseded and settled; what people decide is in `decisions`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from countersign.domain.action import Action
from countersign.domain.decision import Outcome
from countersign.domain.directory import Person
from countersign.domain.edit import Edit
from countersign.domain.errors import Conflict, InputRefused
from countersign.domain.execution import ExecutionStatus
from countersign.domain.policy import Answer, Spent, Window
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Rejection
from countersign.domain.values import Sha256
from countersign.ledger.approval_rows import find, names, newest, of_operation, of_status, set_status
from countersign.ledger.decisions import decide, record_refusal
from countersign.ledger.edited import carry_over
from countersign.ledger.precedents import approved_by, rejection_like, spent
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import approvals, executions
from countersign.ports import Received


class SqlApprovals:
    """ports.Approvals on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, proposal: Proposal, run_id: str, view: Sha256, now: datetime) -> Approval:
        """Store a proposal once per run and version, and close what it supersedes.

        An older approval of the operation that is pending, or granted and not on its way out, becomes SUPERSEDED (audit
        `approval.superseded`, by the newer one): no vote but an editor's goes over to another version, and none at all
        to another run (G16, G23).

        Raises:
            NotFound: the operation is not registered.
            Conflict: the operation has ended, the approval id is taken, a higher version of the same run is open
                already, or nobody edited the approval that it names.
        """
        with self._store.writing(proposal.tenant) as writing:
            writing.lock_known_operation(proposal.operation)
            writing.check_running(proposal.operation)
            stored = _opened(writing.connection, proposal, run_id)
            if stored is not None:
                return stored
            older = of_operation(writing.connection, proposal.tenant, proposal.operation)
            approval = _insert(writing, proposal, run_id, view, now)
            for one in older:
                _supersede(writing, one, proposal.approval_id, now)
            _record_opening(writing, approval, run_id, view, now)
            return carry_over(writing, approval, run_id, now) if proposal.edited_from else approval

    def get(self, tenant: str, approval_id: str) -> Approval:
        """That approval with its votes, or NotFound."""
        with self._store.reading(tenant) as connection:
            return _known(connection, tenant, approval_id)

    def current(self, tenant: str, operation: str) -> Approval | None:
        """The operation's latest approval."""
        with self._store.reading(tenant) as connection:
            return newest(connection, tenant, operation)

    def pending(self, tenant: str) -> Sequence[Approval]:
        """All that wait for people, the nearest deadline first."""
        with self._store.reading(tenant) as connection:
            waiting = of_status(connection, tenant, ApprovalStatus.PENDING)
        return sorted(waiting, key=lambda one: one.proposal.deadline)

    def of_operation(self, tenant: str, operation: str) -> Sequence[Approval]:
        """All approvals that the operation ever had, oldest first."""
        with self._store.reading(tenant) as connection:
            return of_operation(connection, tenant, operation)

    def targets(self, tenant: str) -> Sequence[str]:
        """Every target that anything was ever proposed for; as in ports.Approvals."""
        named = select(approvals.c.target).where(approvals.c.tenant == tenant).distinct()
        with self._store.reading(tenant) as connection:
            return sorted(connection.execute(named).scalars())

    def decide(self, received: Received, signer: Person, edit: Edit | None = None) -> Outcome:
        """Rule on a verified statement and record the outcome; as in ports.Approvals."""
        with self._store.writing(received.statement.tenant) as writing:
            return decide(writing, received, signer, edit)

    def record_refusal(
        self, tenant: str, operation: str, message_id: str, transport: str, outcome: Outcome, now: datetime
    ) -> Outcome:
        """Record a message that never became a verified statement, once per message id."""
        with self._store.writing(tenant) as writing:
            return record_refusal(writing, operation, message_id, transport, outcome, now)

    def settle(self, tenant: str, approval_id: str, status: ApprovalStatus, now: datetime) -> ApprovalStatus:
        """Move a pending approval to EXPIRED or CANCELLED, or a granted one that nobody executes to CANCELLED.

        Returns how it stands now.

        Raises:
            InputRefused: for any other status, since only people's votes and executions lead there; for an expiry
                before its time.
        """
        if status not in (ApprovalStatus.EXPIRED, ApprovalStatus.CANCELLED):
            raise InputRefused(f"an approval cannot be settled as {status.value}; only as expired or cancelled")
        with self._store.writing(tenant) as writing:
            approval = _locked(writing, approval_id)
            expires = status == ApprovalStatus.EXPIRED
            if approval.status != ApprovalStatus.PENDING and (expires or not _can_be_closed(writing, approval)):
                return approval.status
            if expires and now < approval.proposal.deadline:
                raise InputRefused(
                    f"approval {approval_id} expires at {approval.proposal.deadline.isoformat()}, not yet"
                )
            set_status(writing, approval_id, status, now)
            # Whoever asked for a cancellation is not known here: the transport's name for a sender proves nothing.
            subject = "clock" if expires else "unknown"
            kind, operation = f"approval.{status.value}", approval.proposal.operation
            writing.record(kind, operation, subject, now, **names(approval.proposal))
        return status

    def void(
        self, tenant: str, approval_id: str, reason: str, expected: str, found: str, now: datetime
    ) -> ApprovalStatus:
        """Void a grant under which nothing was sent; as in ports.Approvals."""
        with self._store.writing(tenant) as writing:
            approval = _locked(writing, approval_id)
            if approval.status != ApprovalStatus.GRANTED or _on_its_way(writing, approval):
                return approval.status
            sentence = f"{reason}: expected {expected}, found {found}"
            set_status(writing, approval_id, ApprovalStatus.VOIDED, now, void_reason=sentence)
            drift = {"reason": reason, "expected": expected, "found": found}
            proposal = approval.proposal
            writing.record("approval.voided", proposal.operation, "gateway", now, **names(proposal), **drift)
        return ApprovalStatus.VOIDED

    def void_reason(self, tenant: str, approval_id: str) -> str:
        """Why that approval was voided, as a sentence; empty if it was not."""
        is_it = (approvals.c.tenant == tenant) & (approvals.c.approval_id == approval_id)
        with self._store.reading(tenant) as connection:
            reason: str | None = connection.execute(select(approvals.c.void_reason).where(is_it)).scalar()
        if reason is None:
            raise absent("approval", approval_id)
        return reason

    def spent(
        self, action: Action, windows: Sequence[Window], before: Approval | None, now: datetime
    ) -> tuple[Spent, ...]:
        """What other operations' actions come to in each window; as in ports.Approvals."""
        with self._store.reading(action.tenant) as connection:
            return spent(connection, action, windows, before, now)

    def approved_by(self, person: Person, action: Action, now: datetime) -> int:
        """What the person approved within their limit's window; as in ports.Approvals."""
        with self._store.reading(action.tenant) as connection:
            return approved_by(connection, person, action, now)

    def rejection_like(self, action: Action, since: datetime) -> Rejection | None:
        """The latest rejection of an action of the same likeness; as in ports.Approvals."""
        with self._store.reading(action.tenant) as connection:
            return rejection_like(connection, action, since)


def _known(connection: Connection, tenant: str, approval_id: str) -> Approval:
    approval = find(connection, tenant, approval_id)
    if approval is None:
        raise absent("approval", approval_id)
    return approval


def _locked(writing: Writing, approval_id: str) -> Approval:
    """That approval as it stands from now until the end of the transaction."""
    is_it = (approvals.c.tenant == writing.tenant) & (approvals.c.approval_id == approval_id)
    operation: str | None = writing.connection.execute(select(approvals.c.operation).where(is_it)).scalar()
    if operation is None:
        raise absent("approval", approval_id)
    writing.lock_known_operation(operation)
    return _known(writing.connection, writing.tenant, approval_id)


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


def _supersede(writing: Writing, older: Approval, by: str, now: datetime) -> None:
    if _can_be_closed(writing, older):
        set_status(writing, older.proposal.approval_id, ApprovalStatus.SUPERSEDED, now)
        writing.record("approval.superseded", older.proposal.operation, "agent", now, **names(older.proposal), by=by)


def _can_be_closed(writing: Writing, approval: Approval) -> bool:
    """Whether it is pending, or granted while surely nothing was sent under it."""
    if approval.status == ApprovalStatus.GRANTED:
        return not _on_its_way(writing, approval)
    return approval.status == ApprovalStatus.PENDING


def _on_its_way(writing: Writing, approval: Approval) -> bool:
    sent = select(func.count()).where(
        executions.c.tenant == writing.tenant,
        executions.c.approval_id == approval.proposal.approval_id,
        executions.c.status != ExecutionStatus.NOT_SENT.value,
    )
    return writing.connection.execute(sent).scalar_one() > 0


def _record_opening(writing: Writing, approval: Approval, run_id: str, view: Sha256, now: datetime) -> None:
    proposal, by_rule = approval.proposal, approval.status == ApprovalStatus.GRANTED
    kind, subject = ("approval.granted_by_rule", "policy") if by_rule else ("approval.opened", "agent")
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
