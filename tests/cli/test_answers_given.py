"""How options and files come to answers: each for a call by its id, and none where one of them is not right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.deciding.answers import Given, answers_of, checked
from countersign.cli.errors import Unreadable
from countersign.domain.errors import InputRefused
from countersign.domain.question import MAX_MESSAGE, Answer, Answering, PendingCall, Question
from tests.cli.asking import asks, guarded

AT = datetime(2026, 11, 30, 9, tzinfo=UTC)
EDITED = {"sql": "select count(*) from data"}


def question(*calls: PendingCall) -> Question:
    return Question(
        tenant="acme", operation="report-7", number=1, line="run", draft_version=1, control_version=1, calls=calls,
        answering=Answering(role="lead", within="24h", at_most=10), asked_at=AT, deadline=AT + timedelta(days=1),
    )  # fmt: skip


BOTH = question(guarded(), asks())


def any_arguments(_: str, args: Mapping[str, Any]) -> str:
    return "it reads only data" if "salaries" in str(args) else ""


def given_of(asked: Question, **given: Any) -> tuple[Answer, ...]:
    return checked(asked, answers_of(asked, Given(**given)), any_arguments)


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_one_decision_can_be_for_all(decision: Any) -> None:
    answers = given_of(question(guarded("a"), guarded("b")), every=decision)

    assert answers == (Answer(call="a", decision=decision), Answer(call="b", decision=decision))


def test_an_id_may_hold_what_separates_it_from_the_text(tmp_path: Path) -> None:
    file = tmp_path / "a=b.json"
    file.write_text(json.dumps(EDITED))
    asked = question(guarded("a"), guarded("a=b"), guarded("c"), asks("d"))

    answers = given_of(asked, approve=["c"], reject=["a=b=no = no"], edit=[f"a={file}"], respond=["d=e=f"])

    assert {one.call: (one.decision, one.args, one.message) for one in answers} == {
        "c": ("approve", None, ""), "a": ("edit", EDITED, ""), "a=b": ("reject", None, "no = no"),
        "d": ("respond", None, "e=f"),
    }  # fmt: skip


def test_answers_in_a_file_are_taken_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    second, first = ({"call": "call_2", "decision": "respond", "message": "b"},
                     {"call": "call_1", "decision": "edit", "args": EDITED})  # fmt: skip
    file.write_text(json.dumps({"answers": [second, first]}))

    assert [one.call for one in given_of(BOTH, file=file)] == ["call_2", "call_1"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"approve": ["call_1"]}, "2 calls wait, 1 answers were given; look at 'call_2'"),
        ({"approve": ["call_1"], "reject": ["call_1"]}, "look at 'call_2'"),
        ({"approve": ["call_1"], "reject": ["call_1"], "respond": ["call_2=x"]}, "look at 'call_1'"),
        ({"approve": ["call_9"], "respond": ["call_2=x"]}, "--approve: 'call_9' names no call that waits"),
        ({"approve": ["1"], "respond": ["2=x"]}, "--approve: '1' names no call that waits"),
        ({"respond": ["the second"]}, "--respond: 'the second' names no call that waits"),
        ({"approve": ["call_1"], "respond": ["call_2= "]}, "the agent is answered in words; give some"),
    ],
)
def test_what_is_not_right_for_every_call_is_refused_and_what_waits_is_named(given: Any, words: str) -> None:
    with pytest.raises(InputRefused) as refused:
        given_of(BOTH, **given)

    waits = "waiting: call_1 (query_dataset: approve, edit, reject); call_2 (ask_user: respond)"
    assert words in refused.value.message
    assert refused.value.message.endswith(f"; nothing was sent; {waits}")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"edit": ["call_1"]}, "write CALL=FILE"),
        ({"every": "respond"}, "--all: 'respond' is not one of approve, reject"),
        ({"every": "reject", "approve": ["call_1"]}, "not by more than one of them"),
    ],
)
def test_options_that_cannot_be_read_say_how_they_are_written(given: Any, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        given_of(BOTH, **given)


def test_arguments_that_the_case_does_not_take_and_texts_that_are_too_long_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "args.json"
    file.write_text('{"sql": "select * from salaries"}')

    with pytest.raises(InputRefused, match="--edit 'call_1': it reads only data"):
        given_of(question(guarded()), edit=[f"call_1={file}"])
    with pytest.raises(InputRefused, match="--respond: message: "):
        given_of(question(asks()), respond=["x" * (MAX_MESSAGE + 1)])


@pytest.mark.parametrize(
    "text",
    ['{"answers": []}', '{"answers": [{"call": "call_1"}]}', "[]", "{", '{"answers": [], "answers": [{}]}'],
)
def test_a_file_that_holds_no_answers_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "answers.json"
    file.write_text(text)

    with pytest.raises(InputRefused) as refused:
        given_of(BOTH, file=file)

    assert refused.value.message.startswith(f"{file}: ")
