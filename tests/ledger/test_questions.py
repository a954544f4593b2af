"""What agents ask: put before people once, answered once, closed in time, never left behind; on both engines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from countersign.cli.proving.rebuild_rows import compared
from countersign.domain.audit import AuditRecord
from countersign.domain.canonical import digest
from countersign.domain.decision import Ruling
from countersign.domain.errors import Conflict, ControlChanged, InputRefused, NotFound, TooManyPending
from countersign.domain.escalation import Severity
from countersign.domain.notice import NoticeKind
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import Answer, Answered, Answers, Asked, PendingCall, QuestionStatus
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from tests.domain.asking import READ, READ_IT, SECOND_HALF, WITHIN, WORDS
from tests.ledger.asking import ANSWERS, answer, ask, question, send_answer
from tests.ledger.builders import (
    NOW,
    OPERATION,
    OTHER_HASH,
    TENANT,
    VIEW,
    audit_types,
    command,
    notices,
    operation,
    person,
    proposal,
    send,
)
from tests.ledger.founding import apply, standing

MINUTE = timedelta(minutes=1)
LADDER = {
    "remind": ["5m"],
    "tiers": [{"after": "15m", "role": "reviewer", "decisions": ["approve", "reject"], "tell": ["operator"]}],
}


@pytest.fixture(autouse=True)
def registered(ledger: SqlLedger) -> None:
    """The operation that everything here is about."""
    ledger.operations.register(operation())
    ledger.operations.move(TENANT, OPERATION, State.RUNNING, "", NOW)


def stands(ledger: SqlLedger) -> QuestionStatus:
    found = ledger.questions.current(TENANT, OPERATION)
    assert found is not None
    return found.status


def latest(ledger: SqlLedger, kind: str) -> AuditRecord:
    return [record for record in ledger.audit.records(TENANT) if record.type == kind][-1]


def pending(ledger: SqlLedger, room: int = 1_000, **changes: Any) -> ApprovalStatus:
    return ledger.approvals.open(proposal(**changes), "run-1", VIEW, NOW, room).status


def sound(ledger: SqlLedger) -> bool:
    """Whether the tables hold of the operation what its records say, and nothing else."""
    return compared(ledger.audit.rows(TENANT, OPERATION), ledger.audit.records(TENANT), OPERATION).wrong == ()


@pytest.mark.guarantee("G46")
def test_a_question_is_recorded_and_told_without_a_word_of_what_it_says(ledger: SqlLedger) -> None:
    asked = ask(ledger)
    assert asked == Asked(question(), QuestionStatus.PENDING, None)
    assert ledger.questions.pending(TENANT) == [asked.question]
    record = latest(ledger, "question.asked")
    assert (record.subject, record.detail) == ("agent", {
        "number": 1, "question": asked.question.hash(), "line": "run-1", "draft_version": 1, "control_version": 1,
        "roles": ["lead"], "deadline": "2026-11-30T13:00:00.000000Z",
        "calls": [{"id": "call-1", "tool": "ask_user", "decisions": ["respond"]},
                  {"id": "call-2", "tool": "query_dataset", "decisions": ["approve", "edit", "reject"]}],
    })  # fmt: skip
    (told,) = notices(ledger)
    assert (told.kind, told.roles, told.persons, told.code, told.deadline, told.severity) == (
        NoticeKind.QUESTION_ASKED, ("lead",), (), "1", NOW + WITHIN, Severity.MEDIUM
    )  # fmt: skip


@pytest.mark.parametrize(
    ("requester", "calls", "persons"),
    [(True, (WORDS,), ("rita",)), (False, (WORDS,), ()), (True, (READ,), ()), (True, (WORDS, READ), ())],
)
def test_whoever_asked_for_the_operation_is_told_where_they_may_answer(
    ledger: SqlLedger, requester: bool, calls: tuple[PendingCall, ...], persons: tuple[str, ...]
) -> None:
    ask(ledger, *calls, answering={"requester": requester})
    assert [told.persons for told in notices(ledger)] == [persons]


def test_the_same_calls_again_are_the_same_question_whatever_became_of_it(ledger: SqlLedger) -> None:
    asked = ask(ledger)
    assert ask(ledger, READ, WORDS, asked_at=NOW + MINUTE) == asked
    send_answer(ledger, asked)
    again = ask(ledger, number=7, asked_at=NOW + 2 * MINUTE, room=1)
    assert (again.question, again.status) == (asked.question, QuestionStatus.ANSWERED)
    assert audit_types(ledger).count("question.asked") == len(notices(ledger)) == 1


def test_the_next_question_has_the_next_number(ledger: SqlLedger) -> None:
    send_answer(ledger, ask(ledger, WORDS), SECOND_HALF)
    other = ask(ledger, READ, number=1)
    assert [one.question.number for one in ledger.questions.of_operation(TENANT, OPERATION)] == [1, 2]
    assert ledger.questions.current(TENANT, OPERATION) == other


def test_an_agent_that_waits_already_asks_nothing_else(ledger: SqlLedger) -> None:
    ask(ledger, WORDS)
    with pytest.raises(Conflict, match="waits for an answer to question 1 already"):
        ask(ledger, READ)


@pytest.mark.guarantee("G23")
def test_what_an_earlier_run_of_the_operation_asked_is_taken_back_when_another_asks_or_proposes(
    ledger: SqlLedger,
) -> None:
    first = ask(ledger)
    second = ask(ledger, line="run-2")
    pending(ledger)
    statuses = [one.status for one in ledger.questions.of_operation(TENANT, OPERATION)]
    assert statuses == [QuestionStatus.SUPERSEDED] * 2
    assert send_answer(ledger, first).outcome.ruling == Ruling.STALE_QUESTION
    assert send_answer(ledger, second, id="another-answer-1").outcome.ruling == Ruling.NOTHING_ASKED
    assert latest(ledger, "question.superseded").detail["by"] == "approval-1"


@pytest.mark.guarantee("G30")
def test_nothing_is_asked_for_an_operation_that_has_ended_or_is_in_another_hand(ledger: SqlLedger) -> None:
    with pytest.raises(NotFound):
        ask(ledger, operation="nowhere")
    send(ledger, command("take_over", "lena"))
    with pytest.raises(ControlChanged):
        ask(ledger)
    send(ledger, command("cancel", "otto"))
    with pytest.raises(Conflict, match="ended as CANCELLED"):
        ask(ledger, control_version=2)
    assert ledger.questions.of_operation(TENANT, OPERATION) == []


def test_an_answer_is_kept_whole_and_recorded_by_its_hash(ledger: SqlLedger) -> None:
    asked = ask(ledger)
    assert send_answer(ledger, asked).outcome.ruling == Ruling.ACCEPTED
    kept = Answered(person="lena", statement_id="answer-by-lena-0000", answers=ANSWERS, at=NOW + MINUTE)
    assert ledger.questions.current(TENANT, OPERATION) == Asked(asked.question, QuestionStatus.ANSWERED, kept)
    assert ledger.questions.pending(TENANT) == []
    record = latest(ledger, "question.answered")
    assert (record.subject, record.detail) == ("lena", {
        "number": 1, "question": asked.question.hash(), "by": "answer-by-lena-0000",
        "answers": digest(Answers(answers=ANSWERS).model_dump(mode="json")),
        "decisions": {"call-1": "respond", "call-2": "approve"},
    })  # fmt: skip
    commanded = latest(ledger, "command.accepted")
    assert commanded.detail["content"] == record.detail["answers"]
    assert commanded.detail["question"] == asked.question.hash()


REFUSED: list[tuple[dict[str, Any], tuple[Answer, ...], Ruling]] = [
    ({"by": "bob"}, ANSWERS, Ruling.ROLE_MISSING),
    ({"by": "rita"}, ANSWERS, Ruling.ROLE_MISSING),
    ({"question": OTHER_HASH}, ANSWERS, Ruling.STALE_QUESTION),
    ({"control_version": 2}, ANSWERS, Ruling.STALE_CONTROL),
    ({}, (READ_IT,), Ruling.CONTENT_REFUSED),
    ({"minutes": 240}, ANSWERS, Ruling.LATE),
]


@pytest.mark.guarantee("G24")
@pytest.mark.guarantee("G47")
@pytest.mark.parametrize(("changes", "answers", "ruling"), REFUSED)
def test_an_answer_that_is_refused_changes_nothing_and_is_recorded(
    ledger: SqlLedger, changes: dict[str, Any], answers: tuple[Answer, ...], ruling: Ruling
) -> None:
    asked = ask(ledger)
    assert send_answer(ledger, asked, *answers, **changes).outcome.ruling == ruling
    assert ledger.questions.current(TENANT, OPERATION) == asked
    assert latest(ledger, "command.refused").detail["ruling"] == ruling.value


@pytest.mark.guarantee("G17")
def test_an_answer_counts_once(ledger: SqlLedger) -> None:
    asked = ask(ledger)
    said, amendment = answer(asked)
    rulings = [
        send(ledger, said, amendment=amendment, message_id=name).outcome.ruling for name in ("m-1", "m-1", "m-2")
    ]
    assert rulings == [Ruling.ACCEPTED, Ruling.ACCEPTED, Ruling.REPLAY]
    assert send_answer(ledger, asked, by="lars").outcome.ruling == Ruling.NOTHING_ASKED
    assert audit_types(ledger).count("question.answered") == 1
    assert stands(ledger) == QuestionStatus.ANSWERED


@pytest.mark.guarantee("G07")
def test_whoever_lost_their_role_since_they_signed_answers_nothing(ledger: SqlLedger) -> None:
    asked = ask(ledger)
    apply(ledger, standing(person("lena", "intern")))
    assert send_answer(ledger, asked).outcome.ruling == Ruling.ROLE_MISSING


def test_what_would_become_of_an_answer_is_told_before_anyone_wrote_one(ledger: SqlLedger) -> None:
    said, _ = answer(ask(ledger))
    lena, bob = (ledger.directory.person(TENANT, name) for name in ("lena", "bob"))
    assert lena is not None
    assert bob is not None
    assert ledger.controls.would(said, lena, NOW).ruling == Ruling.ACCEPTED
    assert ledger.controls.would(said.model_copy(update={"person": "bob"}), bob, NOW).ruling == Ruling.ROLE_MISSING
    assert ledger.controls.would(said, lena, NOW + WITHIN).ruling == Ruling.LATE
    assert stands(ledger) == QuestionStatus.PENDING


@pytest.mark.guarantee("G29")
@pytest.mark.parametrize("state", [State.WAITING_ANSWER, State.ESCALATED])
def test_who_takes_over_while_the_agent_waits_takes_its_question_back(ledger: SqlLedger, state: State) -> None:
    asked = ask(ledger)
    ledger.operations.move(TENANT, OPERATION, state, "agent_asks", NOW)
    assert send(ledger, command("take_over", "bob")).outcome.ruling == Ruling.ROLE_MISSING
    assert send(ledger, command("take_over", "lena")).outcome.ruling == Ruling.ACCEPTED
    assert stands(ledger) == QuestionStatus.SUPERSEDED
    record = latest(ledger, "question.superseded")
    assert (record.subject, record.detail["by"]) == ("lena", "take_over-by-lena-0000")
    assert send_answer(ledger, asked, by="lars").outcome.ruling == Ruling.NOTHING_ASKED


ENDS: list[tuple[Callable[[SqlLedger], object], str]] = [
    (lambda ledger: send(ledger, command("withdraw", "rita")), "rita"),
    (lambda ledger: send(ledger, command("cancel", "otto")), "otto"),
    (lambda ledger: ledger.operations.move(TENANT, OPERATION, State.CANCELLED, "cancelled", NOW), "run"),
]


@pytest.mark.guarantee("G10")
@pytest.mark.parametrize(("end", "by"), ENDS)
def test_an_end_of_the_run_takes_its_question_back(ledger: SqlLedger, end: Any, by: str) -> None:
    ask(ledger)
    end(ledger)
    assert (stands(ledger), latest(ledger, "question.superseded").subject) == (QuestionStatus.SUPERSEDED, by)
    assert sound(ledger)
    assert ledger.questions.pending(TENANT) == []


def test_an_answer_leaves_approvals_and_control_as_they_are(ledger: SqlLedger) -> None:
    before = ledger.controls.standing(TENANT, OPERATION)
    send_answer(ledger, ask(ledger))
    assert ledger.controls.standing(TENANT, OPERATION) == before
    assert "control.changed" not in audit_types(ledger)


def mark(ledger: SqlLedger, tick: int, minutes: int) -> Asked:
    return ledger.questions.mark(TENANT, OPERATION, 1, tick, NOW + minutes * MINUTE)


@pytest.mark.guarantee("G27")
def test_reminders_and_further_people_come_once_each_at_their_time(ledger: SqlLedger) -> None:
    ask(ledger, answering={"ladder": LADDER})
    for tick, minutes in ((0, 4), (1, 14), (2, 60), (-1, 60)):
        with pytest.raises(InputRefused, match="not yet" if tick in (0, 1) else "2 ticks"):
            mark(ledger, tick, minutes)
    for tick, minutes in ((0, 5), (0, 6), (1, 15), (1, 16)):
        assert mark(ledger, tick, minutes).status == QuestionStatus.PENDING
    assert [kind for kind in audit_types(ledger) if kind.startswith("question.")] == [
        "question.asked", "question.reminded", "question.escalated"
    ]  # fmt: skip
    assert latest(ledger, "question.escalated").detail["roles"] == ["reviewer", "operator"]
    _, reminder, escalated = notices(ledger)
    assert (reminder.kind, reminder.roles) == (NoticeKind.QUESTION_REMINDER, ("lead",))
    assert (escalated.kind, escalated.severity) == (NoticeKind.QUESTION_ESCALATED, Severity.HIGH)
    early = send_answer(ledger, mark(ledger, 1, 17), by="bob", minutes=14.9)
    assert early.outcome.ruling == Ruling.ROLE_MISSING
    again = send_answer(ledger, mark(ledger, 1, 17), by="bob", id="an-answer-in-time", minutes=15)
    assert again.outcome.ruling == Ruling.ACCEPTED
    assert mark(ledger, 0, 20).status == QuestionStatus.ANSWERED


@pytest.mark.guarantee("G24")
def test_silence_ends_a_question_at_its_deadline_and_not_before_and_answers_nothing(ledger: SqlLedger) -> None:
    ask(ledger)
    with pytest.raises(InputRefused, match="not yet"):
        ledger.questions.expire(TENANT, OPERATION, 1, NOW + WITHIN - timedelta(microseconds=1))
    for _ in range(2):
        expired = ledger.questions.expire(TENANT, OPERATION, 1, NOW + WITHIN)
        assert (expired.status, expired.answered) == (QuestionStatus.EXPIRED, None)
    assert latest(ledger, "question.expired").subject == "clock"
    assert [told.kind for told in notices(ledger)] == [NoticeKind.QUESTION_ASKED, NoticeKind.QUESTION_EXPIRED]
    assert stands(ledger) == QuestionStatus.EXPIRED
    assert sound(ledger)


def test_an_answer_that_came_first_stands_at_the_deadline(ledger: SqlLedger) -> None:
    send_answer(ledger, ask(ledger))
    assert ledger.questions.expire(TENANT, OPERATION, 1, NOW + WITHIN).status == QuestionStatus.ANSWERED


@pytest.mark.guarantee("G24")
@pytest.mark.parametrize(("then", "ruling"), [("expire", Ruling.ENDED), ("freeze", Ruling.ACCEPTED)])
@pytest.mark.parametrize("marked", [True, False])
def test_once_nobody_answered_in_time_the_run_is_over_unless_it_is_held(
    ledger: SqlLedger, then: str, ruling: Ruling, marked: bool
) -> None:
    """Also while its run has not come to its deadline yet."""
    ask(ledger, answering={"ladder": {"then": then}})
    if marked:
        ledger.questions.expire(TENANT, OPERATION, 1, NOW + WITHIN)
    assert send(ledger, command("take_over", "lena"), now=NOW + WITHIN).outcome.ruling == ruling
    if then == "freeze":
        assert (stands(ledger), audit_types(ledger).count("question.expired")) == (QuestionStatus.EXPIRED, 1)


def test_what_is_not_there_is_neither_marked_nor_expired(ledger: SqlLedger) -> None:
    for do in (lambda: mark(ledger, 0, 5), lambda: ledger.questions.expire(TENANT, OPERATION, 1, NOW)):
        with pytest.raises(NotFound, match="question"):
            do()
    assert ledger.questions.current(TENANT, OPERATION) is None


def test_what_waits_is_listed_by_its_deadline(ledger: SqlLedger) -> None:
    for name, minutes in (("op-1", 3), ("op-3", 1), ("op-2", 1)):
        ledger.operations.register(operation(name))
        ask(ledger, operation=name, asked_at=NOW + minutes * MINUTE)
    assert [one.operation for one in ledger.questions.pending(TENANT)] == ["op-2", "op-3", "op-1"]


@pytest.mark.guarantee("G41")
def test_more_than_there_is_room_for_is_not_brought_before_people(ledger: SqlLedger) -> None:
    """Proposals and questions count alike; a repeat, and what waits for nobody, is not new."""
    for name in ("op-1", "op-2", "op-3"):
        ledger.operations.register(operation(name))
    asked = ask(ledger, room=1)
    pending(ledger, approval_id="approval-1", operation="op-1", room=2)
    with pytest.raises(TooManyPending, match=r"2 proposals and questions .* at most 2 may \(COUNTERSIGN_MAX_PENDING\)"):
        ask(ledger, operation="op-2", room=2)
    with pytest.raises(TooManyPending, match="decide some of them"):
        pending(ledger, approval_id="approval-2", operation="op-2", room=2)
    assert ledger.questions.of_operation(TENANT, "op-2") == []
    assert ledger.approvals.of_operation(TENANT, "op-2") == []
    assert ask(ledger, room=2) == asked
    assert pending(ledger, approval_id="approval-1", operation="op-1", room=2) == ApprovalStatus.PENDING
    assert pending(ledger, approval_id="approval-3", operation="op-3", by_rule=True, room=2) == ApprovalStatus.GRANTED
    newer = {"approval_id": "approval-4", "operation": "op-1", "version": 2}
    assert pending(ledger, **newer, room=2) == ApprovalStatus.PENDING
    send_answer(ledger, asked)
    assert pending(ledger, approval_id="approval-2", operation="op-2", room=2) == ApprovalStatus.PENDING


@pytest.mark.guarantee("G45")
def test_the_rows_of_questions_are_what_the_records_say_and_a_changed_one_is_found(ledger: SqlLedger) -> None:
    ask(ledger, WORDS, answering={"ladder": LADDER})
    mark(ledger, 0, 5)
    send_answer(ledger, ledger.questions.of_operation(TENANT, OPERATION)[0], SECOND_HALF, minutes=6)
    ask(ledger, READ)
    rows, records = ledger.audit.rows(TENANT, OPERATION), [*ledger.audit.records(TENANT)]
    (first, second), (tick,) = rows["questions"], rows["question_ticks"]
    assert sound(ledger)
    unbound = compared(rows, records, OPERATION).unbound
    assert not [line for line in unbound if line.startswith("question")]

    other = {**first["answered"], "answers": [{**first["answered"]["answers"][0], "message": "the first"}]}  # type: ignore[dict-item, index, call-overload]
    asked = {**second["question"], "calls": []}  # type: ignore[dict-item]
    for table, changed, words in (
        ("questions", [{**first, "answered": other}, second], "question 1: answered.answers is"),
        ("questions", [{**first, "status": "pending"}, second], "question 1: status is 'pending'"),
        ("questions", [first, {**second, "question": asked}], "question 2: question is"),
        ("questions", [first, {**second, "question": 1.5}], "question 2: question is"),
        ("questions", [first], "question 2 is not in the ledger"),
        ("question_ticks", [tick, {**tick, "number": 1}], "of question 1 reminder or line 1 is in the ledger, and no"),
        ("question_ticks", [], "of question 1 reminder or line 0 is not in the ledger"),
    ):
        (wrong,) = compared({**rows, table: changed}, records, OPERATION).wrong
        assert words in wrong
