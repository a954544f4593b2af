"""Verification of a grant, by the gateway for itself: from signatures, hashes and policies, not from what a run claims.

Apart from the flow that acts, because each refusal here is a line of a table in a test, and because nothing in it
changes anything: it reads the ledger and the evidence, and either returns or raises. What nobody honest leads to comes
first, so that a forged grant raises its alarm whatever else has changed meanwhile.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import NamedTuple

from countersign.domain.action import Action
from countersign.domain.administration import ADMINISTRATION, TWO_PERSONS, Authority
from countersign.domain.errors import CountersignError, Drifted, NotAuthorised
from countersign.domain.policy import Answer, Assessment, Policy, assess, kept_under, read_pinned
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal
from countersign.gateway.origins import Origins
from countersign.gateway.quorum import Quorum, quorum
from countersign.gateway.refusals import Ended, drifted, forged
from countersign.gateway.tools import Tools, changes_authority
from countersign.gateway.votes import Votes
from countersign.ports import Ledger
from countersign.signing.statements import LEEWAY

_HONEST_ENDS = frozenset({
    ApprovalStatus.EXPIRED, ApprovalStatus.WITHDRAWN, ApprovalStatus.CANCELLED, ApprovalStatus.SUPERSEDED,
    ApprovalStatus.EDITED, ApprovalStatus.VOIDED,
})  # fmt: skip
"""What an approval can have become between a run's last look at it and its execution."""


class Grant(NamedTuple):
    """The right to execute once, at the moment at which it was verified."""

    document: bytes
    """What goes out."""
    by_breaking_glass: bool


class Grants:
    """Says whether an approval is, at this moment, the right to execute its action."""

    def __init__(self, ledger: Ledger, tools: Tools, *, installation: str, environment: str, unsigned: bool) -> None:
        """
        Args:
            ledger: where approvals, requests, documents, persons and policies are read.
            tools: know what an action rests on beside its document.
            installation: the audience that statements must name.
            environment: what actions must be meant for.
            unsigned: whether decisions that nobody signed count, as in the `dev` profile.
        """
        self._ledger = ledger
        self._tools = tools
        self._environment = environment
        self._origins = Origins(ledger, installation)
        self._votes = Votes(ledger, installation=installation, unsigned=unsigned)

    def verify(self, approval: Approval, now: datetime) -> Grant:
        """The right to execute, if everything that the grant rests on holds at `now`.

        The proposal's action must have passed `check_binding`: here everything is compared with its hash.

        Raises:
            Drifted: something it rests on has changed since; people can be asked anew.
            Ended: it has ended in an honest way.
            NotAuthorised: any other refusal; something was forged.
        """
        proposal = approval.proposal
        _check_status(approval.status)
        authority = self._ledger.directory.authority(proposal.tenant)
        policy = self.pinned(proposal)
        carried = self._carried(approval, policy, authority, now)
        self._check_unended(proposal)
        self._check_environment(proposal.action)
        _check_in_force(policy, authority)
        self._check_amounts(approval, policy, now)
        document = self._document(proposal)
        self._tools.check_evidence(proposal)
        return Grant(document, carried is not None and carried.by_breaking_glass)

    def _carried(self, approval: Approval, policy: Policy, authority: Authority, now: datetime) -> Quorum | None:
        """The votes that carry the grant; none where the policy grants by rule."""
        proposal = approval.proposal
        _check_proposed(proposal, now)
        _check_document(proposal)
        _check_assessment(proposal, policy)
        self._origins.check(proposal, policy, authority.persons, now)
        cast = self._votes.cast(approval, authority.persons, now)
        # Before the votes are counted: signatures are good for about as long, and that is not what to tell people.
        _check_window(proposal.execute_by, now)
        carried = quorum(proposal, cast) if proposal.assessment.answer == Answer.PEOPLE else None
        if changes_authority(proposal.action):
            _check_two_persons(proposal, carried)
        if carried is not None:
            _check_window(carried.closes(), now)
        return carried

    def pinned(self, proposal: Proposal) -> Policy:
        """The policy as it stood at the proposal, kept in the ledger under its hash (G12); NotAuthorised without it."""
        label = proposal.action.policy_version
        with forged("policy_unknown", f"policy {label[:120]!r} is not known here"):
            policy = read_pinned(label, self._ledger.documents.get(proposal.tenant, kept_under(label)))
        if policy.policy != proposal.case:
            raise NotAuthorised("policy_unknown", "what is kept under the policy's hash is not the case's policy")
        return policy

    def _check_unended(self, proposal: Proposal) -> None:
        state = self._ledger.operations.get(proposal.tenant, proposal.operation).state
        if state.terminal:
            raise Ended("operation_ended", f"operation {proposal.operation} has ended as {state}; nothing was sent")

    def _check_environment(self, action: Action) -> None:
        if action.environment != self._environment:
            meant = f"the action is meant for {action.environment[:60]!r}, this is {self._environment!r}"
            raise Drifted("environment", meant, expected=action.environment, found=self._environment)

    def _check_amounts(self, approval: Approval, policy: Policy, now: datetime) -> None:
        """Ask the policy again with what was spent by now: of two amounts at once, one at least sees the other."""
        proposal = approval.proposal
        spent = self._ledger.approvals.spent(proposal.action, policy.windows(), approval, now)
        today = assess(policy, proposal.action, spent)
        if today.answer == Answer.DENIED or Counter(today.needs) - Counter(proposal.assessment.needs):
            raise Drifted(
                "amounts", "with what else is asked for by now, the policy wants more than was agreed to",
                expected=_rules(proposal.assessment), found=_rules(today),
            )  # fmt: skip

    def _document(self, proposal: Proposal) -> bytes:
        content_hash = proposal.action.content_hash
        with drifted("content", "the document is no longer what was approved", expected=content_hash):
            return self._ledger.documents.get(proposal.tenant, content_hash)


