"""Decisions: what a person signs, and the ruling on it. Pure, so that every refusal is a line of a table in a test."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from countersign.domain.directory import Person
from countersign.domain.identity import OperationId, PersonId, TenantId
from countersign.domain.policy import DecisionKind, unmet
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.values import Instant, Sha256, Value

DECIDE = "decide"
"""The signal's and the update's name under which a run takes decisions; one JSON object each."""


class Statement(Value):
    """The signed form of a decision; each field is bound by the signature, so it is good nowhere else (G16, G20)."""

    installation: str
    person: PersonId
    key_id: str
    tenant: TenantId
    operation: OperationId
    approval_id: str
    approval_version: Annotated[int, Field(ge=1, le=1_000_000)]
    action_hash: Sha256
    decision: DecisionKind
    comment_hash: Sha256 | Literal[""] = ""
    issued_at: Instant
    expires_at: Instant
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16,64}$")]
    """Unique per decision; a second use is a replay (G17)."""


class Ruling(StrEnum):
    """What became of a message; the words that people and records read."""

    ACCEPTED = "accepted"
    REPLAY = "replay"
    ID_CONFLICT = "id_conflict"
    MALFORMED = "malformed"
    UNKNOWN_MESSAGE = "unknown_message"
    BAD_STATEMENT = "bad_statement"
    NOT_THIS_APPROVAL = "not_this_approval"
    NOT_THIS_VERSION = "not_this_version"
    NOT_THIS_ACTION = "not_this_action"
    NOTHING_PENDING = "nothing_pending"
    LATE = "late"
    ALREADY_SETTLED = "already_settled"
    DECISION_NOT_ALLOWED = "decision_not_allowed"
    REQUESTER_MAY_NOT_DECIDE = "requester_may_not_decide"
    ROLE_MISSING = "role_missing"
    ALREADY_VOTED = "already_voted"


MEANING: dict[Ruling, str] = {
    Ruling.ACCEPTED: "your decision counts",
    Ruling.REPLAY: "this very decision was recorded before; it counts once",
    Ruling.ID_CONFLICT: "another decision used the same statement id; sign a new one",
    Ruling.MALFORMED: "the message does not have the form of a decision; nothing was changed",
    Ruling.UNKNOWN_MESSAGE: "the run knows no message of that name; nothing was changed",
    Ruling.BAD_STATEMENT: "the signed statement is not acceptable; nothing was changed",
    Ruling.NOT_THIS_APPROVAL: "the statement is for another approval; look at the current proposal and sign again",
    Ruling.NOT_THIS_VERSION: "the statement is for another version of the proposal; look at it and sign again",
    Ruling.NOT_THIS_ACTION: "the statement is for another action than the one proposed; look at it and sign again",
    Ruling.NOTHING_PENDING: "nothing waits for a decision in this run",
    Ruling.LATE: "expired, not executed: the deadline had passed",
    Ruling.ALREADY_SETTLED: "already settled; a settled approval never changes",
    Ruling.DECISION_NOT_ALLOWED: "the policy does not allow this kind of decision here",
    Ruling.REQUESTER_MAY_NOT_DECIDE: "whoever asked for the action cannot decide about it",
    Ruling.ROLE_MISSING: "you do not have a role that this approval needs",
    Ruling.ALREADY_VOTED: "you have decided about this proposal before; one person counts once",
}


class Outcome(Value):
    """The answer to one message."""

    ruling: Ruling
    detail: str = ""
    """More about a refusal: which check failed."""
    status: ApprovalStatus | None = None
    """How the approval stands after the message, where there is one."""

    def sentence(self) -> str:
        """One line for the sender."""
        return f"{self.ruling.value}: {self.detail or MEANING[self.ruling]}"


def rule_on(
    statement: Statement, signer: Person, approval: Approval | None, persons: Mapping[str, Person], now: datetime
) -> Outcome:
    """Rule on a statement whose signature was verified and that was not seen before.

    Args:
        statement: what was signed.
        signer: the person the signature belongs to, as the directory has them now.
        approval: the current approval of the statement's operation.
        persons: the directory of the tenant by person id, for the earlier voters.
        now: workflow time; at the deadline itself it is late (G26).
    """
    if approval is None:
        return Outcome(ruling=Ruling.NOTHING_PENDING)
    refusal = (
        _wrong_object(statement, approval) or _wrong_time(approval, now) or _wrong_person(statement, signer, approval)
    )
    if refusal is not None:
        return Outcome(ruling=refusal, status=approval.status)
    if statement.decision == "reject":
        return Outcome(ruling=Ruling.ACCEPTED, status=ApprovalStatus.REJECTED)
    approvers = {vote.person for vote in approval.votes if vote.decision == "approve"}
    voters = {person: persons[person] for person in approvers if person in persons}
    open_needs = unmet(approval.proposal.assessment.needs, {**voters, signer.id: signer})
    return Outcome(ruling=Ruling.ACCEPTED, status=ApprovalStatus.PENDING if open_needs else ApprovalStatus.GRANTED)


def _wrong_object(statement: Statement, approval: Approval) -> Ruling | None:
    proposal = approval.proposal
    if (statement.tenant, statement.operation, statement.approval_id) != (
        proposal.tenant,
        proposal.operation,
        proposal.approval_id,
    ):
        return Ruling.NOT_THIS_APPROVAL
    if statement.approval_version != proposal.approval_version:
        return Ruling.NOT_THIS_VERSION
    return Ruling.NOT_THIS_ACTION if statement.action_hash != proposal.action_hash else None


def _wrong_time(approval: Approval, now: datetime) -> Ruling | None:
    if approval.status == ApprovalStatus.EXPIRED:
        return Ruling.LATE
    if approval.status != ApprovalStatus.PENDING:
        return Ruling.ALREADY_SETTLED
    return Ruling.LATE if now >= approval.proposal.deadline else None


def _wrong_person(statement: Statement, signer: Person, approval: Approval) -> Ruling | None:
    proposal = approval.proposal
    if signer.id == proposal.requester:
        return Ruling.REQUESTER_MAY_NOT_DECIDE
    if not signer.active or not any(need.role in signer.roles for need in proposal.assessment.needs):
        return Ruling.ROLE_MISSING
    if statement.decision not in proposal.decisions:
        return Ruling.DECISION_NOT_ALLOWED
    return Ruling.ALREADY_VOTED if any(vote.person == signer.id for vote in approval.votes) else None
