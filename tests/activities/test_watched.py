"""What a step writes down of its model calls, what it tells, and what it lets through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain.agents.middleware import ModelResponse
from langchain_core.messages import AIMessage
from temporalio.exceptions import ApplicationError

from activities.interfaces import QuestionOrder
from countersign import bootstrap
from countersign.agents.calling import MOST_TOKENS, watched_call
from countersign.cases.assessing import policy_in_force
from countersign.domain.decision import Ruling
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.escalation import Reason, Route, Severity
from countersign.domain.model_call import Budget, Budgets, CallEnd, ModelCall
from countersign.domain.progress import ProgressKind
from countersign.domain.question import AnsweredCall, PendingCall, QuestionStatus
from countersign.domain.state import State
from countersign.ports import Waiting, Watching, Written
from countersign.settings import ROOT, Settings
from tests.activities.desk import OPERATION, Desk, a_draft, called

PRICES = {"currency": "USD", "models": {"dear": {"input": "2.5", "output": "10"}}}
ASKS = PendingCall(
    id="call-1", tool="ask_user", args={"question": "Which period?"}, description="The agent asks.",
    decisions=("respond",),
)  # fmt: skip


class Agent:
    """Makes one call of a model, which ends so, and then drafts; or waits for these calls."""

    def __init__(self, *ends: CallEnd, waits: tuple[PendingCall, ...] = ()) -> None:
        self._ends = ends
        self._waits = waits
        self.given: list[tuple[int, bool, Mapping[str, AnsweredCall]]] = []

    async def draft(
        self, *_: Any, attempt: int, answers: Mapping[str, AnsweredCall], may_ask: bool, watching: Watching, **__: Any
    ) -> Written | Waiting:
        self.given.append((attempt, may_ask, answers))
        for end in self._ends:
            await watching.called(await watching.calling("dear"), end)
        if self._waits:
            return Waiting(self._waits, "dear")
        return Written(draft=a_draft(), model="dear")


def calls(desk: Desk) -> list[ModelCall]:
    return [*desk.ledger.model_calls.of_operation("acme", OPERATION)]


def priced(desk: Desk) -> None:
    (desk.settings.policies / "prices.yaml").write_text(yaml.safe_dump(PRICES))


@pytest.mark.parametrize(
    ("answered", "tokens", "nano"),
    [
        ("dear", (1000, 10), 1000 * 2500 + 10 * 10_000),
        ("dear-2026-11-30", (1000, 10), 1000 * 2500 + 10 * 10_000),
        ("", (1000, 10), 1000 * 2500 + 10 * 10_000),
        ("dear-mini", (1000, 10), None),
        ("another", (1000, 10), None),
        ("dear", (None, 10), None),
    ],
)
def test_a_call_costs_what_the_table_says_of_the_model_that_answered_and_is_else_unknown(
    desk: Desk, answered: str, tokens: tuple[int | None, int], nano: int | None
) -> None:
    priced(desk)
    end = CallEnd(answered=answered, input_tokens=tokens[0], output_tokens=tokens[1], milliseconds=7)
    called(desk.as_run(), desk.drafted_by(Agent(end)).draft, desk.step())
    (call,) = calls(desk)
    assert (call.role, call.asked, call.answered, call.outcome) == ("draft", "dear", answered, "answered")
    assert (call.nano, call.currency) == (nano, "USD" if nano is not None else "")


class Counting:
    """Makes one call of a model that says of itself that it read and wrote so many tokens."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    async def draft(self, *_: Any, watching: Watching, **__: Any) -> Written:
        usage = {"input_tokens": self._tokens, "output_tokens": self._tokens, "total_tokens": 2 * self._tokens}

        async def call() -> ModelResponse[Any]:
            return ModelResponse(result=[AIMessage("Here it is.", usage_metadata=usage)])

        await watched_call(watching, "dear", call)
        return Written(draft=a_draft(), model="dear")


@pytest.mark.parametrize(("tokens", "known"), [(MOST_TOKENS, MOST_TOKENS), (MOST_TOKENS + 1, None), (10**30, None)])
def test_a_count_of_tokens_that_no_call_can_have_is_unknown_and_ends_no_draft(
    desk: Desk, tokens: int, known: int | None
) -> None:
    dearest = {"currency": "USD", "models": {"dear": {"input": "999999.999", "output": "999999.999"}}}
    (desk.settings.policies / "prices.yaml").write_text(yaml.safe_dump(dearest))
    called(desk.as_run(), desk.drafted_by(Counting(tokens)).draft, desk.step())
    (call,) = calls(desk)
    assert (call.outcome, call.input_tokens, call.output_tokens) == ("answered", known, known)
    assert (call.nano, call.currency) == (None, "")
    assert desk.standing().draft_version == 1


