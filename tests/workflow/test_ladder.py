"""The ladder: reminders and further lines of people, each once and at its time, and what the last of them ends in."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.audit import AuditRecord
from countersign.domain.decision import Ruling
from countersign.domain.notice import NoticeKind
from countersign.domain.proposal import ApprovalStatus, StatementKind
from countersign.domain.run import Step
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.skipping import Skipping
from tests.support.waiting import eventually, until_messages, until_state
from tests.workflow.acting import approval, records, vote
from tests.workflow.long_waits import AT_ONCE, JUST_BEFORE, audited, time_is, told, waiting

pytestmark = [pytest.mark.guarantee("G27"), pytest.mark.long]

LEADS = {"after": "12h", "role": "lead", "decisions": ["approve", "reject"], "tell": ["requester"]}
ADMINS = {"after": "36h", "role": "admin", "decisions": ["approve", "reject"], "tell": ["operator"]}
LADDER: dict[str, Any] = {"remind": ["6h", "30h"], "tiers": [LEADS, ADMINS], "then": "expire"}
SCHEDULE = [
    ("approval.reminded", timedelta(hours=6), ["reviewer"]),
    ("approval.escalated", timedelta(hours=12), ["lead", "requester"]),
    ("approval.reminded", timedelta(hours=30), ["reviewer", "lead"]),
    ("approval.escalated", timedelta(hours=36), ["admin", "operator"]),
    ("approval.expired", timedelta(hours=72), None),
]
TICKS = ("approval.reminded", "approval.escalated", "approval.expired")
HOURS = timedelta(hours=1)


def at(record: AuditRecord) -> datetime:
    return datetime.fromisoformat(record.recorded_at)


def assert_on_schedule(installation: Installation, schedule: list[tuple[str, timedelta, list[str] | None]]) -> None:
    """Exactly these ticks are recorded and told, each once, in this order, not before its time and not long after."""
    proposal = installation.proposal("op-1")
    found = audited(installation, *TICKS)
    assert [(record.type, record.detail.get("roles")) for record in found] == [
        (type, roles) for type, _, roles in schedule
    ]
    for record, (_, after, _) in zip(found, schedule, strict=True):
        assert timedelta(0) <= at(record) - proposal.proposed_at - after < AT_ONCE
        assert record.subject == "clock"
    reminders, tiers = (
        told(installation, kind) for kind in (NoticeKind.APPROVAL_REMINDER, NoticeKind.APPROVAL_ESCALATED)
    )
    for notices, type in ((reminders, "approval.reminded"), (tiers, "approval.escalated")):
        assert [[*notice.roles] for notice in notices] == [roles for kind, _, roles in schedule if kind == type]
        assert {notice.deadline for notice in notices} <= {proposal.deadline}


async def until_ticked(installation: Installation, count: int) -> None:
    """Wait until so much has come due and is recorded."""
    await eventually(lambda: len(audited(installation, *TICKS)) == count)


async def test_reminders_and_lines_come_once_and_in_time_and_the_last_without_an_answer_expires(
    skipping: Skipping, tmp_path: Path
) -> None:
    installation = skipping.installation.with_policy(tmp_path, ladder=LADDER)
    async with installation.workers():
        run = await waiting(installation)
        result = await run.result()
        steps = await run.query("timeline", result_type=list[Step])
    assert (result.state, result.reason) == (State.EXPIRED, "undecided_at_deadline")
    assert_on_schedule(installation, SCHEDULE)
    assert [step.state for step in steps] == [
        State.RUNNING, State.WAITING_APPROVAL, State.ESCALATED, State.ESCALATED, State.EXPIRED,
    ]  # fmt: skip
    assert [notice.roles for notice in told(installation, NoticeKind.APPROVAL_OPENED)] == [("reviewer",)]
    assert installation.published() == []


async def test_workers_that_come_and_go_before_every_tick_change_nothing(skipping: Skipping, tmp_path: Path) -> None:
    """Down until just before each tick, there for it, and killed off again: none is lost, none comes twice."""
    installation = skipping.installation.with_policy(tmp_path, ladder=LADDER)
    async with installation.workers():
        run = await waiting(installation)
    proposed_at = installation.proposal("op-1").proposed_at
    for ticked, (_, after, _) in enumerate(SCHEDULE, 1):
        await time_is(skipping, proposed_at + after - JUST_BEFORE)
        assert len(audited(installation, *TICKS)) == ticked - 1
        async with installation.workers():
            if ticked == len(SCHEDULE):
                assert (await run.result()).state == State.EXPIRED
            else:
                await time_is(skipping, proposed_at + after)
                await until_ticked(installation, ticked)
    assert_on_schedule(installation, SCHEDULE)


async def test_a_tick_that_came_while_no_worker_was_there_is_made_up_for_once(
    skipping: Skipping, tmp_path: Path
) -> None:
    installation = skipping.installation.with_policy(tmp_path, ladder=LADDER)
    async with installation.workers():
        run = await waiting(installation)
        proposed_at = installation.proposal("op-1").proposed_at
        await time_is(skipping, proposed_at + 6 * HOURS)
        await until_ticked(installation, 1)
    await time_is(skipping, proposed_at + 12 * HOURS)
    for _ in range(2):
        async with installation.workers():
            await until_state(run, State.ESCALATED)
    (tick,) = audited(installation, "approval.escalated")
    assert tick.detail["due_at"] == (proposed_at + 12 * HOURS).isoformat(timespec="microseconds").replace("+00:00", "Z")
    assert len(told(installation, NoticeKind.APPROVAL_ESCALATED)) == 1


@pytest.mark.parametrize("transport", ["signal", "update"])
async def test_a_lines_role_counts_from_its_time_on_and_not_before(
    skipping: Skipping, tmp_path: Path, transport: str
) -> None:
    installation = skipping.installation.with_policy(tmp_path, ladder=LADDER)
    async with installation.workers():
        run = await waiting(installation)
        proposal = installation.proposal("op-1")
        await time_is(skipping, proposal.proposed_at + 12 * HOURS - JUST_BEFORE)
        for person in ("lea", "ada"):
            message = installation.decision(proposal, person)
            if transport == "signal":
                await run.signal("decide", message)
            else:
                await run.execute_update("decide", message)
        await until_messages(run, 2)
        await time_is(skipping, proposal.proposed_at + 12 * HOURS)
        await until_state(run, State.ESCALATED)
        assert approval(installation).status == ApprovalStatus.PENDING
        second = await vote(installation, run, "lea")
        result = await run.result()
    assert [refused["ruling"] for refused in records(installation, "decision.refused")] == ["role_missing"] * 2
    begins = (proposal.proposed_at + 12 * HOURS).isoformat()
    assert f"you are asked from {begins} on" in records(installation, "decision.refused")[0]["reason"]
    assert (second.status, result.state) == (ApprovalStatus.GRANTED, State.SUCCEEDED)
    assert len(installation.published()) == 1


@pytest.mark.parametrize(
    ("seconds", "state"),
    [(-1, State.EXPIRED), (1, State.SUCCEEDED)],
    ids=["a second before it began", "a second after"],
)
async def test_a_vote_counts_by_when_the_server_recorded_it_though_no_worker_saw_the_line_begin(
    skipping: Skipping, tmp_path: Path, seconds: int, state: State
) -> None:
    installation = skipping.installation.with_policy(tmp_path, ladder={**LADDER, "remind": []})
    async with installation.workers():
        run = await waiting(installation)
    proposal = installation.proposal("op-1")
    await time_is(skipping, proposal.proposed_at + 12 * HOURS + timedelta(seconds=seconds))
    await run.signal("decide", installation.decision(proposal, "lea"))
    await time_is(skipping, proposal.proposed_at + 12 * HOURS + timedelta(seconds=2))
    async with installation.workers():
        result = await run.result()
    assert result.state == state


async def test_those_who_were_asked_before_still_count_and_no_line_lowers_the_number_of_approvals(
    skipping: Skipping, tmp_path: Path
) -> None:
    installation = skipping.installation.with_policy(tmp_path, ladder=LADDER, approvals=2)
    async with installation.workers():
        run = await waiting(installation)
        proposal = installation.proposal("op-1")
        early = await vote(installation, run, "bob")
        await time_is(skipping, proposal.proposed_at + 12 * HOURS)
        await until_state(run, State.ESCALATED)
        assert approval(installation).status == ApprovalStatus.PENDING
        again = await vote(installation, run, "bob")
        late = await vote(installation, run, "leo")
        result = await run.result()
    assert (early.status, again.ruling) == (ApprovalStatus.PENDING, Ruling.ALREADY_VOTED)
    assert (late.status, result.state) == (ApprovalStatus.GRANTED, State.SUCCEEDED)
    assert {cast.person for cast in installation.votes("op-1")} == {"bob", "leo"}


async def test_one_approval_of_two_is_never_enough_however_many_lines_are_asked(
    skipping: Skipping, tmp_path: Path
) -> None:
    installation = skipping.installation.with_policy(tmp_path, ladder=LADDER, approvals=2)
    async with installation.workers():
        run = await waiting(installation)
        await time_is(skipping, installation.proposal("op-1").proposed_at + 36 * HOURS)
        await until_state(run, State.ESCALATED)
        first = await vote(installation, run, "ada")
        result = await run.result()
    assert first.status == ApprovalStatus.PENDING
    assert result.state == State.EXPIRED
    assert installation.published() == []


@pytest.mark.parametrize(
    ("decision", "ruling", "state"),
    [("approve", Ruling.DECISION_NOT_ALLOWED, State.EXPIRED), ("reject", Ruling.ACCEPTED, State.REJECTED)],
)
async def test_a_line_may_decide_what_it_is_asked_for_alone(
    skipping: Skipping, tmp_path: Path, decision: StatementKind, ruling: Ruling, state: State
) -> None:
    """This one may only stop the action; that the first line may approve gives it no more."""
    stopping = {**LADDER, "tiers": [{**LEADS, "decisions": ["reject"]}]}
    installation = skipping.installation.with_policy(tmp_path, ladder=stopping)
    async with installation.workers():
        run = await waiting(installation)
        await time_is(skipping, installation.proposal("op-1").proposed_at + 12 * HOURS)
        await until_state(run, State.ESCALATED)
        outcome = await vote(installation, run, "leo", decision)
        result = await run.result()
    assert (outcome.ruling, result.state) == (ruling, state)
    assert installation.published() == []


@pytest.mark.parametrize(("extends", "open_for"), [({}, 72), ({"extends": "70h"}, 106)], ids=["silent", "by 70 h"])
async def test_the_deadline_is_extended_only_where_the_policy_says_so(
    skipping: Skipping, tmp_path: Path, extends: dict[str, str], open_for: int
) -> None:
    """It is one instant from the proposal on, known to all who are asked."""
    tiers = [LEADS, {**ADMINS, **extends}]
    installation = skipping.installation.with_policy(tmp_path, ladder={**LADDER, "tiers": tiers})
    async with installation.workers():
        run = await waiting(installation)
        proposal = installation.proposal("op-1")
        result = await run.result()
    assert proposal.deadline - proposal.proposed_at == open_for * HOURS
    assert approval(installation).proposal.deadline == proposal.deadline
    assert result.state == State.EXPIRED
    assert_on_schedule(installation, [*SCHEDULE[:-1], ("approval.expired", open_for * HOURS, None)])


async def test_an_extension_of_an_earlier_time_than_the_deadline_changes_nothing(
    skipping: Skipping, tmp_path: Path
) -> None:
    tiers = [{**LEADS, "extends": "1h"}]
    installation = skipping.installation.with_policy(tmp_path, ladder={**LADDER, "tiers": tiers})
    async with installation.workers():
        await waiting(installation)
    proposal = installation.proposal("op-1")
    assert proposal.deadline - proposal.proposed_at == 72 * HOURS
