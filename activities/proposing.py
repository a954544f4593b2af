"""The policy's step: from what a case comes to, to one exact action before people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from temporalio import activity

from activities.asking import Ask, Asking, approval_id
from activities.failures import refusals
from activities.interfaces import Proposed, ProposeOrder, Proposing
from activities.runs import Runs
from countersign.cases.assessing import assessed
from countersign.cases.case import Case, Submission
from countersign.domain.action import Action
from countersign.domain.canonical import canonical_bytes
from countersign.domain.durations import duration
from countersign.domain.errors import DeniedByPolicy
from countersign.domain.escalation import Reason
from countersign.domain.need import freezes, ticks
from countersign.domain.policy import Answer, Policy
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Rejection, authors_of
from countersign.domain.rubric import Rubric
from countersign.domain.values import Sha256
from countersign.ports import Ledger


class ProposingSteps(Proposing):
    """Builds the action, asks the policy, and stores the proposal with the reviewer's view of exactly these bytes."""

    def __init__(
        self,
        ledger: Ledger,
        runs: Runs,
        cases: Mapping[str, Case],
        rubrics: Mapping[str, Rubric],
        *,
        max_pending: int,
    ) -> None:
        """
        Args:
            ledger: where proposals are kept.
            runs: whose step it is, and when.
            cases: the kinds of work that there are, by name.
            rubrics: the rubric of each case that is drafted, by the case's name.
            max_pending: how much of a tenant may wait for people at once.
        """
        self._ledger = ledger
        self._runs = runs
        self._asking = Asking(ledger, runs, cases)
        self._rubrics = rubrics
        self._max_pending = max_pending

    @activity.defn
    def propose(self, order: ProposeOrder) -> Proposed:
        """See Proposing."""
        step = order.step
        with refusals(self._runs, step.tenant, step.operation, "propose"):
            self._runs.check_run(step.tenant, step.operation, step.line)
            self._runs.check_now(order.now)
            ask = self._asking.of(order)
            content = self._ledger.documents.put(step.tenant, ask.submission.document)
            for text in ask.submission.kept:
                self._ledger.documents.put(step.tenant, text)
            # Kept under the hash that the action pins, so that a later policy does not orphan this proposal (G12).
            self._ledger.documents.put(step.tenant, canonical_bytes(ask.policy.model_dump(mode="json")))
            proposal = self._opened_before(order) or self._proposal(ask, content)
            view = self._ledger.documents.put(step.tenant, reviewers_view(proposal, ask.submission))
            approval = self._ledger.approvals.open(proposal, step.line, view, order.now, self._max_pending)
            return _proposed(approval, view)

    def _opened_before(self, order: ProposeOrder) -> Proposal | None:
        """What an earlier attempt of this very step proposed: a repeat has another `now`, and must show the same."""
        current = self._ledger.approvals.current(order.step.tenant, order.step.operation)
        same = current is not None and current.proposal.approval_id == approval_id(order, order.approval_version)
        return current.proposal if current is not None and same else None

    def _proposal(self, ask: Ask, content: Sha256) -> Proposal:
        order, submission, action = ask.order, ask.submission, ask.submission.action
        assessment, spent, floor = assessed(self._ledger, ask.policy, action, ask.earlier, order.now)
        if assessment.answer == Answer.DENIED:
            denied = f"no rule allows {action.side_effect} by {action.tool}"
            raise DeniedByPolicy(f"policy {ask.policy.policy}: {denied}")
        deadline, execute_by = assessment.times(order.now)
        live = submission.live
        return Proposal(
            approval_id=approval_id(order, order.approval_version),
            approval_version=order.approval_version,
            case=ask.operation.case,
            control_version=order.step.control_version,
            proposed_by=order.proposed_by,
            action=action,
            action_hash=action.hash(),
            requester=ask.operation.requester,
            authors=authors_of(ask.earlier, order.proposed_by, self._writers(ask)),
            edited_from=_edited_from(ask.earlier),
            asked_again=self._asked_again(ask.earlier),
            brought_before_people=self._brought_before_people(ask),
            reason=submission.reason,
            summary=submission.summary,
            document=content,
            live=self._ledger.documents.put(action.tenant, live) if live is not None else "",
            evidence=submission.evidence,
            reversibility=submission.reversibility,
            cost=submission.cost,
            draft_version=ask.draft_version,
            verdict=submission.verdict,
            checks=submission.checks,
            rubric_version=self._rubrics[ask.operation.case].label() if ask.draft_version else "none",
            model_version=self._models(ask),
            assessment=assessment,
            spent=spent,
            floor=floor,
            terms=ask.policy.terms.after(ask.earlier.proposal.terms) if ask.earlier else ask.policy.terms,
            earlier_rejection=self._rejected_before(ask.policy, action, order.now),
            proposed_at=order.now,
            deadline=deadline,
            execute_by=execute_by,
        )

    def _writers(self, ask: Ask) -> tuple[str, ...]:
        return self._ledger.drafts.authors(ask.operation.tenant, ask.operation.operation)

    def _models(self, ask: Ask) -> str:
        """Who wrote and who graded the version, by what they wrote down and not by what the run says."""
        version = (ask.operation.tenant, ask.operation.operation, ask.draft_version)
        written = self._ledger.drafts.written(*version) if ask.draft_version else None
        if written is None:
            return "none"
        grade = self._ledger.drafts.grade(*version)
        return f"draft: {written.model or written.author}; grade: {grade.answer.model if grade else 'none'}"

    def _brought_before_people(self, ask: Ask) -> tuple[Reason, ...]:
        escalations = self._ledger.escalations.of_operation(ask.operation.tenant, ask.operation.operation)
        return tuple(dict.fromkeys(one.reason for one in escalations))

    def _asked_again(self, earlier: Approval | None) -> str:
        if earlier is None or earlier.status != ApprovalStatus.VOIDED:
            return ""
        return self._ledger.approvals.void_reason(earlier.proposal.tenant, earlier.proposal.approval_id)

    def _rejected_before(self, policy: Policy, action: Action, now: datetime) -> Rejection | None:
        """People's earlier no to an action like this one; where the policy says so, it is final for its time."""
        after = policy.terms.after_rejection
        rejection = self._ledger.approvals.rejection_like(action, now - duration(after.within))
        if rejection is not None and after.then == "refuse":
            raise DeniedByPolicy(
                f"{rejection.person} rejected this very action as operation {rejection.operation} at "
                f"{rejection.at.isoformat()}; policy {policy.policy} does not ask again within {after.within}"
            )
        return rejection


