"""Runs that go on in a next one in every state of waiting, and lose and repeat nothing by it.

The server suggests it after a few events here, so that every wait is interrupted many times.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import ProposalView, RunStatus, Step
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.publisher import Publisher, running_publisher
from tests.support.waiting import eventually, until_messages, until_state
from tests.workflow.acting import approval, done, records, vote
from tests.workflow.asking import Models, answer, until_asked, waiting_for_answer
from tests.workflow.going_on import assert_handed_on_and_taken_on, gone_on, inputs, until_handed_on_in
from tests.workflow.press import approved, press_installation

pytestmark = [pytest.mark.guarantee("G27"), pytest.mark.long]


@pytest.mark.guarantee("G17")
async def test_one_of_two_votes_is_carried_on_and_counts_once(restless: Installation, tmp_path: Path) -> None:
    installation = restless.with_policy(tmp_path, approvals=2)
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        first = installation.decision(installation.proposal("op-1"), "bob")
        outcome = await run.execute_update("decide", first, result_type=Outcome)
        assert outcome.ruling == Ruling.ACCEPTED
        view = await run.query("proposal", result_type=ProposalView)
        noise = await gone_on(run) + await gone_on(run)
        assert await run.query("proposal", result_type=ProposalView) == view
        again = await run.execute_update("decide", first, result_type=Outcome)
        assert again.ruling == Ruling.REPLAY
        noise += await gone_on(run)
        status = await until_messages(run, noise + 2)
        assert (status.messages, status.refused, status.state) == (noise + 2, noise, State.WAITING_APPROVAL)
        steps = await run.query("timeline", result_type=list[Step])
        assert [step.state for step in steps] == [State.RUNNING, State.WAITING_APPROVAL]
        assert (await vote(installation, run, "carl")).ruling == Ruling.ACCEPTED
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert [one.person for one in installation.votes("op-1")] == ["bob", "carl"]
    refused = [one["ruling"] for one in records(installation, "decision.refused")]
    assert refused.count(Ruling.UNKNOWN_MESSAGE) == len(refused) == noise
    assert len(records(installation, "decision.repeated")) == 1
    assert_handed_on_and_taken_on(installation, at_least=4)
    assert len(installation.published()) == 1


async def test_reminder_and_tier_fire_once_and_the_deadline_stays(restless: Installation, tmp_path: Path) -> None:
    ladder = {"remind": ["1s"], "tiers": [{"after": "4s", "role": "lead", "decisions": ["approve", "reject"]}]}
    installation = restless.with_policy(tmp_path, decide_within="14s", ladder=ladder)
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        deadline = installation.proposal("op-1").deadline
        await gone_on(run)
        await until_state(run, State.ESCALATED)
        await gone_on(run)
        await gone_on(run)
        view = await run.query("proposal", result_type=ProposalView)
        assert (view.deadline, view.roles) == (deadline, ("reviewer", "lead"))
        await eventually(lambda: approval(installation).status == ApprovalStatus.EXPIRED)
        result = await run.result()
    assert (result.state, result.reason) == (State.EXPIRED, "undecided_at_deadline")
    ticks = ("approval.reminded", "approval.escalated", "approval.expired")
    assert [len(records(installation, type)) for type in ticks] == [1, 1, 1]
    assert_handed_on_and_taken_on(installation, at_least=4)


async def test_nobody_takes_up_what_was_escalated_and_it_fails_at_its_time(
    restless: Installation, tmp_path: Path
) -> None:
    route = {"role": "lead", "severity": "medium", "within": "8s"}
    installation = restless.with_fields(tmp_path, escalations={"LOW_CONFIDENCE": route})
    twice = "date,region,amount\n2026-01-05,North,120.50\n2026-01-05,North,130.50\n"
    async with installation.workers("agent"):
        run = await installation.start("op-1", data=twice, unique=("date", "region"))
        await until_state(run, State.ESCALATED)
        (raised,) = installation.ledger.escalations.of_operation("acme", "op-1")
        await gone_on(run)
        await gone_on(run)
        result = await run.result()
        ended = (await run.describe()).close_time
    assert (result.state, result.reason) == (State.FAILED, "evidence_contradicts_itself")
    (one,) = installation.ledger.escalations.of_operation("acme", "op-1")
    assert (one.outcome, one.deadline) == ("unanswered", raised.deadline)
    assert ended is not None
    assert raised.deadline is not None
    assert timedelta(0) <= ended - raised.deadline < timedelta(seconds=10)


@pytest.mark.guarantee("G29")
async def test_control_and_what_its_owner_asked_for_are_carried_on(restless: Installation) -> None:
    async with restless.workers("agent"):
        run = await restless.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        await done(restless, run, "lea", "take_over")
        await until_state(run, State.HUMAN_TAKEOVER)
    for _ in range(4):
        await run.signal("noise")
    await run.signal("grade", restless.command("op-1", "lea", "grade", draft_version=1))
    await run.signal("propose", restless.command("op-1", "lea", "propose", draft_version=1))
    async with restless.workers():
        await until_state(run, State.WAITING_APPROVAL)
        await gone_on(run)
        proposal = restless.proposal("op-1")
        status = await run.query("status", result_type=RunStatus)
        assert (status.control, status.control_version) == ("lea", 2)
        assert (proposal.approval_version, proposal.control_version) == (2, 2)
        assert (await vote(restless, run, "bob")).ruling == Ruling.ACCEPTED
        result = await run.result()
    assert result.state == State.SUCCEEDED
    carried = [one for one in await inputs(restless, run) if one.state == State.HUMAN_TAKEOVER]
    assert any([told.command for told in one.orders] == ["grade", "propose"] for one in carried)
    assert_handed_on_and_taken_on(restless, at_least=2)


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["", "and cancelled meanwhile"])
async def test_what_may_be_outside_is_found_out_by_the_next_run_and_sent_once(
    restless: Installation,
    tmp_path: Path,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    is_cancelled: bool,
) -> None:
    publisher.fail_next("rate_limited", "error_after", *["lookup_unavailable"] * 2)
    with running_publisher(publisher) as url:
        press = press_installation(restless, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await until_handed_on_in(press, run, State.WAITING_RETRY)
            await until_handed_on_in(press, run, State.OUTCOME_UNKNOWN)
            if is_cancelled:
                await run.cancel()
            result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == 1
    assert len(set(publisher.calls("POST"))) == 1


@pytest.mark.guarantee("G26")
async def test_an_outage_before_going_on_makes_no_vote_late(restless: Installation, tmp_path: Path) -> None:
    installation = restless.with_policy(tmp_path, decide_within="6s", ladder={})
    async with installation.workers("agent"):
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
    proposal = installation.proposal("op-1")
    for _ in range(60):
        await run.signal("noise")
    await run.signal("decide", installation.decision(proposal, "bob"))
    assert datetime.now(UTC) < proposal.deadline
    await installation.after(proposal.deadline)
    async with installation.workers():
        result = await run.result()
    assert result.state == State.SUCCEEDED
    (counted,) = installation.votes("op-1")
    assert counted.decided_at < proposal.deadline


async def test_a_question_is_carried_on_with_its_deadline_and_is_asked_and_answered_once(
    restless: Installation, models: Models
) -> None:
    async with restless.workers():
        run = await waiting_for_answer(restless)
        view = await until_asked(run, 1)
        await gone_on(run)
        await gone_on(run)
        assert await until_asked(run, 1) == view
        outcome = await run.execute_update("answer", answer(restless, "lea"), result_type=Outcome)
        assert outcome.ruling == Ruling.ACCEPTED
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert models.agent.calls == 2
    assert [attempt for _, attempt in models.agent.begun] == [1, 1_000_001]
    assert len(restless.ledger.questions.of_operation("acme", "op-1")) == 1
    assert_handed_on_and_taken_on(restless, at_least=2)


async def test_a_question_still_ends_at_its_deadline_in_a_later_run(
    restless: Installation, tmp_path: Path, models: Models
) -> None:
    ladder = {"remind": ["1s"], "tiers": []}
    answering = {"role": "lead", "within": "8s", "at_most": 10, "ladder": ladder}
    installation = restless.with_fields(tmp_path, answering=answering)
    async with installation.workers("agent"):
        run = await waiting_for_answer(installation)
        await eventually(lambda: len(records(installation, "question.reminded")) == 1)
        await gone_on(run)
        await gone_on(run)
        result = await run.result()
    assert (result.state, result.reason) == (State.EXPIRED, "unanswered_at_deadline")
    assert [len(records(installation, type)) for type in ("question.reminded", "question.expired")] == [1, 1]
    assert_handed_on_and_taken_on(installation, at_least=2)
