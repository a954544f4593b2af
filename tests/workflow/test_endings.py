"""Withdrawn, superseded, cancelled, terminated: each its own end, on record, after which nothing of the run happens."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from temporalio.service import RPCError

from countersign import bootstrap
from countersign.domain.decision import Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import running_model_server
from tests.support.publisher import Publisher, running_publisher
from tests.support.waiting import eventually, until_state
from tests.workflow.acting import Run, approval, command, done, records, vote
from tests.workflow.ending import CLOSED_AS, WAYS, Way, assert_no_late_effect, in_every_way
from tests.workflow.press import approved, press_installation
from tests.workflow.scripted_model import ScriptedModel, asking, draft

pytestmark = pytest.mark.long

UNSUPPORTED = draft(body="Sales came to {{total}} in all, and 17 customers left.")


async def ended(installation: Installation, run: Run, way: Way) -> None:
    """By a person's command; the run, the ledger and the audit all say so, and nothing went out."""
    kind, person, said, state, reason = way
    await done(installation, run, person, kind, **said)
    result = await run.result()
    assert (result.state, result.reason, result.reference) == (state, reason, "")
    operation = installation.ledger.operations.get("acme", "op-1")
    assert (operation.state, operation.reason) == (state, reason)
    (record,) = records(installation, "run.ended_by_person")
    assert (record["subject"], record["reason"], record.get("successor")) == (person, reason, said.get("successor"))
    assert installation.published() == installation.published("internal") == []
    assert records(installation, "effect.executed") == []
    installation.ledger.audit.verify("acme")


@in_every_way
@pytest.mark.parametrize("call", [2, 4], ids=["drafting", "grading"])
async def test_while_a_model_is_asked_nothing_more_is_asked_of_it(
    sqlite_installation: Installation, call: int, way: Way
) -> None:
    with running_model_server(ScriptedModel(held=[call])) as server:
        asked = asking(sqlite_installation, server)
        asked.register("op-9")
        async with asked.workers():
            run = await asked.start("op-1")
            await asyncio.to_thread(server.wait_for_calls, call)
            await ended(asked, run, way)
            server.release()
        # The workers wait for what they had begun; it brought nothing about.
    assert server.calls == call
    assert records(asked, "draft.graded") == []
    assert asked.ledger.approvals.current("acme", "op-1") is None


@in_every_way
async def test_with_one_vote_of_two_the_approval_is_closed_by_no_decider(
    installation: Installation, tmp_path: Path, way: Way
) -> None:
    two = installation.with_policy(tmp_path, approvals=2)
    two.register("op-9")
    async with two.workers():
        run = await two.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        await vote(two, run, "bob")
        late = two.decision(two.proposal("op-1"), "carl")
        await ended(two, run, way)
        with pytest.raises(RPCError):
            await run.signal("decide", late)
    assert approval(two).status == CLOSED_AS[way[0]]
    assert [kept.person for kept in approval(two).votes] == ["bob"]
    assert [state for state in ("rejected", "expired") if records(two, f"approval.{state}")] == []


@in_every_way
async def test_escalated(sqlite_installation: Installation, way: Way) -> None:
    with running_model_server(ScriptedModel(drafts=[UNSUPPORTED])) as server:
        asked = asking(sqlite_installation, server)
        asked.register("op-9")
        async with asked.workers():
            run = await asked.start("op-1")
            await until_state(run, State.ESCALATED)
            await ended(asked, run, way)
    (escalation,) = asked.ledger.escalations.of_operation("acme", "op-1")
    assert escalation.outcome == "ended"


@in_every_way
async def test_while_a_person_is_in_control(sqlite_installation: Installation, way: Way) -> None:
    sqlite_installation.register("op-9")
    async with sqlite_installation.workers():
        run = await sqlite_installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        await done(sqlite_installation, run, "leo", "take_over")
        await until_state(run, State.HUMAN_TAKEOVER)
        await ended(sqlite_installation, run, way)