def check_binding(proposal: Proposal) -> None:
    """Refuse a proposal whose action is not the one that its hash, and so every signature, stands for (G14)."""
    try:
        fits = proposal.action.hash() == proposal.action_hash
    except CountersignError:
        fits = False
    if not fits:
        raise NotAuthorised("action_changed", "the action is not the one that its hash stands for; nothing was sent")


def _check_status(status: ApprovalStatus) -> None:
    if status == ApprovalStatus.GRANTED:
        return
    kind = Ended if status in _HONEST_ENDS else NotAuthorised
    raise kind(f"approval_{status.value}", f"the approval is {status.value}, not granted; nothing was sent")


def _check_proposed(proposal: Proposal, now: datetime) -> None:
    """Windows are counted from when it was proposed: one of tomorrow would stay open for a day too long."""
    if proposal.proposed_at > now + LEEWAY:
        raise NotAuthorised(
            "proposed_at", f"it was proposed at {proposal.proposed_at.isoformat()}, which is yet to come"
        )


def _check_document(proposal: Proposal) -> None:
    content_hash = proposal.action.content_hash
    if proposal.document != content_hash:
        raise NotAuthorised(
            "document", f"people were shown another document than the one that goes out ({content_hash})"
        )


def _check_assessment(proposal: Proposal, policy: Policy) -> None:
    """Whoever could write a laxer assessment must not gain by it: it is made again from what it was made from."""
    with forged("assessment", "the proposal's rules cannot be made again"):
        made_again = assess(policy, proposal.action, proposal.spent).and_also(proposal.floor)
    if made_again != proposal.assessment:
        raise NotAuthorised("assessment", "the proposal's rules are not what its policy says about the action")
    if made_again.answer == Answer.DENIED:
        raise NotAuthorised("denied", "no rule of the policy allows this action")
    if made_again.times(proposal.proposed_at) != (proposal.deadline, proposal.execute_by):
        raise NotAuthorised("times", "the proposal's deadline and window are not those that its policy gives")


def _check_two_persons(proposal: Proposal, carried: Quorum | None) -> None:
    """A change of authority needs two persons who signed, whatever a policy says (G13)."""
    if proposal.case != ADMINISTRATION:
        raise NotAuthorised("case", f"authority is changed in the case {ADMINISTRATION} only, not in {proposal.case!r}")
    signed = [one for one in carried.cast if one.vote.assurance == "signed"] if carried is not None else []
    if len(signed) < TWO_PERSONS:
        raise NotAuthorised("two_persons", "a change of authority needs two persons, whatever the policy says")


def _check_in_force(pinned: Policy, authority: Authority) -> None:
    """A policy that was changed means that people are asked anew, by the new one and what the old one wanted (G12)."""
    in_force = authority.policies.get(pinned.policy)
    found = in_force.label() if in_force is not None else "none in force"
    if found != pinned.label():
        changed = f"policy {pinned.policy} was changed after this was agreed to"
        raise Drifted("policy", changed, expected=pinned.label(), found=found)


def _check_window(closes: datetime, now: datetime) -> None:
    if now >= closes:
        was_good = f"the grant was good until {closes.isoformat()}"
        raise Drifted("window_closed", was_good, expected=f"before {closes.isoformat()}", found=now.isoformat())


def _rules(assessment: Assessment) -> str:
    needs = ", ".join(map(str, assessment.needs))
    return f"rules {', '.join(assessment.rules) or 'none'}: {needs or assessment.answer.value}"
