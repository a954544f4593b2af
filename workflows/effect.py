"""From a grant to its effect: try, wait, look up, until it is known what happened.

Once the gateway was asked, a cancel comes too late: giving up would leave an effect that nobody knows of. Only where it
is sure that nothing was sent does a cancel, whenever it came, still end the run (`move` honours it there).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import EffectOrder, Executing, RunOrder
    from countersign.domain.execution import EffectResult, ExecutionStatus
    from countersign.domain.state import Event

from workflows import options
from workflows.cancelling import to_its_end

Move = Callable[[Event, str], Awaitable[None]]

_EVENTS = {
    ExecutionStatus.EXECUTED: Event.EXECUTED,
    ExecutionStatus.NOT_SENT: Event.NOT_SENT,
    ExecutionStatus.UNKNOWN: Event.OUTCOME_UNKNOWN,
    ExecutionStatus.INTENDED: Event.OUTCOME_UNKNOWN,
    None: Event.REFUSED,
}


async def carry_out(run: RunOrder, approval_id: str, move: Move) -> EffectResult:
    """Execute a granted approval until it is executed or refused, moving the run along."""
    order = EffectOrder(tenant=run.tenant, operation=run.operation, approval_id=approval_id)
    failures = 0
    while True:
        effect = await _asked(Executing.execute, order)
        if effect.status in (ExecutionStatus.UNKNOWN, ExecutionStatus.INTENDED):
            await move(Event.OUTCOME_UNKNOWN, effect.reason)
            effect = await _reconciled(order)
        await move(_EVENTS[effect.status], effect.reason)
        if effect.status != ExecutionStatus.NOT_SENT:
            return effect
        failures += 1
        await workflow.sleep(options.pause(failures), summary="before sending again")
        await move(Event.RETRY, "")


async def _reconciled(order: EffectOrder) -> EffectResult:
    """Look up until it is known; nothing is sent meanwhile, and no answer but these two ends it."""
    lookups = 0
    while True:
        lookups += 1
        await to_its_end(workflow.sleep(options.pause(lookups), summary="before looking up the outcome"))
        effect = await _asked(Executing.reconcile, order)
        if effect.status in (ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT):
            return effect


async def _asked(step: Callable[[Executing, EffectOrder], EffectResult], order: EffectOrder) -> EffectResult:
    return await to_its_end(workflow.execute_activity_method(step, order, **options.EFFECT_STEP))
