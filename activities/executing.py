"""The gateway's steps, on their own task queue: the one place from which anything goes out."""

from __future__ import annotations

from temporalio import activity

from activities.failures import refusals
from activities.interfaces import EffectOrder, Executing
from countersign.domain.execution import EffectResult
from countersign.ports import Effects, Ledger


class ExecutingSteps(Executing):
    """Hands the approval's name to the gateway, which believes nothing else."""

    def __init__(self, ledger: Ledger, effects: Effects) -> None:
        self._ledger = ledger
        self._effects = effects

    @activity.defn
    def execute(self, order: EffectOrder) -> EffectResult:
        """See Executing."""
        with refusals(self._ledger, order.tenant, order.operation, "execute"):
            return _small(self._effects.execute(order.tenant, order.approval_id))

    @activity.defn
    def reconcile(self, order: EffectOrder) -> EffectResult:
        """See Executing."""
        with refusals(self._ledger, order.tenant, order.operation, "reconcile"):
            return _small(self._effects.reconcile(order.tenant, order.approval_id))


def _small(effect: EffectResult) -> EffectResult:
    """What may lie in history: the reason's code and the receipt's ids; sentences stay in the ledger (G46)."""
    receipt = effect.receipt.model_copy(update={"detail": ""}) if effect.receipt else None
    return EffectResult(status=effect.status, reason=effect.reason.partition(":")[0], receipt=receipt)
