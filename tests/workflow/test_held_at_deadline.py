"""A run that nobody decided about in time, where the policy says freeze: held for people, and executed by no clock."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.decision import Ruling
from countersign.domain.notice import NoticeKind
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.skipping import Skipping
from tests.support.waiting import until_state
from tests.workflow.acting import Run, approval, done, vote
from tests.workflow.long_waits import AT_ONCE, audited, time_is, told, waiting

pytestmark = pytest.mark.long

LINE = {"after": "36h", "role": "admin", "decisions": ["approve", "reject"]}
FREEZES: dict[str, Any] = {"tiers": [LINE], "then": "freeze"}
ROUTE_WITHIN = timedelta(hours=72)


async def until_held(run: Run) -> None:
    """Wait until the run is held at its deadline, which is another thing than that further people are asked."""
    async with asyncio.timeout(60):
        while (await until_state(run, State.ESCALATED)).reason != "undecided_at_deadline":
            await asyncio.sleep(0.05)


@pytest.mark.guarantee("G24", "G26", "G27")
async def test_frozen_at_the_deadline_the_run_is_held_taken_over_proposed_again_and_published_once(
    skipping: Skipping, tmp_path: Path
) -> None:
    installation = skipping.installation.with_policy(tmp_path, ladder=FREEZES)
    async with installation.workers():
        run = await waiting(installation)
        first = installation.proposal("op-1")
        await time_is(skipping, first.deadline)
        await until_held(run)
        late = [await vote(installation, run, "bob"), await vote(installation, run, "carl", "reject")]
        assert installation.published() == []
        await done(installation, run, "lea", "take_over")
        await until_state(run, State.HUMAN_TAKEOVER)
        await done(installation, run, "lea", "propose", draft_version=1)
        await until_state(run, State.WAITING_APPROVAL)
        own = await vote(installation, run, "lea")
        second = await vote(installation, run, "bob")
        result = await run.result()
    assert [outcome.ruling for outcome in late] == [Ruling.LATE, Ruling.LATE]
    assert {outcome.sentence() for outcome in late} == {"late: expired, not executed: the deadline had passed"}
    assert (own.ruling, second.status) == (Ruling.ROLE_MISSING, ApprovalStatus.GRANTED)
    assert result.state == State.SUCCEEDED
    assert len(installation.published()) == 1
    assert installation.ledger.approvals.get("acme", first.approval_id).status == ApprovalStatus.EXPIRED
    assert_frozen_was_told(installation)


def assert_frozen_was_told(installation: Installation) -> None:
    """The last line hears that the run is held, and the role of the route that it is to be taken over."""
    (frozen,) = told(installation, NoticeKind.APPROVAL_FROZEN)
    assert (frozen.roles, frozen.severity.value) == (("admin",), "high")
    (raised,) = told(installation, NoticeKind.ESCALATION_RAISED)
    assert (raised.roles, raised.code) == (("lead",), "APPROVAL_TIMEOUT")
    (taken,) = told(installation, NoticeKind.CONTROL_CHANGED)
    assert (taken.persons, taken.code) == (("rita", "lea"), "take_over")


@pytest.mark.guarantee("G24")
async def test_frozen_and_then_left_alone_it_expires_at_the_end_of_the_routes_time_and_never_executes(
    skipping: Skipping, tmp_path: Path
) -> None:
    installation = skipping.installation.with_policy(tmp_path, ladder=FREEZES)
    async with installation.workers():
        result = await (await waiting(installation)).result()
    assert (result.state, result.reason) == (State.EXPIRED, "undecided_at_deadline")
    assert installation.published() == []
    assert approval(installation).status == ApprovalStatus.EXPIRED
    (unanswered,) = audited(installation, "escalation.unanswered")
    late = datetime.fromisoformat(unanswered.recorded_at) - installation.proposal("op-1").deadline - ROUTE_WITHIN
    assert timedelta(0) <= late < AT_ONCE
    assert [notice.roles for notice in told(installation, NoticeKind.ESCALATION_UNANSWERED)] == [("lead",)]


@pytest.mark.guarantee("G24")
async def test_frozen_without_a_route_it_is_held_for_as_long_as_it_takes(skipping: Skipping, tmp_path: Path) -> None:
    """Nobody is called by a route, so nobody's time is over either; an operator can still end it."""
    frozen = skipping.installation.with_policy(tmp_path, ladder=FREEZES)
    installation = frozen.with_fields(tmp_path, escalations={})
    async with installation.workers():
        run = await waiting(installation)
        await time_is(skipping, installation.proposal("op-1").deadline + timedelta(days=100))
        await until_held(run)
        await done(installation, run, "lea", "cancel")
        result = await run.result()
    assert (result.state, result.reason) == (State.CANCELLED, "cancelled_by_operator")
    assert installation.published() == []


async def test_a_person_whose_own_proposal_is_held_goes_on_and_proposes_again(
    skipping: Skipping, tmp_path: Path
) -> None:
    """They are in control still: nobody else need take the run over for that."""
    frozen = skipping.installation.with_policy(tmp_path, ladder=FREEZES)
    installation = frozen.with_fields(tmp_path, takeover={"role": "lead"})
    async with installation.workers():
        run = await waiting(installation)
        await done(installation, run, "lea", "take_over")
        await done(installation, run, "lea", "propose", draft_version=1)
        await until_state(run, State.WAITING_APPROVAL)
        await time_is(skipping, installation.proposal("op-1").deadline)
        await until_held(run)
        await done(installation, run, "lea", "propose", draft_version=1)
        await until_state(run, State.WAITING_APPROVAL)
        await vote(installation, run, "bob")
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(installation.published()) == 1
