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
    None: Event.REFUSED,
}


async def carry_out(run: RunOrder, approval_id: str, move: Move) -> EffectResult:
    """Execute a granted approval until it is executed, refused or void, moving the run along."""
    order = EffectOrder(tenant=run.tenant, operation=run.operation, approval_id=approval_id)
    failures = 0
    while True:
        effect = await _asked(Executing.execute, order, options.EFFECT_STEP)
        if effect.status == ExecutionStatus.UNKNOWN:
            await move(Event.OUTCOME_UNKNOWN, effect.reason)
            effect = await _asked(Executing.reconcile, order, options.RECONCILE_STEP)
        await move(Event.VOIDED if effect.voided else _EVENTS[effect.status], effect.reason)
        if effect.status != ExecutionStatus.NOT_SENT:
            return effect
        failures += 1
        await workflow.sleep(options.pause(failures), summary="before sending again")
        await move(Event.RETRY, "")


async def _asked(
    step: Callable[[Executing, EffectOrder], EffectResult], order: EffectOrder, how: options.StepOptions
) -> EffectResult:
    return await to_its_end(workflow.execute_activity_method(step, order, **how))
