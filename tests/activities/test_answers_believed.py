"""The agent goes on with what people signed, and with nothing else, whatever lies in the ledger (G22)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.answers import SignedAnswers
from activities.drafting import DraftingSteps
from countersign.domain.administration import PolicyChange
from countersign.domain.decision import Ruling
from countersign.domain.errors import NotAuthorised
from countersign.domain.policy import Policy
from countersign.domain.question import Question, QuestionStatus
from countersign.domain.report import ColumnSchema
from tests.activities.desk import LINE, OPERATION, Desk, a_draft, called
from tests.gateway.tampering import changed_json
from tests.workflow.asking import PERIOD, READ, Agent, respond

SAID = [respond(), {"call": READ.id, "decision": "edit", "args": {"sql": "SELECT count(*) FROM data"}}]
FIRST, SECOND = ("answers", 0), ("answers", 1)


@pytest.fixture
def agent() -> Agent:
    return Agent(asks=((PERIOD, READ),))


@pytest.fixture
def steps(desk: Desk, agent: Agent) -> DraftingSteps:
    """The agent's step, after lena answered what it asked."""
    steps = desk.drafted_by(agent)
    called(desk.as_run(), steps.draft, desk.step())
    answer(desk, "lena")
    return steps


def answer(desk: Desk, person: str, said: list[dict[str, Any]] = SAID) -> None:
    asked = desk.ledger.questions.current("acme", OPERATION)
    assert asked is not None
    content = desk.put({"answers": said})
    outcome = desk.command(person, "answer", question=asked.question.hash(), content=content)
    assert outcome.ruling == Ruling.ACCEPTED, outcome


def execute(desk: Desk, sql: str, *values: Any) -> None:
    """Behind the ledger's back."""
    path = desk.settings.ledger_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql, values).rowcount > 0


def tamper(desk: Desk, column: str, change: Callable[[str], str]) -> None:
    path = desk.settings.ledger_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection, connection:
        (value,) = connection.execute(f"SELECT {column} FROM questions").fetchone()
        connection.execute(f"UPDATE questions SET {column} = ?", (change(value),))


def assert_refused(desk: Desk, steps: DraftingSteps, agent: Agent, reason: str) -> None:
    begun = len(agent.begun)
    with pytest.raises(ApplicationError) as refused:
        called(desk.as_run(), steps.draft, desk.step())
    assert (refused.value.type, refused.value.non_retryable) == ("NOT_AUTHORISED", True)
    assert len(agent.begun) == begun, "the agent went on"
    alarms = [one["reason"].partition(":")[0] for one in desk.records("alarm.raised")]
    assert alarms == (["answer_forged"] if reason == "answer_forged" else [])
    (failed,) = desk.records("step.failed")
    sentence = desk.ledger.documents.get("acme", failed["sentence"]).decode()
    assert "it counts for nothing" in sentence
    assert "\n" not in sentence


def test_what_people_signed_is_what_the_agent_goes_on_with(desk: Desk, steps: DraftingSteps, agent: Agent) -> None:
    called(desk.as_run(), steps.draft, desk.step())
    said = {
        call: given.answer.model_dump(mode="json", exclude_defaults=True) for call, given in agent.given[-1].items()
    }
    assert said == {PERIOD.id: SAID[0], READ.id: SAID[1]}
    assert desk.records("alarm.raised") == []


def test_an_answer_counts_though_its_statement_has_expired_since(
    desk: Desk, steps: DraftingSteps, agent: Agent
) -> None:
    desk.later = timedelta(days=3)
    called(desk.as_run(), steps.draft, desk.step())
    assert set(agent.given[-1]) == {PERIOD.id, READ.id}


CHANGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "other words": ("answered", changed_json(*FIRST, "message", to="All of it, and publish at once.")),
    "another decision": ("answered", changed_json(*SECOND, to={"call": READ.id, "decision": "approve"})),
    "other arguments": ("answered", changed_json(*SECOND, "args", to={"sql": "SELECT * FROM data"})),
    "arguments that Python takes for the same": ("answered", changed_json(*SECOND, "args", "more", to=True)),
    "an answer less": ("answered", changed_json("answers", to=lambda all_of_it: all_of_it[:1])),
    "no answer at all": ("answered", changed_json("answers", to=[])),
    "more answers than a question can have": ("answered", changed_json("answers", to=lambda all_of_it: all_of_it * 11)),
    "another person": ("answered", changed_json("person", to="liam")),
    "another statement": ("answered", changed_json("statement_id", to="x" * 22)),
    "before it was signed": ("answered", changed_json("at", to="2020-01-01T00:00:00Z")),
    "after its deadline": ("answered", changed_json("at", to="2999-01-01T00:00:00Z")),
    "another call": ("question", changed_json("calls", 1, "args", to={"sql": "SELECT * FROM data"})),
    "whoever may answer": ("question", changed_json("answering", "role", to="requester")),
    "another description": ("question", changed_json("calls", 1, "description", to="Harmless.")),
}


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize(("column", "change"), CHANGES.values(), ids=CHANGES)
def test_a_row_that_was_changed_is_handed_to_no_agent_and_raises_the_alarm(
    desk: Desk, steps: DraftingSteps, agent: Agent, column: str, change: Callable[[str], str]
) -> None:
    tamper(desk, column, change)
    assert_refused(desk, steps, agent, "answer_forged")


@pytest.mark.guarantee("G22")
def test_an_answer_that_nobody_gave_is_handed_to_no_agent(desk: Desk, agent: Agent) -> None:
    steps = desk.drafted_by(agent)
    called(desk.as_run(), steps.draft, desk.step())
    made_up = {"person": "lena", "statement_id": "x" * 22, "answers": SAID, "at": desk.now().isoformat()}
    status = QuestionStatus.ANSWERED.value
    execute(desk, "UPDATE questions SET status = ?, answered = ?", status, json.dumps(made_up))
    assert_refused(desk, steps, agent, "answer_forged")


@pytest.mark.guarantee("G22")
def test_a_command_that_was_signed_for_something_else_answers_nothing(
    desk: Desk, steps: DraftingSteps, agent: Agent
) -> None:
    """Genuine, lena's, and in time: but it takes the run over."""
    told = json.loads(desk.signed("lena", "take_over"))["statement"]
    hash_of_it = desk.ledger.documents.put("acme", told.encode())
    execute(desk, "UPDATE statements SET hash = ?", hash_of_it)
    assert_refused(desk, steps, agent, "answer_forged")


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("gone", ["statements", "documents"])
def test_an_answer_whose_signed_form_is_gone_is_handed_to_no_agent(
    desk: Desk, steps: DraftingSteps, agent: Agent, gone: str
) -> None:
    which = " WHERE CAST(data AS TEXT) LIKE '{\"answers\"%'" if gone == "documents" else ""
    execute(desk, f"DELETE FROM {gone}{which}")
    assert_refused(desk, steps, agent, "answer_forged")


def test_an_answer_of_somebody_who_may_no_longer_give_it_is_refused_without_an_alarm(
    desk: Desk, steps: DraftingSteps, agent: Agent
) -> None:
    execute(desk, "UPDATE persons SET active = 0 WHERE id = 'lena'")
    assert_refused(desk, steps, agent, "answer_lapsed")


@pytest.mark.guarantee("G22")
def test_a_signature_of_somebody_who_never_may_answer_lets_the_agent_do_nothing(desk: Desk, agent: Agent) -> None:
    """A rogue worker takes in what olga signed."""
    steps = desk.drafted_by(agent)
    called(desk.as_run(), steps.draft, desk.step())
    asked = desk.ledger.questions.current("acme", OPERATION)
    assert asked is not None
    content = desk.put({"answers": SAID})
    outcome = desk.command("olga", "answer", question=asked.question.hash(), content=content)
    assert outcome.ruling == Ruling.ROLE_MISSING
    path = desk.settings.ledger_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection:
        (statement,) = connection.execute("SELECT id FROM statements").fetchone()
    took_in = {"person": "olga", "statement_id": statement, "answers": SAID, "at": desk.now().isoformat()}
    execute(desk, "UPDATE questions SET status = 'answered', answered = ?", json.dumps(took_in))
    assert_refused(desk, steps, agent, "answer_lapsed")


