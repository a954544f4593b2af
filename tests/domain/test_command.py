"""The ruling on a command, as a table to read: who does what with a run, under whose control, in which state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from countersign.domain.canonical import sha256_hex
from countersign.domain.command import COMMANDS, ENDING, ENDS_AS, Command, CommandKind, Situation, rule_on_command
from countersign.domain.control import Control, Takeover, first_control
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.question import Answer, Question, QuestionStatus
from countersign.domain.settlement import Settling, Unsettled
from countersign.domain.state import Event, State, after
from tests.domain.asking import READ, READ_IT, SECOND_HALF, WITHIN, WORDS, a_question, pending
from tests.domain.samples import NOW, a_person

HOUR, MOMENT = timedelta(hours=1), timedelta(microseconds=1)
DRAFT = sha256_hex(b"a draft")
KEY, OTHER_KEY = "a" * 64, "b" * 64
QUESTION = a_question()
UNSETTLED = Unsettled(key=KEY, settling=Settling(role="lead"), authors=frozenset({"lou"}), busy=False)
PERSONS = {
    one.id: one for one in [
        a_person("rita", "requester"),
        a_person("nora", "requester"),
        a_person("lea", "lead"),
        a_person("lou", "lead"),
        a_person("eve", "expert"),
        a_person("omar", "operator"),
        a_person("bob", "reviewer"),
        a_person("ivan", "lead", "operator", "requester", active=False),
    ]
}  # fmt: skip
AGENTS = first_control(NOW)
LEAS = Control(by="person", person="lea", version=2, since=NOW, lease_until=NOW + 8 * HOUR)
NOBODYS = Control(by="nobody", version=3, since=NOW)
SAYS: dict[str, dict[str, Any]] = {
    "amend": {"draft_version": 3, "content": DRAFT}, "grade": {"draft_version": 3}, "propose": {"draft_version": 3},
    "release": {"draft_version": 3}, "hand_over": {"to": "lou"}, "supersede": {"successor": "report-2"},
    "settle": {"key": KEY, "finding": "executed", "reference": "refund-7", "comment_hash": DRAFT},
    "answer": {"question": QUESTION.hash(), "content": DRAFT}, "raise_budget": {"content": DRAFT},
}  # fmt: skip
"""What each says beside its name, to be right."""

BROKE: dict[str, Any] = {"state": State.ESCALATED, "escalated_to": "lead"}
"""Brought before the leads, since its budget is used up."""
OK, ROLE, HELD, STALE = Ruling.ACCEPTED, Ruling.ROLE_MISSING, Ruling.HELD, Ruling.STALE_CONTROL
HOLDER, REQUESTER, VERSION = Ruling.NOT_IN_CONTROL, Ruling.ONLY_REQUESTER_WITHDRAWS, Ruling.NOT_THIS_VERSION
RECEIVER, SUCCESSOR, CONTENT = Ruling.RECEIVER_REFUSED, Ruling.SUCCESSOR_REFUSED, Ruling.CONTENT_REFUSED


def a_command(kind: str, person: str, control: Control, **changes: Any) -> Command:
    fields: dict[str, Any] = {
        "installation": "local", "person": person, "key_id": f"{person}-1", "tenant": "acme", "operation": "report-1",
        "command": kind, "control_version": control.version, "issued_at": NOW, "expires_at": NOW + HOUR,
        "id": "command-00000001",
    }  # fmt: skip
    return Command.model_validate({**fields, **SAYS.get(kind, {}), **changes})


def a_situation(control: Control, **changes: Any) -> Situation:
    ordinary = Situation(
        control=control, state=State.RUNNING, takeover=Takeover(role="lead", lease="8h"), escalated_to=None,
        requester="rita", requester_may_withdraw=True, on_its_way=False, draft_version=3, receiver=PERSONS["lou"],
        successor="", problem="", now=NOW + HOUR, unsettled=UNSETTLED,
        asked=pending(QUESTION), answers=(READ_IT, SECOND_HALF), out_of_budget=True,
    )  # fmt: skip
    return ordinary._replace(**changes)


def ruled(kind: str, person: str, control: Control, said: dict[str, Any] | None = None, **known: Any) -> Outcome:
    command = a_command(kind, person, control, **(said or {}))
    return rule_on_command(command, PERSONS[person], a_situation(control, **known))


WHOSE = {"agent": AGENTS, "lea": LEAS, "nobody": NOBODYS}
_TAKES = {"rita": ROLE, "nora": ROLE, "lea": OK, "lou": OK, "eve": ROLE, "omar": ROLE, "bob": ROLE, "ivan": ROLE}
_ONLY_LEA = {**dict.fromkeys(PERSONS, HOLDER), "lea": OK, "ivan": ROLE}
_NOBODY = {**dict.fromkeys(PERSONS, HOLDER), "ivan": ROLE}
_RITA = {**dict.fromkeys(PERSONS, REQUESTER), "rita": OK, "ivan": ROLE}
_ENDS = {**dict.fromkeys(PERSONS, ROLE), "lea": OK, "lou": OK, "omar": OK}
_ANSWERS = {**dict.fromkeys(PERSONS, ROLE), "lea": OK, "lou": OK}
_ENOUGH = {**dict.fromkeys(PERSONS, Ruling.BUDGET_NOT_EXCEEDED), "ivan": ROLE}
_SETTLES = {**dict.fromkeys(PERSONS, ROLE), "lea": OK, "lou": Ruling.NOT_INDEPENDENT}
HELD_BY_THE_HOLDER: tuple[CommandKind, ...] = ("amend", "grade", "propose", "release", "hand_over")
WHO_MAY: dict[tuple[str, str], dict[str, Ruling]] = {
    ("take_over", "agent"): _TAKES,
    ("take_over", "lea"): {**_TAKES, "lea": HELD, "lou": HELD},
    ("take_over", "nobody"): _TAKES,
    **{(kind, whose): _ONLY_LEA if whose == "lea" else _NOBODY for kind in HELD_BY_THE_HOLDER for whose in WHOSE},
    **{(kind, whose): _RITA for kind in ("withdraw", "supersede") for whose in WHOSE},
    **{("cancel", whose): _ENDS for whose in WHOSE},
    **{("settle", whose): _SETTLES for whose in WHOSE},
    **{("answer", whose): _ANSWERS for whose in WHOSE},
    **{("raise_budget", whose): _ENOUGH for whose in WHOSE},
}
TABLE = [
    (kind, whose, person, ruling) for (kind, whose), persons in WHO_MAY.items() for person, ruling in persons.items()
]


@pytest.mark.guarantee("G07")
@pytest.mark.guarantee("G28")
@pytest.mark.guarantee("G29")
@pytest.mark.parametrize(("kind", "whose", "person", "ruling"), TABLE)
def test_who_may_do_what_in_every_state(kind: str, whose: str, person: str, ruling: Ruling) -> None:
    for state in State:
        outcome = ruled(kind, person, WHOSE[whose], state=state)

        assert outcome.ruling == (Ruling.ENDED if state.terminal else ruling), (state, outcome.sentence())
        assert not state.terminal or state.value in outcome.sentence()


def test_every_command_is_in_the_table() -> None:
    assert {kind for kind, _ in WHO_MAY} == set(COMMANDS)


@pytest.mark.guarantee("G36")
@pytest.mark.parametrize(("kind", "whose", "person", "ruling"), TABLE)
def test_what_may_be_on_its_way_can_be_watched_and_not_turned_back(
    kind: str, whose: str, person: str, ruling: Ruling
) -> None:
    outcome = ruled(kind, person, WHOSE[whose], state=State.OUTCOME_UNKNOWN, on_its_way=True)

    turns_back = ruling == OK and kind not in ("take_over", "settle", "answer")
    assert outcome.ruling == (Ruling.TOO_LATE if turns_back else ruling), outcome.sentence()


@pytest.mark.guarantee("G28")
@pytest.mark.guarantee("G29")
@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("seen", [1, 3])
def test_a_command_for_another_version_of_control_does_nothing_and_says_who_is_in_control(
    kind: CommandKind, seen: int
) -> None:
    """Also the holder's own; what ends the run, or is about the outside, is good whoever is in control."""
    person = "rita" if kind in ("withdraw", "supersede") else "lea"

    outcome = ruled(kind, person, LEAS, {"control_version": seen}, **(BROKE if kind == "raise_budget" else {}))

    is_bound = kind not in ENDING and kind != "settle"
    assert outcome.ruling == (STALE if is_bound else OK)
    if is_bound:
        assert outcome.detail == (
            f"control is with lea since {NOW.isoformat()}, version 2; you saw version {seen}; look at the run and "
            "sign again"
        )


