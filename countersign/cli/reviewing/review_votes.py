"""Who voted what, and whether each vote still counts today: checked again as the gateway will check it.

Apart from the review that lists them, because a vote that counted yesterday need not count when people look again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from countersign.cli.session import Session
from countersign.domain.decision import ENDS_AS, Outcome, Ruling, approving, may, over_limit
from countersign.domain.directory import Person
from countersign.domain.errors import NotFound, StatementRefused
from countersign.domain.proposal import Approval, ApprovalStatus, Assurance, StatementKind, Vote
from countersign.domain.values import Instant, Value

_PERSONAL = frozenset({Ruling.ROLE_MISSING, Ruling.LIMIT_EXCEEDED, Ruling.REQUESTER_MAY_NOT_DECIDE})
"""Refusals that come from who the voter is now, not from what happened to the approval since."""
_OPEN = (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)


class CastVote(Value):
    """One accepted decision as it stands now."""

    person: str
    decision: StatementKind
    assurance: Assurance
    decided_at: Instant
    statement_id: str
    comment: str
    void: str
    """Why it does not count now; empty if it does."""


def cast_votes(
    session: Session, approval: Approval, persons: Mapping[str, Person], moment: datetime
) -> tuple[CastVote, ...]:
    """The votes of an approval, in order; those for what was not executed count no longer once it is over (G16).

    Args:
        session: the open ledger.
        approval: whose votes.
        persons: the tenant's directory by person id.
        moment: at which they count or do not.
    """
    return tuple(_cast(session, vote, approval, moment, persons) for vote in approval.votes)


def comment_of(session: Session, tenant: str, sha256: str) -> str:
    """The text under a signed comment hash; the ledger has checked it against the hash."""
    try:
        return session.ledger.documents.get(tenant, sha256).decode("utf-8", "backslashreplace")
    except NotFound:
        # Whoever signs elsewhere can sign the hash of a text that they never gave to the ledger.
        return f"(not in the ledger: {sha256})"


def why_not(outcome: Outcome) -> str:
    """The refusal with its reason; empty for an acceptance."""
    return "" if outcome.ruling == Ruling.ACCEPTED else outcome.sentence()


def _cast(
    session: Session, vote: Vote, approval: Approval, moment: datetime, persons: Mapping[str, Person]
) -> CastVote:
    return CastVote(
        person=vote.person,
        decision=vote.decision,
        assurance=vote.assurance,
        decided_at=vote.decided_at,
        statement_id=vote.statement_id,
        comment=comment_of(session, approval.proposal.tenant, vote.comment_hash) if vote.comment_hash else "",
        void=_void(session, vote, approval, moment, persons),
    )


def _void(session: Session, vote: Vote, approval: Approval, moment: datetime, persons: Mapping[str, Person]) -> str:
    """Why a vote does not count now; empty if it does, or did until what it led to was done."""
    if approval.status == ApprovalStatus.CONSUMED or approval.status == ENDS_AS.get(vote.decision):
        return ""
    if approval.status not in _OPEN:
        return f"this version is {approval.status.value}"
    return _lost(session, vote, approval, moment, persons)


def _lost(session: Session, vote: Vote, approval: Approval, moment: datetime, persons: Mapping[str, Person]) -> str:
    """Why a vote of the current version counts no longer: its key, its voter's role or limit, or nobody signed it."""
    proposal = approval.proposal
    if vote.decision != "break_glass" and vote not in approving(approval.votes, proposal.assessment.needs):
        return "nobody signed it, and two persons are needed here"
    try:
        voter = _read_again(session, vote, approval, moment, persons)
    except StatementRefused as refused:
        return refused.message
    others = approval.model_copy(update={"votes": tuple(one for one in approval.votes if one.person != vote.person)})
    # As of when it was recorded: by now further lines of people may be asked, who were not then.
    now = may(vote.decision, voter, others, vote.decided_at)
    return why_not(now) if now.ruling in _PERSONAL else _beyond(session, vote, voter, approval, moment)


def _beyond(session: Session, vote: Vote, voter: Person, approval: Approval, moment: datetime) -> str:
    """Why a yes is beyond its voter's limit now."""
    action = approval.proposal.action
    if action.amount is None:
        return ""
    used = session.ledger.approvals.approved_by(voter, action, moment)
    refused = over_limit(vote.decision, voter, action, used)
    return ": ".join(refused) if refused else ""


def _read_again(
    session: Session, vote: Vote, approval: Approval, moment: datetime, persons: Mapping[str, Person]
) -> Person:
    from countersign.signing.statements import verify_decision
    from countersign.signing.unsigned import read_unsigned

    installation, proposal = session.settings.installation, approval.proposal
    if vote.assurance == "signed":
        return verify_decision(vote.statement, persons, installation=installation, now=moment)[1]
    return read_unsigned(
        vote.statement, proposal.tenant, proposal.operation, persons, installation=installation, now=moment
    )[1]
