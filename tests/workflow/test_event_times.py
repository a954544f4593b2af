"""An outage over a tier, a lease, or the end of people's time for an escalation: the server's times decide there too.

Each test stops the workers, has the server record something on either side of the moment, and starts them again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.command import CommandKind
from countersign.domain.decision import Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import ROWS, Installation
from tests.support.waiting import eventually, until_messages, until_state
from tests.workflow.acting import Run, approval, done, records

pytestmark = pytest.mark.long

BEFORE, AFTER = "op-1", "op-2"
"""The operation to which something comes just before the moment, and the one to which it comes just after."""


def state(installation: Installation, operation: str) -> State:
    """Where the ledger says that the run stands."""
    return installation.ledger.operations.get("acme", operation).state


async def signal(installation: Installation, run: Run, person: str, kind: CommandKind, **changes: Any) -> None:
    """A command that nobody is there to take in."""
    await run.signal(kind, installation.command(run.id.partition(":")[2], person, kind, **changes))


def ruling(installation: Installation, kind: CommandKind, operation: str) -> str:
    """What was ruled on the latest such command."""
    found = [
        *records(installation, "command.accepted", operation),
        *records(installation, "command.refused", operation),
    ]
    return [str(one["ruling"]) for one in found if one["command"] == kind][-1]


def assert_in_time(moment: datetime) -> None:
    assert datetime.now(UTC) < moment, "too slow to send anything before the moment"


@pytest.mark.guarantee("G26", "G27")
async def test_a_lead_who_votes_before_their_tier_is_refused_and_one_after_it_counts(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    tier = {"after": "5s", "role": "lead", "decisions": ["approve", "reject"]}
    installation = sqlite_installation.with_policy(tmp_path, decide_within="9s", ladder={"tiers": [tier]})
    async with installation.workers("agent"):
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
    proposal = installation.proposal("op-1")
    await run.signal("decide", installation.decision(proposal, "leo"))
    assert_in_time(proposal.proposed_at + timedelta(seconds=5))
    await installation.after(proposal.proposed_at + timedelta(seconds=5))
    await run.signal("decide", installation.decision(proposal, "lea"))
    assert_in_time(proposal.deadline)
    await installation.after(proposal.deadline)
    async with installation.workers():
        result = await run.result()
    assert result.state == State.SUCCEEDED
    (early,) = records(installation, "decision.refused")
    assert (early["subject"], early["ruling"]) == ("leo", Ruling.ROLE_MISSING)
    assert [vote.person for vote in installation.votes("op-1")] == ["lea"]
    assert len(records(installation, "approval.escalated")) <= 1


@pytest.mark.guarantee("G24")
async def test_a_run_that_is_held_at_its_deadline_can_be_ended_or_taken_over_then(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    installation = sqlite_installation.with_policy(tmp_path, decide_within="4s", ladder={"then": "freeze"})
    async with installation.workers("agent"):
        cancelled, taken = [await installation.start(operation) for operation in (BEFORE, AFTER)]
        await eventually(lambda: {state(installation, one) for one in (BEFORE, AFTER)} <= {State.WAITING_APPROVAL})
    await installation.after(max(installation.proposal(one).deadline for one in (BEFORE, AFTER)))
    await cancelled.cancel()
    await signal(installation, taken, "lea", "take_over")
    async with installation.workers("agent"):
        await eventually(lambda: state(installation, BEFORE) == State.CANCELLED)
        await eventually(lambda: state(installation, AFTER) == State.HUMAN_TAKEOVER)
    assert approval(installation, BEFORE).status == ApprovalStatus.EXPIRED
    assert approval(installation, AFTER).status in (ApprovalStatus.EXPIRED, ApprovalStatus.SUPERSEDED)
    assert installation.published() == []


@pytest.mark.guarantee("G27")
async def test_whoever_takes_up_an_escalation_in_time_has_it_and_nobody_does_after_it(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    route = {"role": "lead", "severity": "medium", "within": "5s"}
    installation = sqlite_installation.with_fields(tmp_path, escalations={"LOW_CONFIDENCE": route})
    contradicting: dict[str, Any] = {"data": ROWS + "2026-02-20,South,210.00\n", "unique": ("date", "region")}
    async with installation.workers("agent"):
        in_time, late = [await installation.start(operation, **contradicting) for operation in (BEFORE, AFTER)]
        await eventually(lambda: {state(installation, one) for one in (BEFORE, AFTER)} <= {State.ESCALATED})
    (first,), (second,) = (installation.ledger.escalations.of_operation("acme", one) for one in (BEFORE, AFTER))
    assert first.deadline is not None
    assert second.deadline is not None
    await signal(installation, in_time, "lea", "take_over")
    assert_in_time(first.deadline)
    await installation.after(second.deadline)
    await signal(installation, late, "lea", "take_over")
    async with installation.workers("agent"):
        await eventually(lambda: state(installation, BEFORE) == State.HUMAN_TAKEOVER)
        result = await late.result()
    assert (result.state, result.reason) == (State.FAILED, "evidence_contradicts_itself")
    assert ruling(installation, "take_over", BEFORE) == Ruling.ACCEPTED
    assert ruling(installation, "take_over", AFTER) == Ruling.ENDED
    outcomes = [installation.ledger.escalations.of_operation("acme", one)[0].outcome for one in (BEFORE, AFTER)]
    assert outcomes == ["taken_over", "unanswered"]


@pytest.mark.guarantee("G27", "G29")
async def test_what_an_owner_did_before_their_lease_was_over_counts_and_nothing_after_it(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    installation = sqlite_installation.with_fields(tmp_path, takeover={"role": "lead", "lease": "12s"}, escalations={})
    async with installation.workers("agent"):
        runs = [await installation.start(operation) for operation in (BEFORE, AFTER)]
        for run in runs:
            await until_state(run, State.WAITING_APPROVAL)
        for run in runs:
            await done(installation, run, "lea", "take_over")
    (_, first), (_, second) = (installation.ledger.controls.history("acme", one) for one in (BEFORE, AFTER))
    assert first.lease_until is not None
    assert second.lease_until is not None
    # Late enough for the lease that begins anew by it to outlast the outage.
    await installation.after(first.lease_until - timedelta(seconds=3))
    await signal(installation, runs[0], "lea", "propose", draft_version=1)
    assert_in_time(first.lease_until)
    await installation.after(second.lease_until)
    await signal(installation, runs[1], "lea", "propose", draft_version=1)
    async with installation.workers("agent"):
        await eventually(lambda: state(installation, BEFORE) == State.WAITING_APPROVAL)
        await eventually(lambda: state(installation, AFTER) == State.ESCALATED)
        await until_messages(runs[1], 2)
    assert ruling(installation, "propose", BEFORE) == Ruling.ACCEPTED
    assert ruling(installation, "propose", AFTER) in (Ruling.NOT_IN_CONTROL, Ruling.STALE_CONTROL)
    assert [control.by for control in installation.ledger.controls.history("acme", AFTER)] == [
        "agent",
        "person",
        "nobody",
    ]
