"""The lease of control: a person who does nothing for so long is in control no more, and neither is the agent."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.decision import Ruling
from countersign.domain.notice import NoticeKind
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import running_model_server
from tests.support.skipping import Skipping
from tests.support.waiting import until_messages, until_state
from tests.workflow.acting import Run, command, done, records, vote
from tests.workflow.long_waits import AT_ONCE, JUST_BEFORE, SURELY, audited, time_is, told, waiting
from tests.workflow.scripted_model import ScriptedModel, asking

pytestmark = pytest.mark.long

LEASE = timedelta(hours=8)
ROUTE_WITHIN = timedelta(hours=72)


async def held_by_lea(installation: Installation) -> Run:
    """A run with one draft and a superseded proposal, which lea has taken over."""
    run = await waiting(installation)
    await done(installation, run, "lea", "take_over")
    await until_state(run, State.HUMAN_TAKEOVER)
    return run


def lease_until(installation: Installation) -> datetime:
    """When the control that is in force is over."""
    moment = installation.ledger.controls.standing("acme", "op-1").control.lease_until
    assert moment is not None
    return moment


async def lapsed(skipping: Skipping, installation: Installation) -> Run:
    """A run whose lease is over, and which has been brought before people."""
    run = await held_by_lea(installation)
    await time_is(skipping, lease_until(installation))
    status = await until_state(run, State.ESCALATED)
    assert (status.reason, status.control) == ("lease_over", "nobody")
    return run


@pytest.mark.guarantee("G27", "G30")
async def test_a_lease_that_is_over_leaves_nobody_in_control_and_never_the_agent(skipping: Skipping) -> None:
    with running_model_server(ScriptedModel()) as server:
        installation = asking(skipping.installation, server)
        async with installation.workers():
            run = await held_by_lea(installation)
            calls, ends = server.calls, lease_until(installation)
            await time_is(skipping, ends - JUST_BEFORE)
            assert (await until_state(run, State.HUMAN_TAKEOVER)).control == "lea"
            await time_is(skipping, ends)
            status = await until_state(run, State.ESCALATED)
            await skipping.pass_time(timedelta(hours=71))
            still = await until_state(run, State.ESCALATED)
    assert (status.control, status.control_version, status.reason) == ("nobody", 3, "lease_over")
    assert still.control == "nobody"
    assert (server.calls, still.draft_version) == (calls, 1)
    assert [control.by for control in installation.ledger.controls.history("acme", "op-1")] == [
        "agent",
        "person",
        "nobody",
    ]
    (over,) = audited(installation, "control.lapsed")
    assert over.subject == "clock"
    assert timedelta(0) <= datetime.fromisoformat(over.recorded_at) - ends < AT_ONCE
    assert installation.published() == []


async def test_whoever_is_concerned_is_told_that_it_is_over_and_the_route_brings_in_others(skipping: Skipping) -> None:
    installation = skipping.installation
    async with installation.workers():
        await lapsed(skipping, installation)
    taken, over = told(installation, NoticeKind.CONTROL_CHANGED)
    assert (taken.persons, taken.code) == (("rita", "lea"), "take_over")
    assert taken.deadline == taken.at + LEASE
    assert (over.persons, over.code, over.deadline) == (("rita", "lea"), "lease_over", None)
    (escalated,) = told(installation, NoticeKind.ESCALATION_RAISED)
    assert (escalated.roles, escalated.code) == (("lead",), "APPROVAL_TIMEOUT")
    assert escalated.deadline == escalated.at + ROUTE_WITHIN


@pytest.mark.guarantee("G29")
@pytest.mark.parametrize("transport", ["signal", "update"])
async def test_whoever_held_it_can_do_nothing_any_more_and_is_told_why(skipping: Skipping, transport: str) -> None:
    """Signed while it was theirs, or afterwards: neither proposes anything nor gives the run back to the agent."""
    installation = skipping.installation
    async with installation.workers():
        run = await held_by_lea(installation)
        signed_before = installation.command("op-1", "lea", "propose", draft_version=1)
        await time_is(skipping, lease_until(installation))
        await until_state(run, State.ESCALATED)
        for kind, message in (
            ("propose", signed_before),
            ("release", installation.command("op-1", "lea", "release", draft_version=1)),
        ):
            if transport == "signal":
                await run.signal(kind, message)
            else:
                await run.execute_update(kind, message)
        await until_messages(run, 3)
        status = await until_state(run, State.ESCALATED)
    stale, not_hers = records(installation, "command.refused")
    assert (stale["ruling"], not_hers["ruling"]) == ("stale_control", "not_in_control")
    assert "control is with nobody since" in stale["reason"]
    assert "nobody is in control, version 3; take over first" in not_hers["reason"]
    assert status.control == "nobody"
    assert installation.published() == []


@pytest.mark.guarantee("G29")
async def test_another_takes_over_then_and_the_work_goes_on(skipping: Skipping) -> None:
    installation = skipping.installation
    async with installation.workers():
        run = await lapsed(skipping, installation)
        await done(installation, run, "leo", "take_over")
        assert (await until_state(run, State.HUMAN_TAKEOVER)).control == "leo"
        hers = await command(installation, run, "lea", "propose", draft_version=1)
        await done(installation, run, "leo", "propose", draft_version=1)
        await until_state(run, State.WAITING_APPROVAL)
        assert (await vote(installation, run, "bob")).status == ApprovalStatus.GRANTED
        result = await run.result()
    assert (hers.ruling, hers.detail[:21]) == (Ruling.NOT_IN_CONTROL, "leo is in control, ve")
    assert result.state == State.SUCCEEDED
    assert len(installation.published()) == 1
    (escalation,) = installation.ledger.escalations.of_operation("acme", "op-1")
    assert (escalation.outcome, escalation.answered_by) == ("taken_over", "leo")


async def test_each_command_of_the_holder_renews_it_and_nobody_elses(skipping: Skipping) -> None:
    installation = skipping.installation
    async with installation.workers():
        run = await held_by_lea(installation)
        first = lease_until(installation)
        await time_is(skipping, first - timedelta(hours=1))
        refused = await command(installation, run, "leo", "grade", draft_version=1)
        assert lease_until(installation) == first
        await done(installation, run, "lea", "grade", draft_version=1)
        second = lease_until(installation)
        await time_is(skipping, first)
        await until_messages(run, 3)
        status = await until_state(run, State.HUMAN_TAKEOVER)
        await time_is(skipping, second)
        over = await until_state(run, State.ESCALATED)
    assert refused.ruling == Ruling.NOT_IN_CONTROL
    assert timedelta(0) <= second - first - timedelta(hours=7) < AT_ONCE
    assert (status.control, over.control) == ("lea", "nobody")
    (record,) = audited(installation, "control.lapsed")
    assert datetime.fromisoformat(record.recorded_at) >= second


@pytest.mark.parametrize("in_time", [True, False], ids=["just before", "a second after"])
async def test_a_command_counts_by_when_the_server_recorded_it_though_no_worker_was_there(
    skipping: Skipping, in_time: bool
) -> None:
    installation = skipping.installation
    async with installation.workers():
        run = await held_by_lea(installation)
    ends = lease_until(installation)
    asked = installation.command("op-1", "lea", "grade", draft_version=1)
    await time_is(skipping, ends - JUST_BEFORE if in_time else ends + SURELY)
    await run.signal("grade", asked)
    await time_is(skipping, ends + SURELY)
    async with installation.workers():
        await until_messages(run, 2)
        status = await until_state(run, State.HUMAN_TAKEOVER if in_time else State.ESCALATED)
    assert status.control == ("lea" if in_time else "nobody")
    assert len(audited(installation, "control.lapsed")) == (0 if in_time else 1)


@pytest.mark.parametrize("state", [State.HUMAN_TAKEOVER, State.ESCALATED])
async def test_workers_that_come_and_go_neither_lose_nor_repeat_its_end(skipping: Skipping, state: State) -> None:
    installation = skipping.installation
    async with installation.workers():
        run = await held_by_lea(installation)
    ends = lease_until(installation)
    await time_is(skipping, ends - JUST_BEFORE)
    async with installation.workers():
        await until_state(run, State.HUMAN_TAKEOVER)
        if state == State.ESCALATED:
            await time_is(skipping, ends)
            await until_state(run, state)
    await time_is(skipping, ends + timedelta(seconds=1))
    for _ in range(2):
        async with installation.workers():
            await until_state(run, State.ESCALATED)
    assert len(audited(installation, "control.lapsed")) == 1
    assert len(told(installation, NoticeKind.CONTROL_CHANGED)) == 2
    assert len(told(installation, NoticeKind.ESCALATION_RAISED)) == 1


async def test_nobody_comes_and_the_run_fails_for_that_reason(skipping: Skipping) -> None:
    installation = skipping.installation
    async with installation.workers():
        result = await (await held_by_lea(installation)).result()
    assert (result.state, result.reason) == (State.FAILED, "lease_over")
    assert installation.published() == []
    assert [notice.roles for notice in told(installation, NoticeKind.ESCALATION_UNANSWERED)] == [("lead",)]


@pytest.mark.parametrize(
    ("fields", "state", "control"),
    [
        ({"escalations": {}}, State.ESCALATED, "nobody"),
        ({"takeover": {"role": "lead"}}, State.HUMAN_TAKEOVER, "lea"),
    ],
    ids=["no route", "no lease"],
)
async def test_what_the_policy_sets_no_time_for_waits_for_people(
    skipping: Skipping, tmp_path: Path, fields: dict[str, Any], state: State, control: str
) -> None:
    installation = skipping.installation.with_fields(tmp_path, **fields)
    async with installation.workers():
        run = await held_by_lea(installation)
        await skipping.pass_time(timedelta(days=100))
        status = await until_state(run, state)
        assert status.control == control
        await done(installation, run, "rita", "withdraw")
        result = await run.result()
    assert result.state == State.WITHDRAWN
