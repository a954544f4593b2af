"""A budget that is used up: the run waits for whom its policy names, goes on once they raise it, repeats no call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from countersign.domain.decision import Ruling
from countersign.domain.escalation import Reason
from countersign.domain.run import Step
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import eventually, until_state
from tests.workflow.acting import Run, command, done, records, stored, taken_over
from tests.workflow.asking import PERIOD, READ, Models, answer, counted, waiting_for_answer

ROUTE = {"BUDGET_EXCEEDED": {"role": "lead", "severity": "low"}}


def limited(installation: Installation, folder: Path, calls: int, **fields: Any) -> Installation:
    return installation.with_fields(folder, budgets={"run": {"calls": calls}}, **{"escalations": ROUTE, **fields})


async def used_up(installation: Installation) -> Run:
    """A run that waits for more to spend."""
    run = await installation.start("op-1", channel="internal")
    status = await until_state(run, State.ESCALATED)
    assert status.reason == "budget_exceeded"
    return run


async def test_a_draft_goes_on_from_where_its_budget_ended_once_people_raise_it(
    sqlite_installation: Installation, tmp_path: Path, models: Models
) -> None:
    installation = limited(sqlite_installation, tmp_path, 2)
    async with installation.workers():
        run = await waiting_for_answer(installation)
        await run.execute_update("answer", answer(installation, "lea"))
        # One question and one more call: the grade is not covered.
        status = await until_state(run, State.ESCALATED)
        assert (status.reason, models.agent.calls, models.grader.calls) == ("budget_exceeded", 2, 0)
        (escalation,) = installation.ledger.escalations.of_operation("acme", "op-1")
        assert (escalation.reason, escalation.role) == (Reason.BUDGET_EXCEEDED, "lead")
        await done(installation, run, "leo", "raise_budget", content=stored(installation, {"calls": 1}))
        result = await run.result()
        steps = await run.query("timeline", result_type=list[Step])
    assert result.state == State.SUCCEEDED
    assert (State.RUNNING, "budget_raised") in [(step.state, step.reason) for step in steps]
    assert counted(installation) == {"draft": 2, "grade": 1}
    assert (models.agent.calls, models.grader.calls) == (2, 1)
    assert installation.ledger.controls.standing("acme", "op-1").draft_version == 1
    (escalation,) = installation.ledger.escalations.of_operation("acme", "op-1")
    assert (escalation.outcome, escalation.answered_by) == ("went_on", "leo")


async def test_an_unfinished_draft_keeps_its_thread_and_every_raise_is_used_before_the_next(
    sqlite_installation: Installation, tmp_path: Path, models: Models
) -> None:
    models.agent.asks = ((), ())
    installation = limited(sqlite_installation, tmp_path, 1)
    async with installation.workers():
        run = await used_up(installation)
        for total in (2, 3):
            await done(installation, run, "lea", "raise_budget", content=stored(installation, {"calls": 1}))
            await until_spent(installation, run, total)
        await done(installation, run, "lea", "raise_budget", content=stored(installation, {"calls": 5}))
        assert (await run.result()).state == State.SUCCEEDED
    assert counted(installation) == {"draft": 3, "grade": 1}
    threads = {thread for thread, _ in models.agent.begun}
    assert len(threads) == 1
    attempts = [attempt for _, attempt in models.agent.begun]
    assert attempts == sorted(set(attempts))
    assert len(records(installation, "budget.raised")) == 3


async def until_spent(installation: Installation, run: Run, calls: int) -> None:
    """Wait until the run has made so many calls and waits for more again."""
    await eventually(lambda: sum(counted(installation).values()) == calls)
    await eventually(lambda: len(installation.ledger.escalations.of_operation("acme", "op-1")) == calls)
    await until_state(run, State.ESCALATED)


async def test_only_whom_the_policy_names_raises_it_by_what_it_limits_and_only_once_it_is_used_up(
    sqlite_installation: Installation, tmp_path: Path, models: Models
) -> None:
    models.agent.asks = ((READ,),)
    installation = limited(sqlite_installation, tmp_path, 1)
    more, nothing = stored(installation, {"calls": 1}), stored(installation, {"tokens": 5})
    async with installation.workers():
        run = await waiting_for_answer(installation)
        early = await command(installation, run, "lea", "raise_budget", content=more)
        allow = answer(installation, "lea", {"call": READ.id, "decision": "approve"})
        await run.execute_update("answer", allow)
        await until_state(run, State.ESCALATED)
        outcomes = [
            await command(installation, run, "bob", "raise_budget", content=more),
            await command(installation, run, "rita", "raise_budget", content=more),
            await command(installation, run, "lea", "raise_budget", content=more, control_version=9),
            await command(installation, run, "lea", "raise_budget", content=nothing),
            await command(installation, run, "lea", "raise_budget", content=stored(installation, {})),
            await command(installation, run, "lea", "raise_budget"),
        ]
        await until_state(run, State.ESCALATED)
    assert early.ruling == Ruling.BUDGET_NOT_EXCEEDED
    refused = [Ruling.CONTENT_REFUSED] * 3
    assert [one.ruling for one in outcomes] == [
        Ruling.ROLE_MISSING, Ruling.ROLE_MISSING, Ruling.STALE_CONTROL, *refused,
    ]  # fmt: skip
    assert outcomes[3].detail == "tokens: not limited, so adding some changes nothing; the run has 1 calls"
    assert models.agent.calls == 1
    assert records(installation, "budget.raised") == []


async def test_without_anybody_to_ask_a_run_without_budget_has_failed(
    sqlite_installation: Installation, tmp_path: Path, models: Models
) -> None:
    models.agent.asks = ((),)
    installation = limited(sqlite_installation, tmp_path, 1, escalations={})
    async with installation.workers("agent"):
        run = await installation.start("op-1", channel="internal")
        result = await run.result()
    assert (result.state, result.reason) == (State.FAILED, "budget_exceeded")
    assert counted(installation) == {"draft": 1}
    assert installation.published("internal") == []


async def test_whoever_is_asked_for_more_can_take_over_instead_and_the_draft_is_theirs(
    sqlite_installation: Installation, tmp_path: Path, models: Models
) -> None:
    models.agent.asks = ((),)
    installation = limited(sqlite_installation, tmp_path, 1)
    async with installation.workers("agent"):
        run = await used_up(installation)
        await taken_over(installation, run)
        late = await command(installation, run, "leo", "raise_budget", content=stored(installation, {"calls": 1}))
    assert late.ruling == Ruling.BUDGET_NOT_EXCEEDED
    assert models.agent.calls == 1


@pytest.mark.guarantee("G26")
async def test_a_raise_counts_though_no_worker_was_there_when_it_came(
    sqlite_installation: Installation, tmp_path: Path, models: Models
) -> None:
    models.agent.asks = ((),)
    route = {"BUDGET_EXCEEDED": {"role": "lead", "severity": "low", "within": "3s"}}
    installation = limited(sqlite_installation, tmp_path, 1, escalations=route)
    async with installation.workers("agent"):
        run = await used_up(installation)
        (escalation,) = installation.ledger.escalations.of_operation("acme", "op-1")
    raised = installation.command("op-1", "lea", "raise_budget", content=stored(installation, {"calls": 9}))
    await run.signal("raise_budget", raised)
    assert escalation.deadline is not None
    await installation.after(escalation.deadline)
    async with installation.workers():
        assert (await run.result()).state == State.SUCCEEDED
    assert counted(installation) == {"draft": 2, "grade": 1}


async def test_a_question_and_a_budget_one_after_the_other(
    sqlite_installation: Installation, tmp_path: Path, models: Models
) -> None:
    """The pauses of one version are counted on, whatever they were for: no attempt passes for an older one."""
    models.agent.asks = ((PERIOD,), (READ,))
    installation = limited(sqlite_installation, tmp_path, 1)
    async with installation.workers():
        run = await waiting_for_answer(installation)
        await run.execute_update("answer", answer(installation, "lea"))
        await until_state(run, State.ESCALATED)
        await done(installation, run, "lea", "raise_budget", content=stored(installation, {"calls": 9}))
        await until_state(run, State.WAITING_ANSWER)
        await run.execute_update("answer", answer(installation, "lea", {"call": READ.id, "decision": "reject"}))
        assert (await run.result()).state == State.SUCCEEDED
    assert [attempt // 1_000_000 for _, attempt in models.agent.begun] == [0, 1, 2, 3]
    assert counted(installation) == {"draft": 3, "grade": 1}