@pytest.mark.guarantee("G28")
def test_of_two_who_take_over_at_once_one_wins_and_the_other_learns_who() -> None:
    second = rule_on_command(a_command("take_over", "lou", AGENTS), PERSONS["lou"], a_situation(LEAS))

    assert ruled("take_over", "lea", AGENTS).ruling == OK
    assert second.ruling == STALE
    assert "control is with lea since" in second.sentence()


@pytest.mark.guarantee("G28")
def test_who_tries_to_take_a_run_from_a_person_is_told_whose_it_is() -> None:
    assert ruled("take_over", "lou", LEAS).detail == f"lea is in control since {NOW.isoformat()}, version 2"
    assert ruled("take_over", "lea", LEAS).detail == f"you are in control since {NOW.isoformat()}, version 2"


@pytest.mark.guarantee("G29")
@pytest.mark.parametrize(("left", "holds"), [(MOMENT, True), (0 * HOUR, False), (-HOUR, False)])
@pytest.mark.parametrize("kind", HELD_BY_THE_HOLDER)
def test_at_the_end_of_a_lease_control_is_over(kind: str, left: timedelta, holds: bool) -> None:
    now = NOW + 8 * HOUR - left
    outcome = ruled(kind, "lea", LEAS, now=now)

    assert outcome.ruling == (OK if holds else HOLDER)
    assert holds or outcome.detail == f"your control was over at {(NOW + 8 * HOUR).isoformat()}; take over again"
    assert ruled("take_over", "lou", LEAS, now=now).ruling == (HELD if holds else OK)


