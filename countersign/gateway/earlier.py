"""What was sent for an operation's other actions: looked up before anything else of the operation goes out.

Apart from the gateway's flow, since nothing here is about the action at hand. One operation has one effect: what was
timed out, looked for in vain and given up may have landed since, and then that is the effect.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime

from countersign.domain.audit import lost_until
from countersign.domain.errors import Drifted
from countersign.domain.execution import LOST_TIME, EffectResult, Execution, ExecutionStatus, Receipt
from countersign.domain.proposal import Approval, Proposal
from countersign.gateway.acting import result
from countersign.gateway.channels import OutcomeUnknown
from countersign.gateway.grant import check_binding
from countersign.gateway.looking import CONTESTING, Looking
from countersign.gateway.refusals import Ended
from countersign.gateway.settling import Settlements, not_executed, settled_receipt
from countersign.gateway.tools import Tools
from countersign.ports import Clock, Ledger


class Earlier:
    """Finds out how an operation stands by all but the action at hand."""

    def __init__(self, ledger: Ledger, tools: Tools, looking: Looking, settlements: Settlements, clock: Clock) -> None:
        """See `Gateway`."""
        self._ledger = ledger
        self._tools = tools
        self._looking = looking
        self._settlements = settlements
        self._clock = clock

    def found(self, proposal: Proposal) -> EffectResult | None:
        """What became of what was sent before this proposal's action; nothing where surely nothing of it is there.

        EXECUTED is the operation's outcome. UNKNOWN is settled by people under the key that it was sent under.
        """
        return self._found(proposal, {proposal.action.idempotency_key()}, self._lost_until(proposal))

    def lapsed(self, proposal: Proposal) -> EffectResult | None:
        """What became of all that the operation ever proposed, where the ledger was restored since and this proposal is
        not granted now; nothing where no time was lost.

        Voided where surely nothing is there: people are asked as if the operation had just begun.
        """
        until = self._lost_until(proposal)
        if until is None:
            return None
        nothing = f"{LOST_TIME}: surely nothing was sent before {until.isoformat()}; people are asked anew"
        return self._found(proposal, set(), until) or EffectResult(status=None, voided=True, reason=nothing)

    def _found(self, proposal: Proposal, but: Set[str], until: datetime | None) -> EffectResult | None:
        executions = self._ledger.executions.of_operation(proposal.tenant, proposal.operation)
        for execution in executions:
            if execution.key not in but and _may_be_there(execution, until):
                found = self._looked_up(execution)
                if found is not None:
                    return found
        return None if until is None else self._lost(proposal, {*but, *(execution.key for execution in executions)})

    def _lost_until(self, proposal: Proposal) -> datetime | None:
        registered = self._ledger.operations.get(proposal.tenant, proposal.operation).registered_at
        return lost_until(self._ledger.audit.restores(proposal.tenant), registered)

    def _looked_up(self, execution: Execution) -> EffectResult | None:
        if execution.status == ExecutionStatus.EXECUTED:
            return result(execution)
        approval = self._ledger.approvals.get(execution.tenant, execution.approval_id)
        try:
            receipt = self._look(approval)
        except OutcomeUnknown as unknown:
            return self._settled(approval.proposal, execution, unknown)
        now, executions = self._clock(), self._ledger.executions
        if receipt is not None:
            return result(executions.found_late(execution, receipt, now))
        if execution.status == ExecutionStatus.UNKNOWN:
            executions.not_sent(execution.settled_at(now), "not_there: the outside surely holds nothing of it", now)
        return None

    def _look(self, approval: Approval) -> Receipt | None:
        check_binding(approval.proposal)
        try:
            call = self._tools.call(approval.proposal.action)
        except (Ended, Drifted) as gone:
            raise OutcomeUnknown(gone.reason, gone.message) from None
        return self._looking.look(approval, call)

    def _settled(self, proposal: Proposal, execution: Execution, unknown: OutcomeUnknown) -> EffectResult | None:
        """What people agree on of it, else that it is unknown: nothing else is sent until they do."""
        now, executions = self._clock(), self._ledger.executions
        contested = unknown.reason in CONTESTING
        agreed = self._settlements.agreed(proposal, execution, now, contested=contested)
        if agreed is None:
            return result(executions.doubted(execution, unknown.line(), now))
        if agreed.finding == "executed":
            receipt = settled_receipt(proposal.action.channel, proposal.action, agreed)
            return result(executions.found_late(execution, receipt, now, agreed))
        if execution.status == ExecutionStatus.UNKNOWN:
            executions.not_sent(execution.settled_at(now), not_executed(agreed), now, agreed)
        return None

    def _lost(self, proposal: Proposal, known: set[str]) -> EffectResult | None:
        """What was done in a lost time for an approval of which a restored ledger knows no more than that it was
        there."""
        for approval in self._ledger.approvals.of_operation(proposal.tenant, proposal.operation):
            if approval.proposal.action.idempotency_key() in known:
                continue
            lost = self._unknown(approval.proposal)
            try:
                receipt = self._look(approval)
            except OutcomeUnknown as unknown:
                return result(self._ledger.executions.doubted(lost, unknown.line(), self._clock()))
            if receipt is not None:
                return result(self._ledger.executions.found_late(lost, receipt, self._clock()))
        return None

    def _unknown(self, proposal: Proposal) -> Execution:
        return Execution(
            tenant=proposal.tenant,
            operation=proposal.operation,
            approval_id=proposal.approval_id,
            action_hash=proposal.action_hash,
            key=proposal.action.idempotency_key(),
            status=ExecutionStatus.UNKNOWN,
            attempt=1,
            claimed_until=self._clock(),
        )


def _may_be_there(execution: Execution, lost: datetime | None) -> bool:
    """Whether anything may lie outside of it, beside what somebody is sending at this moment; what was not sent before
    the time that was `lost` can have been sent in it."""
    if execution.status in (ExecutionStatus.EXECUTED, ExecutionStatus.UNKNOWN):
        return True
    may_land = execution.may_land_until is not None or (lost is not None and execution.claimed_until <= lost)
    return execution.status == ExecutionStatus.NOT_SENT and may_land
