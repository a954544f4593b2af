"""Where a proposal comes from: who asked for it, and what it follows; who wrote it there, and what was wanted there.

Apart from the votes, because neither requester nor authors may vote: one under another name would approve alone what
takes a second person (G02). What they are is read from the version before, and so is what a proposal may not fall
behind, and which ways around it may not gain (G12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import takewhile

from countersign.domain.directory import Person
from countersign.domain.errors import NotAuthorised, StatementRefused
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, authors_of
from countersign.gateway.refusals import Ended, forged
from countersign.ports import Ledger
from countersign.signing.statements import verify_request


class Origins:
    """Checks requester and authors of proposals."""

    def __init__(self, ledger: Ledger, installation: str) -> None:
        self._ledger = ledger
        self._installation = installation

    def check(self, proposal: Proposal, policy: Policy, persons: Mapping[str, Person], now: datetime) -> None:
        """Refuse a proposal that names another requester or other authors than it has, or wants less than before.

        Raises:
            Ended: the requester may no longer ask, or the key they signed with is no longer good.
            NotAuthorised: requester, request, authors, floor or terms are not what signatures, votes and policy say.
        """
        self._check_request(proposal, policy, persons, now)
        before = self._version_before(proposal) if proposal.approval_version > 1 else None
        writers = self._ledger.drafts.authors(proposal.tenant, proposal.operation)
        _check_authors(proposal, before, writers)
        _check_terms(proposal, policy, before)
        if before is not None:
            _check_floor(proposal, before)

    def _check_request(self, proposal: Proposal, policy: Policy, persons: Mapping[str, Person], now: datetime) -> None:
        with forged("request", "the request is not registered"):
            operation = self._ledger.operations.get(proposal.tenant, proposal.operation)
        try:
            request, signer = verify_request(operation.statement, persons, installation=self._installation, now=now)
        except StatementRefused as doubt:
            kind = Ended if doubt.reason == "key_not_valid" else NotAuthorised
            raise kind("request", f"the request is not validly signed: {doubt.message}") from None
        signed = (request.tenant, request.operation, request.request_hash, request.person, operation.case)
        if signed != (
            proposal.tenant, proposal.operation, operation.request_hash, proposal.requester, proposal.case
        ):  # fmt: skip
            raise NotAuthorised("request", "the request was not signed for this operation by its requester")
        if not signer.may(policy.asked_by):
            raise Ended("requester", f"{signer.id} may no longer ask for this: the role {policy.asked_by} is missing")

    def _version_before(self, proposal: Proposal) -> Approval:
        """The version of the same ask that this one follows: edited, voided at its execution, or taken over."""
        opened = self._ledger.approvals.of_operation(proposal.tenant, proposal.operation)
        earlier = takewhile(lambda one: one.proposal.approval_id != proposal.approval_id, opened)
        versions = [one for one in earlier if one.proposal.approval_version == proposal.approval_version - 1]
        if not versions:
            raise NotAuthorised("authors", "the version before this one is not in the ledger; nothing was sent")
        return versions[-1]


def _check_authors(proposal: Proposal, before: Approval | None, writers: Iterable[str]) -> None:
    authors = authors_of(before, proposal.proposed_by, writers)
    is_edit = before is not None and before.status == ApprovalStatus.EDITED
    edited_from = before.proposal.approval_id if before is not None and is_edit else ""
    if ({*proposal.authors}, proposal.edited_from) != ({*authors}, edited_from):
        raise NotAuthorised("authors", "the authors are not those who made the action; nothing was sent")


def _check_terms(proposal: Proposal, policy: Policy, before: Approval | None) -> None:
    if proposal.terms != (policy.terms.after(before.proposal.terms) if before is not None else policy.terms):
        raise NotAuthorised("terms", "its terms are not those that its policy gives this version; nothing was sent")


def _check_floor(proposal: Proposal, before: Approval) -> None:
    """What a version wanted stays wanted when it is asked anew; over another action, what stayed wanted then."""
    is_same = before.status == ApprovalStatus.VOIDED
    wanted = before.proposal.assessment.needs if is_same else before.proposal.floor
    # Counted, not compared: of two equal distinct needs each wants persons of its own.
    if Counter(wanted) - Counter(proposal.floor):
        raise NotAuthorised("floor", "it leaves out people whom the version before it needed; nothing was sent")
