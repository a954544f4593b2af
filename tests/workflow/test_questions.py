"""The agent asks people while it drafts: who answers it, what is refused, and what becomes of the question."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.question import Question, QuestionStatus
from countersign.domain.run import QuestionView, Step
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_messages, until_state
from tests.workflow.acting import Run, command, done, records, taken_over
from tests.workflow.asking import (
    AGAIN,
    PERIOD,
    READ,
    Models,
    answer,
    counted,
    newest,
    respond,
    until_asked,
    waiting_for_answer,
)
from tests.workflow.ways import begun_again

BOTH = [respond(), {"call": READ.id, "decision": "approve"}]


async def send(run: Run, message: dict[str, str]) -> Outcome:
    outcome: Outcome = await run.execute_update("answer", message, result_type=Outcome)
    return outcome


@pytest.mark.parametrize("transport", ["signal", "update"])
async def test_an_answered_agent_goes_on_where_it_stopped_and_makes_no_call_again(
    sqlite_installation: Installation, models: Models, transport: str
) -> None:
    installation = sqlite_installation
    async with installation.workers():
        run = await waiting_for_answer(installation)
        assert (models.agent.calls, models.grader.calls) == (1, 0)
        message = answer(installation, "lea")
        if transport == "signal":
            await run.signal("answer", message)
        else:
            assert (await send(run, message)).ruling == Ruling.ACCEPTED
        result = await run.result()
        steps = await run.query("timeline", result_type=list[Step])
    assert result.state == State.SUCCEEDED
    assert [(step.state, step.reason) for step in steps][:3] == [
        (State.RUNNING, ""), (State.WAITING_ANSWER, "agent_asks"), (State.RUNNING, "answered"),
    ]  # fmt: skip
    assert models.agent.calls == 2
    assert counted(installation) == {"draft": 2, "grade": 1}
    first, second = models.agent.begun
    assert first[0] == second[0]
    assert (first[1], second[1]) == (1, 1_000_001)
    assert {call: given.answer.message for call, given in models.agent.given[1].items()} == {
        PERIOD.id: "The first quarter."
    }
    assert len(installation.published("internal")) == 1


async def test_who_is_asked_what_and_until_when_is_seen_by_query_and_in_lists(
    sqlite_installation: Installation, models: Models
) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await waiting_for_answer(installation)
        view = await run.query("question", result_type=QuestionView)
        found = await installation.listed("CountersignState = 'WAITING_ANSWER' AND CountersignRequiredRole = 'lead'")
        attributes = (await run.describe()).typed_search_attributes
    question = newest(installation).question
    assert view == QuestionView(
        number=1, question=question.hash(), calls=1, roles=("lead",), status=QuestionStatus.PENDING,
        deadline=question.deadline,
    )  # fmt: skip
    assert found == [run.id]
    (deadline,) = [pair.value for pair in attributes if pair.key.name == "CountersignDeadline"]
    assert abs((deadline - question.deadline).total_seconds()) < 0.001


async def test_whatever_is_not_the_whole_answer_of_somebody_asked_is_refused_whole_and_recorded(
    sqlite_installation: Installation, models: Models
) -> None:
    models.agent.asks = ((PERIOD, READ),)
    installation = sqlite_installation
    async with installation.workers():
        run = await waiting_for_answer(installation)
        edit = {"call": READ.id, "decision": "edit", "args": {"sql": 7}}
        refused: list[tuple[dict[str, str], Ruling]] = [
            (answer(installation, "lea", *BOTH, question="sha256:" + "0" * 64), Ruling.STALE_QUESTION),
            (answer(installation, "lea", *BOTH, control_version=7), Ruling.STALE_CONTROL),
            (answer(installation, "lea", respond(), respond("call-9")), Ruling.CONTENT_REFUSED),
            (answer(installation, "lea", respond()), Ruling.CONTENT_REFUSED),
            (answer(installation, "lea", respond(), respond()), Ruling.CONTENT_REFUSED),
            (answer(installation, "lea", *BOTH, respond()), Ruling.CONTENT_REFUSED),
            (answer(installation, "lea", respond(), respond(READ.id)), Ruling.CONTENT_REFUSED),
            (answer(installation, "lea", respond(), edit), Ruling.CONTENT_REFUSED),
            (answer(installation, "lea", {"call": READ.id}), Ruling.CONTENT_REFUSED),
            (answer(installation, "lea", *BOTH, content="sha256:" + "0" * 64), Ruling.CONTENT_REFUSED),
            (answer(installation, "lea", *BOTH, draft_version=1), Ruling.CONTENT_REFUSED),
            (answer(installation, "bob", *BOTH), Ruling.ROLE_MISSING),
            (answer(installation, "rita", *BOTH), Ruling.ROLE_MISSING),
            ({"statement": "nonsense"}, Ruling.BAD_STATEMENT),
        ]
        outcomes = [await send(run, message) for message, _ in refused]
        await until_state(run, State.WAITING_ANSWER)
        assert [outcome.ruling for outcome in outcomes] == [ruling for _, ruling in refused]
        assert (newest(installation).status, models.agent.calls) == (QuestionStatus.PENDING, 1)
        good = answer(installation, "lea", *BOTH)
        assert (await send(run, good)).ruling == Ruling.ACCEPTED
        assert (await send(run, good)).ruling == Ruling.REPLAY
        late = await command(installation, run, "leo", "answer", question=newest(installation).question.hash())
        assert late.ruling in (Ruling.NOTHING_ASKED, Ruling.ENDED)
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert models.agent.calls == 2
    assert len(records(installation, "command.refused")) == len(refused) - 1 + 1
    assert len(records(installation, "command.repeated")) == 1
    assert len(records(installation, "question.answered")) == 1
    installation.ledger.audit.verify("acme")


async def test_whoever_asked_for_the_report_answers_what_only_asks_and_allows_nothing(
    sqlite_installation: Installation, models: Models
) -> None:
    models.agent.asks = ((PERIOD,), (READ,))
    installation = sqlite_installation
    async with installation.workers():
        run = await waiting_for_answer(installation)
        assert (await send(run, answer(installation, "rita"))).ruling == Ruling.ACCEPTED
        await until_asked(run, 2)
        allow = {"call": READ.id, "decision": "approve"}
        assert (await send(run, answer(installation, "rita", allow))).ruling == Ruling.ROLE_MISSING
        assert (await send(run, answer(installation, "lea", allow))).ruling == Ruling.ACCEPTED
        assert (await run.result()).state == State.SUCCEEDED
    assert models.agent.calls == 3
    assert set(models.agent.given[-1]) == {PERIOD.id, READ.id}


async def test_an_edit_that_the_case_does_not_let_a_tool_have_is_told_and_changes_nothing(
    sqlite_installation: Installation, models: Models
) -> None:
    models.agent.asks = ((READ,),)
    installation = sqlite_installation
    edit: dict[str, Any] = {"call": READ.id, "decision": "edit"}
    async with installation.workers():
        run = await waiting_for_answer(installation)
        wrong = answer(installation, "lea", {**edit, "args": {"sql": "DROP TABLE data"}})
        outcome = await send(run, wrong)
        assert outcome.ruling == Ruling.CONTENT_REFUSED
        assert READ.id in outcome.detail
        right = answer(installation, "lea", {**edit, "args": {"sql": "SELECT count(*) FROM data"}})
        assert (await send(run, right)).ruling == Ruling.ACCEPTED
        assert (await run.result()).state == State.SUCCEEDED
    assert models.agent.given[-1][READ.id].answer.args == {"sql": "SELECT count(*) FROM data"}


async def test_an_answer_counts_though_it_came_while_no_worker_was_there(
    sqlite_installation: Installation, models: Models
) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await waiting_for_answer(installation)
    await run.signal("answer", answer(installation, "lea"))
    async with installation.workers():
        assert (await run.result()).state == State.SUCCEEDED
    assert models.agent.calls == 2


@pytest.mark.guarantee("G20")
async def test_one_answer_sent_to_five_runs_answers_the_one_that_it_is_for(
    sqlite_installation: Installation, models: Models
) -> None:
    installation, names = sqlite_installation, [f"op-{number}" for number in range(1, 6)]
    async with installation.workers():
        runs = [await waiting_for_answer(installation, name) for name in names]
        message = answer(installation, "lea", operation="op-3")
        for run in runs:
            await run.signal("answer", message)
        assert (await runs[2].result()).state == State.SUCCEEDED
        for run in (*runs[:2], *runs[3:]):
            status = await until_messages(run, 1)
            assert (status.state, status.refused) == (State.WAITING_ANSWER, 1)
    assert models.agent.calls == 5 + 1
    assert [newest(installation, name).status for name in names].count(QuestionStatus.ANSWERED) == 1


@pytest.mark.guarantee("G29")
async def test_a_take_over_takes_the_question_back_and_a_release_has_the_agent_begin_anew(
    sqlite_installation: Installation, models: Models
) -> None:
    installation = sqlite_installation
    async with installation.workers():
        run = await waiting_for_answer(installation)
        before = answer(installation, "lea")
        await taken_over(installation, run)
        assert newest(installation).status == QuestionStatus.SUPERSEDED
        assert (await send(run, before)).ruling == Ruling.NOTHING_ASKED
        await done(installation, run, "lea", "release")
        await until_asked(run, 2)
        assert (await send(run, before)).ruling in (Ruling.REPLAY, Ruling.STALE_QUESTION)
        assert (await send(run, answer(installation, "leo"))).ruling == Ruling.ACCEPTED
        assert (await run.result()).state == State.SUCCEEDED
    old, new = sorted(models.agent.threads)
    assert old != new
    assert models.agent.threads == {old: 1, new: 2}
    assert models.agent.given[1] == {}


@pytest.mark.parametrize(
    ("person", "kind", "state"), [("rita", "withdraw", State.WITHDRAWN), ("lea", "cancel", State.CANCELLED)]
)
async def test_people_end_a_run_whose_agent_waits(
    sqlite_installation: Installation, models: Models, person: str, kind: Any, state: State
) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await waiting_for_answer(installation)
        await done(installation, run, person, kind)
        assert (await run.result()).state == state
    assert newest(installation).status == QuestionStatus.SUPERSEDED
    assert installation.published("internal") == []


async def test_a_cancelled_run_leaves_no_question_open(sqlite_installation: Installation, models: Models) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await waiting_for_answer(installation)
        await run.cancel()
        with pytest.raises(WorkflowFailureError):
            await run.result()
    assert installation.ledger.operations.get("acme", "op-1").state == State.CANCELLED
    assert newest(installation).status == QuestionStatus.SUPERSEDED
    assert installation.ledger.questions.pending("acme") == []


async def test_a_lease_that_is_over_and_a_second_person_are_as_with_approvals(
    sqlite_installation: Installation, tmp_path: Path, models: Models
) -> None:
    installation = sqlite_installation.with_fields(tmp_path, takeover={"role": "lead", "lease": "2s"})
    async with installation.workers("agent"):
        run = await waiting_for_answer(installation)
        await done(installation, run, "lea", "take_over")
        status = await until_state(run, State.ESCALATED)
        assert (status.reason, status.control) == ("lease_over", "nobody")
    assert newest(installation).status == QuestionStatus.SUPERSEDED


async def test_more_questions_than_the_policy_lets_one_run_ask_are_refused_to_the_agent(
    sqlite_installation: Installation, tmp_path: Path, models: Models
) -> None:
    models.agent.asks = ((PERIOD,), (AGAIN,))
    installation = sqlite_installation.with_fields(tmp_path, answering={"role": "lead", "within": "1h", "at_most": 1})
    async with installation.workers():
        run = await waiting_for_answer(installation)
        assert (await send(run, answer(installation, "lea"))).ruling == Ruling.ACCEPTED
        assert (await run.result()).state == State.SUCCEEDED
    assert len(installation.ledger.questions.of_operation("acme", "op-1")) == 1
    assert models.agent.calls == 3


@pytest.mark.guarantee("G41")
@pytest.mark.parametrize("asks", [((PERIOD,),), ()], ids=["a question", "a proposal"])
async def test_where_too_much_waits_already_a_run_ends_and_nobody_is_asked_anything_more(
    sqlite_installation: Installation, models: Models, asks: tuple[Any, ...]
) -> None:
    installation = sqlite_installation
    installation.settings = installation.settings.model_copy(update={"max_pending": 1})
    async with installation.workers():
        await waiting_for_answer(installation, "op-0")
        models.agent.asks = asks
        run = await installation.start("op-1")
        result = await run.result()
    assert (result.state, result.reason) == (State.FAILED, "too_many_pending")
    assert installation.ledger.questions.current("acme", "op-1") is None
    assert installation.ledger.approvals.current("acme", "op-1") is None
    assert installation.ledger.escalations.of_operation("acme", "op-1") == []


async def test_another_run_of_the_operation_takes_no_answer_to_the_first_ones_question(
    sqlite_installation: Installation, models: Models
) -> None:
    """Its agent asks for itself; what was answered to the other is nothing to it."""
    installation = sqlite_installation
    async with installation.workers():
        first = await waiting_for_answer(installation)
        asked = answer(installation, "lea")
        await first.terminate()
        again = await begun_again(installation, first)
        await until_asked(again, 2)
        assert (await send(again, asked)).ruling == Ruling.STALE_QUESTION
        assert (await send(again, answer(installation, "lea"))).ruling == Ruling.ACCEPTED
        assert (await again.result()).state == State.SUCCEEDED
    assert [one.status for one in installation.ledger.questions.of_operation("acme", "op-1")] == [
        QuestionStatus.SUPERSEDED, QuestionStatus.ANSWERED,
    ]  # fmt: skip


async def test_an_answer_given_to_the_ledger_before_the_run_knew_of_its_question_is_not_lost(
    sqlite_installation: Installation, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked, and answered, and only then does the step that asked come to its end."""
    installation, loop = sqlite_installation, asyncio.get_running_loop()
    ask = type(installation.ledger.questions).ask

    def asked_and_answered(self: Any, question: Question, room: int) -> Any:
        asked = ask(self, question, room)
        run = installation.client.get_workflow_handle("acme:op-1")
        answering = asyncio.run_coroutine_threadsafe(send(run, answer(installation, "lea")), loop)
        assert answering.result(30).ruling == Ruling.ACCEPTED
        return asked

    monkeypatch.setattr(type(installation.ledger.questions), "ask", asked_and_answered)
    async with installation.workers():
        run = await installation.start("op-1", channel="internal")
        assert (await run.result()).state == State.SUCCEEDED
    assert models.agent.calls == 2
    assert len(installation.ledger.questions.of_operation("acme", "op-1")) == 1
