"""People's part while the agent drafts: it has asked something, and they answer, or their time for it passes."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from countersign.domain.question import QuestionStatus
    from countersign.domain.state import Event

from workflows import asking, escalating
from workflows.control import TurnedAside
from workflows.question_window import QuestionWindow
from workflows.run import GaveUp, Move, Run


async def be_answered(run: Run, question: QuestionWindow) -> Move | None:
    """Wait for people's answer, and do what is due while there is none."""
    if await asking.waited(run, question, "deadline for an answer"):
        return Move(Event.ESCALATED, "nobody_answered")
    return None if question.pending else _entered(run, question)


def _entered(run: Run, question: QuestionWindow) -> Move:
    """Where it leads what people, or the clock, made of the question.

    Raises:
        GaveUp: nobody answered, and the run is to be held for people.
    """
    if run.holding.turned:
        raise TurnedAside
    run.course.answering = False
    if question.status == QuestionStatus.ANSWERED:
        return Move(Event.ANSWERED, "answered")
    if question.status == QuestionStatus.SUPERSEDED:
        return Move(Event.CANCELLED, "question_superseded")
    if question.freezes:
        raise GaveUp(escalating.UNANSWERED)
    return Move(Event.EXPIRED, escalating.UNANSWERED)
