"""Approvals: proposals put before people, read and settled; how one is opened and decided lies in parts of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, select

from countersign.domain.action import Action
from countersign.domain.decision import Outcome
from countersign.domain.directory import Person
from countersign.domain.edit import Edit
from countersign.domain.errors import InputRefused
from countersign.domain.need import freezes
from countersign.domain.policy import Spent, Window
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Rejection
from countersign.domain.values import Sha256
from countersign.ledger.approval_rows import (
    can_be_closed,
    find,
    names,
    newest,
    of_operation,
    of_status,
    on_its_way,
    set_status,
)
from countersign.ledger.decisions import decide, record_refusal
from countersign.ledger.opening import open_approval
from countersign.ledger.precedents import approved_by, rejection_like, spent
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import approvals
from countersign.ledger.waiting import frozen_told, mark
from countersign.ports import Received


class SqlApprovals:
    """ports.Approvals on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, proposal: Proposal, run_id: str, view: Sha256, now: datetime, room: int) -> Approval:
        """Store a proposal once per run and version, and close what it supersedes.

        An older approval of the operation that is pending, or granted and not on its way out, becomes SUPERSEDED (audit
        `approval.superseded`, by the newer one): no vote but an editor's goes over to another version, and none at all
        to another run (G16, G23).

        Raises:
            NotFound: the operation is not registered.
            ControlChanged: somebody else is in control than when it was made.
            Conflict: the operation has ended, the approval id is taken, a higher version of the same run is open
                already, or nobody edited the approval that it names.
            TooManyPending: as in ports.Approvals.
        """
        with self._store.writing(proposal.tenant) as writing:
            return open_approval(writing, proposal, run_id, view, now, room)

    def get(self, tenant: str, approval_id: str) -> Approval:
        """That approval with its votes, or NotFound."""
        with self._store.reading(tenant) as connection:
            return _known(connection, tenant, approval_id)

    def line(self, tenant: str, approval_id: str) -> str:
        """The line of runs that asks about it; as in ports.Approvals."""
        is_it = (approvals.c.tenant == tenant) & (approvals.c.approval_id == approval_id)
        with self._store.reading(tenant) as connection:
            found: str | None = connection.execute(select(approvals.c.run_id).where(is_it)).scalar()
        if found is None:
            raise absent("approval", approval_id)
        return found

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
            if approval.status != ApprovalStatus.PENDING and (expires or not can_be_closed(writing, approval)):
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
            if expires and freezes(approval.proposal.assessment.needs):
                writing.notify(frozen_told(approval.proposal, now))
        return status

    def mark(self, tenant: str, approval_id: str, tick: int, now: datetime) -> ApprovalStatus:
        """Record that a tick of a pending approval came, once; as in ports.Approvals."""
        with self._store.writing(tenant) as writing:
            approval = _locked(writing, approval_id)
            if approval.status == ApprovalStatus.PENDING:
                mark(writing, approval.proposal, tick, now)
        return approval.status

    def void(
        self, tenant: str, approval_id: str, reason: str, expected: str, found: str, now: datetime
    ) -> ApprovalStatus:
        """Void a grant under which nothing was sent; as in ports.Approvals."""
        with self._store.writing(tenant) as writing:
            approval = _locked(writing, approval_id)
            if approval.status != ApprovalStatus.GRANTED or on_its_way(writing, approval):
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
