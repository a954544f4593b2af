"""A pause outlives its worker: killed at every write around it, no finished model call is made again, nothing is asked
twice, and what a person allowed is read once it is resumed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from countersign.agents.checkpoints import Checkpoints, checkpoints_at
from countersign.agents.drafting import DeepAgentDrafter
from countersign.agents.models import ModelSettings, draft_model
from countersign.agents.report import REPORT_AGENT
from countersign.domain.errors import BudgetExceeded
from countersign.domain.question import Answer, AnsweredCall, PendingCall
from countersign.domain.values import Value
from countersign.ports import ReportMaterial, Waiting, Written
from tests.agents.tables import DELIVER, Heard, Sales, finished, sales_material
from tests.support.model_server import ModelServer, Turn, by_conversation, running_model_server
from tests.support.thread_keys import THREAD_KEYS

SECRET = "SELECT max(amount) FROM data"
ASKING = Turn(calls=(("query_dataset", {"sql": SECRET}), ("ask_user", {"question": "Which region?"})))
GIVEN = {
    "call-1-0": Answer(call="call-1-0", decision="approve"),
    "call-1-1": Answer(call="call-1-1", decision="respond", message="North"),
}
THREAD = "acme:op-1:run:1:v1"


class Killed(BaseException):
    """Ends a worker where no code of ours can catch it."""


class Killing:
    """A store whose worker dies at its first write to a channel, before it is stored or right after, and writes nothing
    more."""

    def __init__(self, store: Checkpoints, channel: str, after: bool) -> None:
        self._store = store
        self._channel = channel
        self._after = after
        self._dead = False

    @asynccontextmanager
    async def open(self, thread: str, attempt: int, form: type[Value]) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        """The saver of the store."""
        async with self._store.open(thread, attempt, form) as saver:
            write = saver.aput_writes

            async def dying(
                config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
            ) -> None:
                # Each call of a tool is a task of its own, which the model's step has pushed.
                hit = "__pregel_push" in task_path and any(channel == self._channel for channel, _ in writes)
                dead, self._dead = self._dead, self._dead or hit
                if dead or (hit and not self._after):
                    raise Killed
                await write(config, writes, task_id, task_path)
                if hit:
                    raise Killed

            saver.aput_writes = dying  # type: ignore[method-assign]  # this one saver, for this test
            yield saver


class Thread:
    """One thread, drafted on by one worker after the other."""

    def __init__(self, server: ModelServer, url: str) -> None:
        self.sales = Sales(secret=("amount",))
        self.heard = Heard()
        self._settings = ModelSettings(api_key="k", base_url=server.url, draft_model="test-model")
        self._url = url
        self._attempt = 0
        self._asked: dict[str, PendingCall] = {}

    async def draft(self, answers: dict[str, Answer], *death: Any, heard: Heard | None = None) -> Written | Waiting:
        """By the next worker, which dies there, if anywhere."""
        self._attempt += 1
        store = checkpoints_at(self._url, THREAD_KEYS)
        agent: DeepAgentDrafter[ReportMaterial] = DeepAgentDrafter(
            draft_model(self._settings, REPORT_AGENT.offline), Killing(store, *death) if death else store, REPORT_AGENT
        )
        material = sales_material(self.sales)
        said = {id: AnsweredCall(self._asked[id], answer) for id, answer in answers.items()}
        result = await agent.draft(THREAD, self._attempt, material, None, (), said, True, heard or self.heard)
        if isinstance(result, Waiting):
            self._asked |= {call.id: call for call in result.calls}
        return result


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("channel", ["__interrupt__", "messages"], ids=["asking", "answered"])
async def test_a_worker_killed_around_a_pause_costs_no_call_and_no_question(
    tmp_path: Path, channel: str, after: bool
) -> None:
    await killed_and_gone_on(f"sqlite:///{tmp_path / 'threads.sqlite'}", channel, after)


async def test_a_pause_outlives_its_worker_on_either_database(ledger_url: str) -> None:
    await killed_and_gone_on(ledger_url, "messages", False)


async def killed_and_gone_on(url: str, channel: str, after: bool) -> None:
    """One worker is killed at that write, as it asks or once it was answered; the next ones go on from there."""
    with running_model_server(by_conversation([ASKING, DELIVER])) as server:
        thread = Thread(server, url)
        if channel == "__interrupt__":
            with pytest.raises(Killed):
                await thread.draft({}, channel, after)
        asked = await thread.draft({})
        if channel == "messages":
            with pytest.raises(Killed):
                await thread.draft(GIVEN, channel, after)
        calls_before = server.calls
        result = finished(await thread.draft(GIVEN))
        again = finished(await thread.draft(GIVEN))

    assert isinstance(asked, Waiting)
    assert [call.id for call in asked.calls] == ["call-1-0", "call-1-1"]
    assert (calls_before, server.calls) == (1, 2)
    assert (result.draft["title"], again) == ("Sales", result)
    assert set(thread.sales.queries) == {SECRET}


async def test_a_worker_killed_while_it_reads_what_was_allowed_reads_it_again(tmp_path: Path) -> None:
    def die(sql: str) -> None:
        raise Killed

    with running_model_server([ASKING, DELIVER]) as server:
        thread = Thread(server, f"sqlite:///{tmp_path / 'threads.sqlite'}")
        await thread.draft({})
        working, thread.sales = thread.sales, Sales(die, ("amount",))
        with pytest.raises(Killed):
            await thread.draft(GIVEN)
        thread.sales = working
        finished(await thread.draft(GIVEN))

    assert (server.calls, working.queries) == (2, [SECRET])


@pytest.mark.parametrize("words", ["model call 1", "tool_called query_dataset"])
async def test_what_whoever_watches_raises_after_the_answer_comes_out_and_costs_nothing(
    tmp_path: Path, words: str
) -> None:
    def stop(told: str) -> None:
        if told == words:
            raise BudgetExceeded("no more calls")

    with running_model_server([ASKING, DELIVER]) as server:
        thread = Thread(server, f"sqlite:///{tmp_path / 'threads.sqlite'}")
        await thread.draft({})
        with pytest.raises(BudgetExceeded):
            await thread.draft(GIVEN, heard=Heard(stop))
        assert server.calls == 1
        finished(await thread.draft(GIVEN))

    assert server.calls == 2
    assert thread.sales.queries == [SECRET]
