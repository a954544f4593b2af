"""Take-over once something was granted: what was not sent is not sent, what may have been is found out, never twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from countersign import bootstrap
from countersign.domain.decision import Ruling
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.publisher import Publisher, running_publisher
from tests.support.waiting import eventually, until_state
from tests.workflow.acting import (
    approval,
    approved_by,
    command,
    done,
    taken_over,
    work_on,
)
from tests.workflow.press import approved, press_installation

pytestmark = pytest.mark.long


@pytest.mark.guarantee("G29")
async def test_executing_before_the_gateway_began_the_grant_is_void_and_nothing_is_sent(
    installation: Installation,
) -> None:
    async with installation.workers("agent"):
        run = await approved(installation, "op-1")
        await until_state(run, State.EXECUTING)
        await done(installation, run, "lea", "take_over")
        async with installation.workers("gateway"):
            await until_state(run, State.HUMAN_TAKEOVER)
            assert installation.published() == []
            await done(installation, run, "lea", "propose", draft_version=1)
            await approved_by(installation, run)
            assert (await run.result()).state == State.SUCCEEDED
    assert len(installation.published()) == 1
    assert [kept.version for kept in installation.ledger.controls.history("acme", "op-1")] == [1, 2]


@pytest.mark.guarantee("G29", "G36")
async def test_executing_once_the_gateway_has_sent_the_effect_stands_and_is_the_only_one(
    sqlite_installation: Installation, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.fail_next("answer_late")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await eventually(lambda: len(publisher.effects()) == 1)
            await done(press, run, "lea", "take_over")
            refused = [
                await command(press, run, "lea", kind, **said)
                for kind, said in work_on(press, "op-1")
            ]  # fmt: skip
            publisher.go_on.set()
            result = await run.result()
    assert {outcome.ruling for outcome in refused} == {Ruling.TOO_LATE}
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == len(publisher.calls("POST")) == 1


@pytest.mark.guarantee("G29", "G36")
@pytest.mark.parametrize("is_there", [True, False], ids=["it is there", "it is not there"])
async def test_with_an_unknown_outcome_it_is_found_out_first_and_never_sent_twice(
    sqlite_installation: Installation,
    publisher: Publisher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_there: bool,
) -> None:
    publisher.fail_next("error_after" if is_there else "error_before", "lookup_unavailable")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await until_state(run, State.OUTCOME_UNKNOWN)
            await done(press, run, "lea", "take_over")
            refused = await command(press, run, "lea", "propose", draft_version=1)
            if not is_there:
                await until_state(run, State.HUMAN_TAKEOVER)
                assert publisher.effects() == []
                await done(press, run, "lea", "propose", draft_version=1)
                await approved_by(press, run)
            result = await run.result()
    assert refused.ruling == Ruling.TOO_LATE
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == 1
    assert len(publisher.calls("POST")) == (1 if is_there else 2)


@pytest.mark.guarantee("G29")
async def test_while_waiting_to_send_again_it_is_not_sent_under_the_old_grant(
    sqlite_installation: Installation, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.fail_next("rate_limited")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await until_state(run, State.WAITING_RETRY)
            old = approval(press).proposal.approval_id
            await taken_over(press, run)
        late = await asyncio.to_thread(bootstrap.gateway(press.settings, press.ledger).execute, "acme", old)
    assert late.status is None
    assert publisher.effects() == []
    assert len(publisher.calls("POST")) == 1
