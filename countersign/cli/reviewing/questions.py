"""A question of the agent's for whoever is to answer it: its calls whole, who may answer, and what was answered.

Apart from `answer`, because `show`, `status`, `brief` and `next` show it too. All that models and data wrote stands
behind `| `, with what cannot be seen written out: none of it can pose as a line of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from countersign.cli.deciding.arguments import editable
from countersign.cli.rendering import fields, moment, quoted, visible_line
from countersign.cli.session import Session
from countersign.cli.standing import askable, next_question_tick, tick_line
from countersign.domain.identity import PersonId
from countersign.domain.operation import Operation
from countersign.domain.question import (
    NOT_EXECUTED,
    Answer,
    Answered,
    Asked,
    PendingCall,
    Question,
    QuestionStatus,
    may_answer,
)
from countersign.domain.visible import unseen


def answerers(session: Session, question: Question, requester: PersonId, at: datetime) -> tuple[str, ...]:
    """Who could answer it as a whole at this moment, with a key that is good."""
    persons = session.ledger.directory.persons(question.tenant).values()
    able = (one for one in persons if one.has_good_key(at) or session.settings.takes_unsigned)
    return tuple(one.id for one in able if may_answer(question, one, requester, at))


def question_json(session: Session, operation: Operation, asked: Asked, at: datetime) -> dict[str, Any]:
    """All of it as it is printed by --json."""
    question, status, answered = asked
    pending = status == QuestionStatus.PENDING
    tick = next_question_tick(asked, at)
    return {
        "number": question.number, "hash": question.hash(), "status": status.value,
        "draft_version": question.draft_version, "control_version": question.control_version,
        "asked_at": question.asked_at, "deadline": question.deadline,
        "roles": [*question.asked(at)] if pending else [],
        "may_answer": [*answerers(session, question, operation.requester, at)] if pending else [],
        "next_tick": tick._asdict() if tick else None,
        "calls": [call.model_dump(mode="json") for call in question.calls],
        "answered": answered.model_dump(mode="json") if answered else None,
    }  # fmt: skip


def question_text(session: Session, operation: Operation, asked: Asked, at: datetime) -> str:
    """The question whole: who may answer it until when, and every call with its arguments as exact JSON."""
    return "\n".join(
        [*_head(session, operation, asked, at), *(line for call in asked.question.calls for line in call_lines(call))]
    )


def question_line(asked: Asked) -> str:
    """`2: query_dataset, ask_user; answered by lea at ...`: one that is shown in brief."""
    question, status, answered = asked
    tools = ", ".join(call.tool for call in question.calls)
    stands = f"answered by {answered.person} at {moment(answered.at)}" if answered else status.value
    return f"{question.number}: {tools}; {stands}"


def call_lines(call: PendingCall) -> Iterator[str]:
    """One call: its id, what may be answered, why a person is asked, and its arguments as exact JSON."""
    yield ""
    yield f"CALL {visible_line(call.id)}: {call.tool}; allowed: {', '.join(call.decisions)}"
    hidden = unseen(f"{call.id}{call.description}{json.dumps(call.args, ensure_ascii=False)}")
    if hidden:
        yield f"  ! it holds characters that cannot be seen; they are written out here: {', '.join(hidden)}"
    yield from (f"  {line}" for line in quoted(call.description))
    yield "  arguments"
    yield from (f"  {line}" for line in quoted(editable(call.args).removesuffix("\n")))


def answer_lines(answers: Sequence[Answer]) -> Iterator[str]:
    """What was said of each call, in a line or more each."""
    for answer in answers:
        yield f"  {visible_line(answer.call)}: {answer.decision}"
        if answer.args is not None:
            yield from (f"    {line}" for line in quoted(editable(answer.args).removesuffix("\n")))
        if answer.decision in ("respond", "reject"):
            yield from (f"    {line}" for line in quoted(answer.message or NOT_EXECUTED))


def _head(session: Session, operation: Operation, asked: Asked, at: datetime) -> Iterator[str]:
    question, status, answered = asked
    yield f"QUESTION {question.number} OF THE AGENT ({status.value})"
    pending = status == QuestionStatus.PENDING
    able = ", ".join(answerers(session, question, operation.requester, at)) if pending else ""
    nobody = "nobody at this moment: no person of that role has a good key" if pending else ""
    yield fields([
        ("operation", f"{operation.operation} ({operation.case}), draft v{question.draft_version}"),
        ("question hash", question.hash()),
        ("asked", moment(question.asked_at)),
        ("deadline", f"{moment(question.deadline)}; {_afterwards(question)}" if pending else ""),
        ("asked now", askable(question, operation.requester, at) if pending else ""),
        ("may answer", able or nobody),
        ("next", tick_line(next_question_tick(asked, at))),
    ], "  ")  # fmt: skip
    if answered is not None:
        yield from _answered(answered)


def _answered(answered: Answered) -> Iterator[str]:
    yield f"  answered by {answered.person} at {moment(answered.at)}, statement {answered.statement_id}"
    yield from (f"  {line}" for line in answer_lines(answered.answers))


def _afterwards(question: Question) -> str:
    if question.freezes:
        return "unanswered by then, the run is held until somebody takes it over or ends it"
    return "unanswered by then, the run ends as expired; nothing is allowed by waiting"
