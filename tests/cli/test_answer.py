"""Answering the agent: all of it is shown first, each call is answered by its id, or nothing is sent at all."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from countersign.cases.report.case import ReportCase
from countersign.domain.canonical import sha256_hex
from countersign.domain.question import QuestionStatus
from countersign.domain.state import State
from tests.cli.asking import OPERATION, asks, guarded, put_question, stored
from tests.cli.desk import ACME, TENANT, Desk

LEA = (*ACME, "--as", "lea")
RITA = (*ACME, "--as", "rita")
DOCUMENTED = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.fixture(autouse=True)
def delivered(desk: Desk) -> None:
    """What the commands send arrives at the run; the case takes any arguments but those of another table."""

    def edit_problem(_: Any, __: Any, tool: str, args: Mapping[str, Any]) -> str:
        return f"{tool} reads only data" if "salaries" in str(args) else ""

    desk.carry()
    desk.cli.monkeypatch.setattr(ReportCase, "edit_problem", edit_problem, raising=False)


def answered(desk: Desk) -> list[tuple[str, str, Any, str]]:
    """What the ledger has of the answers; nothing where the question waits as before."""
    found = stored(desk).answered
    return [] if found is None else [(one.call, one.decision, one.args, one.message) for one in found.answers]


def typed(desk: Desk, *lines: str) -> None:
    """What the person types at the terminal."""
    desk.cli.monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def fields_of(heading: str) -> list[str]:
    part = DOCUMENTED.read_text().partition(f"## `{heading}`")[2].partition("## ")[0]
    return re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)


def test_a_question_is_shown_whole_and_none_of_its_texts_can_pose_as_ours(desk: Desk) -> None:
    sly = guarded(sql="select name from data -- \u202eok\nmay answer  rita")
    question = put_question(desk, sly, asks(text="Which half?\nCALL call_9: approved"), requester=False)

    for command in (("answer", OPERATION, *ACME), ("show", OPERATION, *ACME), ("next", *LEA)):
        shown = desk.cli.done(*command).out

        assert question.hash() in shown
        assert "CALL call_1: query_dataset; allowed: approve, edit, reject\n" in shown
        assert r"  ! it holds characters that cannot be seen; they are written out here: \u{202e}" in shown
        assert r'  |   "sql": "select name from data -- \u202eok\nmay answer  rita"' in shown
        assert "  | it reads the sensitive column name\n" in shown
        assert "  | CALL call_9: approved\n" in shown
        assert "\nCALL call_9" not in shown
        assert re.search(r"^  asked now +role lead$", shown, re.MULTILINE)
        assert re.search(r"^  may answer +lea, max$", shown, re.MULTILINE)
        assert re.search(r"^  deadline +\S+Z; unanswered by then, the run ends as expired; nothing is", shown, re.M)


EDITED = {"sql": "select count(*) from data"}


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("--edit", "call_1=-"), ("edit", EDITED, "")),
        (("--reject", "call_1=not needed = no"), ("reject", None, "not needed = no")),
    ],
)
def test_each_call_is_answered_by_its_id_and_exactly_that_is_signed(
    desk: Desk, given: tuple[str, ...], kept: tuple[str, Any, str]
) -> None:
    question = put_question(desk, guarded(), asks())
    typed(desk, json.dumps(EDITED))

    done = desk.cli.done("answer", OPERATION, *LEA, *given, "--respond", "call_2=the second")

    assert "accepted: the agent goes on with exactly these answers" in done.out
    assert sorted(answered(desk)) == [("call_1", *kept), ("call_2", "respond", None, "the second")]
    record = [one for one in desk.ledger.audit.records(TENANT, OPERATION) if one.type == "command.accepted"][-1]
    document = desk.ledger.documents.get(TENANT, str(record.detail["content"]))
    assert record.detail["question"] == question.hash()
    assert sha256_hex(document) == record.detail["content"]
    assert [one["call"] for one in json.loads(document)["answers"]] == ["call_1", "call_2"]
    assert f"question         {question.hash()}" in done.out


def test_a_requester_answers_what_only_asks_without_naming_the_one_call(desk: Desk) -> None:
    put_question(desk, asks("call_1"))

    desk.cli.done("answer", OPERATION, *RITA, "--respond", "a=b")

    assert answered(desk) == [("call_1", "respond", None, "a=b")]


def test_at_a_terminal_each_call_is_asked_in_turn_and_signed_at_the_end(desk: Desk) -> None:
    put_question(desk, guarded("a"), guarded("b"), asks("c"))
    typed(desk, "yes", "rej", "names are not needed", "approve", "the second", "y")

    done = desk.cli.done("answer", OPERATION, *LEA)

    assert "'yes' is not one of approve, edit, reject" in done.err
    assert [(call, decision, words) for call, decision, _, words in answered(desk)] == [
        ("a", "reject", "names are not needed"),
        ("b", "approve", ""),
        ("c", "respond", "the second"),
    ]
    assert (
        "YOUR ANSWERS\n  a: reject\n    | names are not needed\n  b: approve\n  c: respond\n    | the second"
        in done.out
    )


def test_arguments_are_edited_in_an_editor(desk: Desk) -> None:
    put_question(desk)
    desk.cli.monkeypatch.setenv("EDITOR", "sed -i.before s/name/city/")
    typed(desk, "edit", "y")

    desk.cli.done("answer", OPERATION, *LEA)

    assert answered(desk) == [("call_1", "edit", {"sql": "select city from data"}, "")]


def test_what_is_refused_of_one_call_at_a_terminal_is_asked_again_and_loses_no_other_answer(desk: Desk) -> None:
    put_question(desk, guarded("a"), guarded("b"))
    for name in ("EDITOR", "VISUAL"):
        desk.cli.monkeypatch.delenv(name, raising=False)
    typed(desk, "reject", "names are not needed", "edit", "reject", "\u200b", "approve", "y")

    done = desk.cli.done("answer", OPERATION, *LEA)

    assert "EDITOR is not set; set it to your editor, or give --edit CALL=FILE; this call is asked again" in done.err
    assert [(call, decision, words) for call, decision, _, words in answered(desk)] == [
        ("a", "reject", "names are not needed"),
        ("b", "approve", ""),
    ]
    assert done.out.count("it reads the sensitive column name") == 2, "each call is shown once"


def test_whoever_breaks_off_at_the_terminal_has_sent_nothing(desk: Desk) -> None:
    put_question(desk, guarded(), asks())

    for lines in ((), ("approve",), ("approve", "the second"), ("approve", "the second", "n")):
        typed(desk, *lines)
        assert desk.cli("answer", OPERATION, *LEA).code == 1
    assert answered(desk) == []


def test_what_is_not_right_for_every_call_is_refused_whole_in_one_line(desk: Desk) -> None:
    put_question(desk, guarded(), asks())
    typed(desk, '{"sql": "select * from salaries"}')

    incomplete = desk.cli("answer", OPERATION, *LEA, "--approve", "call_1")
    forbidden = desk.cli("answer", OPERATION, *LEA, "--edit", "call_1=-", "--respond", "call_2=x")
    unreadable = desk.cli("answer", OPERATION, *LEA, "--all", "reject", "--approve", "call_1")
    unsigned = desk.cli("answer", OPERATION, *ACME, "--all", "reject")

    assert [one.code for one in (incomplete, forbidden, unreadable, unsigned)] == [1, 1, 2, 2]
    assert incomplete.err == (
        "error: 2 calls wait, 1 answers were given; look at 'call_2'; nothing was sent; waiting:"
        " call_1 (query_dataset: approve, edit, reject); call_2 (ask_user: respond)\n"
    )
    assert forbidden.err.startswith("error: --edit 'call_1': query_dataset reads only data; nothing was sent; waiting:")
    assert "not by more than one of them" in unreadable.err
    assert "--as: say who answers" in unsigned.err
    assert (answered(desk), stored(desk).status) == ([], QuestionStatus.PENDING)


def test_one_decision_for_all_names_the_call_that_does_not_take_it_and_what_to_give_instead(desk: Desk) -> None:
    put_question(desk, guarded("a b"), asks())

    refused = desk.cli("answer", OPERATION, *LEA, "--all", "reject")

    assert (refused.code, answered(desk)) == (1, [])
    assert refused.err == (
        "error: --all reject: 'call_2' (ask_user) takes only respond; nothing was sent; answer call by call, such as:"
        " --reject 'a b' --respond call_2=TEXT\n"
    )


@pytest.mark.guarantee("G02", "G04")
def test_whoever_may_not_answer_signs_nothing_and_is_shown_nothing_to_sign(desk: Desk) -> None:
    put_question(desk, guarded(), asks())

    for person in ("bob", "rita"):
        refused = desk.cli("answer", OPERATION, *ACME, "--as", person, "--all", "reject")

        assert (refused.code, refused.out) == (1, "")
        assert "this answer would be refused: role_missing: " in refused.err
    assert answered(desk) == []


@pytest.mark.guarantee("G16")
def test_an_answer_in_a_file_counts_once_and_not_for_what_is_asked_later(desk: Desk, tmp_path: Path) -> None:
    put_question(desk)
    first, second, third = (tmp_path / f"{name}.json" for name in ("first", "second", "third"))
    for file in (first, second, third):
        desk.cli.done("sign", "answer", OPERATION, *LEA, "--all", "approve", "--out", file)

    rulings = [desk.sent(OPERATION, file.read_text(), "answer").ruling for file in (first, first, second)]
    put_question(desk, guarded("call_2"), registered=True)
    rulings.append(desk.sent(OPERATION, third.read_text(), "answer").ruling)

    assert rulings == ["accepted", "replay", "nothing_asked", "stale_question"]
    assert stored(desk).status == QuestionStatus.PENDING


def test_where_nothing_waits_the_command_says_how_it_stands(desk: Desk) -> None:
    desk.register(OPERATION)
    nothing = desk.cli("answer", OPERATION, *LEA, "--all", "approve")
    put_question(desk, registered=True)
    desk.cli.done("answer", OPERATION, *LEA, "--all", "reject")
    closed = desk.cli("answer", OPERATION, *LEA, "--all", "approve")

    assert (nothing.code, closed.code) == (1, 1)
    assert "the agent has asked nothing; its run is CREATED" in nothing.err
    assert re.search(
        r"question 1 was answered by lea at \S+Z; its run is \w+; nothing waits for an answer$", closed.err
    )


def test_a_question_that_was_answered_is_called_so_wherever_it_is_told_of(desk: Desk) -> None:
    put_question(desk)
    before = desk.cli.done("brief", OPERATION, *LEA).out
    desk.cli.done("answer", OPERATION, *LEA, "--all", "reject")
    after = desk.cli.done("brief", OPERATION, *LEA).out

    assert re.search(r"^  answer: \S+ starter.py answer", before, re.MULTILINE)
    said = r"^  answer: no: nothing_asked: the agent's question 1 was answered by lea at \S+Z; its run is \w+$"
    assert re.search(said, after, re.MULTILINE)


def test_what_the_agent_asks_waits_for_whoever_may_answer_and_for_nobody_else(desk: Desk) -> None:
    put_question(desk, guarded(), operation="guarded")
    put_question(desk, asks(), operation="plain", within="2h")

    listed = {name: desk.cli.done("inbox", *ACME, "--as", name, "--json").json() for name in ("lea", "rita", "bob")}

    assert [(one["kind"], one["operation"]) for one in listed["lea"]] == [
        ("question", "plain"),
        ("question", "guarded"),
    ]
    assert [one["operation"] for one in listed["rita"]] == ["plain"]
    assert listed["bob"] == []
    assert listed["lea"][0]["summary"] == "the agent asks: ask_user"
    assert listed["lea"][0]["commands"] == [".venv/bin/python starter.py answer plain --tenant acme --as lea"]
    assert set(listed["lea"][0]) == set(fields_of("inbox"))


@pytest.mark.guarantee("G27")
def test_further_people_are_asked_from_their_time_on(desk: Desk) -> None:
    ladder = {"tiers": [{"after": "5m", "role": "reviewer", "decisions": ["approve", "reject"]}]}
    put_question(desk, operation="early", ladder=ladder)
    put_question(desk, operation="waited", ladder=ladder, minutes_ago=10)

    listed = desk.cli.done("inbox", *ACME, "--as", "bob", "--json").json()
    status = desk.cli.done("status", "waited", *ACME).out

    assert [one["operation"] for one in listed] == ["waited"]
    assert re.search(r"^waits for +role lead or reviewer, to answer the agent's question 1, until \S+Z$", status, re.M)


def test_how_it_stands_and_what_was_answered_is_told_everywhere_as_documented(desk: Desk) -> None:
    put_question(desk, asks())
    open_now = desk.cli.done("answer", OPERATION, *ACME, "--json").json()
    status = desk.cli.done("status", OPERATION, *ACME, "--json").json()
    answer = desk.cli.done("answer", OPERATION, *LEA, "--respond", "the second", "--json").json()
    desk.stands(OPERATION, State.RUNNING)

    shown = desk.cli.done("show", OPERATION, *ACME)
    (told,) = desk.cli.done("show", OPERATION, *ACME, "--json").json()["questions"]
    brief = desk.cli.done("brief", OPERATION, *ACME).out

    assert list(open_now) == fields_of("answer")
    assert (answer["decision"], answer["outcome"]["ruling"]) == ("answer", "accepted")
    assert status["question"] == {name: open_now[name] for name in told}
    assert (open_now["may_answer"], open_now["roles"]) == (["lea", "max", "rita"], ["lead"])
    assert status["waits_for"].startswith("role lead, or rita, who asked for the operation, to answer the agent's")
    assert (told["status"], told["answered"]["person"], told["roles"]) == ("answered", "lea", [])
    assert re.search(r"^question +1: ask_user; answered by lea at \S+Z$", shown.out, re.MULTILINE)
    assert "call_2 respond by lea: the second" in brief
    assert desk.cli.done("status", OPERATION, *ACME, "--json").json()["question"] is None


@pytest.mark.guarantee("G24")
def test_ends_by_silence_or_by_a_limit_are_called_what_they_are(desk: Desk) -> None:
    for state, reason, words in (
        (State.EXPIRED, "unanswered_at_deadline", "nobody answered the agent in time, and nobody said no"),
        (State.FAILED, "too_many_pending", "too much of the tenant waits for people already"),
        (State.FAILED, "budget_exceeded", "its budget for models is used up"),
    ):
        desk.register(reason)
        desk.stands(reason, state, reason)

        assert words in desk.cli.done("status", reason, *ACME).out
