"""Verification of a grant, by the gateway for itself: from signatures, hashes and policies, not from what a run claims.

Apart from the flow that acts, because each refusal here is a line of a table in a test, and because nothing in it
changes anything: it reads the ledger and the evidence, and either returns or raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from pydantic import ValidationError

from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Statement
from countersign.domain.directory import Person
from countersign.domain.errors import (
    ConfigurationRefused,
    CountersignError,
    NotAuthorised,
    StatementRefused,
    Unavailable,
)
from countersign.domain.policy import Answer, Assessment, Need, Policy, assess, duration, unmet
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Vote
from countersign.ports import Ledger
from countersign.signing.statements import LEEWAY, verify_decision, verify_request


class Grants:
    """Says whether an approval is, at this moment, the right to execute its action."""

    def __init__(
        self,
        ledger: Ledger,
        policies: Iterable[Policy],
        verify_evidence: Callable[[str, str], None],
        *,
        installation: str,
        environment: str,
    ) -> None:
        """
        Args:
            ledger: where approvals, requests, documents and persons are read.
            policies: today's; earlier ones that may be pinned are found in the ledger by their hash.
            verify_evidence: takes tenant and hash; raises where the stored data no longer has that hash.
            installation: the audience that statements must name.
            environment: what actions must be meant for.
        """
        self._ledger = ledger
        self._policies = {policy.label(): policy for policy in policies}
        self._todays = _todays(self._policies.values())
        self._verify_evidence = verify_evidence
        self._installation = installation
        self._environment = environment

    def verify(self, approval: Approval, now: datetime) -> bytes:
        """The document to send, if everything that the grant rests on holds at `now`; NotAuthorised otherwise.

        The proposal's action must have passed `check_binding`: here everything is compared with its hash.
        """
        proposal = approval.proposal
        self._check_environment(proposal.action)
        self._check_standing(approval, now)
        document = self._document(proposal)
        self._check_evidence(proposal.action)
        needs = self._needs(proposal)
        persons = self._ledger.directory.persons(proposal.tenant)
        self._check_requester(proposal, persons, now)
        if needs:
            self._check_votes(approval, needs, persons, now)
        return document

    def _check_environment(self, action: Action) -> None:
        if action.environment != self._environment:
            meant = f"the action is meant for {action.environment[:60]!r}, this is {self._environment!r}"
            raise NotAuthorised("environment", meant)

    def _check_standing(self, approval: Approval, now: datetime) -> None:
        status = approval.status
        if status != ApprovalStatus.GRANTED:
            raise NotAuthorised(f"approval_{status}", f"the approval is {status}, not granted; nothing was sent")
        if any(vote.decision != "approve" for vote in approval.votes):
            raise NotAuthorised("rejected", "somebody rejected this action; nothing was sent")
        if now >= approval.proposal.execute_by:
            raise _window_closed(approval.proposal.execute_by)

    def _document(self, proposal: Proposal) -> bytes:
        content_hash = proposal.action.content_hash
        with _refusing("document", "the document is not what was approved"):
            document = self._ledger.documents.get(proposal.tenant, content_hash)
        if proposal.document != content_hash or sha256_hex(document) != content_hash:
            raise NotAuthorised("document", f"the document is not the one that was approved ({content_hash})")
        return document

    def _check_evidence(self, action: Action) -> None:
        with _refusing("evidence", "the evidence is not what was approved"):
            self._verify_evidence(action.tenant, action.evidence_hash)

    def _needs(self, proposal: Proposal) -> tuple[Need, ...]:
        """All needs of the pinned policy and of today's; none where both grant by rule (G12)."""
        action = proposal.action
        pinned = self._pinned(action)
        then, today = assess(pinned, action), assess(self._todays[pinned.policy], action)
        if proposal.assessment != then:
            raise NotAuthorised("assessment", "the proposal's rules are not what its policy says about the action")
        if Answer.DENIED in (then.answer, today.answer):
            raise NotAuthorised("denied", "no rule of the policy allows this action")
        return _together(then, today)

    def _pinned(self, action: Action) -> Policy:
        """The policy as it stood at the proposal: today's, or an earlier one, kept in the ledger under its hash.

        Whoever could write a laxer one there gains nothing: today's needs must be met as well.
        """
        configured = self._policies.get(action.policy_version)
        if configured is not None:
            return configured
        with _refusing("policy_unknown", f"policy {action.policy_version[:120]!r} is not known here"):
            kept = self._ledger.documents.get(action.tenant, action.policy_version.rpartition("@")[2])
        try:
            policy = Policy.model_validate_json(kept)
        except ValidationError:
            raise NotAuthorised("policy_unknown", "what is kept under the policy's hash is no policy") from None
        if policy.label() != action.policy_version or policy.policy not in self._todays:
            raise NotAuthorised("policy_unknown", "what is kept under the policy's hash is not the policy it names")
        return policy

    def _check_requester(self, proposal: Proposal, persons: Mapping[str, Person], now: datetime) -> None:
        """Whom the agent acts for is whoever signed the request; a changed name would let them approve it too."""
        with _refusing("request", "the request is not validly signed"):
            operation = self._ledger.operations.get(proposal.tenant, proposal.operation)
            request, signer = verify_request(operation.statement, persons, installation=self._installation, now=now)
        signed = (request.tenant, request.operation, request.request_hash, request.person)
        told = (proposal.tenant, proposal.operation, operation.request_hash, proposal.requester)
        if signed != told or not signer.may_request:
            raise NotAuthorised("request", "the request was not signed, for this operation, by an active requester")

    def _check_votes(
        self, approval: Approval, needs: tuple[Need, ...], persons: Mapping[str, Person], now: datetime
    ) -> None:
        approvers: dict[str, Person] = {}
        doubts: list[str] = []
        for vote in approval.votes:
            try:
                signer = self._approver(vote, approval.proposal, persons, now)
                approvers[signer.id] = signer
            except StatementRefused as doubt:
                doubts.append(f"{vote.person}'s vote does not count: {doubt.message}")
        if any("approve" not in need.decisions for need in needs) or unmet(needs, approvers):
            raise NotAuthorised("quorum", "; ".join(["too few valid approvals of the required roles", *doubts]))
        decided = max(vote.decided_at for vote in approval.votes)
        closes = min(decided + duration(need.execute_within) for need in needs)
        if now >= closes:
            raise _window_closed(closes)

    def _approver(self, vote: Vote, proposal: Proposal, persons: Mapping[str, Person], now: datetime) -> Person:
        """The person of a vote that counts; StatementRefused for one that does not, NotAuthorised for a signed no."""
        statement, signer = verify_decision(vote.statement, persons, installation=self._installation, now=now)
        if statement.decision != "approve":
            raise NotAuthorised("rejected", f"{signer.id} signed {statement.decision!r}, not approve; nothing was sent")
        if _bound(statement) != _bound_to(proposal):
            raise StatementRefused("other_object", "it is for another approval, version or action")
        told = (vote.person, vote.decision, vote.statement_id, vote.comment_hash)
        if told != (statement.person, statement.decision, statement.id, statement.comment_hash):
            raise StatementRefused("other_vote", "the ledger tells it differently from what was signed")
        if signer.id == proposal.requester:
            raise StatementRefused("requester", "whoever asked for the action cannot approve it")
        if not statement.issued_at - LEEWAY <= vote.decided_at < min(proposal.deadline, now + LEEWAY):
            raise StatementRefused("late", "it was not decided between its signing and the deadline")
        return signer


