"""What a run's next proposal is made of: its draft, an edit that people made, or the same ask anew after a void grant.

Apart from proposing itself, because each of these is read from the ledger and not taken from what the run says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from activities.edits import edited_action
from activities.interfaces import ProposeOrder
from countersign.cases.assessing import policy_in_force
from countersign.cases.case import Case, Submission
from countersign.domain.action import Action
from countersign.domain.canonical import digest
from countersign.domain.errors import Conflict, EvidenceGone
from countersign.domain.operation import Operation
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval, ApprovalStatus, Vote
from countersign.ports import Ledger


class Ask(NamedTuple):
    """What a proposal is made of."""

    order: ProposeOrder
    operation: Operation
    policy: Policy
    earlier: Approval | None
    """The version before of this run's ask: edited, or voided at its execution."""
    draft_version: int
    submission: Submission


class Asking:
    """Finds out what to propose."""

    def __init__(self, ledger: Ledger, cases: Mapping[str, Case]) -> None:
        self._ledger = ledger
        self._cases = cases

    def of(self, order: ProposeOrder) -> Ask:
        """What to propose; Conflict where the run must not propose, whatever it says."""
        step = order.step
        operation = self._ledger.operations.get(step.tenant, step.operation)
        case = self._cases[operation.case]
        policy = policy_in_force(self._ledger, step.tenant, operation.case)
        earlier = self._earlier(order)
        if earlier is not None:
            return self._anew(order, operation, policy, earlier)
        passed = self._ledger.drafts.passed(step.tenant, step.operation, step.draft_version) if case.drafted else True
        if not passed:
            # Not what the run says of its steps counts, but what they wrote down (G22, G40).
            raise Conflict(f"draft v{step.draft_version} did not pass checks and grade; nothing is proposed")
        submission = case.submission(operation, step.draft_version, policy.label())
        return Ask(order, operation, policy, None, step.draft_version, submission)

    def _anew(self, order: ProposeOrder, operation: Operation, policy: Policy, earlier: Approval) -> Ask:
        """The same ask as people edited it, or as it stands now where its grant became void."""
        before, is_edit = earlier.proposal, earlier.status == ApprovalStatus.EDITED
        action = self._edited_action(earlier) if is_edit else before.action
        submission = self._cases[operation.case].edited(operation, before, action.args, policy.label())
        if submission.problem:
            raise Conflict(f"operation {before.operation}: {submission.problem}")
        self._check_evidence(earlier, submission)
        return Ask(order, operation, policy, earlier, before.draft_version, submission)

    def _check_evidence(self, earlier: Approval, submission: Submission) -> None:
        """Data that is gone or changed is so for whoever is asked next; asking them would be in vain."""
        before = earlier.proposal
        same = submission.action.evidence_hash == before.action.evidence_hash
        if same and self._ledger.approvals.void_reason(before.tenant, before.approval_id).startswith("evidence"):
            raise EvidenceGone(f"operation {before.operation}: the data it rests on is no longer what was pinned")

    def _earlier(self, order: ProposeOrder) -> Approval | None:
        """This run's version before; it must have ended as one that is asked anew, whatever the run says."""
        if order.approval_version == 1:
            return None
        earlier = self._ledger.approvals.get(order.step.tenant, approval_id(order, order.approval_version - 1))
        if earlier.status not in (ApprovalStatus.EDITED, ApprovalStatus.VOIDED):
            status = earlier.status.value
            raise Conflict(f"version {earlier.proposal.approval_version} is {status}; nothing is asked anew after that")
        return earlier

    def _edited_action(self, earlier: Approval) -> Action:
        """The action that the accepted edit made, as the editor signed it."""
        action = edited_action(self._ledger, earlier.proposal.tenant, edit_of(earlier).edited_action)
        if action is None:
            raise Conflict("the edited action in the ledger cannot be read; nothing is proposed")
        return action


def approval_id(order: ProposeOrder, version: int) -> str:
    """Names one run's ask: a reset makes a new run, so no vote survives it (G23); a repeated activity finds its own."""
    step = order.step
    named = [step.tenant, step.operation, step.run_id, version]
    return "apr-" + digest(named).removeprefix("sha256:")[:32]


def edit_of(approval: Approval) -> Vote:
    """The vote that edited it: the last one, since the edit that it came from can have been carried over."""
    return next(vote for vote in reversed(approval.votes) if vote.decision == "edit")
