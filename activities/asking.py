"""What a run's next proposal is made of: its draft, an edit that people made, or the same ask anew after a void grant.

Apart from proposing itself, because each of these is read from the ledger and not taken from what the run says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue

from activities.edits import edited_action
from activities.interfaces import ProposeOrder
from activities.runs import Runs
from countersign.cases.assessing import policy_in_force
from countersign.cases.case import Case, Submission
from countersign.domain.action import Action
from countersign.domain.canonical import digest
from countersign.domain.errors import Conflict, ControlChanged, EvidenceGone
from countersign.domain.operation import Operation
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval, ApprovalStatus, Vote
from countersign.domain.strict_json import parse
from countersign.ports import Ledger

_MADE_INTO = frozenset({ApprovalStatus.EDITED, ApprovalStatus.VOIDED})
"""Ends of an ask that are the beginning of the next: with the edited action, or with the same as it stands now."""
_ASKED_ANEW = _MADE_INTO | {ApprovalStatus.SUPERSEDED}
"""Ends after which people can be asked; SUPERSEDED is one that was taken over, or whose draft was amended."""


class Ask(NamedTuple):
    """What a proposal is made of."""

    order: ProposeOrder
    operation: Operation
    policy: Policy
    earlier: Approval | None
    """The version before of this line's ask: edited, voided at its execution, or taken over."""
    draft_version: int
    submission: Submission


class Asking:
    """Finds out what to propose."""

    def __init__(self, ledger: Ledger, runs: Runs, cases: Mapping[str, Case]) -> None:
        self._ledger = ledger
        self._runs = runs
        self._cases = cases

    def of(self, order: ProposeOrder) -> Ask:
        """What to propose; Conflict where the run must not propose, whatever it says."""
        step = order.step
        self._check_proposer(order)
        operation = self._ledger.operations.get(step.tenant, step.operation)
        case = self._cases[operation.case]
        policy = policy_in_force(self._ledger, step.tenant, operation.case)
        earlier = self._earlier(order)
        if earlier is not None and not _left_behind(earlier, order):
            return self._anew(order, operation, policy, earlier)
        passed = self._ledger.drafts.passed(step.tenant, step.operation, step.draft_version) if case.drafted else True
        if not passed:
            # Not what the run says of its steps counts, but what they wrote down (G22, G40).
            raise Conflict(f"draft v{step.draft_version} did not pass checks and grade; nothing is proposed")
        submission = case.submission(operation, step.draft_version, policy.label(), self._arguments(order))
        if submission.problem:
            raise Conflict(f"operation {step.operation}: {submission.problem}")
        return Ask(order, operation, policy, earlier, step.draft_version, submission)

    def _check_proposer(self, order: ProposeOrder) -> None:
        """It is whoever is in control who proposes, whatever the run says, and they may not approve it (G02)."""
        control = self._runs.check_control(order.step)
        proposer = "agent" if control.by == "agent" else control.person
        if order.proposed_by != proposer:
            raise ControlChanged(
                f"operation {order.step.operation}: the run says {order.proposed_by[:64]} proposes, and "
                f"{control.holder()} is in control"
            )

    def _arguments(self, order: ProposeOrder) -> Mapping[str, JsonValue] | None:
        """What the person in control gave instead of what the draft comes to; nothing if they gave nothing."""
        if not order.content:
            return None
        if order.proposed_by == "agent":
            raise Conflict("the agent proposes what its draft comes to, and nothing else")
        args = parse(self._ledger.documents.get(order.step.tenant, order.content), where="arguments")
        if not isinstance(args, dict):
            raise Conflict("the arguments in the ledger are no JSON object; nothing is proposed")
        return args

    def _anew(self, order: ProposeOrder, operation: Operation, policy: Policy, earlier: Approval) -> Ask:
        """The same ask as people edited it, or as it stands now where its grant became void."""
        before, is_edit = earlier.proposal, earlier.status == ApprovalStatus.EDITED
        action = self._edited_action(earlier) if is_edit else before.action
        case, version = self._cases[operation.case], before.draft_version
        submission = case.submission(operation, version, policy.label(), action.args)
        if submission.problem:
            raise Conflict(f"operation {before.operation}: {submission.problem}")
        self._check_evidence(earlier, submission)
        return Ask(order, operation, policy, earlier, version, submission)

    def _check_evidence(self, earlier: Approval, submission: Submission) -> None:
        """Data that is gone or changed is so for whoever is asked next; asking them would be in vain."""
        before = earlier.proposal
        same = submission.action.evidence_hash == before.action.evidence_hash
        if same and self._ledger.approvals.void_reason(before.tenant, before.approval_id).startswith("evidence"):
            raise EvidenceGone(f"operation {before.operation}: the data it rests on is no longer what was pinned")

    def _earlier(self, order: ProposeOrder) -> Approval | None:
        """This line's version before, if there is one; what it wanted of people still is wanted (G12).

        Raises:
            Conflict: it ended as one after which nothing is asked, whatever the run says.
        """
        if order.approval_version == 1:
            return None
        earlier = self._ledger.approvals.get(order.step.tenant, approval_id(order, order.approval_version - 1))
        before, status = earlier.proposal, earlier.status
        # A run that is held at its deadline goes on by a person, or in other hands, or not at all.
        by_others = order.proposed_by != "agent" or before.control_version != order.step.control_version
        held = status == ApprovalStatus.EXPIRED and by_others
        if status not in _ASKED_ANEW and not held:
            raise Conflict(f"version {before.approval_version} is {status.value}; nothing is asked anew after that")
        return earlier

    def _edited_action(self, earlier: Approval) -> Action:
        """The action that the accepted edit made, as the editor signed it."""
        action = edited_action(self._ledger, earlier.proposal.tenant, edit_of(earlier).edited_action)
        if action is None:
            raise Conflict("the edited action in the ledger cannot be read; nothing is proposed")
        return action


def _left_behind(earlier: Approval, order: ProposeOrder) -> bool:
    """Whether it is the draft that is asked about now, and no longer what the version before was made into."""
    before = earlier.proposal
    if earlier.status not in _MADE_INTO or before.control_version != order.step.control_version:
        return True
    # Something else than what was edited, or became void, may be proposed by now: by the person in control, or by the
    # agent, where a change outside took its version back.
    return before.draft_version != order.step.draft_version or bool(order.content)


def approval_id(order: ProposeOrder, version: int) -> str:
    """Names one line's ask: a reset begins a new line, so no vote survives it (G23); a repeated step finds its own."""
    step = order.step
    named = [step.tenant, step.operation, step.line, version]
    return "apr-" + digest(named).removeprefix("sha256:")[:32]


def edit_of(approval: Approval) -> Vote:
    """The vote that edited it: the last one, since the edit that it came from can have been carried over."""
    return next(vote for vote in reversed(approval.votes) if vote.decision == "edit")
