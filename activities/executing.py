"""The gateway's steps, on their own task queue: the one place from which anything goes out."""

from __future__ import annotations

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.failures import faults, refusals
from activities.interfaces import EffectOrder, Executing, Gathered, GatherOrder
from activities.runs import Runs
from countersign.domain.execution import EffectResult, ExecutionStatus
from countersign.ports import Effects


class ExecutingSteps(Executing):
    """Hands the approval's name to the gateway, which believes nothing else."""

    def __init__(self, effects: Effects, runs: Runs) -> None:
        self._effects = effects
        self._runs = runs

    @activity.defn
    def execute(self, order: EffectOrder) -> EffectResult:
        """See Executing."""
        with faults("execute"):
            return _small(self._effects.execute(order.tenant, order.approval_id))

    @activity.defn
    def gather(self, order: GatherOrder) -> Gathered:
        """See Executing."""
        with refusals(self._runs, order.tenant, order.operation, "gather"):
            self._runs.check_run(order.tenant, order.operation)
            return Gathered(content=self._effects.gather(order.tenant, order.operation))

    @activity.defn
    def reconcile(self, order: EffectOrder) -> EffectResult:
        """See Executing."""
        with faults("reconcile"):
            effect = _small(self._effects.reconcile(order.tenant, order.approval_id))
        if effect.status not in (ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT) and not effect.voided:
            raise ApplicationError("reconcile: still unknown", type="OUTCOME_UNKNOWN")
        return effect


def _small(effect: EffectResult) -> EffectResult:
    """What may lie in history: the reason's code and the receipt's ids; sentences stay in the ledger (G46)."""
    receipt = effect.receipt.model_copy(update={"detail": ""}) if effect.receipt else None
    reason = effect.reason.partition(":")[0]
    return EffectResult(status=effect.status, voided=effect.voided, reason=reason, receipt=receipt)
