"""The part of a person in control: what they have the run do, one thing at a time, until control changes hands."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import RunPlan, Told
    from countersign.domain.proposal import ApprovalStatus

from workflows import asking, escalating, preparing
from workflows.carrying import Ready
from workflows.run import Move, Run
from workflows.waiting import until


async def work(run: Run, plan: RunPlan) -> Move | None:
    """Do the next thing that the person in control asks for, or wait for it until their lease is over."""
    holding = run.holding
    await until(
        holding.control.lease_until,
        lambda: bool(holding.orders) or holding.turned or run.grown_long(),
        "lease of control",
    )
    if holding.turned:
        return None
    if holding.orders:
        return await _do(run, plan, holding.orders.popleft())
    if holding.control.lapsed(workflow.now()):
        await escalating.lapse(run)
    return None


async def _do(run: Run, plan: RunPlan, told: Told) -> Move | None:
    version = told.draft_version
    if told.command == "amend":
        await run.unless_turned(preparing.checked(run, run.course.draft_version))
    elif told.command == "grade":
        if not await run.unless_turned(preparing.checked(run, version)):
            await run.unless_turned(preparing.graded(run, plan, version))
    else:
        run.course.asked_anew_for = ""
        if await run.unless_turned(preparing.gathered(run, plan)) and version:
            # It is proposed only if it passes on these: what it passed before rested on others.
            await run.unless_turned(preparing.checked(run, version))
        return await asking.ask(run, Ready(draft_version=version, content=told.content))
    return None


def has_taken_back(run: Run) -> bool:
    """Whether the person in control took back what was granted, before anything was sent, to work on it."""
    superseded = run.window is not None and run.window.status == ApprovalStatus.SUPERSEDED
    return run.holding.control.by == "person" and (superseded or bool(run.holding.orders))
