"""A draft outlives its worker: no finished model call is made again, and a stale attempt writes nothing."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig

from countersign.agents.checkpoints import checkpoints_at
from countersign.agents.drafting import DeepAgentDrafter
from countersign.agents.failures import AttemptSuperseded
from countersign.agents.models import ModelSettings
from countersign.domain.report import Draft
from countersign.ports import ReportMaterial
from tests.agents.paused import Rows
from tests.agents.tables import (
    DELIVER,
    DESCRIBE,
    QUERY,
    finished,
    good_draft,
    reporter,
    sales_material,
    unheard,
)
from tests.support.model_server import ModelServer, Turn, by_conversation, running_model_server
from tests.support.processes import Processes, RunningProcess
from tests.support.thread_keys import THREAD_KEYS

pytestmark = pytest.mark.long

THREAD = "acme:op-1:run:v1"
STEP: RunnableConfig = {"configurable": {"thread_id": THREAD, "checkpoint_ns": "", "checkpoint_id": "1"}}


def attempt_in_a_process(
    processes: Processes, server: ModelServer, checkpoint_url: str, attempt: int, hold_at: str = "-"
) -> RunningProcess:
    module = ["-m", "tests.agents.drafting_process"]
    arguments = [sys.executable, *module, server.url, checkpoint_url, str(attempt), hold_at]
    return processes.start(arguments, cwd=Path(__file__).resolve().parents[2])


async def title(agent: DeepAgentDrafter[ReportMaterial], attempt: int, thread: str = THREAD) -> str:
    """Draft, or go on with it; the draft's title."""
    written = finished(await agent.draft(thread, attempt, sales_material(), None, (), {}, True, unheard))
    return str(written.draft["title"])


@pytest.fixture
def checkpoint_file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'checkpoints.sqlite'}"


@pytest.mark.parametrize("call", [1, 2, 3])
def test_killed_during_a_model_call_only_that_call_is_made_again(
    processes: Processes, checkpoint_file: str, call: int
) -> None:
    with running_model_server(by_conversation([DESCRIBE, QUERY, DELIVER], held_request=call)) as server:
        first = attempt_in_a_process(processes, server, checkpoint_file, 1)
        server.wait_for_calls(call)
        first.kill()
        second = attempt_in_a_process(processes, server, checkpoint_file, 2)
        second.wait_for_line("draft: Sales")

    assert server.calls == 3 + 1
    kept = Rows(checkpoint_file).contents()
    assert [text for text in ("Where do we sell", "sum(amount)", "The total is") if text.encode() in kept] == []


def test_killed_when_the_draft_was_there_it_is_still_there(processes: Processes, checkpoint_file: str) -> None:
    killed_and_gone_on(processes, checkpoint_file, "end", 3)


def test_killed_between_model_calls_none_is_made_again(processes: Processes, ledger_url: str) -> None:
    killed_and_gone_on(processes, ledger_url, "query", 2)


def killed_and_gone_on(processes: Processes, checkpoint_url: str, place: str, finished: int) -> None:
    """Kill the first attempt where it holds, with that many model calls finished; the second makes only the rest."""
    with running_model_server(by_conversation([DESCRIBE, QUERY, DELIVER])) as server:
        first = attempt_in_a_process(processes, server, checkpoint_url, 1, place)
        first.wait_for_line("^holding")
        assert server.calls == finished
        first.kill()
        second = attempt_in_a_process(processes, server, checkpoint_url, 2)
        second.wait_for_line("draft: Sales")

    assert server.calls == 3


async def test_a_stale_attempt_that_is_still_running_writes_nothing(ledger_url: str) -> None:
    late = Turn(calls=(("Draft", good_draft(title="Written too late")),), held=True)
    with running_model_server([DESCRIBE, late, DELIVER]) as server:
        settings = ModelSettings(api_key="k", base_url=server.url, draft_model="test-model")
        agent = reporter(settings, ledger_url)

        stale = asyncio.create_task(title(agent, 1))
        await asyncio.to_thread(server.wait_for_calls, 2)
        assert await title(agent, 2) == "Sales"
        server.release()
        with pytest.raises(AttemptSuperseded, match="newer attempt"):
            await stale

        assert await title(agent, 3) == "Sales"
        with pytest.raises(AttemptSuperseded):
            await title(agent, 2)
    assert server.calls == 3


async def test_a_write_of_a_stale_attempt_is_refused_whoever_made_the_newer_one(ledger_url: str) -> None:
    """Two stores stand for two worker processes: what fences is the database, not the process."""
    async with checkpoints_at(ledger_url, THREAD_KEYS).open(THREAD, 1, Draft) as stale:
        async with checkpoints_at(ledger_url, THREAD_KEYS).open(THREAD, 2, Draft):
            pass
        with pytest.raises(AttemptSuperseded):
            await stale.aput_writes(STEP, [("messages", "late")], "task")
        assert await stale.aget_tuple(STEP) is None


async def test_a_cancelled_draft_goes_on_where_it_was(ledger_url: str) -> None:
    with running_model_server(by_conversation([DESCRIBE, QUERY, DELIVER], held_request=3)) as server:
        settings = ModelSettings(api_key="k", base_url=server.url, draft_model="test-model")
        agent = reporter(settings, ledger_url)
        first = asyncio.create_task(title(agent, 1))
        await asyncio.to_thread(server.wait_for_calls, 3)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await title(agent, 2) == "Sales"

    assert server.calls == 3 + 1


async def test_threads_are_fenced_each_for_itself(ledger_url: str) -> None:
    with running_model_server([DELIVER, DELIVER]) as server:
        settings = ModelSettings(api_key="k", base_url=server.url, draft_model="test-model")
        agent = reporter(settings, ledger_url)
        for thread, number in (("acme:op-1:run:v1", 5), ("acme:op-1:run:v2", 1)):
            assert await title(agent, number, thread) == "Sales"

    assert server.calls == 2


async def test_many_drafts_at_once_share_one_agent_and_one_store(ledger_url: str) -> None:
    with running_model_server([DELIVER] * 12) as server:
        settings = ModelSettings(api_key="k", base_url=server.url, draft_model="test-model")
        agent = reporter(settings, ledger_url)
        results = await asyncio.gather(*(title(agent, 1, f"acme:op-{at}:run:v1") for at in range(12)))

    assert results == ["Sales"] * 12
    assert server.calls == 12
