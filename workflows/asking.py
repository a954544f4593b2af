"""People's part: an action is proposed, and they decide, or the time that they have for it passes."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import ProposeOrder, Proposing
    from countersign.domain.proposal import ApprovalStatus
    from countersign.domain.state import Event

from workflows import escalating, options
from workflows.approval_window import ApprovalWindow
from workflows.cancelling import to_its_end
from workflows.carrying import Ready
from workflows.control import TurnedAside
from workflows.preparing import done
from workflows.run import GaveUp, Move, Run
from workflows.waiting import until
from workflows.window import Window

_DECIDED = {
    ApprovalStatus.GRANTED: Move(Event.GRANTED, "granted"),
    ApprovalStatus.EDITED: Move(Event.EDITED, "edited"),
    ApprovalStatus.REJECTED: Move(Event.REJECTED, "rejected"),
    ApprovalStatus.WITHDRAWN: Move(Event.WITHDRAWN, "withdrawn"),
    ApprovalStatus.EXPIRED: Move(Event.EXPIRED, escalating.UNDECIDED),
    ApprovalStatus.CANCELLED: Move(Event.CANCELLED, "cancelled"),
    ApprovalStatus.SUPERSEDED: Move(Event.CANCELLED, "newer_proposal"),
    # Whatever has become of a grant since, the gateway answers it: with the receipt, or that it is void.
    ApprovalStatus.VOIDED: Move(Event.GRANTED, "granted"),
    ApprovalStatus.CONSUMED: Move(Event.GRANTED, "granted"),
}


async def ask(run: Run, ready: Ready) -> Move:
    """Propose what is ready; then people are asked, or the policy has granted it."""
    course = run.course
    window = await done(to_its_end(_opened(run, ready)), "proposal_failed")
    if window is None:
        return taken_back()
    # What a person gave in place of the draft's arguments lies in the proposal now, and an edit is made of that.
    course.ready = ready.model_copy(update={"content": ""})
    if not window.roles:
        return Move(Event.GRANTED_BY_RULE, "granted_by_rule")
    return Move(Event.PROPOSED, course.asked_anew_for or "needs_people")


async def _opened(run: Run, ready: Ready) -> ApprovalWindow | None:
    """The proposal; nothing where the person in control has asked for something else since."""
    # A vote between opening and taking note of it would be told to no window.
    async with run.attending.turns:
        await run.attending.rule_all()
        if run.holding.turned:
            raise TurnedAside
        if run.holding.orders:
            return None
        order = ProposeOrder(
            step=run.step(ready.draft_version),
            approval_version=run.course.asks + 1,
            proposed_by=run.holding.actor,
            content=ready.content,
            now=workflow.now(),
        )
        proposed = await workflow.execute_local_activity_method(Proposing.propose, order, **options.LEDGER_STEP)
        run.window = ApprovalWindow(run.order, proposed)
        run.course.asks += 1
        run.course.failures, run.course.unsteady = 0, 0
        run.course.asking = bool(run.window.roles)
        return run.window


async def be_decided(run: Run, window: ApprovalWindow) -> Move | None:
    """Wait for people's decision, and do what is due while there is none."""
    if await waited(run, window, "approval deadline"):
        return Move(Event.ESCALATED, "nobody_decided")
    return None if window.pending else _entered(run, window)


async def waited(run: Run, window: Window, deadline: str) -> bool:
    """Wait until people come or something is due, and do that; whether further people are asked from now on.

    `deadline` names the last of the timers to operators.
    """
    due = window.due
    if due is None:
        return False
    what = deadline if due == window.deadline else "reminder or further people"
    await until(due, lambda: not window.pending or run.holding.turned or run.grown_long(), what)
    return window.pending and due <= workflow.now() and await _passed(run, window)


async def _passed(run: Run, window: Window) -> bool:
    """What is due is done, unless people came before; whether further people are asked from now on."""
    due = window.due
    async with run.attending.turns:
        if due is not None:
            await run.attending.rule_before(due)
        return window.pending and await window.pass_due() and not run.holding.turned


def _entered(run: Run, window: ApprovalWindow) -> Move:
    """Where it leads what people, or the clock, made of the ask.

    Raises:
        GaveUp: nobody decided, and the run is to be held for people.
    """
    if run.holding.turned:
        raise TurnedAside
    run.course.asking = False
    if window.status == ApprovalStatus.SUPERSEDED and run.holding.control.by == "person":
        return taken_back()
    move = _DECIDED[window.status]
    if move.event == Event.EXPIRED and window.freezes:
        raise GaveUp(move.reason)
    run.course.asked_anew_for = move.reason if move.event == Event.EDITED else ""
    return move


def taken_back() -> Move:
    """Whoever is in control took back what was proposed or granted, to work on it."""
    return Move(Event.TAKEN_OVER, "taken_back")
