"""Approvals: proposals put before people, opened, superseded and settled; what people decide is in `decisions`."""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import Connection, func, select

from countersign.domain.decision import Outcome, Statement
from countersign.domain.directory import Person
from countersign.domain.errors import Conflict, InputRefused
from countersign.domain.execution import ExecutionStatus
from countersign.domain.policy import Answer
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal
from countersign.domain.values import Sha256
from countersign.ledger.approval_rows import find, newest, of_operation, set_status
from countersign.ledger.decisions import decide, record_refusal
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import approvals, executions


class SqlApprovals:
    """ports.Approvals on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, proposal: Proposal, run_id: str, view: Sha256, now: datetime) -> Approval:
        """Store a proposal once per run and version, and close what it supersedes.

        An older approval of the operation that is pending, or granted and not on its way out, becomes SUPERSEDED (audit
        `approval.superseded`, by the newer one): no vote is carried over to another run or version (G16, G23).

        Raises:
            NotFound: the operation is not registered.
            Conflict: the approval id is taken, or a higher version of the same run is open already.
        """
        with self._store.writing(proposal.tenant) as writing:
            writing.lock_known_operation(proposal.operation)
            stored = _opened(writing.connection, proposal, run_id)
            if stored is not None:
                return stored
            older = of_operation(writing.connection, proposal.tenant, proposal.operation)
            approval = _insert(writing, proposal, run_id, view, len(older) + 1, now)
            for one in older:
                _supersede(writing, one, proposal.approval_id, now)
            _record_opening(writing, approval, run_id, view, now)
        return approval

    def get(self, tenant: str, approval_id: str) -> Approval:
        """That approval with its votes, or NotFound."""
        with self._store.reading() as connection:
            return _known(connection, tenant, approval_id)

    def current(self, tenant: str, operation: str) -> Approval | None:
        """The operation's latest approval."""
        with self._store.reading() as connection:
            return newest(connection, tenant, operation)

    def decide(
        self, message_id: str, token: str, statement: Statement, signer: Person, transport: str, now: datetime
    ) -> Outcome:
        """Rule on a verified statement and record the outcome; as in ports.Approvals."""
        with self._store.writing(statement.tenant) as writing:
            return decide(writing, message_id, token, statement, signer, transport, now)

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
            InputRefused: for any other status, since only people's votes and executions lead there.
        """
        if status not in (ApprovalStatus.EXPIRED, ApprovalStatus.CANCELLED):
            raise InputRefused(f"an approval cannot be settled as {status.value}; only as expired or cancelled")
        operation = self.get(tenant, approval_id).proposal.operation
        with self._store.writing(tenant) as writing:
            writing.lock_known_operation(operation)
            approval = _known(writing.connection, tenant, approval_id)
            expires = status == ApprovalStatus.EXPIRED
            if approval.status != ApprovalStatus.PENDING and (expires or not _can_be_closed(writing, approval)):
                return approval.status
            set_status(writing, approval_id, status)
            # Whoever asked for a cancellation is not known here: the transport's name for a sender proves nothing.
            subject = "clock" if expires else "unknown"
            writing.record(f"approval.{status.value}", operation, subject, now, **_names(approval.proposal))
        return status


def _known(connection: Connection, tenant: str, approval_id: str) -> Approval:
    approval = find(connection, tenant, approval_id)
    if approval is None:
        raise absent("approval", approval_id)
    return approval


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


def _insert(writing: Writing, proposal: Proposal, run_id: str, view: Sha256, number: int, now: datetime) -> Approval:
    by_rule = proposal.assessment.answer == Answer.BY_RULE
    status = ApprovalStatus.GRANTED if by_rule else ApprovalStatus.PENDING
    inserted = writing.insert_once(
        approvals,
        approval_id=proposal.approval_id,
        operation=proposal.operation,
        run_id=run_id,
        approval_version=proposal.approval_version,
        number=number,
        status=status.value,
        proposal=proposal,
        view=view,
        opened_at=now,
    )
    if not inserted:
        raise Conflict(f"approval id {proposal.approval_id} stands for another proposal already; use a new id")
    return Approval(proposal=proposal, status=status)


def _supersede(writing: Writing, older: Approval, by: str, now: datetime) -> None:
    if _can_be_closed(writing, older):
        set_status(writing, older.proposal.approval_id, ApprovalStatus.SUPERSEDED)
        writing.record("approval.superseded", older.proposal.operation, "agent", now, **_names(older.proposal), by=by)


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
        **_names(proposal),
        run_id=run_id,
        view=view,
        policy=proposal.action.policy_version,
        rules=[*proposal.assessment.rules],
    )


def _names(proposal: Proposal) -> dict[str, JsonValue]:
    return {
        "approval_id": proposal.approval_id,
        "approval_version": proposal.approval_version,
        "action_hash": proposal.action_hash,
    }
