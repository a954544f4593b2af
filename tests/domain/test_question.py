"""What people may answer the agent, and who: bound to each call by its id, never by its place."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from countersign.domain.question import Answer, Answers, PendingCall, beyond, may_answer, problem_with_answers
from tests.domain.asking import READ, READ_IT, SECOND_HALF, WITHIN, WORDS, a_question
from tests.domain.samples import NOW, a_person

HOUR = timedelta(hours=1)


def edit(**changes: Any) -> Answer:
    return Answer(**{"call": "call-2", "decision": "edit", "args": {"sql": "SELECT 1"}, **changes})


WRONG = [
    ((SECOND_HALF,), "2 calls wait, 1 answers were given; look at 'call-2'"),
    ((SECOND_HALF, SECOND_HALF), "2 calls wait, 2 answers were given; look at 'call-2'"),
    ((SECOND_HALF, READ_IT, READ_IT), "2 calls wait, 3 answers were given; look at 'call-2'"),
    ((SECOND_HALF, READ_IT.model_copy(update={"call": "call-9"})), "no call 'call-9' waits; those that do: call-1"),
    ((SECOND_HALF.model_copy(update={"decision": "approve"}), READ_IT), "answered by approve; allowed: respond"),
    ((SECOND_HALF, READ_IT.model_copy(update={"decision": "respond"})), "allowed: approve, edit, reject"),
    ((SECOND_HALF, edit(args=None)), "arguments are given exactly where a call is edited"),
    ((SECOND_HALF, READ_IT.model_copy(update={"args": {}})), "arguments are given exactly where a call is edited"),
    ((SECOND_HALF.model_copy(update={"message": " "}), READ_IT), "the agent is answered in words; give some"),
    ((SECOND_HALF, READ_IT.model_copy(update={"message": "go on"})), "approve takes no words for the agent"),
]  # fmt: skip
WRONG += [
    ((SECOND_HALF.model_copy(update={"message": text}), READ_IT), "the agent is answered in words; give some")
    for text in ("\u200b", "\u202e\u2066", " \u2060\n\ufeff", "\u3164\u2800", "\u3000\u00ad\ufe0f")
]
REFUSED_UNSEEN = Answer(call="call-2", decision="reject", message="\u202e\u200b")
WRONG += [((SECOND_HALF, REFUSED_UNSEEN), "a reader sees nothing of the reason; write one, or leave it out")]
RIGHT = [
    (SECOND_HALF, READ_IT),
    (READ_IT, SECOND_HALF),
    (READ_IT, SECOND_HALF.model_copy(update={"message": "\u200f\u05d0"})),
    (edit(), SECOND_HALF),
    (Answer(call="call-2", decision="reject", message="not their names"), SECOND_HALF),
    (Answer(call="call-2", decision="reject"), SECOND_HALF),
]


@pytest.mark.guarantee("G15")
@pytest.mark.parametrize(("answers", "sentence"), WRONG, ids=[sentence[:40] for _, sentence in WRONG])
def test_answers_that_do_not_fit_the_calls_that_wait_are_refused_whole(answers: Any, sentence: str) -> None:
    assert sentence in problem_with_answers(a_question(), answers)


@pytest.mark.parametrize("answers", RIGHT)
def test_answers_are_paired_with_calls_by_id_in_any_order(answers: Any) -> None:
    assert problem_with_answers(a_question(), answers) == ""


@pytest.mark.parametrize(
    "changed",
    [
        {"number": 2}, {"line": "run-2"}, {"draft_version": 2}, {"control_version": 2}, {"deadline": NOW},
        {"calls": (READ, WORDS)}, {"calls": (WORDS,)}, {"answering": {"role": "expert"}},
        {"calls": (WORDS, READ.model_copy(update={"args": {"sql": "SELECT * FROM data"}}))},
        {"calls": (WORDS, READ.model_copy(update={"description": "it reads nothing"}))},
    ],
)  # fmt: skip
def test_an_answer_is_bound_to_everything_that_its_signer_saw(changed: dict[str, Any]) -> None:
    assert a_question(**changed).hash() != a_question().hash() == a_question().hash()


@pytest.mark.guarantee("G02")
@pytest.mark.parametrize(
    ("calls", "allowed"), [((WORDS,), True), ((READ,), False), ((WORDS, READ), False), ((READ, WORDS), False)]
)
def test_whoever_asked_for_the_operation_answers_words_and_never_allows_a_guarded_call(
    calls: tuple[PendingCall, ...], allowed: bool
) -> None:
    """Not even with the role that is asked."""
    rita = a_person("rita", "requester", "lead")
    assert may_answer(a_question(*calls), rita, "rita", NOW) == allowed
    assert not may_answer(a_question(*calls, answering={"requester": False}), rita, "rita", NOW)
    gone = rita.model_copy(update={"active": False})
    assert not may_answer(a_question(*calls), gone, "rita", NOW)


TIERS = {"ladder": {"tiers": [{"after": "2h", "role": "expert", "decisions": ["reject"]}]}}


def test_further_people_may_answer_from_their_hour_on_and_only_what_their_line_may() -> None:
    question, eve, lea = a_question(answering=TIERS), a_person("eve", "expert"), a_person("lea", "lead")
    assert not may_answer(question, eve, "rita", NOW + 2 * HOUR - timedelta(microseconds=1))
    assert may_answer(question, eve, "rita", NOW + 2 * HOUR)
    assert beyond(question, eve, (SECOND_HALF, READ_IT), NOW + 2 * HOUR) == "approve"
    assert beyond(question, eve, (SECOND_HALF,), NOW + 2 * HOUR) == ""
    assert beyond(question, lea, (SECOND_HALF, READ_IT), NOW + 2 * HOUR) == ""
    assert question.asked(NOW) == ("lead",)
    assert question.asked(NOW + 2 * HOUR) == ("lead", "expert")


def test_reminders_and_further_people_are_due_before_the_deadline_in_their_order() -> None:
    ladder = {"remind": ["1h", "3h"], **TIERS["ladder"], "then": "freeze"}
    question = a_question(answering={"ladder": ladder})
    assert [(tick.kind, (tick.at - NOW) / HOUR, tick.roles) for tick in question.ticks()] == [
        ("remind", 1, ("lead",)), ("tier", 2, ("expert",)), ("remind", 3, ("lead", "expert"))
    ]  # fmt: skip
    assert question.freezes
    assert not a_question().freezes
    assert question.answering.need.open_for() == WITHIN


@pytest.mark.parametrize("calls", [[], [WORDS.model_dump()] * 2, [WORDS.model_dump()] * 21])
def test_a_question_is_about_something_and_not_about_everything(calls: list[Any]) -> None:
    with pytest.raises(ValidationError):
        a_question(calls=calls)


@pytest.mark.parametrize("answers", [[], [{"call": "call-1", "decision": "yes"}], [{"call": "", "decision": "reject"}]])
def test_malformed_answers_do_not_exist(answers: list[Any]) -> None:
    with pytest.raises(ValidationError):
        Answers.model_validate({"answers": answers})