LIMITED = Budgets(run=Budget.model_validate({"calls": 60, "tokens": 9, "money": "1.00 USD"}))


def out_of_budget(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is brought before the leads, under a policy that limits it so."""
    reason, route = Reason.BUDGET_EXCEEDED, Route(role="lead", severity=Severity.LOW)
    hashed = desk.put({})
    desk.ledger.escalations.open("acme", OPERATION, reason, route, "budget_exceeded", 1, "", hashed, desk.now())
    desk.ledger.operations.move("acme", OPERATION, State.ESCALATED, reason.value, desk.now())
    limited = policy_in_force(desk.ledger, "acme", "report").model_copy(update={"budgets": LIMITED})
    monkeypatch.setattr("activities.commanding.policy_in_force", lambda *_: limited)


def added(**more: Any) -> dict[str, Any]:
    return Budget.model_validate(more).model_dump(mode="json")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"calls": 10**6 + 1}, "1000001 calls are more than can be added at once; add at most 1000000"),
        ({"tokens": 10**12 + 1}, "add at most 1000000000000"),
        (
            {"money": {"currency": "USD", "minor": 9007199254740991}},
            "larger than an amount of money can be; add at most 90071992547408.91",
        ),
    ],
)
def test_a_raise_of_more_than_can_be_meant_is_refused_in_a_sentence_and_changes_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, more: Any, words: str
) -> None:
    out_of_budget(desk, monkeypatch)
    outcome = desk.command("lena", "raise_budget", content=desk.put(added(**more)))
    assert outcome.ruling == Ruling.CONTENT_REFUSED
    assert words in outcome.sentence()
    assert desk.ledger.model_calls.raises("acme", OPERATION) == []
    good = desk.command("lena", "raise_budget", content=desk.put(added(calls=1)))
    assert good.ruling == Ruling.ACCEPTED, good.sentence()


def test_what_was_added_before_counts_towards_the_most_that_can_be(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    out_of_budget(desk, monkeypatch)
    before = [(desk.now(), Budget.model_validate({"money": {"currency": "USD", "minor": 9007199254740800}}))]
    monkeypatch.setattr(type(desk.ledger.model_calls), "raises", lambda *_: before)
    outcome = desk.command("lena", "raise_budget", content=desk.put(added(money="1.00 USD")))
    assert outcome.ruling == Ruling.CONTENT_REFUSED
    assert "add at most 0.91 USD" in outcome.sentence()


def test_a_failed_call_is_kept_with_its_error_and_its_unknown_cost(desk: Desk) -> None:
    failed = CallEnd(error="unavailable", milliseconds=3)
    called(desk.as_run(), desk.drafted_by(Agent(failed, failed)).draft, desk.step())
    assert [(call.number, call.outcome, call.error, call.nano) for call in calls(desk)] == [
        (1, "failed", "unavailable", None), (2, "failed", "unavailable", None),
    ]  # fmt: skip


def test_whoever_watches_is_told_in_order_and_by_names_and_numbers_alone(desk: Desk) -> None:
    called(desk.as_run(), desk.drafted_by(Agent(CallEnd(milliseconds=7))).draft, desk.step())
    told = desk.ledger.progress.since("acme", OPERATION, 0)
    assert [(one.kind, one.name, one.detail) for one in told] == [
        (ProgressKind.DRAFTING, "", "v1"),
        (ProgressKind.MODEL_CALLED, "dear", "call 1"),
        (ProgressKind.MODEL_ANSWERED, "dear", "7 ms"),
        (ProgressKind.DRAFTED, "", "v1"),
    ]


def test_that_nobody_can_be_told_ends_no_draft(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left on planted-secret")

    monkeypatch.setattr(type(desk.ledger.progress), "add", full)
    called(desk.as_run(), desk.drafted_by(Agent(CallEnd(milliseconds=7))).draft, desk.step())
    assert desk.standing().draft_version == 1
    assert "OSError" in caplog.text
    assert "planted" not in caplog.text


def asked(desk: Desk, agent: Agent, attempt: int = 1, **order: Any) -> Any:
    environment = desk.as_run()
    environment.info = replace(environment.info, attempt=attempt)
    return called(environment, desk.drafted_by(agent).draft, desk.step(**order))


def answered(desk: Desk, person: str = "lena") -> None:
    question = desk.ledger.questions.current("acme", OPERATION)
    assert question is not None
    content = desk.put({"answers": [{"call": ASKS.id, "decision": "respond", "message": "All."}]})
    outcome = desk.command(person, "answer", question=question.question.hash(), content=content)
    assert outcome.ruling == "accepted", outcome.sentence()


def test_an_attempt_after_a_pause_is_newer_than_every_attempt_before_it(desk: Desk) -> None:
    agent = Agent(waits=(ASKS,))
    for attempt in (1, 5):
        written = asked(desk, agent, attempt)
        assert (written.content, written.asked.status, written.asked.number) == ("", QuestionStatus.PENDING, 1)
    answered(desk)
    agent._waits = ()
    asked(desk, agent, 1, resumed=1)
    assert [attempt for attempt, _, _ in agent.given] == [1, 5, 1_000_001]
    assert [[*answers] for _, _, answers in agent.given] == [[], [], [ASKS.id]]
    assert len(desk.records("question.asked")) == 1


def test_a_question_that_was_answered_meanwhile_says_so_and_waits_for_nobody(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill after asking, an answer, and then a repeat that had read the ledger before that."""
    asked(desk, Agent(waits=(ASKS,)))
    ask = type(desk.ledger.questions).ask

    def answered_first(self: Any, *question: Any) -> Any:
        answered(desk)
        return ask(self, *question)

    monkeypatch.setattr(type(desk.ledger.questions), "ask", answered_first)
    assert asked(desk, Agent(waits=(ASKS,)), 2).asked.status == QuestionStatus.ANSWERED


def test_an_agent_that_waits_for_what_was_answered_is_not_left_to_ask_for_ever(desk: Desk) -> None:
    asked(desk, Agent(waits=(ASKS,)))
    answered(desk)
    with pytest.raises(ApplicationError) as refused:
        asked(desk, Agent(waits=(ASKS,)), resumed=1)
    assert (refused.value.type, refused.value.non_retryable) == ("CONFLICT", True)


def test_answers_of_another_version_or_another_control_are_nothing_to_a_version(desk: Desk) -> None:
    asked(desk, Agent(waits=(ASKS,)))
    answered(desk)
    desk.passed()
    agent = Agent()
    asked(desk, agent, draft_version=2)
    assert agent.given == [(1, True, {})]


def test_of_another_lines_question_no_run_says_that_its_time_is_over(desk: Desk) -> None:
    asked(desk, Agent(waits=(ASKS,)))
    order = QuestionOrder(tenant="acme", operation=OPERATION, number=1, now=desk.now())
    for environment in (desk.as_run("another-run"), desk.as_run(workflow="acme:another")):
        for step in (desk.questioning.expire_question, desk.questioning.mark_question):
            with pytest.raises(ApplicationError) as refused:
                environment.run(step, order.model_copy(update={"tick": 0}))
            assert refused.value.non_retryable
    assert desk.records("question.expired", "question.reminded") == []


@pytest.mark.guarantee("G46")
def test_metrics_of_a_call_name_model_role_and_outcome_and_nothing_of_any_tenant(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, dict[str, Any]]] = []

    class Metric:
        def add(self, value: int, about: dict[str, Any]) -> None:
            seen.append((value, about))

        record = add

    class Meter:
        def create_counter(self, *_: str) -> Metric:
            return Metric()

        create_histogram = create_counter

    monkeypatch.setattr("activities.watching.activity.metric_meter", Meter)
    end = CallEnd(answered="planted-by-the-provider", input_tokens=9, milliseconds=7)
    called(desk.as_run(), desk.drafted_by(Agent(end)).draft, desk.step())
    about = {"role": "draft", "model": "dear"}
    assert seen == [
        (1, {**about, "outcome": "answered"}), (7, about), (9, {**about, "direction": "input"}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("currency: USD\nmodels: {a: {input: 0.5, output: '1'}}", "models.a.input"),
        ("currency: dollars\nmodels: {}", "currency"),
        ("currency: USD\nmodels: {a: {input: '1'}}", "models.a.output"),
        ("currency: USD\nmodel: {}", "model"),
    ],
)
def test_prices_that_cannot_be_read_are_refused_by_the_name_of_their_field(
    tmp_path: Path, text: str, field: str
) -> None:
    (tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(ConfigurationRefused, match=rf"prices\.yaml: {field}"):
        bootstrap.load_prices(Settings(policies=tmp_path, _env_file=None))


@pytest.mark.parametrize("which", ["run", "tenant"])
def test_a_budget_in_another_currency_than_the_prices_is_refused(tmp_path: Path, which: str) -> None:
    policy = yaml.safe_load((ROOT / "policies" / "report.yaml").read_text())
    policy["budgets"][which]["money"] = "5.00 EUR"
    path = tmp_path / "report.yaml"
    path.write_text(yaml.safe_dump(policy))
    with pytest.raises(ConfigurationRefused, match=rf"budgets\.{which}\.money: it is in EUR, and prices.yaml in USD"):
        bootstrap.load_policy(path, Settings(home=tmp_path, policies=ROOT / "policies", _env_file=None))
