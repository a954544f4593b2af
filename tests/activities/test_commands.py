"""Commands as they come to a run: verified, worked out, done once; and whatever else comes leaves a record."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from activities.interfaces import Told
from countersign.domain.command import COMMANDS, Ending
from countersign.domain.decision import Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import MAX_CALLS, PendingCall, QuestionStatus
from countersign.domain.report import Draft
from countersign.domain.state import State
from countersign.ports import Waiting
from tests.activities.desk import OPERATION, Desk, a_draft, called

NO_FORMS = (
    None, "", "{", "[]", "null", '"token"', "{}", '{"statement": ""}', '{"statement": 1}', '{"statement": null}',
    '{"unsigned": {"command": "take_over"}}', '{"statement": "a.b.c", "unsigned": {}}',
    '{"statement": "a.b.c", "by": "lena"}', '{"statement": "a", "statement": "b"}', '{"statement": "\\ud800"}',
    json.dumps({"statement": "x" * 8_001}),
)  # fmt: skip


@pytest.mark.guarantee("G19", "G47")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_message_that_is_no_signed_command_changes_nothing_and_leaves_a_record(desk: Desk, name: str) -> None:
    desk.passed()
    before = desk.standing()
    messages = [desk.message(name, body) for body in NO_FORMS]
    decided = desk.decide(*messages, desk.message(name, '{"statement": "a.b.c"}'))
    rulings = [outcome.ruling for outcome in decided.outcomes]
    assert rulings == [Ruling.MALFORMED] * len(NO_FORMS) + [Ruling.BAD_STATEMENT]
    assert (decided.told, desk.standing()) == ((), before)
    assert len(desk.records("decision.refused")) == len(messages) + 1


@pytest.mark.guarantee("G19")
@pytest.mark.parametrize("name", ["", "Take_over", "takeover", "take_over ", "edit", "freeze", "x" * 10_000])
def test_a_message_of_any_other_name_is_unknown(desk: Desk, name: str) -> None:
    outcome = desk.decide(desk.message(name, desk.signed("lena", "take_over"))).outcomes[0]
    assert outcome.ruling == Ruling.UNKNOWN_MESSAGE
    assert desk.standing().control.by == "agent"


@pytest.mark.guarantee("G28")
def test_of_two_who_take_over_at_once_one_wins_and_the_other_learns_who(desk: Desk) -> None:
    both = [desk.message("take_over", desk.signed(person, "take_over")) for person in ("lena", "liam")]
    decided = desk.decide(*both)
    assert [outcome.ruling for outcome in decided.outcomes] == [Ruling.ACCEPTED, Ruling.STALE_CONTROL]
    assert "control is with lena since" in decided.outcomes[1].detail
    assert decided.control is not None
    assert (decided.control.by, decided.control.person, decided.control.version) == ("person", "lena", 2)
    assert decided.told == (Told(command="take_over", person="lena", draft_version=0),)


@pytest.mark.guarantee("G17")
def test_a_repeated_step_tells_the_same_and_does_it_once(desk: Desk) -> None:
    message = desk.message("take_over", desk.signed("lena", "take_over"))
    first, again = desk.decide(message), desk.decide(message)
    assert first == again
    assert len(desk.records("control.changed")) == 1


@pytest.mark.guarantee("G17")
def test_a_replayed_command_does_nothing_and_tells_the_run_nothing(desk: Desk) -> None:
    body = desk.signed("lena", "take_over")
    desk.decide(desk.message("take_over", body))
    assert desk.command("lena", "release").ruling == Ruling.ACCEPTED
    again = desk.decide(desk.message("take_over", body))
    assert (again.outcomes[0].ruling, again.told) == (Ruling.REPLAY, ())
    assert again.control is not None
    assert (again.control.by, again.control.version) == ("agent", 3)


@pytest.mark.guarantee("G20")
@pytest.mark.parametrize("elsewhere", [{"operation": "op-2"}, {"tenant": "other"}])
def test_a_command_for_another_operation_does_nothing_here(desk: Desk, elsewhere: dict[str, str]) -> None:
    body = desk.signed("lena", "take_over", **elsewhere)
    outcome = desk.decide(desk.message("take_over", body)).outcomes[0]
    assert outcome.ruling in {Ruling.NOT_THIS_APPROVAL, Ruling.BAD_STATEMENT}
    assert desk.standing().control.by == "agent"


@pytest.mark.guarantee("G18")
def test_a_command_says_under_its_signature_which_it_is(desk: Desk) -> None:
    outcome = desk.decide(desk.message("cancel", desk.signed("olga", "take_over"))).outcomes[0]
    assert outcome.ruling == Ruling.MALFORMED
    assert "signed as take_over" in outcome.detail
    assert desk.standing().ending is None


@pytest.mark.guarantee("G18")
def test_a_decision_is_no_command_and_a_command_no_decision(desk: Desk) -> None:
    desk.passed()
    desk.propose()
    vote = json.dumps(desk.installation.decision(desk.proposal, "bob"))
    command = desk.signed("olga", "cancel")
    decided = desk.decide(desk.message("cancel", vote), desk.message("decide", command))
    assert [outcome.ruling for outcome in decided.outcomes] == [Ruling.BAD_STATEMENT] * 2
    assert desk.current().status == ApprovalStatus.PENDING


@pytest.mark.guarantee("G29")
def test_what_goes_wrong_with_one_message_keeps_no_other_waiting(desk: Desk) -> None:
    desk.passed()
    desk.propose()
    vote = json.dumps(desk.installation.decision(desk.proposal, "bob"))
    unreadable = desk.signed("lena", "amend", draft_version=1, content="sha256:" + "0" * 64)
    decided = desk.decide(
        desk.message("amend", unreadable), desk.message("amend", "{" * 40), desk.message("decide", vote)
    )
    assert [outcome.ruling for outcome in decided.outcomes] == [
        Ruling.NOT_IN_CONTROL, Ruling.MALFORMED, Ruling.ACCEPTED,
    ]  # fmt: skip
    assert decided.status == ApprovalStatus.GRANTED


@pytest.mark.parametrize(
    ("person", "command", "ending"),
    [
        ("rita", "withdraw", Ending(state=State.WITHDRAWN, reason="withdrawn")),
        ("olga", "cancel", Ending(state=State.CANCELLED, reason="cancelled_by_operator")),
    ],
)
def test_a_command_that_ends_the_run_tells_it_how(desk: Desk, person: str, command: Any, ending: Ending) -> None:
    decided = desk.decide(desk.message(command, desk.signed(person, command)))
    assert (decided.ending, [told.command for told in decided.told]) == (ending, [command])


def taken(desk: Desk) -> Desk:
    """Lena holds the run, which has one draft."""
    desk.passed()
    assert desk.command("lena", "take_over").ruling == Ruling.ACCEPTED
    return desk


def test_an_amendment_is_the_next_version_beside_the_agents(desk: Desk) -> None:
    content = taken(desk).put(a_draft("Sales, corrected"))
    body = desk.signed("lena", "amend", draft_version=1, content=content)
    decided = desk.decide(desk.message("amend", body))
    assert decided.outcomes[0].ruling == Ruling.ACCEPTED
    assert (decided.draft_version, decided.told[0].content) == (2, content)
    titles = [desk.ledger.drafts.get("acme", OPERATION, version)["title"] for version in (1, 2)]
    assert titles == ["Sales", "Sales, corrected"]
    # What is signed is in canonical order; the hash of a version does not tell who wrote it.
    assert [*desk.ledger.drafts.get("acme", OPERATION, 2)] == [*Draft.model_fields]
    assert desk.ledger.drafts.authors("acme", OPERATION) == ("lena",)


GOOD = a_draft()


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        json.dumps(GOOD, separators=(",", ":")).encode(),
        json.dumps(GOOD).encode() + b" ",
        json.dumps({**GOOD, "approved": True}, sort_keys=True, separators=(",", ":")).encode(),
        json.dumps({**GOOD, "claims": []}, sort_keys=True, separators=(",", ":")).encode(),
        json.dumps({**GOOD, "title": 1}, sort_keys=True, separators=(",", ":")).encode(),
        b"[" * 10_000,
        b'{"title": "a", "title": "b"}',
    ],
)
def test_an_amendment_that_is_no_draft_in_its_one_form_is_refused_in_a_sentence(desk: Desk, data: bytes) -> None:
    content = taken(desk).ledger.documents.put("acme", data)
    outcome = desk.command("lena", "amend", draft_version=1, content=content)
    assert outcome.ruling == Ruling.CONTENT_REFUSED
    assert outcome.detail
    assert desk.standing().draft_version == 1


def test_an_amendment_that_nobody_stored_is_refused(desk: Desk) -> None:
    outcome = taken(desk).command("lena", "amend", draft_version=1, content="sha256:" + "0" * 64)
    assert (outcome.ruling, "not in the ledger" in outcome.detail) == (Ruling.CONTENT_REFUSED, True)


@pytest.mark.parametrize(
    "args",
    [
        [],
        {},
        {"channel": "public"},
        {"channel": "nowhere", "name": "op-1.md", "title": "Sales"},
        {"channel": "public", "name": "../op-1.md", "title": "Sales"},
        {"channel": "public", "name": "op-1.md", "title": "Sales rose by 900"},
        {"channel": "public", "name": "op-1.md", "title": "Sales", "force": True},
    ],
)
def test_arguments_that_the_case_refuses_are_refused_before_anything_is_proposed(desk: Desk, args: Any) -> None:
    content = taken(desk).put(args)
    outcome = desk.command("lena", "propose", draft_version=1, content=content)
    assert outcome.ruling == Ruling.CONTENT_REFUSED
    assert outcome.detail


def test_before_anything_is_drafted_nothing_can_be_proposed(desk: Desk) -> None:
    """Told to whoever tries, rather than accepted and then never done."""
    desk.command("lena", "take_over")
    outcome = desk.command("lena", "propose")
    assert (outcome.ruling, outcome.detail) == (
        Ruling.CONTENT_REFUSED, "nothing is drafted yet, so there is nothing to propose; amend first",
    )  # fmt: skip


def test_good_arguments_are_told_to_the_run(desk: Desk) -> None:
    content = taken(desk).put({"channel": "public", "name": "op-1.md", "title": "Sales of the year"})
    body = desk.signed("lena", "propose", draft_version=1, content=content)
    decided = desk.decide(desk.message("propose", body))
    assert decided.outcomes[0].ruling == Ruling.ACCEPTED
    assert decided.told == (Told(command="propose", person="lena", draft_version=1, content=content),)


class Asking:
    """An agent that waits for as many guarded reads as one question takes."""

    async def draft(self, *_: Any, **__: Any) -> Waiting:
        reads = tuple(
            PendingCall(
                id=f"call-{number}", tool="query_dataset", args={"sql": "SELECT amount FROM data"},
                description="It reads amounts.", decisions=("approve", "edit", "reject"),
            )
            for number in range(MAX_CALLS)
        )  # fmt: skip
        return Waiting(reads, "a-model")


def edits(desk: Desk, sql: str, **changes: Any) -> dict[str, Any]:
    """A command's fields that change every call that the agent waits for into this query."""
    called(desk.as_run(), desk.drafted_by(Asking()).draft, desk.step())
    asked = desk.ledger.questions.current("acme", OPERATION)
    assert asked is not None
    given = [{"call": call.id, "decision": "edit", "args": {"sql": sql}} for call in asked.question.calls]
    return {"question": asked.question.hash(), "content": desk.put({"answers": given}), **changes}