@contextmanager
def _refusing(reason: str, sentence: str) -> Iterator[None]:
    """Turn what is wrong with a fact into a refusal; that a part of our own does not answer is no such fact."""
    try:
        yield
    except Unavailable:
        raise
    except CountersignError as error:
        raise NotAuthorised(reason, f"{sentence}: {error.message}") from None


def check_binding(proposal: Proposal) -> None:
    """Refuse a proposal whose action is not the one that its hash, and so every signature, stands for (G14)."""
    try:
        fits = proposal.action.hash() == proposal.action_hash
    except CountersignError:
        fits = False
    if not fits:
        raise NotAuthorised("action_changed", "the action is not the one that its hash stands for; nothing was sent")


def _bound(statement: Statement) -> tuple[str, str, str, int, str]:
    return (statement.tenant, statement.operation, statement.approval_id, statement.approval_version,
            statement.action_hash)  # fmt: skip


def _bound_to(proposal: Proposal) -> tuple[str, str, str, int, str]:
    return (proposal.tenant, proposal.operation, proposal.approval_id, proposal.approval_version,
            proposal.action_hash)  # fmt: skip


def _together(then: Assessment, today: Assessment) -> tuple[Need, ...]:
    return then.needs + tuple(need for need in today.needs if need not in then.needs)


def _todays(policies: Iterable[Policy]) -> dict[str, Policy]:
    todays: dict[str, Policy] = {}
    for policy in policies:
        other = todays.setdefault(policy.policy, policy)
        if other != policy and other.version == policy.version:
            twice = f"policy {policy.policy!r} has two contents for version {policy.version}; give one a new version"
            raise ConfigurationRefused(twice)
        todays[policy.policy] = max(other, policy, key=lambda each: each.version)
    return todays


def _window_closed(closed: datetime) -> NotAuthorised:
    return NotAuthorised("window_closed", f"the grant was good until {closed.isoformat()}; ask for a new approval")