@in_every_way
async def test_granted_but_not_begun_the_grant_is_void(installation: Installation, way: Way) -> None:
    installation.register("op-9")
    async with installation.workers("agent"):
        run = await approved(installation, "op-1")
        await until_state(run, State.EXECUTING)
        await done(installation, run, way[1], way[0], **way[2])
        async with installation.workers("gateway"):
            result = await run.result()
    assert (result.state, result.reason) == (way[3], way[4])
    assert approval(installation).status == CLOSED_AS[way[0]]
    assert installation.published() == []
    assert_no_late_effect(installation)


@in_every_way
async def test_while_waiting_to_send_again_no_later_attempt_can_send(
    sqlite_installation: Installation,
    publisher: Publisher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Way,
) -> None:
    publisher.fail_next("rate_limited")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        press.register("op-9")
        async with press.workers():
            run = await approved(press, "op-1")
            await until_state(run, State.WAITING_RETRY)
            await ended(press, run, way)
        approval_id = approval(press).proposal.approval_id
        late = await asyncio.to_thread(bootstrap.gateway(press.settings, press.ledger).execute, "acme", approval_id)
    assert late.status is None
    assert publisher.effects() == []
    assert len(publisher.calls("POST")) == 1


@pytest.mark.guarantee("G36")
@pytest.mark.parametrize("faults", [["answer_late"], ["error_after", "lookup_unavailable"]], ids=["sent", "unknown"])
async def test_it_is_too_late_once_the_effect_may_be_on_its_way(
    sqlite_installation: Installation,
    publisher: Publisher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    faults: list[str],
) -> None:
    publisher.fail_next(*faults)
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        press.register("op-9")
        async with press.workers():
            run = await approved(press, "op-1")
            await eventually(lambda: len(publisher.effects()) == 1)
            outcomes = [await command(press, run, person, kind, **said) for kind, person, said, *_ in WAYS]
            publisher.go_on.set()
            result = await run.result()
    assert [outcome.ruling for outcome in outcomes] == [Ruling.TOO_LATE] * 3
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == len(publisher.calls("POST")) == 1
    assert records(press, "run.ended_by_person") == []


@in_every_way
async def test_before_any_worker_has_seen_the_run(sqlite_installation: Installation, way: Way) -> None:
    sqlite_installation.register("op-9")
    run = await sqlite_installation.start("op-1", channel="internal")
    kind, person, said, state, reason = way
    await run.signal(kind, sqlite_installation.command("op-1", person, kind, **said))
    async with sqlite_installation.workers():
        result = await run.result()
    assert (result.state, result.reason) == (state, reason)
    assert sqlite_installation.published("internal") == []


# Who may, and what takes its place


async def test_each_end_is_of_those_alone_whose_it_is(sqlite_installation: Installation, tmp_path: Path) -> None:
    installation = sqlite_installation.with_terms(tmp_path, requester_may_withdraw=False)
    installation.register("op-9")
    installation.register("op-8")
    async with installation.workers():
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        withdrawn = await command(installation, run, "bob", "withdraw")
        not_here = await command(installation, run, "rita", "withdraw")
        superseded = await command(installation, run, "bob", "supersede", successor="op-9")
        cancelled = [await command(installation, run, person, "cancel") for person in ("rita", "bob", "ada")]
        status = await until_state(run, State.WAITING_APPROVAL)
    assert (withdrawn.ruling, superseded.ruling) == (Ruling.ONLY_REQUESTER_WITHDRAWS,) * 2
    assert not_here.ruling == Ruling.DECISION_NOT_ALLOWED
    assert {outcome.ruling for outcome in cancelled} == {Ruling.ROLE_MISSING}
    assert status.refused == 6
    assert approval(installation).status == ApprovalStatus.PENDING


async def test_only_an_operation_that_runs_takes_anothers_place(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers():
        over = await installation.start("op-8")
        await until_state(over, State.WAITING_APPROVAL)
        await done(installation, over, "rita", "withdraw")
        await over.result()
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        refused = [
            await command(installation, run, "rita", "supersede", successor=name)
            for name in ("op-7", "op-1", "op-8", "")
        ]
        newer = await installation.start("op-9")
        await until_state(newer, State.WAITING_APPROVAL)
        await ended(installation, run, WAYS[1])
        status = await until_state(newer, State.WAITING_APPROVAL)
    assert {outcome.ruling for outcome in refused} == {Ruling.SUCCESSOR_REFUSED}
    assert status.state == State.WAITING_APPROVAL