def reviewers_view(proposal: Proposal, submission: Submission) -> bytes:
    """All that a reviewer decides about, in canonical form, made from the very bytes that are hashed (G15)."""
    return canonical_bytes(
        {
            "proposal": proposal.model_dump(mode="json"),
            "document": submission.document.decode("utf-8"),
            "live": submission.live.decode("utf-8") if submission.live is not None else None,
            "claims": [*submission.claims],
            "grades": [*submission.grades],
            # Left out where there are none, as in views from before there were any.
            **({"words": [[*words] for words in submission.words]} if submission.words else {}),
        }
    )


def _edited_from(earlier: Approval | None) -> str:
    is_edit = earlier is not None and earlier.status == ApprovalStatus.EDITED
    return earlier.proposal.approval_id if earlier is not None and is_edit else ""


def _proposed(approval: Approval, view: Sha256) -> Proposed:
    proposal, needs = approval.proposal, approval.proposal.assessment.needs
    return Proposed(
        approval_id=proposal.approval_id,
        approval_version=proposal.approval_version,
        action_hash=proposal.action_hash,
        view=view,
        roles=proposal.asked(proposal.proposed_at),
        status=approval.status,
        deadline=proposal.deadline,
        execute_by=proposal.execute_by,
        ticks=tuple(tick.at for tick in ticks(needs, proposal.proposed_at, proposal.deadline)),
        freezes=freezes(needs),
    )
