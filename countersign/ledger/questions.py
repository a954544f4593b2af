"""Questions of agents: put before people once, with reminders and further people, closed at their deadline.

How one is answered lies with the commands, since an answer is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select

from countersign.domain.errors import Conflict, InputRefused
from countersign.domain.escalation import Severity
from countersign.domain.need import Tick
from countersign.domain.notice import Notice, NoticeKind
from countersign.domain.question import Asked, PendingCall, Question, QuestionStatus
from countersign.ledger.columns import moment_text
from countersign.ledger.control_rows import check_control
from countersign.ledger.question_rows import expire, newest, of_operation, pending, record, supersede
from countersign.ledger.room import check_room
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import documents, operations, question_ticks, questions, statements


class SqlQuestions:
    """ports.Questions on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def ask(self, question: Question, room: int) -> Asked:
        """Put it before people; as in ports.Questions."""
        operation = question.operation
        with self._store.writing(question.tenant) as writing:
            writing.lock_known_operation(operation)
            earlier = of_operation(writing.connection, question.tenant, operation)
            stored = next((one for one in earlier if _same(one.question, question)), None)
            if stored is not None:
                return stored
            writing.check_running(operation)
            check_control(writing, operation, question.control_version)
            _make_way(writing, earlier, question)
            numbered = question.model_copy(update={"number": len(earlier) + 1})
            _insert(writing, numbered)
            check_room(writing, room)
        return Asked(numbered, QuestionStatus.PENDING, None)

    def mark(self, tenant: str, operation: str, number: int, tick: int, now: datetime) -> Asked:
        """Record and tell, once, that a tick of a pending one came; as in ports.Questions.

        InputRefused before its time, and for a tick that there is not. Nothing is recorded once it is closed.
        """
        with self._store.writing(tenant) as writing:
            asked = _locked(writing, operation, number)
            if asked.status == QuestionStatus.PENDING:
                _mark(writing, asked.question, tick, now)
        return asked

    def expire(self, tenant: str, operation: str, number: int, now: datetime) -> Asked:
        """Close it where nobody answered by its deadline; as in ports.Questions. InputRefused before that."""
        with self._store.writing(tenant) as writing:
            asked = _locked(writing, operation, number)
            if asked.status != QuestionStatus.PENDING:
                return asked
            if now < asked.question.deadline:
                until = asked.question.deadline.isoformat()
                raise InputRefused(f"question {number} of operation {operation} expires at {until}, not yet")
            expire(writing, asked.question, now)
            roles = asked.question.asked(asked.question.deadline)
            writing.notify(_told(writing, asked.question, NoticeKind.QUESTION_EXPIRED, roles, Severity.HIGH, now))
        return asked._replace(status=QuestionStatus.EXPIRED)

    def current(self, tenant: str, operation: str) -> Asked | None:
        """The newest one of the operation."""
        with self._store.reading(tenant) as connection:
            return newest(connection, tenant, operation)

    def of_operation(self, tenant: str, operation: str) -> Sequence[Asked]:
        """All of an operation, oldest first."""
        with self._store.reading(tenant) as connection:
            return of_operation(connection, tenant, operation)

    def pending(self, tenant: str) -> Sequence[Question]:
        """All of a tenant that wait, the nearest deadline first."""
        with self._store.reading(tenant) as connection:
            # Sorted here: PostgreSQL's order of names depends on how the database was made.
            return sorted(pending(connection, tenant), key=lambda one: (one.deadline, one.operation))

    def signed(self, tenant: str, statement_id: str) -> str:
        """The command that was signed under this id; as in ports.Questions."""
        kept = (documents.c.tenant == statements.c.tenant) & (documents.c.sha256 == statements.c.hash)
        is_it = (statements.c.tenant == tenant) & (statements.c.id == statement_id)
        with self._store.reading(tenant) as connection:
            data: bytes | None = connection.execute(
                select(documents.c.data).join(statements, kept).where(is_it)
            ).scalar()
        if data is None:
            raise absent("signed command", statement_id)
        return data.decode("utf-8", "replace")


