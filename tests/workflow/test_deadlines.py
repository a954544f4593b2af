"""Deadlines over days, on the server whose clock jumps: what nobody decided expires, and nobody is said to have."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.interfaces import Message, MessageBatch
from countersign import bootstrap
from countersign.domain.canonical import canonical_bytes
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.notice import NoticeKind
from countersign.domain.proposal import ApprovalStatus, StatementKind
from countersign.domain.state import State
from countersign.settings import ROOT, Settings
from tests.signing.tokens import token
from tests.support.installation import Installation
from tests.support.processes import Processes
from tests.support.skipping import Skipping
from tests.support.waiting import eventually, until_messages, until_state
from tests.workflow.acting import approval, records, vote
from tests.workflow.long_waits import AT_ONCE, JUST_BEFORE, SURELY, audited, time_is, told, waiting

NO_LADDER: dict[str, Any] = {"ladder": {}}


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts this process into a time zone; back in its own at the end."""

    def move(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


@pytest.mark.guarantee("G24")
async def test_undecided_at_the_deadline_it_expires_by_nobody(skipping: Skipping) -> None:
    """After three days; nothing is executed, and no person is named."""
    installation = skipping.installation
    async with installation.workers():
        run = await waiting(installation)
        result = await run.result()
    assert (result.state, result.reason) == (State.EXPIRED, "undecided_at_deadline")
    (expired,) = audited(installation, "approval.expired")
    assert expired.subject == "clock"
    assert not {"bob", "carl", "lea", "leo", "rita"} & {str(value) for value in expired.detail.values()}
    assert installation.votes("op-1") == ()
    assert installation.published() == []
    (ended,) = told(installation, NoticeKind.RUN_ENDED)
    assert (ended.persons, ended.code) == (("rita",), "EXPIRED:undecided_at_deadline")
    assert await skipping.now() >= installation.proposal("op-1").deadline


@pytest.mark.guarantee("G24", "G26")
@pytest.mark.parametrize("decision", ["approve", "reject"])
@pytest.mark.parametrize("transport", ["signal", "update"])
async def test_a_late_decision_is_answered_expired_not_executed_and_recorded_as_late(
    skipping: Skipping, tmp_path: Path, transport: str, decision: StatementKind
) -> None:
    """No decision at all and a late no come to the same: expired, never rejected."""
    installation = skipping.installation.with_policy(tmp_path, **NO_LADDER)
    async with installation.workers():
        run = await waiting(installation)
    proposal = installation.proposal("op-1")
    await time_is(skipping, proposal.deadline)
    message = installation.decision(proposal, "bob", decision)
    sending = asyncio.create_task(run.execute_update("decide", message, result_type=Outcome))
    if transport == "signal":
        sending.cancel()
        await run.signal("decide", message)
    async with installation.workers():
        if transport == "update":
            assert (await sending).sentence() == "late: expired, not executed: the deadline had passed"
        result = await run.result()
    assert (result.state, result.reason) == (State.EXPIRED, "undecided_at_deadline")
    (refused,) = records(installation, "decision.refused")
    assert (refused["subject"], refused["ruling"], refused["decision"]) == ("bob", "late", decision)
    assert refused["transport"] == transport
    assert records(installation, "decision.accepted") == records(installation, "approval.rejected") == []
    assert approval(installation).status == ApprovalStatus.EXPIRED
    assert installation.published() == []
    installation.ledger.audit.verify("acme")


@pytest.mark.guarantee("G26")
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_what_the_server_recorded_just_before_the_deadline_is_on_time_though_no_worker_was_there(
    skipping: Skipping, tmp_path: Path, decision: StatementKind
) -> None:
    installation = skipping.installation.with_policy(tmp_path, **NO_LADDER)
    async with installation.workers():
        run = await waiting(installation)
    proposal = installation.proposal("op-1")
    cast = installation.decision(proposal, "bob", decision)
    await time_is(skipping, proposal.deadline - JUST_BEFORE)
    await run.signal("decide", cast)
    await time_is(skipping, proposal.deadline + SURELY)
    async with installation.workers():
        result = await run.result()
    assert result.state == (State.SUCCEEDED if decision == "approve" else State.REJECTED)
    (vote,) = installation.votes("op-1")
    assert vote.decided_at < proposal.deadline


@pytest.mark.guarantee("G26")
@pytest.mark.parametrize(
    ("before", "ruling"),
    [(timedelta(0), Ruling.LATE), (timedelta(microseconds=1), Ruling.ACCEPTED)],
    ids=["at the deadline", "one microsecond before"],
)
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_at_the_very_instant_of_the_deadline_it_is_expired(
    skipping: Skipping, tmp_path: Path, decision: StatementKind, before: timedelta, ruling: Ruling
) -> None:
    """No test can hit the instant by sending; so the run's own step is told that the server recorded it then."""
    installation = skipping.installation.with_policy(tmp_path, **NO_LADDER)
    async with installation.workers():
        await waiting(installation)
    proposal = installation.proposal("op-1")
    await time_is(skipping, proposal.deadline)
    message = Message(
        id="r:1", name="decide", transport="signal", received_at=proposal.deadline - before,
        body=canonical_bytes(installation.decision(proposal, "bob", decision)).decode(),
    )  # fmt: skip
    batch = MessageBatch(tenant="acme", operation="op-1", messages=(message,))
    step = installation.step("op-1")
    (outcome,) = (await asyncio.to_thread(step.run, installation.deciding().decide, batch)).outcomes
    assert outcome.ruling == ruling


@pytest.mark.guarantee("G24", "G26")
async def test_a_window_of_weeks_is_kept_to_the_second(skipping: Skipping, tmp_path: Path) -> None:
    """Workers come and go meanwhile; a vote just before its end counts."""
    installation = skipping.installation.with_policy(tmp_path, decide_within="60d", **NO_LADDER)
    async with installation.workers():
        run = await waiting(installation)
    proposal = installation.proposal("op-1")
    assert proposal.deadline - proposal.proposed_at == timedelta(days=60)
    for week in range(1, 9):
        await time_is(skipping, proposal.proposed_at + timedelta(weeks=week))
        async with installation.workers("agent"):
            status = await until_state(run, State.WAITING_APPROVAL)
            assert status.approval_id == proposal.approval_id
    await time_is(skipping, proposal.deadline - JUST_BEFORE)
    async with installation.workers():
        assert (await vote(installation, run, "bob")).ruling == Ruling.ACCEPTED
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(installation.published()) == 1


@pytest.mark.guarantee("G24")
async def test_a_window_of_weeks_ends_in_its_time(skipping: Skipping, tmp_path: Path) -> None:
    installation = skipping.installation.with_policy(tmp_path, decide_within="60d", **NO_LADDER)
    async with installation.workers():
        result = await (await waiting(installation)).result()
    assert result.state == State.EXPIRED
    proposal = installation.proposal("op-1")
    (expired,) = audited(installation, "approval.expired")
    late = datetime.fromisoformat(expired.recorded_at) - proposal.proposed_at - timedelta(days=60)
    assert timedelta(0) <= late < AT_ONCE


@pytest.mark.guarantee("G25")
async def test_a_grant_that_was_not_executed_in_its_window_is_void_and_people_are_asked_anew(
    skipping: Skipping, tmp_path: Path
) -> None:
    """The gateway is down past the window; what bob approved then is executed by nobody's word but a new one."""
    installation = skipping.installation.with_policy(tmp_path, execute_within="2s", **NO_LADDER)
    async with installation.workers("agent"):
        run = await waiting(installation)
        assert (await vote(installation, run, "bob")).status == ApprovalStatus.GRANTED
        first = installation.proposal("op-1")
        (cast,) = installation.votes("op-1")
        await time_is(skipping, cast.decided_at + timedelta(seconds=2))
        async with installation.workers("gateway"):
            await until_messages(run, 1)
            status = await until_state(run, State.WAITING_APPROVAL)
            assert status.reason == "window_closed"
            assert installation.published() == []
            second = installation.proposal("op-1")
            assert (second.approval_version, second.action_hash) == (2, first.action_hash)
            old = await vote(installation, run, "carl", proposal=first)
            assert (await vote(installation, run, "carl")).status == ApprovalStatus.GRANTED
            result = await run.result()
    assert old.ruling == Ruling.NOT_THIS_APPROVAL
    assert result.state == State.SUCCEEDED
    assert len(installation.published()) == 1
    (voided,) = records(installation, "approval.voided")
    assert (voided["approval_id"], voided["reason"]) == (first.approval_id, "window_closed")
    assert [notice.code for notice in told(installation, NoticeKind.APPROVAL_OPENED)] == [
        first.approval_id,
        second.approval_id,
    ]


@pytest.mark.guarantee("G24")
async def test_elapsed_time_is_the_same_across_changes_of_the_clock_and_in_whatever_zone_a_worker_runs(
    skipping: Skipping, tmp_path: Path, in_zone: Callable[[str], None]
) -> None:
    """The window spans a change of the clock in all three zones; each worker runs in another one."""
    ladder = {"remind": ["110d"], "tiers": [], "then": "expire"}
    in_zone("America/New_York")
    installation = skipping.installation.with_policy(tmp_path, decide_within="120d", ladder=ladder)
    async with installation.workers():
        run = await waiting(installation)
    proposal = installation.proposal("op-1")
    changes = {time.localtime((proposal.proposed_at + timedelta(days=days)).timestamp()).tm_isdst for days in (0, 120)}
    assert changes == {0, 1}
    in_zone("Australia/Lord_Howe")
    await time_is(skipping, proposal.proposed_at + timedelta(days=110) - JUST_BEFORE)
    async with installation.workers():
        await time_is(skipping, proposal.proposed_at + timedelta(days=110))
        await eventually(lambda: len(audited(installation, "approval.reminded")) == 1)
    in_zone("Europe/Berlin")
    async with installation.workers():
        assert (await run.result()).state == State.EXPIRED
    reminded, expired = audited(installation, "approval.reminded", "approval.expired")
    for record, due in ((reminded, timedelta(days=110)), (expired, timedelta(days=120))):
        assert record.recorded_at.endswith("Z")
        late = datetime.fromisoformat(record.recorded_at) - proposal.proposed_at - due
        assert timedelta(0) <= late < AT_ONCE


@pytest.mark.long
async def test_a_worker_process_in_another_zone_gives_the_same_deadlines_in_utc(
    sqlite_installation: Installation, processes: Processes, tmp_path: Path
) -> None:
    """Fourteen hours ahead of UTC; the deadline is one instant, written in UTC everywhere."""
    installation = sqlite_installation.with_policy(tmp_path, decide_within="6s", **NO_LADDER)
    zone = {**installation.environment(), "TZ": "Pacific/Kiritimati"}
    worker = processes.start([sys.executable, ROOT / "worker.py", "--role", "agent"], env=zone)
    await asyncio.to_thread(worker.wait_for_line, "worker ready")
    run = await waiting(installation)
    view = await run.query("proposal", result_type=dict)
    result = await run.result()
    proposal = installation.proposal("op-1")
    assert datetime.fromisoformat(view["deadline"]) == proposal.deadline
    assert view["deadline"].endswith("Z")
    assert proposal.deadline.utcoffset() == timedelta(0)
    assert proposal.deadline - proposal.proposed_at == timedelta(seconds=6)
    assert timedelta(0) <= datetime.now(UTC) - proposal.deadline < timedelta(minutes=1)
    assert result.state == State.EXPIRED
    (expired,) = audited(installation, "approval.expired")
    assert timedelta(0) <= datetime.fromisoformat(expired.recorded_at) - proposal.deadline < AT_ONCE


@pytest.mark.parametrize("said", ["2027-03-28T02:30:00", "2027-03-28 02:30", "2027-03-28T02:30:00Z"])
async def test_a_message_with_a_time_that_is_no_instant_changes_nothing(
    skipping: Skipping, tmp_path: Path, said: str
) -> None:
    """A signed time is a number of seconds in UTC, which needs no offset; any other form is refused."""
    installation = skipping.installation.with_policy(tmp_path, **NO_LADDER)
    async with installation.workers():
        run = await waiting(installation)
        message = {"statement": _with_claims(installation, exp=said)}
        refused = await run.execute_update("decide", message, result_type=Outcome)
    assert refused.ruling == Ruling.BAD_STATEMENT
    assert approval(installation).status == ApprovalStatus.PENDING
    (record,) = records(installation, "decision.refused")
    assert record["ruling"] == "bad_statement"


def _with_claims(installation: Installation, **claims: Any) -> str:
    """Bob's approval with changed claims, and a signature that fits them."""
    header, body, _ = installation.decision(installation.proposal("op-1"), "bob")["statement"].split(".")
    read_header, read_body = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, body))
    return token(read_header, {**read_body, **claims}, installation.keys["bob"])


@pytest.mark.parametrize("said", ["2027-03-28T02:30:00", "2027-03-28T02:30:00Z", "02:30", "72"])
@pytest.mark.parametrize("field", ["decide_within", "execute_within"])
def test_a_policy_with_a_time_that_is_no_elapsed_one_is_refused(tmp_path: Path, field: str, said: str) -> None:
    """A policy knows elapsed times alone, so that no zone and no change of the clock can ever matter to it."""
    text = (ROOT / "policies" / "report.yaml").read_text()
    changed = tmp_path / "report.yaml"
    changed.write_text(re.sub(rf"{field}: \w+", f"{field}: '{said}'", text))
    with pytest.raises(ConfigurationRefused, match=f"{field}: '{said[:20]}' is no time"):
        bootstrap.load_policy(changed, Settings(home=tmp_path, _env_file=None))
