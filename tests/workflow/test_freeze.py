"""A freeze holds every effect at the gateway, of runs in flight too; two persons lift it, and then it happens once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.administration import UnfreezeChange
from countersign.domain.decision import Ruling
from countersign.domain.freeze import Freeze
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import Step
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.publisher import Publisher, running_publisher
from tests.support.skipping import skipping_installation
from tests.support.waiting import eventually, until_state
from tests.workflow.acting import Run, approval, done, holding_back, proposed, records, vote
from tests.workflow.press import approved, press_installation

pytestmark = pytest.mark.long


def freeze(installation: Installation, tool: str = "", now: datetime | None = None) -> Freeze:
    """By lea, who is an operator."""
    return installation.freeze("lea", tool, now=now)


async def frozen_run(installation: Installation, run: Run) -> None:
    """Wait until the gateway has held it; what it found not to be there before waits under that reason first."""
    async with asyncio.timeout(60):
        while (await until_state(run, State.WAITING_RETRY)).reason != "frozen":
            await asyncio.sleep(0.05)


async def thaw(installation: Installation, frozen: Freeze, *persons: str) -> Run:
    """Ask, as ada, for lifting it; these administrators approve."""
    order = installation.register_change(f"thaw-{frozen.number}", UnfreezeChange(freeze=frozen.number))
    run = await installation.start_unchecked(order)
    await until_state(run, State.WAITING_APPROVAL)
    for person in persons:
        assert (await vote(installation, run, person)).ruling == Ruling.ACCEPTED
    return run


@pytest.mark.guarantee("G13", "G34")
async def test_runs_in_flight_are_held_and_go_on_to_one_effect_once_two_persons_have_lifted_it(
    installation: Installation,
) -> None:
    async with installation.workers():
        runs = [await proposed(installation, operation) for operation in ("op-1", "op-2")]
        frozen = freeze(installation)
        for run in runs:
            assert (await vote(installation, run, "bob")).status == ApprovalStatus.GRANTED
        await asyncio.gather(*(frozen_run(installation, run) for run in runs))
        assert [len(records(installation, "effect.held", operation)) for operation in ("op-1", "op-2")] == [1, 1]
        assert installation.ledger.executions.get("acme", "op-1") is None
        lifting = await thaw(installation, frozen, "ben")
        own = await vote(installation, lifting, "ada")
        assert installation.published() == []
        assert (await vote(installation, lifting, "cleo")).status == ApprovalStatus.GRANTED
        assert (await lifting.result()).state == State.SUCCEEDED
        results = [await run.result() for run in runs]
    assert own.ruling == Ruling.REQUESTER_MAY_NOT_DECIDE
    assert [result.state for result in results] == [State.SUCCEEDED] * 2
    assert len(installation.published()) == 2
    for operation in ("op-1", "op-2"):
        assert len(records(installation, "effect.held", operation)) == 1
        assert len(records(installation, "effect.executed", operation)) == 1
    (kept,) = installation.ledger.freezes.of_tenant("acme")
    assert (kept.in_force, kept.lifted_by) == (False, "thaw-1")
    installation.ledger.audit.verify("acme")


async def test_one_person_alone_lifts_nothing(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers():
        frozen = freeze_after_set_up(installation)
        run = await installation.start("op-2", channel="internal")
        await frozen_run(installation, run)
        lifting = await thaw(installation, frozen, "ben")
        again = await vote(installation, lifting, "ben")
        await until_state(lifting, State.WAITING_APPROVAL)
        await frozen_run(installation, run)
    assert again.ruling == Ruling.ALREADY_VOTED
    assert frozen in installation.ledger.freezes.of_tenant("acme")
    assert installation.published("internal") == []


def freeze_after_set_up(installation: Installation, tool: str = "") -> Freeze:
    """Before any run, in a tenant that is set up."""
    installation.register("op-1")
    return freeze(installation, tool)


async def test_what_is_granted_by_rule_is_held_as_well(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers():
        freeze_after_set_up(installation)
        run = await installation.start("op-2", channel="internal")
        await frozen_run(installation, run)
        await done(installation, run, "lea", "cancel")
        result = await run.result()
    assert (result.state, result.reason) == (State.CANCELLED, "cancelled_by_operator")
    assert installation.published("internal") == []
    assert len(records(installation, "effect.held", "op-2")) == 1


@pytest.mark.parametrize(
    ("tool", "state"), [("publish_report", State.WAITING_RETRY), ("refund_payment", State.SUCCEEDED)]
)
async def test_a_freeze_of_one_tool_holds_that_tool_alone(
    sqlite_installation: Installation, tool: str, state: State
) -> None:
    installation = sqlite_installation
    async with installation.workers():
        freeze_after_set_up(installation, tool)
        run = await installation.start("op-2", channel="internal")
        await until_state(run, state)
    assert len(installation.published("internal")) == (1 if state == State.SUCCEEDED else 0)


async def test_of_two_freezes_each_must_be_lifted(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers():
        one, other = freeze_after_set_up(installation), freeze(installation, "publish_report")
        run = await installation.start("op-2", channel="internal")
        await frozen_run(installation, run)
        await (await thaw(installation, one, "ben", "cleo")).result()
        held = [(each["freeze"]) for each in await until_held(installation, "op-2", 2)]
        assert installation.published("internal") == []
        await (await thaw(installation, other, "ben", "cleo")).result()
        assert (await run.result()).state == State.SUCCEEDED
    assert held == [one.number, other.number]
    assert len(installation.published("internal")) == 1


async def until_held(installation: Installation, operation: str, count: int) -> list[dict[str, Any]]:
    """The records of its being held, once there are that many."""
    await eventually(lambda: len(records(installation, "effect.held", operation)) == count)
    return records(installation, "effect.held", operation)


async def test_of_another_tenant_nothing_is_held(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    zoe = replace(installation, tenant="globex")
    zoe.enrol("zoe", "operator")
    zoe.freeze("zoe")
    async with installation.workers():
        result = await (await installation.start("op-1", channel="internal")).result()
    assert result.state == State.SUCCEEDED


# Between the gateway's claim and the end of its effect


@pytest.mark.guarantee("G36", "G37")
async def test_what_the_gateway_has_claimed_before_comes_to_its_end_once(
    sqlite_installation: Installation, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.fail_next("answer_late")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await eventually(lambda: len(publisher.effects()) == 1)
            freeze(press)
            publisher.go_on.set()
            result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == len(publisher.calls("POST")) == 1
    assert records(press, "effect.held") == []


@pytest.mark.guarantee("G36")
async def test_what_was_sent_and_is_not_there_is_not_sent_again_while_frozen(
    sqlite_installation: Installation, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.fail_next("error_before", "lookup_unavailable")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await until_state(run, State.OUTCOME_UNKNOWN)
            frozen = freeze(press)
            await frozen_run(press, run)
            assert publisher.effects() == []
            await (await thaw(press, frozen, "ben", "cleo")).result()
            result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == 1
    assert len(publisher.calls("POST")) == 2


@pytest.mark.guarantee("G36")
async def test_what_was_sent_and_is_there_is_found_while_frozen(
    sqlite_installation: Installation, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.fail_next("error_after", "lookup_unavailable")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await until_state(run, State.OUTCOME_UNKNOWN)
            freeze(press)
            result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(publisher.calls("POST")) == 1


async def test_frozen_while_the_gateway_is_about_to_claim_nothing_is_sent(
    sqlite_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = sqlite_installation
    with holding_back(monkeypatch, installation.ledger.executions, "claim") as claim:
        async with installation.workers():
            run = await approved(installation, "op-1")
            await claim.begun()
            freeze(installation)
            claim.go_on()
            await frozen_run(installation, run)
    assert installation.published() == []
    assert "effect.intended" not in [one.type for one in installation.ledger.audit.records("acme", "op-1")]


# Time goes on


@pytest.mark.guarantee("G24", "G25")
async def test_deadlines_go_on_while_effects_are_frozen(tmp_path: Path) -> None:
    """Nobody decides about one run, which expires; the other's grant is void when its window is over, so people are
    asked anew, and nobody decides about that either."""
    async with skipping_installation(tmp_path / "home") as skipping:
        installation = skipping.installation
        async with installation.workers():
            undecided, granted = [await proposed(installation, operation) for operation in ("op-1", "op-2")]
            freeze(installation, now=await skipping.now())
            decision = installation.decision(
                installation.proposal("op-2"), "bob", issued_at=(await skipping.now()).replace(microsecond=0)
            )
            await granted.signal("decide", decision)
            await frozen_run(installation, granted)
            held = await granted.result()
            expired = await undecided.result()
            steps = await granted.query("timeline", result_type=list[Step])
    assert (expired.state, expired.reason) == (State.EXPIRED, "undecided_at_deadline")
    ways = [(step.state, step.reason) for step in steps]
    assert ways.index((State.WAITING_RETRY, "frozen")) < ways.index((State.RUNNING, "window_closed"))
    assert held.state == State.EXPIRED
    assert approval(installation, "op-2").proposal.approval_version == 2
    assert installation.published() == []
    assert records(installation, "effect.executed", "op-2") == []