def _same(one: Question, other: Question) -> bool:
    """Whether both ask for the same calls, in whatever order, in the same version of the same run."""
    return _bound(one) == _bound(other)


def _bound(question: Question) -> tuple[str, int, int, dict[str, PendingCall]]:
    calls = {call.id: call for call in question.calls}
    return question.line, question.draft_version, question.control_version, calls


def _make_way(writing: Writing, earlier: Sequence[Asked], question: Question) -> None:
    """Conflict where the same run waits already; what another run of the operation asked is taken back."""
    waiting = next((one.question for one in earlier if one.status == QuestionStatus.PENDING), None)
    if waiting is not None and waiting.line == question.line:
        raise Conflict(
            f"operation {question.operation} waits for an answer to question {waiting.number} already; it has to be "
            "answered first"
        )
    supersede(writing, question.operation, "run", question.asked_at)


def _insert(writing: Writing, question: Question) -> None:
    writing.lock_openings()
    values = {"operation": question.operation, "number": question.number}
    writing.insert_once(questions, **values, status=QuestionStatus.PENDING.value, question=question)
    now, roles = question.asked_at, question.asked(question.asked_at)
    record(
        writing, "asked", question, "agent", now, line=question.line, draft_version=question.draft_version,
        control_version=question.control_version, roles=[*roles], deadline=moment_text(question.deadline),
        calls=[{"id": call.id, "tool": call.tool, "decisions": [*call.decisions]} for call in question.calls],
    )  # fmt: skip
    writing.notify(_told(writing, question, NoticeKind.QUESTION_ASKED, roles, Severity.MEDIUM, now))


def _locked(writing: Writing, operation: str, number: int) -> Asked:
    """That question as it stands from now until the end of the transaction."""
    writing.lock_known_operation(operation)
    found = of_operation(writing.connection, writing.tenant, operation)
    asked = next((one for one in found if one.question.number == number), None)
    if asked is None:
        raise absent("question", f"{operation} {number}")
    return asked


def _mark(writing: Writing, question: Question, number: int, now: datetime) -> None:
    tick = _tick(question, number, now)
    named = {"operation": question.operation, "question": question.number, "number": number}
    if not writing.insert_once(question_ticks, **named, marked_at=now):
        return
    what = "escalated" if tick.kind == "tier" else "reminded"
    record(writing, what, question, "clock", now, tick=number, due_at=moment_text(tick.at), roles=[*tick.roles])
    kind = NoticeKind.QUESTION_ESCALATED if tick.kind == "tier" else NoticeKind.QUESTION_REMINDER
    severity = Severity.HIGH if tick.kind == "tier" else Severity.MEDIUM
    writing.notify(_told(writing, question, kind, tick.roles, severity, now))


def _tick(question: Question, number: int, now: datetime) -> Tick:
    due, name = question.ticks(), f"question {question.number} of operation {question.operation}"
    if not 0 <= number < len(due):
        raise InputRefused(f"{name} has {len(due)} ticks, counted from 0; {number} is none")
    if now < due[number].at:
        raise InputRefused(f"tick {number} of {name} is due at {due[number].at.isoformat()}, not yet")
    return due[number]


def _told(
    writing: Writing, question: Question, kind: NoticeKind, roles: Sequence[str], severity: Severity, now: datetime
) -> Notice:
    """What people are told; whoever asked for the operation as well, where they may answer it."""
    return Notice(
        kind=kind,
        tenant=question.tenant,
        operation=question.operation,
        roles=tuple(dict.fromkeys(roles)),
        persons=(_requester(writing, question.operation),) if question.requester_may_answer else (),
        severity=severity,
        code=str(question.number),
        deadline=question.deadline,
        at=now,
    )


def _requester(writing: Writing, operation: str) -> str:
    is_it = (operations.c.tenant == writing.tenant) & (operations.c.operation == operation)
    requester: str = writing.connection.execute(select(operations.c.requester).where(is_it)).scalar_one()
    return requester