def test_without_a_word_in_the_policy_nobody_takes_over_and_an_operator_can_still_end_the_run() -> None:
    assert ruled("take_over", "lea", AGENTS, takeover=None).detail == "taking over: the policy lets nobody"
    assert ruled("cancel", "lea", AGENTS, takeover=None).ruling == ROLE
    assert ruled("cancel", "omar", AGENTS, takeover=None).ruling == OK


def test_those_before_whom_a_run_was_brought_may_take_it_over_or_end_it_while_it_is_open() -> None:
    open_one: dict[str, Any] = {"state": State.ESCALATED, "escalated_to": "expert"}

    assert ruled("take_over", "eve", AGENTS, **open_one).ruling == OK
    assert ruled("take_over", "eve", AGENTS, takeover=None, **open_one).ruling == OK
    assert ruled("cancel", "eve", AGENTS, **open_one).ruling == OK
    assert ruled("take_over", "bob", AGENTS, **open_one).detail == "taking over: the role lead or expert is needed"


def test_who_was_brought_in_can_end_the_run_while_they_are_in_control_and_no_longer() -> None:
    eves = LEAS.model_copy(update={"person": "eve"})

    assert ruled("cancel", "eve", eves).ruling == OK
    assert ruled("cancel", "eve", eves, now=NOW + 8 * HOUR).ruling == ROLE
    assert ruled("cancel", "eve", LEAS).ruling == ROLE


