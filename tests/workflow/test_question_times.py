"""What time does to a question of the agent's: reminders, further people, the deadline, and an answer beside it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.question import QuestionStatus
from countersign.domain.run import QuestionView
from countersign.domain.state import State
from tests.support.skipping import Skipping
from tests.support.waiting import until_state
from tests.workflow.acting import records, taken_over
from tests.workflow.asking import Models, answer, newest, waiting_for_answer
from tests.workflow.long_waits import JUST_BEFORE, SURELY, audited, time_is

pytestmark = pytest.mark.long

HOURS = timedelta(hours=1)
LADDER = {"remind": ["6h"], "tiers": [{"after": "12h", "role": "admin", "decisions": ["approve"]}]}
ANSWERING: dict[str, Any] = {"role": "lead", "within": "24h", "at_most": 10}
TICKS = ("question.reminded", "question.escalated", "question.expired")


async def test_nobody_answers_and_the_run_expires_after_reminder_and_further_people(
    skipping: Skipping, tmp_path: Path, models: Models
) -> None:
    installation = skipping.installation.with_fields(tmp_path, answering={**ANSWERING, "ladder": LADDER})
    async with installation.workers():
        run = await waiting_for_answer(installation)
        question = newest(installation).question
        await time_is(skipping, question.asked_at + 12 * HOURS)
        status = await until_state(run, State.ESCALATED)
        assert status.reason == "nobody_answered"
        view = await run.query("question", result_type=QuestionView)
        assert (view.roles, view.deadline) == (("lead", "admin"), question.deadline)
        result = await run.result()
    assert (result.state, result.reason) == (State.EXPIRED, "unanswered_at_deadline")
    assert question.deadline - question.asked_at == 24 * HOURS
    assert [record.type for record in audited(installation, *TICKS)] == [*TICKS]
    assert newest(installation).status == QuestionStatus.EXPIRED
    assert models.agent.calls == 1
    assert installation.published("internal") == []


async def test_further_people_answer_from_their_time_on(skipping: Skipping, tmp_path: Path, models: Models) -> None:
    installation = skipping.installation.with_fields(tmp_path, answering={**ANSWERING, "ladder": LADDER})
    async with installation.workers():
        run = await waiting_for_answer(installation)
        early = await run.execute_update("answer", answer(installation, "ada"), result_type=Outcome)
        await time_is(skipping, newest(installation).question.asked_at + 12 * HOURS)
        await until_state(run, State.ESCALATED)
        late = await run.execute_update("answer", answer(installation, "ada"), result_type=Outcome)
        result = await run.result()
    assert (early.ruling, late.ruling) == (Ruling.ROLE_MISSING, Ruling.ACCEPTED)
    assert result.state == State.SUCCEEDED


@pytest.mark.guarantee("G26")
@pytest.mark.parametrize("is_in_time", [True, False], ids=["before it", "after it"])
async def test_an_answer_and_the_deadline_in_one_task_are_ruled_on_by_when_the_server_had_the_answer(
    skipping: Skipping, tmp_path: Path, models: Models, is_in_time: bool
) -> None:
    installation = skipping.installation.with_fields(tmp_path, answering=ANSWERING)
    async with installation.workers():
        run = await waiting_for_answer(installation)
    deadline, given = newest(installation).question.deadline, answer(installation, "lea")
    await time_is(skipping, deadline + (-JUST_BEFORE if is_in_time else timedelta(milliseconds=100)))
    await run.signal("answer", given)
    await time_is(skipping, deadline + SURELY)
    async with installation.workers():
        result = await run.result()
    expected = (State.SUCCEEDED, "") if is_in_time else (State.EXPIRED, "unanswered_at_deadline")
    assert (result.state, result.reason) == expected
    assert models.agent.calls == (2 if is_in_time else 1)
    assert len(records(installation, "question.answered")) == is_in_time
    assert len(records(installation, "question.expired")) == (not is_in_time)


async def test_a_run_that_is_to_be_held_waits_for_a_person_who_takes_it_over(
    skipping: Skipping, tmp_path: Path, models: Models
) -> None:
    installation = skipping.installation.with_fields(
        tmp_path, answering={**ANSWERING, "ladder": {"then": "freeze"}}, escalations={}
    )
    async with installation.workers():
        run = await waiting_for_answer(installation)
        await time_is(skipping, newest(installation).question.deadline)
        status = await until_state(run, State.ESCALATED)
        assert status.reason == "unanswered_at_deadline"
        late = await run.execute_update("answer", answer(installation, "lea"), result_type=Outcome)
        assert late.ruling in (Ruling.NOTHING_ASKED, Ruling.LATE)
        await taken_over(installation, run)


async def test_a_held_run_that_nobody_takes_up_expires_and_has_not_failed(
    skipping: Skipping, tmp_path: Path, models: Models
) -> None:
    route = {"role": "lead", "severity": "medium", "within": "24h"}
    installation = skipping.installation.with_fields(
        tmp_path,
        answering={**ANSWERING, "ladder": {"then": "freeze"}},
        escalations={"APPROVAL_TIMEOUT": route},
    )
    async with installation.workers():
        result = await (await waiting_for_answer(installation)).result()
    assert (result.state, result.reason) == (State.EXPIRED, "unanswered_at_deadline")
    (escalation,) = installation.ledger.escalations.of_operation("acme", "op-1")
    assert (escalation.attempts, escalation.outcome) == (1, "unanswered")


async def test_a_cancel_that_comes_after_the_deadline_finds_the_run_expired(
    skipping: Skipping, tmp_path: Path, models: Models
) -> None:
    installation = skipping.installation.with_fields(tmp_path, answering=ANSWERING)
    async with installation.workers():
        run = await waiting_for_answer(installation)
    await time_is(skipping, newest(installation).question.deadline + SURELY)
    await run.cancel()
    async with installation.workers():
        result = await run.result()
    assert (result.state, result.reason) == (State.EXPIRED, "unanswered_at_deadline")


async def test_a_cancel_before_the_deadline_ends_it_though_workers_come_after(
    skipping: Skipping, tmp_path: Path, models: Models
) -> None:
    installation = skipping.installation.with_fields(tmp_path, answering=ANSWERING)
    async with installation.workers():
        run = await waiting_for_answer(installation)
    deadline = newest(installation).question.deadline
    await time_is(skipping, deadline - JUST_BEFORE)
    await run.cancel()
    await time_is(skipping, deadline + SURELY)
    async with installation.workers():
        with pytest.raises(WorkflowFailureError):
            await run.result()
    assert installation.ledger.operations.get("acme", "op-1").state == State.CANCELLED


async def test_a_question_is_open_for_weeks_while_workers_come_and_go(
    skipping: Skipping, tmp_path: Path, models: Models
) -> None:
    """Each has to replay the run; the agent is asked nothing meanwhile, and goes on with the answer at once."""
    installation = skipping.installation.with_fields(tmp_path, answering={**ANSWERING, "within": "30d"})
    async with installation.workers():
        run = await waiting_for_answer(installation)
    asked_at = newest(installation).question.asked_at
    for days in (3, 7, 14):
        await time_is(skipping, asked_at + timedelta(days=days))
        async with installation.workers("agent"):
            await until_state(run, State.WAITING_ANSWER)
    assert models.agent.calls == 1
    async with installation.workers():
        sent = await run.execute_update("answer", answer(installation, "lea"), result_type=Outcome)
        assert sent.ruling == Ruling.ACCEPTED
        assert (await run.result()).state == State.SUCCEEDED
    assert (models.agent.calls, len(models.agent.begun)) == (2, 2)
