"""The agent's part: draft, check and grade, until a version is satisfied; feedback goes to the next by the ledger."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Drafting, Executing, GatherOrder, Graded, Grading, RunPlan, Validating
    from countersign.domain.question import QuestionStatus
    from countersign.domain.rubric import Verdict

from workflows import options
from workflows.cancelling import honour_cancel
from workflows.carrying import Ready
from workflows.question_window import QuestionWindow
from workflows.run import GaveUp, Run

MAX_UNSTEADY = 5
"""How often one ask is made ready anew because what it rests on outside has changed meanwhile."""
STEP_FAILURES = (ActivityError, ApplicationError)
"""What a failed step raises; a local one comes without the wrapping ActivityError (seen in SDK 1.35)."""
Result = TypeVar("Result")


async def prepared(run: Run, plan: RunPlan) -> Ready | None:
    """The first version that passes: the latest one, where a person left it to the agent, or one that it writes;
    nothing where the agent waits for people in the middle of one.

    Raises:
        GaveUp: with the code of what is wrong with the last version, once the plan's rounds are used up.
    """
    if not plan.drafted:
        return Ready()
    course, fault = run.course, "no_rounds"
    if not course.unfinished:
        await gathered(run, plan)
        if course.draft_version:
            fault, ready = await _looked_at(run, plan)
            if ready is not None:
                return ready
    while course.unfinished or course.rounds < plan.max_rounds:
        if not course.unfinished:
            course.rounds, course.draft_version = course.rounds + 1, course.draft_version + 1
            course.unfinished, course.pauses = True, 0
        if not await _written(run):
            return None
        fault, ready = await _looked_at(run, plan)
        if ready is not None:
            return ready
    raise GaveUp(fault)


async def _written(run: Run) -> bool:
    """Whether the agent has written the version; if not, it waits for people, and the question is the run's latest."""
    course = run.course
    while True:
        answers, step = run.answers, run.step(course.draft_version)
        written = await done(workflow.execute_activity_method(Drafting.draft, step, **options.MODEL_STEP))
        if written.asked is None:
            course.unfinished = False
            return True
        course.pauses += 1
        # With the turn: whatever was answered before is counted, and the rest is told to the window.
        async with run.attending.turns:
            run.question = QuestionWindow(run.order, written.asked)
            course.answering = run.question.status != QuestionStatus.ANSWERED and run.answers == answers
        if course.answering:
            return False


async def moved_on(run: Run, plan: RunPlan) -> bool:
    """Whether what a version passed on has changed outside since; then it is looked at anew before it is proposed.

    Raises:
        GaveUp: it never holds still.
    """
    course = run.course
    if not await gathered(run, plan):
        return False
    course.ready, course.unsteady = None, course.unsteady + 1
    if course.unsteady > MAX_UNSTEADY:
        raise GaveUp("facts_unsteady")
    return True


async def gathered(run: Run, plan: RunPlan) -> bool:
    """Have the facts gathered that the case rests on, if it does; whether they are others than before."""
    if not plan.gathers:
        return False
    order = GatherOrder(tenant=run.order.tenant, operation=run.order.operation)
    step = workflow.execute_activity_method(Executing.gather, order, **options.GATHER_STEP)
    try:
        found = await done(step, "facts_unreadable")
    except GaveUp as gave_up:
        raise GaveUp("facts_refused" if str(gave_up) == "not_found" else str(gave_up)) from None
    before, run.course.facts = run.course.facts, found.content
    return found.content != before


async def checked(run: Run, version: int) -> str:
    """What the deterministic checks say of a version: the code that it fails with, empty if they find nothing."""
    step = run.step(version)
    found = await done(workflow.execute_activity_method(Validating.validate, step, **options.CHECK_STEP))
    return found.stops or ("checks_failed" if found.codes else "")


async def graded(run: Run, plan: RunPlan, version: int) -> Graded:
    """What the grader says of a version, asked again where the answer cannot be read."""
    for _ in range(plan.max_grader_tries):
        step = run.step(version)
        found = await done(workflow.execute_activity_method(Grading.grade, step, **options.MODEL_STEP))
        if found.verdict != Verdict.GRADER_ERROR:
            break
    return found


async def _looked_at(run: Run, plan: RunPlan) -> tuple[str, Ready | None]:
    """The latest version, if it passes, or else why not; GaveUp where no further version would mend that."""
    version = run.course.draft_version
    fault = await checked(run, version)
    if fault == "checks_failed":
        return fault, None
    if fault:
        raise GaveUp(fault)
    grade = await graded(run, plan, version)
    if grade.verdict == Verdict.SATISFIED:
        return "", Ready(draft_version=version)
    if grade.verdict != Verdict.NEEDS_REVISION:
        raise GaveUp(f"rubric_{grade.verdict.value}")
    return Verdict.MAX_ITERATIONS_REACHED.value, None


async def done(step: Awaitable[Result], failure: str = "step_failed") -> Result:
    """A step on the way to the proposal: its failure is the run's, and a cancel is honoured however it ended."""
    try:
        result = await step
    except STEP_FAILURES as error:
        honour_cancel()
        raise GaveUp(_code(error, failure)) from None
    honour_cancel()
    return result


def _code(error: BaseException | None, fallback: str) -> str:
    """The code of the refusal at the bottom of a step's failure; a time-out wraps the last one that was tried again."""
    while error is not None and not isinstance(error, ApplicationError):
        error = error.__cause__
    if error is None or not error.type:
        return fallback
    # What was tried again for hours has no code of its own: an unexpected fault is called by its class.
    return error.type.lower() if error.non_retryable else fallback
