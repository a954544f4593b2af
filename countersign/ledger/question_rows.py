"""Rows of questions: how they are read, and how one is answered or falls.

Apart from the questions themselves because commands, openings and the ends of runs need them in transactions of theirs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, Select, select, update

from countersign.domain.canonical import digest
from countersign.domain.command import Command
from countersign.domain.question import Answer, Answered, Answers, Asked, Question, QuestionStatus
from countersign.ledger.store import Writing
from countersign.ledger.tables import questions


def of_operation(connection: Connection, tenant: str, operation: str) -> list[Asked]:
    """All questions of an operation, oldest first."""
    wanted = _of_tenant(tenant).where(questions.c.operation == operation)
    return _asked(connection, wanted.order_by(questions.c.number))


def newest(connection: Connection, tenant: str, operation: str) -> Asked | None:
    """The newest one of the operation."""
    wanted = _of_tenant(tenant).where(questions.c.operation == operation)
    return next(iter(_asked(connection, wanted.order_by(questions.c.number.desc()).limit(1))), None)


def pending(connection: Connection, tenant: str) -> list[Question]:
    """All of a tenant that wait, in no order."""
    wanted = _of_tenant(tenant).where(questions.c.status == QuestionStatus.PENDING.value)
    return [one.question for one in _asked(connection, wanted)]


def expire(writing: Writing, question: Question, now: datetime) -> None:
    """Close a pending one at its deadline; the caller holds the operation's lock."""
    _move(writing, question, QuestionStatus.EXPIRED)
    record(writing, "expired", question, "clock", now)


def supersede(writing: Writing, operation: str, subject: str, now: datetime, **by: JsonValue) -> None:
    """Take a pending one back, since control has changed hands, another run asks now, or the run has ended.

    One that people had no time left for by then has expired, though its run had not come to that yet (G24). The caller
    holds the operation's lock.
    """
    asked = newest(writing.connection, writing.tenant, operation)
    if asked is None or asked.status != QuestionStatus.PENDING:
        return
    if asked.question.deadline <= now:
        expire(writing, asked.question, now)
        return
    _move(writing, asked.question, QuestionStatus.SUPERSEDED)
    record(writing, "superseded", asked.question, subject, now, **by)


def answer(writing: Writing, question: Question, said: Command, answers: tuple[Answer, ...], now: datetime) -> None:
    """Keep what a person answered, as it was ruled to be in order; the caller holds the operation's lock."""
    answered = Answered(person=said.person, statement_id=said.id, answers=answers, at=now)
    _move(writing, question, QuestionStatus.ANSWERED, answered=answered)
    decisions: dict[str, JsonValue] = {one.call: one.decision for one in answers}
    document = digest(Answers(answers=answers).model_dump(mode="json"))
    record(writing, "answered", question, said.person, now, answers=document, decisions=decisions, by=said.id)


def record(writing: Writing, what: str, question: Question, subject: str, now: datetime, **more: JsonValue) -> None:
    """Have it said of a question, which is named by its number and hash."""
    named: dict[str, JsonValue] = {"number": question.number, "question": question.hash()}
    writing.record(f"question.{what}", question.operation, subject, now, **named, **more)


def _move(writing: Writing, question: Question, status: QuestionStatus, **more: Answered) -> None:
    is_it = (questions.c.tenant == writing.tenant) & (questions.c.operation == question.operation)
    changed = update(questions).where(is_it, questions.c.number == question.number)
    writing.connection.execute(changed.values(status=status.value, **more))


def _of_tenant(tenant: str) -> Select[Any]:
    return select(questions).where(questions.c.tenant == tenant)


def _asked(connection: Connection, wanted: Select[Any]) -> list[Asked]:
    rows = connection.execute(wanted)
    return [Asked(row.question, QuestionStatus(row.status), row.answered) for row in rows]
