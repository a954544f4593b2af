"""What people make of a run that was brought before them: they take it over or end it, or nobody comes and it fails."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from countersign.domain.command import CommandKind
from countersign.domain.decision import Ruling
from countersign.domain.notice import NoticeKind
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import running_model_server
from tests.support.skipping import Skipping
from tests.support.waiting import eventually, until_state
from tests.workflow.acting import Run, command, done, records, rewritten, vote
from tests.workflow.long_waits import JUST_BEFORE, SURELY, audited, time_is, told
from tests.workflow.scripted_model import asking, is_grading
from tests.workflow.test_escalation import (
    COURSES,
    WITHIN,
    assert_nothing_went_out,
    brought_before_people,
    raised,
    with_wire,
)

pytestmark = pytest.mark.long

LOW = COURSES["checks never pass"]


async def low_confidence(installation: Installation) -> Run:
    return await brought_before_people(installation, LOW)


@pytest.mark.parametrize("routes", ["none", "another reason's"])
async def test_without_a_route_it_fails_as_ever(skipping: Skipping, tmp_path: Path, routes: str) -> None:
    named = {} if routes == "none" else {"BUDGET_EXCEEDED": {"role": "lead", "severity": "low"}}
    with running_model_server(LOW.model()) as server:
        installation = asking(skipping.installation.with_fields(tmp_path, escalations=named), server)
        async with installation.workers():
            result = await (await installation.start("op-1")).result()
    assert (result.state, result.reason) == (State.FAILED, "checks_failed")
    assert installation.ledger.escalations.of_operation("acme", "op-1") == []
    assert told(installation, NoticeKind.ESCALATION_RAISED) == []
    assert_nothing_went_out(installation)


async def test_unanswered_it_fails_with_what_was_wrong_at_first(skipping: Skipping) -> None:
    with running_model_server(LOW.model()) as server:
        installation = asking(skipping.installation, server)
        async with installation.workers():
            run = await low_confidence(installation)
            calls = server.calls
            result = await run.result()
    assert (result.state, result.reason) == (State.FAILED, "checks_failed")
    escalation = raised(installation)
    assert (escalation.outcome, escalation.answered_by) == ("unanswered", None)
    assert await skipping.now() >= escalation.raised_at + WITHIN
    (record,) = audited(installation, "escalation.unanswered")
    assert record.subject == "clock"
    (notice,) = told(installation, NoticeKind.ESCALATION_UNANSWERED)
    assert (notice.roles, notice.code) == (("lead",), "LOW_CONFIDENCE")
    (ended,) = told(installation, NoticeKind.RUN_ENDED)
    assert (ended.persons, ended.code) == (("rita",), "FAILED:checks_failed")
    assert server.calls == calls
    assert_nothing_went_out(installation)


async def test_a_route_without_a_time_waits_for_people(skipping: Skipping, tmp_path: Path) -> None:
    route = {"LOW_CONFIDENCE": {"role": "lead", "severity": "medium"}}
    with running_model_server(LOW.model()) as server:
        installation = asking(skipping.installation.with_fields(tmp_path, escalations=route), server)
        async with installation.workers():
            run = await low_confidence(installation)
            await skipping.pass_time(timedelta(days=200))
            await until_state(run, State.ESCALATED)
    assert raised(installation).deadline is None


@pytest.mark.guarantee("G30")
async def test_taken_over_it_is_amended_proposed_approved_and_published_once(skipping: Skipping) -> None:
    with running_model_server(LOW.model()) as server:
        installation = asking(skipping.installation, server)
        async with installation.workers():
            run = await low_confidence(installation)
            calls = server.calls
            stranger = await command(installation, run, "bob", "take_over")
            await done(installation, run, "leo", "take_over")
            await until_state(run, State.HUMAN_TAKEOVER)
            content = rewritten(installation, "op-1", 3, body="Sales came to {{total}} in all.")
            await done(installation, run, "leo", "amend", draft_version=3, content=content)
            await done(installation, run, "leo", "grade", draft_version=4)
            await eventually(lambda: installation.ledger.drafts.passed("acme", "op-1", 4))
            await done(installation, run, "leo", "propose", draft_version=4)
            await until_state(run, State.WAITING_APPROVAL)
            await vote(installation, run, "bob")
            result = await run.result()
    assert stranger.ruling == Ruling.ROLE_MISSING
    assert result.state == State.SUCCEEDED
    (report,) = installation.published()
    assert "17 customers" not in report.read_text()
    escalation = raised(installation)
    assert (escalation.outcome, escalation.answered_by) == ("taken_over", "leo")
    assert all(is_grading(request) for request in server.requests[calls:])
    (taken,) = told(installation, NoticeKind.CONTROL_CHANGED)
    assert (taken.persons, taken.code) == (("rita", "leo"), "take_over")


async def test_the_routes_role_may_take_over_though_the_policy_names_another_for_takeovers(
    skipping: Skipping, tmp_path: Path
) -> None:
    denied = COURSES["denied by policy"]
    installation = with_wire(skipping.installation, tmp_path)
    async with installation.workers():
        run = await brought_before_people(installation, denied)
        await done(installation, run, "ada", "take_over")
        status = await until_state(run, State.HUMAN_TAKEOVER)
    assert status.control == "ada"
    assert raised(installation).answered_by == "ada"


@pytest.mark.parametrize(
    ("person", "kind", "state", "reason"),
    [
        ("lea", "cancel", State.CANCELLED, "cancelled_by_operator"),
        ("leo", "cancel", State.CANCELLED, "cancelled_by_operator"),
        ("rita", "withdraw", State.WITHDRAWN, "withdrawn"),
    ],
    ids=["by an operator", "by the route's role", "by the requester"],
)
async def test_ended_by_people_it_ends_as_they_said(
    skipping: Skipping, person: str, kind: CommandKind, state: State, reason: str
) -> None:
    with running_model_server(LOW.model()) as server:
        installation = asking(skipping.installation, server)
        async with installation.workers():
            run = await low_confidence(installation)
            await done(installation, run, person, kind)
            result = await run.result()
    assert (result.state, result.reason) == (state, reason)
    escalation = raised(installation)
    assert (escalation.outcome, escalation.answered_by) == ("ended", person)
    assert told(installation, NoticeKind.ESCALATION_UNANSWERED) == []
    assert_nothing_went_out(installation)


@pytest.mark.parametrize("in_time", [True, False], ids=["just before", "a second after"])
async def test_whoever_came_before_its_time_was_up_has_taken_it_over_though_no_worker_was_there(
    skipping: Skipping, tmp_path: Path, in_time: bool
) -> None:
    with running_model_server(LOW.model()) as server:
        installation = asking(skipping.installation, server)
        async with installation.workers():
            run = await low_confidence(installation)
        deadline = raised(installation).deadline
        assert deadline is not None
        taking = installation.command("op-1", "lea", "take_over")
        await time_is(skipping, deadline - JUST_BEFORE if in_time else deadline + SURELY)
        await run.signal("take_over", taking)
        await time_is(skipping, deadline + SURELY)
        async with installation.workers():
            if in_time:
                assert (await until_state(run, State.HUMAN_TAKEOVER)).control == "lea"
            else:
                assert (await run.result()).reason == "checks_failed"
                (refused,) = records(installation, "command.refused")
                assert refused["ruling"] == Ruling.ENDED
    assert raised(installation).outcome == ("taken_over" if in_time else "unanswered")
