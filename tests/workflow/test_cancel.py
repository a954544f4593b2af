"""A cancel in every state: it stops what can be stopped, and lets an effect that may be on its way come to its end."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError

from countersign import bootstrap
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import RunStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import running_model_server
from tests.support.publisher import Publisher, running_publisher
from tests.support.waiting import eventually, until_state
from tests.workflow.press import approved, press_installation
from tests.workflow.scripted_model import ScriptedModel, asking

pytestmark = pytest.mark.long


async def cancel_and_be_heard(run: WorkflowHandle[Any, Any]) -> RunStatus:
    """Cancel, and wait until the run has taken note: a query is answered after what came before it."""
    await run.cancel()
    status: RunStatus = await run.query("status", result_type=RunStatus)
    return status


async def assert_ends_cancelled(installation: Installation, run: WorkflowHandle[Any, Any]) -> None:
    with pytest.raises(WorkflowFailureError) as failure:
        await run.result()
    assert isinstance(failure.value.cause, CancelledError)
    assert (await run.describe()).status == WorkflowExecutionStatus.CANCELED
    operation = installation.ledger.operations.get("acme", run.id.partition(":")[2])
    assert (operation.state, operation.reason) == (State.CANCELLED, "cancelled")
    installation.ledger.audit.verify("acme")


async def test_before_any_worker_has_seen_the_run(sqlite_installation: Installation) -> None:
    run = await sqlite_installation.start("op-1", channel="internal")
    await run.cancel()
    async with sqlite_installation.workers():
        await assert_ends_cancelled(sqlite_installation, run)
    assert sqlite_installation.published("internal") == []


@pytest.mark.parametrize("call", [2, 4], ids=["drafting", "grading"])
async def test_while_a_model_is_asked_nothing_more_is_asked_of_it(sqlite_installation: Installation, call: int) -> None:
    with running_model_server(ScriptedModel(held=[call])) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            run = await asked.start("op-1", channel="internal")
            await asyncio.to_thread(server.wait_for_calls, call)
            await run.cancel()
            await assert_ends_cancelled(asked, run)
        server.release()
    assert server.calls == call
    assert asked.ledger.approvals.current("acme", "op-1") is None
    assert asked.published("internal") == []


async def test_while_the_proposal_is_stored_it_is_closed_again(
    sqlite_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    approvals = sqlite_installation.ledger.approvals
    stored, go_on, really_open = threading.Event(), threading.Event(), approvals.open

    def held_open(*arguments: Any) -> Any:
        approval = really_open(*arguments)
        stored.set()
        go_on.wait()
        return approval

    monkeypatch.setattr(approvals, "open", held_open)
    async with sqlite_installation.workers():
        run = await sqlite_installation.start("op-1")
        await asyncio.to_thread(stored.wait)
        await run.cancel()
        go_on.set()
        await assert_ends_cancelled(sqlite_installation, run)
    current = approvals.current("acme", "op-1")
    assert current is not None
    assert current.status == ApprovalStatus.CANCELLED


async def test_while_the_effect_is_on_its_way_it_comes_to_its_end(
    sqlite_installation: Installation, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.fail_next("answer_late")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await eventually(lambda: len(publisher.effects()) == 1)
            assert (await cancel_and_be_heard(run)).state == State.EXECUTING
            publisher.go_on.set()
            result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == 1


@pytest.mark.guarantee("G36")
async def test_while_the_outcome_is_unknown_it_is_found_out_first(
    sqlite_installation: Installation, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.fail_next("error_after", "lookup_unavailable")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await until_state(run, State.OUTCOME_UNKNOWN)
            assert (await cancel_and_be_heard(run)).state == State.OUTCOME_UNKNOWN
            result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == len(publisher.calls("POST")) == 1


@pytest.mark.parametrize("fault", ["rate_limited", "error_before"])
async def test_that_came_while_executing_ends_the_run_once_it_is_known_that_nothing_was_sent(
    sqlite_installation: Installation,
    publisher: Publisher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
) -> None:
    publisher.fail_next(fault)
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers("agent"):
            run = await approved(press, "op-1")
            await until_state(run, State.EXECUTING)
            await cancel_and_be_heard(run)
            async with press.workers("gateway"):
                await assert_ends_cancelled(press, run)
    assert publisher.effects() == []
    assert press.ledger.approvals.get("acme", press.proposal("op-1").approval_id).status == ApprovalStatus.CANCELLED


async def test_while_waiting_to_send_again_no_later_attempt_can_send(
    sqlite_installation: Installation, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.fail_next("rate_limited")
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            await until_state(run, State.WAITING_RETRY)
            await run.cancel()
            await assert_ends_cancelled(press, run)
        approval_id = press.proposal("op-1").approval_id
        late = bootstrap.gateway(press.settings, press.ledger).execute("acme", approval_id)
    assert press.ledger.approvals.get("acme", approval_id).status == ApprovalStatus.CANCELLED
    assert (late.status, late.reason.partition(":")[0]) == (None, "approval_cancelled")
    assert publisher.effects() == []
    assert len(publisher.calls("POST")) == 1