@pytest.fixture
def looked_at(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries of edits that the case was asked about, each of which opened the evidence."""
    case, queries = desk.cases["report"], []
    look: Any = case.edit_problem  # type: ignore[attr-defined]  # the report's case is a drafted one

    def looking(operation: Any, tool: str, args: Any) -> Any:
        queries.append(args["sql"])
        return look(operation, tool, args)

    monkeypatch.setattr(case, "edit_problem", looking)
    return queries


@pytest.mark.guarantee("G29")
@pytest.mark.parametrize(
    ("person", "changes", "later", "ruling"),
    [
        ("olga", {}, 0, Ruling.ROLE_MISSING),
        ("rita", {}, 0, Ruling.ROLE_MISSING),
        ("lena", {"question": "sha256:" + "0" * 64}, 0, Ruling.STALE_QUESTION),
        ("lena", {"control_version": 9}, 0, Ruling.STALE_CONTROL),
        ("lena", {}, 25, Ruling.LATE),
    ],
    ids=["no role", "requester", "other question", "other control", "late"],
)
def test_edits_of_whoever_may_not_answer_open_no_evidence(
    desk: Desk, looked_at: list[str], person: str, changes: dict[str, Any], later: int, ruling: Ruling
) -> None:
    answer = edits(desk, "DROP TABLE data", **changes)
    desk.later = timedelta(hours=later)
    outcome = desk.command(person, "answer", **answer)
    assert (outcome.ruling, looked_at) == (ruling, [])


@pytest.mark.parametrize(
    ("sql", "ruling", "words", "looked"),
    [
        ("DROP TABLE data", Ruling.CONTENT_REFUSED, "call 'call-0': argument 'sql': only one SELECT", 1),
        ("SELECT min(amount) FROM data", Ruling.ACCEPTED, "", MAX_CALLS),
    ],
)
def test_edits_of_whoever_may_answer_are_looked_at_and_what_is_wrong_is_told(
    desk: Desk, looked_at: list[str], sql: str, ruling: Ruling, words: str, looked: int
) -> None:
    outcome = desk.command("lena", "answer", **edits(desk, sql))
    assert (outcome.ruling, outcome.detail[: len(words)], looked_at) == (ruling, words, [sql] * looked)


def test_an_edit_that_nobody_looked_at_is_not_accepted_by_a_role_given_in_the_meantime(
    desk: Desk, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ruled on twice, it could be refused at first and allowed a moment later."""
    would = type(desk.ledger.controls).would

    def then_enrolled(self: Any, *said: Any) -> Any:
        ruled = would(self, *said)
        desk.installation.demote("olga", "lead")
        return ruled

    monkeypatch.setattr(type(desk.ledger.controls), "would", then_enrolled)
    outcome = desk.command("olga", "answer", **edits(desk, "DROP TABLE data"))
    assert (outcome.ruling, looked_at) == (Ruling.CONTENT_REFUSED, [])
    asked = desk.ledger.questions.current("acme", OPERATION)
    assert asked is not None
    assert asked.status == QuestionStatus.PENDING
