"""What is brought before people because the run cannot go on by itself, and their time for it."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Escalated, EscalateOrder, Escalating, LapseOrder, UnansweredOrder
    from countersign.domain.escalation import OUT_OF_BUDGET
    from countersign.domain.state import Event

from workflows import options
from workflows.cancelling import to_its_end
from workflows.run import Move, Run
from workflows.waiting import until

UNDECIDED = "undecided_at_deadline"
UNANSWERED = "unanswered_at_deadline"
LEASE_OVER = "lease_over"
_OF_ASKS = frozenset({UNDECIDED, LEASE_OVER, "voided_too_often"})
"""What went wrong with asking people."""
_EXPIRED = frozenset({UNDECIDED, UNANSWERED})
"""That nobody decided or answered is no failure."""
_HELD = frozenset({UNDECIDED, UNANSWERED, LEASE_OVER})
"""Why a run waits for people whether or not its policy names some for it."""


async def brought_before_people(run: Run, code: str) -> Escalated:
    """Tell whom the policy names for the reason; number 0 where it names nobody."""
    order = EscalateOrder(
        tenant=run.order.tenant,
        operation=run.order.operation,
        code=code,
        attempts=_attempts(run, code),
        now=workflow.now(),
    )
    return await to_its_end(workflow.execute_local_activity_method(Escalating.escalate, order, **options.LEDGER_STEP))


def _attempts(run: Run, code: str) -> int:
    """How often what failed was tried."""
    if code in _OF_ASKS:
        return run.course.asks
    if code == UNANSWERED and run.question is not None:
        return run.question.number
    # The sending whose outcome is unknown, and those before it.
    return run.course.failures + 1 if code == "outcome_unknown" else run.course.draft_version


async def gave_up(run: Run, code: str) -> Move:
    """The run waits for those whom its policy names for the reason; the caller has the turn.

    Where it names nobody the run has failed; but one that is held waits for as long as it takes.
    """
    escalated = await brought_before_people(run, code)
    run.course.escalated, run.course.cause = (escalated if escalated.number else None), code
    return Move(Event.ESCALATED if escalated.number or code in _HELD else Event.GAVE_UP, code)


async def be_taken_up(run: Run) -> Move | None:
    """Wait until one of those before whom the run was brought takes it over or ends it, or their time is up.

    Whoever is in control already, since what they proposed was brought there, just goes on.
    """
    escalated = run.course.escalated
    deadline = escalated.deadline if escalated is not None else None
    await until(deadline, lambda: _taken_up(run) or run.grown_long(), "escalation deadline")
    if run.holding.orders and not run.holding.turned:
        run.course.escalated = None
        return Move(Event.TAKEN_OVER, "taken_back")
    if _raised(run) and not run.holding.turned:
        run.course.escalated, run.course.raised = None, False
        # A version that is not finished is gone on with where it stopped; any other is looked at again.
        run.course.pauses += 1
        return Move(Event.RAISED, "budget_raised")
    if escalated is None or deadline is None or deadline > workflow.now():
        return None
    async with run.attending.turns:
        await run.attending.rule_before(deadline)
        if _taken_up(run):
            return None
        await unanswered(run, escalated)
        # In the same turn: whoever comes now is told that the run has ended.
        event = Event.EXPIRED if run.course.cause in _EXPIRED else Event.GAVE_UP
        await run.move(event, run.course.cause)
    return None


async def unanswered(run: Run, escalated: Escalated) -> None:
    """Nobody came in the time that they had."""
    order = UnansweredOrder(
        tenant=run.order.tenant, operation=run.order.operation, number=escalated.number, now=workflow.now()
    )
    await to_its_end(workflow.execute_local_activity_method(Escalating.unanswered, order, **options.LEDGER_STEP))


def _taken_up(run: Run) -> bool:
    return run.holding.turned or bool(run.holding.orders) or _raised(run)


def _raised(run: Run) -> bool:
    """Whether people gave a run more to spend that waits for just that."""
    return run.course.raised and run.course.cause == OUT_OF_BUDGET


async def lapse(run: Run) -> None:
    """Take control from a person whose lease is over, unless they did something before that."""
    control = run.holding.control
    async with run.attending.turns:
        if control.lease_until is not None:
            await run.attending.rule_before(control.lease_until)
        order = LapseOrder(
            tenant=run.order.tenant,
            operation=run.order.operation,
            control_version=control.version,
            now=workflow.now(),
        )
        run.holding.control = await workflow.execute_local_activity_method(
            Escalating.lapse, order, **options.LEDGER_STEP
        )
