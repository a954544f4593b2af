"""Acting on a claim: look up what lies outside, hear what people settled, else send; record what became of it.

Apart from the gateway's flow, since whoever holds the claim acts alone. A receipt from outside outweighs what anybody
says; what people agree on settles only what the outside does not tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from countersign.domain.errors import Conflict, Drifted, NotAuthorised
from countersign.domain.execution import (
    FROZEN,
    OUTSIDE_CONFLICT,
    OUTSIDE_REFUSED,
    EffectResult,
    Execution,
    ExecutionStatus,
    Receipt,
)
from countersign.domain.freeze import holding
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal
from countersign.domain.settlement import Settled
from countersign.gateway.channels import NotSent, OutcomeUnknown, Refused
from countersign.gateway.looking import CONTESTING, Looking, checked
from countersign.gateway.refusals import line
from countersign.gateway.settling import Settlements, not_executed, settled_receipt
from countersign.gateway.tool import Call
from countersign.gateway.tools import changes_authority
from countersign.ports import Clock, Ledger

Outcome = TypeVar("Outcome")
Step = Literal["claimed", "sent", "recorded"]


class Acting:
    """Carries one claim to its end."""

    def __init__(
        self,
        ledger: Ledger,
        looking: Looking,
        settlements: Settlements,
        clock: Clock,
        on_step: Callable[[Step], None],
    ) -> None:
        """See `Gateway`."""
        self._ledger = ledger
        self._looking = looking
        self._settlements = settlements
        self._clock = clock
        self._on_step = on_step

    def act(self, approval: Approval, call: Call, execution: Execution, document: bytes | None) -> EffectResult:
        """Find out what an earlier attempt has left outside, else send `document`; without one nothing is sent."""
        left = execution.settled_at(self._clock())
        if document is None or not execution.surely_not_sent:
            found = self._found(approval, call, execution)
            if found is not None:
                return found
        try:
            if document is None:
                raise NotSent("not_there", "the outside surely holds nothing under the key; it may be sent again")
            if not execution.surely_not_sent:
                self._check_repeat(approval.proposal)
            may_land_until = execution.claimed_until + call.channel.lands_within
            sent = self._ledger.executions.sending(execution, may_land_until)
        except NotSent as failure:
            return self._recorded(self._ledger.executions.not_sent, left, failure.line())
        except Conflict:
            return self._overtaken(execution)
        return self._sent(approval, call, sent, left, document)

    def _sent(self, approval: Approval, call: Call, sent: Execution, left: Execution, document: bytes) -> EffectResult:
        """Send, and record what came of it; where surely nothing did, only what earlier attempts have `left` counts."""
        try:
            receipt = self._send(approval, call, sent, document)
        except NotSent as failure:
            return self._recorded(self._ledger.executions.not_sent, left, failure.line())
        except Refused as failure:
            return self._refused(approval, left, failure)
        except OutcomeUnknown as failure:
            return self._recorded(self._ledger.executions.unknown, sent, failure.line())
        except Drifted as drift:
            self._recorded(self._ledger.executions.not_sent, left, line(drift))
            raise
        return self._kept(sent, receipt)

    def _found(self, approval: Approval, call: Call, execution: Execution) -> EffectResult | None:
        """What became of earlier attempts; nothing where surely nothing is there (G36)."""
        unknown: OutcomeUnknown | None = None
        try:
            receipt = self._looking.look(approval, call)
        except OutcomeUnknown as failure:
            receipt, unknown = None, failure
        if receipt is not None:
            return self._kept(execution, receipt)
        agreed = self._agreed(approval, execution, unknown)
        if agreed is not None:
            return self._settled(approval, call, execution, agreed, unknown)
        if unknown is not None:
            return self._recorded(self._ledger.executions.unknown, execution, unknown.line())
        return None

    def _agreed(self, approval: Approval, execution: Execution, unknown: OutcomeUnknown | None) -> Settled | None:
        contested = unknown is not None and unknown.reason in CONTESTING
        try:
            return self._settlements.agreed(approval.proposal, execution, self._clock(), contested=contested)
        except NotAuthorised as forged:
            self._recorded(self._ledger.executions.unknown, execution, line(forged))
            raise

    def _settled(
        self, approval: Approval, call: Call, execution: Execution, agreed: Settled, unknown: OutcomeUnknown | None
    ) -> EffectResult:
        """Record what people agree on; what the outside refuses under this key is not sent under it again."""
        if agreed.finding == "executed":
            receipt = settled_receipt(call.channel.name, approval.proposal.action, agreed)
            return self._recorded(self._ledger.executions.finish, execution, receipt, agreed)
        left = execution.settled_at(self._clock())
        if unknown is not None and unknown.reason == OUTSIDE_CONFLICT:
            return self._refused(approval, left, Refused(unknown.reason, unknown.message), agreed)
        return self._recorded(self._ledger.executions.not_sent, left, not_executed(agreed), agreed)

    def _check_repeat(self, proposal: Proposal) -> None:
        """Refuse to send again what was found not to be there, where a first sending would not be let through now.

        What may be on its way is claimed whatever holds effects by then, so that it is looked up.
        """
        action = proposal.action
        freezes = self._ledger.freezes.of_tenant(proposal.tenant)
        freeze = holding(freezes, action.tool, changes_authority=changes_authority(action))
        if freeze is not None:
            raise NotSent(FROZEN, f"freeze {freeze.number} holds it; it is not there, and not sent again meanwhile")
        version = self._ledger.controls.standing(proposal.tenant, proposal.operation).control.version
        if version != proposal.control_version:
            raise NotSent("control_changed", f"control has version {version} by now; it is not there, nor sent again")

    def _send(self, approval: Approval, call: Call, execution: Execution, document: bytes) -> Receipt:
        def check() -> None:
            if self._clock() >= execution.claimed_until:
                raise NotSent("claim_lapsed", "the right to send had ended before anything left; it is tried again")

        content_hash = approval.proposal.action.content_hash
        receipt = call.channel.send(call.key, call.name, document, content_hash, check)
        self._on_step("sent")
        return checked(receipt, approval, call)

    def _refused(self, approval: Approval, execution: Execution, failure: Refused, *agreed: Settled) -> EffectResult:
        """Surely nothing happened, and repeating it cannot help: the grant is void, and people look at it."""
        proposal = approval.proposal
        recorded = self._recorded(self._ledger.executions.not_sent, execution, failure.line(), *agreed)
        if recorded.status != ExecutionStatus.NOT_SENT:
            return recorded
        status = self._ledger.approvals.void(
            proposal.tenant,
            proposal.approval_id,
            OUTSIDE_REFUSED,
            "that the outside does it",
            failure.line(),
            self._clock(),
        )
        return EffectResult(
            status=None, voided=status == ApprovalStatus.VOIDED, reason=f"{OUTSIDE_REFUSED}: {failure.line()}"
        )  # fmt: skip

    def _recorded(
        self, record: Callable[..., Execution], execution: Execution, outcome: Outcome, *agreed: Settled
    ) -> EffectResult:
        """Record an outcome; where a later attempt has taken over, answer with how things stand now."""
        try:
            recorded = record(execution, outcome, self._clock(), *agreed)
        except Conflict:
            return self._overtaken(execution)
        self._on_step("recorded")
        return result(recorded)

    def _kept(self, execution: Execution, receipt: Receipt) -> EffectResult:
        """Record what the outside confirmed, whatever was recorded meanwhile: it is there."""
        try:
            recorded = self._ledger.executions.finish(execution, receipt, self._clock())
        except Conflict:
            recorded = self._ledger.executions.found_late(execution, receipt, self._clock())
        self._on_step("recorded")
        return result(recorded)

    def _overtaken(self, execution: Execution) -> EffectResult:
        standing = self._ledger.executions.get(execution.tenant, execution.operation)
        return result(standing or execution)


def result(execution: Execution) -> EffectResult:
    """What an execution tells the run as it stands."""
    if execution.status != ExecutionStatus.INTENDED:
        return EffectResult(status=execution.status, reason=execution.reason, receipt=execution.receipt)
    until = execution.claimed_until.isoformat()
    return EffectResult(
        status=ExecutionStatus.UNKNOWN, reason=f"in_progress: another attempt holds the right to send until {until}"
    )
