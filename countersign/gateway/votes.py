"""Votes as the gateway sees them: each is authentic or forged, and an authentic one may count no longer.

Apart from what they add up to, because this is where signatures are believed: everything a vote tells is compared with
what its person signed. A forged vote ends the grant for good; one that has lapsed leaves people to be asked anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from countersign.domain.action import Action
from countersign.domain.decision import Statement, over_limit
from countersign.domain.directory import Person
from countersign.domain.edit import edit_counts
from countersign.domain.errors import NotAuthorised, StatementRefused
from countersign.domain.proposal import YES, Approval, Proposal, Vote
from countersign.gateway.refusals import forged
from countersign.ports import Ledger
from countersign.signing.statements import LEEWAY, verify_decision
from countersign.signing.unsigned import read_unsigned

_LAPSES = ("key_not_valid", "expired")
"""What can become of a genuine statement with time; every other doubt about one means that it never was good."""


class Cast(NamedTuple):
    """An authentic vote."""

    vote: Vote
    signer: Person
    """As the directory has them now."""
    lapse: str = ""
    """Why it counts no longer, in a sentence; empty: it counts, if the signer has a role that is asked."""


class Votes:
    """Reads the votes of an approval."""

    def __init__(self, ledger: Ledger, *, installation: str, unsigned: bool) -> None:
        """`installation`: the audience that statements must name; `unsigned`: whether unsigned ones are taken."""
        self._ledger = ledger
        self._installation = installation
        self._unsigned = unsigned

    def cast(self, approval: Approval, persons: Mapping[str, Person], now: datetime) -> tuple[Cast, ...]:
        """All votes of an approval, each authentic; NotAuthorised for a forged one, or a no."""
        return tuple(self._cast(vote, approval.proposal, persons, now) for vote in approval.votes)

    def _cast(self, vote: Vote, proposal: Proposal, persons: Mapping[str, Person], now: datetime) -> Cast:
        _check_voter(vote, proposal)
        asked = self._asked(vote, proposal)
        try:
            statement, signer = self._read(vote, proposal, persons, now)
        except StatementRefused as doubt:
            known = persons.get(vote.person)
            if doubt.reason not in _LAPSES or known is None:
                raise _forged(vote, doubt.message) from None
            return Cast(vote, known, doubt.message)
        _check_said(vote, statement, asked, proposal)
        since = max(statement.issued_at, asked.proposed_at) - LEEWAY
        if not since <= vote.decided_at < min(asked.deadline, now + LEEWAY):
            raise _forged(vote, "it was not decided after its proposal and signing, and before the deadline")
        return Cast(vote, signer, _not_theirs(vote, signer, asked) or self._lapse(vote, signer, proposal.action, now))

    def _asked(self, vote: Vote, proposal: Proposal) -> Proposal:
        """The proposal that a vote was about: for the edit that made this one, the one before."""
        if vote.decision != "edit":
            return proposal
        with forged("vote_forged", f"{vote.person}'s edit is of no proposal that is known"):
            earlier = self._ledger.approvals.get(proposal.tenant, proposal.edited_from)
        if not edit_counts(earlier.proposal, vote.person, proposal.action, proposal.assessment):
            raise _forged(vote, "by its policy this edit is no approval")
        return earlier.proposal

    def _read(
        self, vote: Vote, proposal: Proposal, persons: Mapping[str, Person], now: datetime
    ) -> tuple[Statement, Person]:
        if vote.assurance == "signed":
            return verify_decision(vote.statement, persons, installation=self._installation, now=now)
        if not self._unsigned:
            raise StatementRefused("unsigned", "nobody signed it, and this installation takes signed decisions only")
        # It says nothing of when it was made, so it is read as of when the run took it in.
        return read_unsigned(
            vote.statement, proposal.tenant, proposal.operation, persons,
            installation=self._installation, now=vote.decided_at,
        )  # fmt: skip

    def _lapse(self, vote: Vote, signer: Person, action: Action, now: datetime) -> str:
        """Why a vote counts no longer, whatever role is asked."""
        if not signer.active:
            return "is no longer active"
        if action.amount is None:
            return ""
        used = self._ledger.approvals.approved_by(signer, action, now)
        exceeded = over_limit(vote.decision, signer, action, used)
        return exceeded[1] if exceeded is not None else ""


def _check_voter(vote: Vote, proposal: Proposal) -> None:
    if vote.decision not in YES:
        raise NotAuthorised("rejected", f"{vote.person} decided {vote.decision!r}; nothing was sent")
    if vote.person == proposal.requester:
        raise NotAuthorised("own_vote", "whoever asked for the action cannot approve it; nothing was sent")
    is_author = vote.person in proposal.authors
    if is_author and vote.decision != "edit":
        raise NotAuthorised("own_vote", f"{vote.person} made the action, so others must approve it; nothing was sent")
    if vote.decision == "edit" and not is_author:
        raise _forged(vote, "it edits the action, of which they are no author")


def _check_said(vote: Vote, statement: Statement, asked: Proposal, proposal: Proposal) -> None:
    """Compare what a vote tells, and what it must be about, with what was signed."""
    if statement.decision not in YES:
        raise NotAuthorised("rejected", f"{statement.person} signed {statement.decision!r}; nothing was sent")
    about = (asked.tenant, asked.operation, asked.approval_id, asked.approval_version, asked.action_hash)
    if about != (statement.tenant, statement.operation, statement.approval_id, statement.approval_version,
                 statement.action_hash):  # fmt: skip
        raise _forged(vote, "it is for another approval, version or action")
    told = (vote.person, vote.decision, vote.statement_id, vote.comment_hash, vote.edited_action)
    if told != (statement.person, statement.decision, statement.id, statement.comment_hash, statement.edited_action):
        raise _forged(vote, "the ledger tells it differently from what was signed")
    if statement.edited_action != (proposal.action_hash if vote.decision == "edit" else ""):
        raise _forged(vote, "it made another action")
    if vote.decision != "break_glass" and vote.decision not in asked.offered(vote.decided_at):
        raise _forged(vote, f"the policy does not offer {vote.decision!r}")
    if vote.decision == "break_glass" and not vote.comment_hash:
        raise _forged(vote, "the glass is not broken without a reason")


def _not_theirs(vote: Vote, signer: Person, asked: Proposal) -> str:
    """Why the lines that the signer belongs to now may not decide so, when others may; empty if they may."""
    if vote.decision == "break_glass" or vote.decision in asked.allowed(signer, vote.decided_at):
        return ""
    return f"may no longer decide {vote.decision!r}, with the roles of now"


def _forged(vote: Vote, why: str) -> NotAuthorised:
    return NotAuthorised("vote_forged", f"{vote.person}'s vote was never good: {why}; nothing was sent")