VERSIONS = [
    # the command, the version it names, the latest there is; ruling
    ("amend", 3, 3, OK), ("amend", 2, 3, VERSION), ("amend", 4, 3, VERSION), ("amend", 0, 3, VERSION),
    ("amend", 0, 0, OK),
    ("release", 3, 3, OK), ("release", 2, 3, VERSION), ("release", 0, 0, OK), ("release", 1, 0, VERSION),
    ("grade", 3, 3, OK), ("grade", 1, 3, OK), ("grade", 4, 3, VERSION), ("grade", 0, 3, VERSION),
    ("grade", 0, 0, VERSION),
    ("propose", 3, 3, OK), ("propose", 1, 3, OK), ("propose", 4, 3, VERSION), ("propose", 0, 3, VERSION),
    ("propose", 0, 0, OK), ("propose", 1, 0, VERSION),
]  # fmt: skip


@pytest.mark.guarantee("G29")
@pytest.mark.parametrize(("kind", "named", "latest", "ruling"), VERSIONS)
def test_a_command_about_a_draft_names_the_exact_version(kind: str, named: int, latest: int, ruling: Ruling) -> None:
    assert ruled(kind, "lea", LEAS, {"draft_version": named}, draft_version=latest).ruling == ruling


@pytest.mark.guarantee("G29")
def test_an_old_holder_learns_that_they_are_one_before_anything_else() -> None:
    """Not which drafts there are by now, nor whether their receiver would do."""
    for kind in HELD_BY_THE_HOLDER:
        assert ruled(kind, "lou", LEAS, draft_version=7, receiver=None, problem="the title is empty").ruling == HOLDER


RECEIVERS = [
    ("lou", {}, OK),
    ("lea", {}, RECEIVER),
    ("bob", {}, RECEIVER),
    ("ivan", {}, RECEIVER),
    ("nobody", {}, RECEIVER),
    ("lou", {"takeover": None}, RECEIVER),
]


@pytest.mark.parametrize(("to", "known", "ruling"), RECEIVERS)
def test_control_is_handed_to_another_active_person_who_might_have_taken_it(
    to: str, known: dict[str, Any], ruling: Ruling
) -> None:
    outcome = ruled("hand_over", "lea", LEAS, {"to": to}, **{"receiver": PERSONS.get(to), **known})

    assert outcome.ruling == ruling
    assert ruling == OK or to in outcome.detail


def test_the_policy_says_whether_a_requester_may_withdraw_and_supersede() -> None:
    for kind in ("withdraw", "supersede"):
        outcome = ruled(kind, "rita", AGENTS, requester_may_withdraw=False)
        assert outcome.ruling == Ruling.DECISION_NOT_ALLOWED
        assert outcome.detail == "the policy does not let a requester withdraw"


def test_only_an_operation_that_can_stand_in_supersedes() -> None:
    wrong = ruled("supersede", "rita", AGENTS, successor="operation report-2 is another person's")

    assert (wrong.ruling, wrong.detail) == (SUCCESSOR, "operation report-2 is another person's")
    assert ruled("supersede", "rita", AGENTS, {"successor": ""}).ruling == SUCCESSOR
    assert ruled("supersede", "bob", AGENTS, successor="operation report-2 is another person's").ruling == REQUESTER


STRANGE = [
    ("take_over", {"draft_version": 3}), ("take_over", {"content": DRAFT}), ("grade", {"content": DRAFT}),
    ("release", {"content": DRAFT}), ("hand_over", {"to": "lou", "successor": "report-2"}), ("cancel", {"to": "lou"}),
    ("withdraw", {"successor": "report-2"}), ("supersede", {"draft_version": 1}), ("amend", {"content": ""}),
    ("cancel", {"key": KEY}), ("take_over", {"finding": "executed"}), ("release", {"reference": "refund-7"}),
    ("settle", {"to": "lou"}), ("settle", {"content": DRAFT}), ("settle", {"finding": ""}),
    ("settle", {"reference": ""}), ("settle", {"finding": "not_executed"}), ("take_over", {"question": DRAFT}),
    ("answer", {"draft_version": 1}), ("answer", {"content": ""}),
]  # fmt: skip


@pytest.mark.guarantee("G16")
@pytest.mark.parametrize(("kind", "said"), STRANGE)
def test_a_command_says_what_it_needs_and_nothing_that_another_one_would_mean(kind: str, said: dict[str, Any]) -> None:
    person = "rita" if kind in ("withdraw", "supersede") else "lea"
    control = AGENTS if kind == "take_over" else LEAS

    assert ruled(kind, person, control, said).ruling == CONTENT