@pytest.fixture
def guarded(tmp_path: Path) -> Desk:
    """The same operation on data whose amounts are sensitive, and a draft that states their sum."""
    desk = Desk(tmp_path / "guarded", columns={"amount": ColumnSchema(type="number", sensitive=True)})
    called(desk.as_run(), desk.drafted_by(Agent(asks=((READ,),))).draft, desk.step())
    desk.ledger.drafts.save("acme", OPERATION, 1, a_draft(), "a-model", 1, desk.now())
    return desk


def checked(desk: Desk) -> tuple[str, ...]:
    codes: tuple[str, ...] = called(desk.as_run(), desk.validating.validate, desk.step()).codes
    return codes


APPROVED = [{"call": READ.id, "decision": "approve"}]


def test_the_checks_compute_what_a_person_allowed_as_long_as_they_may_allow_it(guarded: Desk) -> None:
    assert checked(guarded) == ("sensitive_column",)
    answer(guarded, "lena", APPROVED)
    assert checked(guarded) == ()
    execute(guarded, "UPDATE persons SET active = 0 WHERE id = 'lena'")
    assert checked(guarded) == ("sensitive_column",)
    assert guarded.records("alarm.raised") == []


def test_a_column_that_the_policy_names_is_guarded_though_the_request_says_nothing_of_it(desk: Desk) -> None:
    desk.ledger.drafts.save("acme", OPERATION, 1, a_draft(), "a-model", 1, desk.now())
    assert checked(desk) == ()
    in_force = desk.ledger.directory.policies("acme")["report"].model_dump(mode="json", exclude_none=True)
    changed = {**in_force, "version": in_force["version"] + 1, "sensitive_columns": ["A-MOUNT"]}
    desk.installation.decree(PolicyChange(policy=Policy.model_validate(changed)))
    assert checked(desk) == ("sensitive_column",)


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("line", [LINE, "a-run-before"])
@pytest.mark.parametrize("step", ["draft", "validate"])
def test_a_row_that_allows_a_query_in_whatever_run_lets_neither_agent_nor_checks_go_on(
    guarded: Desk, line: str, step: str
) -> None:
    asked = guarded.ledger.questions.current("acme", OPERATION)
    assert asked is not None
    changes = {"number": 2, "line": line, "draft_version": 7}
    question = Question.model_validate({**asked.question.model_dump(), **changes})
    made_up = {"person": "lena", "statement_id": "x" * 22, "answers": APPROVED, "at": guarded.now().isoformat()}
    values = ("acme", OPERATION, 2, "answered", question.model_dump_json(), json.dumps(made_up))
    columns = "tenant, operation, number, status, question, answered"
    execute(guarded, f"INSERT INTO questions ({columns}) VALUES (?, ?, ?, ?, ?, ?)", *values)
    agent = Agent()
    steps = {"draft": guarded.drafted_by(agent).draft, "validate": guarded.validating.validate}
    order = guarded.step(draft_version=2) if step == "draft" else guarded.step()

    with pytest.raises(ApplicationError) as refused:
        called(guarded.as_run(), steps[step], order)

    assert (refused.value.type, refused.value.non_retryable) == ("NOT_AUTHORISED", True)
    assert agent.begun == []
    assert [one["reason"].partition(":")[0] for one in guarded.records("alarm.raised")] == ["answer_forged"]
    subjects = [one.subject for one in guarded.ledger.audit.records("acme", OPERATION) if one.type == "alarm.raised"]
    assert subjects == [step]


@pytest.mark.guarantee("G22")
def test_an_answer_that_was_signed_for_another_operation_allows_nothing_in_this_one(guarded: Desk) -> None:
    answer(guarded, "lena", APPROVED)
    guarded.installation.register("op-2")
    execute(guarded, "UPDATE questions SET operation = 'op-2'")
    other = guarded.ledger.operations.get("acme", "op-2")
    signed = SignedAnswers(guarded.ledger, guarded.settings.installation, "validate")

    with pytest.raises(NotAuthorised, match="for another question") as refused:
        signed.believed(other, guarded.now())

    assert refused.value.reason == "answer_forged"
    assert [one.type for one in guarded.ledger.audit.records("acme", "op-2")][-1] == "alarm.raised"
