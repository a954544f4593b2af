"""The policy's step: from a satisfied draft to one exact action before people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from temporalio import activity

from activities.failures import refusals
from activities.interfaces import Proposed, ProposeOrder, Proposing
from activities.requests import stored_request
from countersign.cases.report import case
from countersign.domain.action import Action
from countersign.domain.canonical import canonical_bytes, digest
from countersign.domain.channel import ChannelConfig
from countersign.domain.draft import Draft, ReportRequest
from countersign.domain.errors import Conflict, DeniedByPolicy
from countersign.domain.policy import Answer, Assessment, Policy, assess, duration
from countersign.domain.proposal import Approval, Proposal
from countersign.domain.rubric import Rubric, Verdict
from countersign.domain.values import Sha256
from countersign.ports import Ledger

BY_RULE_EXECUTE_WITHIN = timedelta(hours=1)
"""How long a grant by rule may wait for its execution; it is as short-lived as one by people."""


class ProposingSteps(Proposing):
    """Builds the action, asks the policy, and stores the proposal with the reviewer's view of exactly these bytes."""

    def __init__(
        self, ledger: Ledger, policy: Policy, rubric: Rubric, channels: Mapping[str, ChannelConfig], environment: str
    ) -> None:
        self._ledger = ledger
        self._policy = policy
        self._rubric = rubric
        self._channels = channels
        self._environment = environment

    @activity.defn
    def propose(self, order: ProposeOrder) -> Proposed:
        """See Proposing."""
        step = order.step
        with refusals(self._ledger, step.tenant, step.operation, "propose"):
            request = stored_request(self._ledger, step.tenant, step.operation)
            draft = self._ledger.drafts.get(step.tenant, step.operation, step.draft_version)
            if not self._ledger.drafts.passed(step.tenant, step.operation, step.draft_version):
                # Not what the run says of its steps counts, but what they wrote down (G22, G40).
                raise Conflict(f"draft v{step.draft_version} did not pass checks and grade; nothing is proposed")
            document = case.document(draft, request)
            action = self._action(order, request, draft, document)
            proposal = self._opened_before(order) or self._proposal(order, request, draft, action)
            # Kept under the hash that the action pins, so that a later policy file does not orphan this proposal (G12).
            self._ledger.documents.put(step.tenant, canonical_bytes(self._policy.model_dump(mode="json")))
            view = self._ledger.documents.put(step.tenant, reviewers_view(proposal, draft, document))
            approval = self._ledger.approvals.open(proposal, step.run_id, view, order.now)
            return _proposed(approval, view)

    def _opened_before(self, order: ProposeOrder) -> Proposal | None:
        """What an earlier attempt of this very step proposed: a repeat has another `now`, and must show the same."""
        current = self._ledger.approvals.current(order.step.tenant, order.step.operation)
        same = current is not None and current.proposal.approval_id == _approval_id(order)
        return current.proposal if current is not None and same else None

    def _action(self, order: ProposeOrder, request: ReportRequest, draft: Draft, document: bytes) -> Action:
        return case.action(
            order.step.tenant,
            order.step.operation,
            request,
            draft,
            case.channel_of(request, self._channels),
            content_hash=self._ledger.documents.put(order.step.tenant, document),
            environment=self._environment,
            policy_version=self._policy.label(),
        )

    def _proposal(self, order: ProposeOrder, request: ReportRequest, draft: Draft, action: Action) -> Proposal:
        assessment = assess(self._policy, action)
        if assessment.answer == Answer.DENIED:
            raise DeniedByPolicy(f"policy {self._policy.policy}: no rule allows {action.side_effect} by {action.tool}")
        deadline, execute_by = _times(order.now, assessment)
        return Proposal(
            approval_id=_approval_id(order),
            approval_version=order.approval_version,
            action=action,
            action_hash=action.hash(),
            requester=self._ledger.operations.get(action.tenant, action.operation).requester,
            reason=request.question,
            summary=str(action.args["title"]),
            document=action.content_hash,
            evidence=(f"{request.dataset.name} {request.dataset.sha256}",),
            reversibility=case.channel_of(request, self._channels).reversibility,
            draft_version=order.step.draft_version,
            verdict=Verdict.SATISFIED.value,
            checks=f"{len(draft.claims)} of {len(draft.claims)} figures recomputed on the data, none differs",
            rubric_version=self._rubric.label(),
            model_version=f"draft: {order.draft_model}; grade: {order.grade_model}",
            assessment=assessment,
            proposed_at=order.now,
            deadline=deadline,
            execute_by=execute_by,
        )


def reviewers_view(proposal: Proposal, draft: Draft, document: bytes) -> bytes:
    """All that a reviewer decides about, in canonical form, made from the very bytes that are hashed (G15)."""
    return canonical_bytes(
        {
            "proposal": proposal.model_dump(mode="json"),
            "document": document.decode("utf-8"),
            "claims": [claim.model_dump(mode="json") for claim in draft.claims],
        }
    )


def _approval_id(order: ProposeOrder) -> str:
    """Names one run's ask: a reset makes a new run, so no vote survives it (G23); a repeated activity finds its own."""
    step = order.step
    named = [step.tenant, step.operation, step.run_id, order.approval_version]
    return "apr-" + digest(named).removeprefix("sha256:")[:32]


def _times(now: datetime, assessment: Assessment) -> tuple[datetime, datetime]:
    if not assessment.needs:
        return now + BY_RULE_EXECUTE_WITHIN, now + BY_RULE_EXECUTE_WITHIN
    deadline = now + min(duration(need.decide_within) for need in assessment.needs)
    return deadline, deadline + min(duration(need.execute_within) for need in assessment.needs)


def _proposed(approval: Approval, view: Sha256) -> Proposed:
    proposal = approval.proposal
    return Proposed(
        approval_id=proposal.approval_id,
        approval_version=proposal.approval_version,
        action_hash=proposal.action_hash,
        view=view,
        roles=tuple(dict.fromkeys(need.role for need in proposal.assessment.needs)),
        status=approval.status,
        deadline=proposal.deadline,
        execute_by=proposal.execute_by,
    )