def test_what_is_wrong_with_a_new_draft_is_told_to_its_writer() -> None:
    outcome = ruled("amend", "lea", LEAS, problem="claims.0: the query yields two rows")

    assert (outcome.ruling, outcome.detail) == (CONTENT, "claims.0: the query yields two rows")


def test_a_person_in_control_may_propose_other_arguments_than_the_drafts() -> None:
    assert ruled("propose", "lea", LEAS, {"content": DRAFT}).ruling == OK


@pytest.mark.guarantee("G10")
@pytest.mark.parametrize("kind", sorted(ENDING))
def test_each_end_that_people_make_is_one_of_its_own(kind: CommandKind) -> None:
    ending = ENDS_AS[kind]
    event = Event.WITHDRAWN if kind == "withdraw" else Event.CANCELLED

    assert after(State.WAITING_APPROVAL, event) == ending.state
    assert len({one.reason for one in ENDS_AS.values()}) == len(ENDING) == len(ENDS_AS)


@pytest.mark.guarantee("G18")
@pytest.mark.parametrize(
    "changes",
    [
        {"command": "approve"}, {"command": "decide"}, {"control_version": 0}, {"control_version": True},
        {"draft_version": -1}, {"content": "sha256:x"}, {"to": "Lou"}, {"successor": "Report 2"}, {"id": "short"},
        {"issued_at": NOW.replace(tzinfo=None)}, {"reason": "because"},
    ],
)  # fmt: skip
def test_a_malformed_command_does_not_exist(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_command("take_over", "lea", AGENTS, **changes)


SETTLING: list[tuple[dict[str, Any], dict[str, Any], Ruling]] = [
    ({"key": OTHER_KEY}, {}, Ruling.NOTHING_UNKNOWN),
    ({}, {"unsettled": None}, Ruling.NOTHING_UNKNOWN),
    ({}, {"unsettled": UNSETTLED._replace(busy=True)}, Ruling.BEING_LOOKED_UP),
    ({}, {"unsettled": UNSETTLED._replace(settling=None)}, ROLE),
    ({}, {"requester": "lea"}, Ruling.NOT_INDEPENDENT),
    ({"comment_hash": ""}, {}, Ruling.REASON_MISSING),
    ({}, {"problem": "the evidence is not in the ledger"}, CONTENT),
    ({"finding": "not_executed", "reference": ""}, {}, OK),
]


@pytest.mark.guarantee("G36")
@pytest.mark.parametrize(("said", "known", "ruling"), SETTLING)
def test_an_unknown_outcome_is_settled_by_an_independent_person_with_evidence_for_that_very_key(
    said: dict[str, Any], known: dict[str, Any], ruling: Ruling
) -> None:
    assert ruled("settle", "lea", AGENTS, said, **known).ruling == ruling


def answered(person: str, question: Question, *answers: Answer, **known: Any) -> Outcome:
    """What becomes of these answers to a question that waits."""
    said = {"question": question.hash()}
    return ruled("answer", person, AGENTS, said, **{"asked": pending(question), "answers": answers, **known})


EARLIER = a_question(number=2)
ANSWERING: list[tuple[dict[str, Any], Ruling, str]] = [
    ({"asked": None}, Ruling.NOTHING_ASKED, ""),
    ({"asked": pending(EARLIER)}, Ruling.STALE_QUESTION, EARLIER.hash()),
    ({"asked": pending(a_question(calls=(WORDS,)))}, Ruling.STALE_QUESTION, "the newest question is sha256:"),
    *(({"asked": pending(QUESTION)._replace(status=status)}, Ruling.NOTHING_ASKED, f"the question is {status.value}")
      for status in QuestionStatus if status != QuestionStatus.PENDING),
    ({"now": NOW + WITHIN}, Ruling.LATE, (NOW + WITHIN).isoformat()),
    ({"now": NOW + WITHIN - MOMENT}, OK, ""),
    ({"answers": (READ_IT,)}, CONTENT, "look at 'call-1'"),
    ({"answers": ()}, CONTENT, "2 calls wait, 0 answers were given"),
    ({"answers": (READ_IT, READ_IT)}, CONTENT, "look at 'call-1'"),
    ({"answers": (READ_IT, SECOND_HALF, SECOND_HALF)}, CONTENT, "3 answers were given"),
    ({"answers": (READ_IT, Answer(call="call-9", decision="reject"))}, CONTENT, "no call 'call-9' waits"),
    ({"answers": (READ_IT, Answer(call="call-1", decision="approve"))}, CONTENT, "allowed: respond"),
    ({"answers": (Answer(call="call-2", decision="edit"), SECOND_HALF)}, CONTENT, "arguments are given exactly where"),
    ({"problem": "the answers are not in the ledger"}, CONTENT, "the answers are not in the ledger"),
    ({"answers": None}, OK, ""),
]  # fmt: skip


@pytest.mark.guarantee("G16")
@pytest.mark.guarantee("G40")
@pytest.mark.parametrize(("known", "ruling", "words"), ANSWERING)
def test_an_answer_is_good_in_time_whole_and_for_the_very_question_that_its_signer_saw(
    known: dict[str, Any], ruling: Ruling, words: str
) -> None:
    outcome = ruled("answer", "lea", AGENTS, **known)

    assert outcome.ruling == ruling, outcome.sentence()
    assert words in outcome.detail


@pytest.mark.guarantee("G02")
def test_whoever_asked_for_the_operation_answers_its_agents_words_and_allows_it_nothing() -> None:
    words, both, read = a_question(WORDS), a_question(), a_question(READ)

    assert answered("rita", words, SECOND_HALF).ruling == OK
    assert answered("rita", both, SECOND_HALF, READ_IT).ruling == ROLE
    assert answered("rita", read, READ_IT).ruling == ROLE
    assert answered("lea", read, READ_IT, requester="lea").ruling == ROLE
    assert answered("rita", a_question(WORDS, answering={"requester": False}), SECOND_HALF).ruling == ROLE
    assert answered("nora", words, SECOND_HALF).ruling == ROLE


def test_further_people_answer_what_the_policy_lets_their_line() -> None:
    tiers = {"ladder": {"tiers": [{"after": "1h", "role": "expert", "decisions": ["reject"]}]}}
    question = a_question(READ, answering=tiers)
    refusal = Answer(call="call-2", decision="reject")

    assert answered("eve", question, refusal, now=NOW + HOUR - MOMENT).ruling == ROLE
    assert answered("eve", question, refusal).ruling == OK
    assert answered("eve", question, READ_IT).ruling == Ruling.DECISION_NOT_ALLOWED
    assert answered("lea", question, READ_IT).ruling == OK


RAISING: list[tuple[str, dict[str, Any], dict[str, Any], Ruling]] = [
    ("lea", {}, {}, OK),
    ("lou", {}, {}, OK),
    ("bob", {}, {}, ROLE),
    ("rita", {}, {}, ROLE),
    ("lea", {}, {"requester": "lea"}, ROLE),
    ("lea", {"content": ""}, {}, CONTENT),
    ("lea", {}, {"problem": "calls: too many"}, CONTENT),
    ("lea", {}, {"out_of_budget": False}, Ruling.BUDGET_NOT_EXCEEDED),
    ("lea", {}, {"escalated_to": None}, Ruling.BUDGET_NOT_EXCEEDED),
    ("lea", {"control_version": 2}, {}, STALE),
]


@pytest.mark.parametrize(("person", "said", "known", "ruling"), RAISING)
def test_a_budget_is_raised_by_whom_the_run_out_of_it_was_brought_before_and_not_by_its_requester(
    person: str, said: dict[str, Any], known: dict[str, Any], ruling: Ruling
) -> None:
    assert ruled("raise_budget", person, AGENTS, said, **{**BROKE, **known}).ruling == ruling
