"""The drafting agent over real HTTP: what it may call, what it is told, and what each failure of a model becomes."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from countersign.agents import checkpoints
from countersign.agents.checkpoints import checkpoints_at
from countersign.agents.drafting import MAX_MODEL_CALLS, DeepAgentDrafter
from countersign.agents.failures import DraftingFailed, ModelRefused, ModelUnavailable
from countersign.agents.models import ModelSettings
from countersign.domain.draft import DraftObject
from countersign.domain.errors import BudgetExceeded, ControlChanged, CountersignError, Unavailable
from countersign.domain.report import Draft
from countersign.ports import ReportMaterial, Written
from tests.agents.tables import (
    DELIVER,
    DESCRIBE,
    QUERY,
    Heard,
    Sales,
    good_draft,
    reporter,
    sales_material,
    unheard,
)
from tests.support.model_server import ModelServer, Turn, running_model_server
from tests.support.thread_keys import THREAD_KEYS

THREAD = "acme:op-1:run:v1"
STEP: RunnableConfig = {"configurable": {"thread_id": THREAD, "checkpoint_ns": "", "checkpoint_id": "1"}}


@pytest.fixture
def checkpoint_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'checkpoints.sqlite'}"


def drafter(server: ModelServer, checkpoint_url: str) -> DeepAgentDrafter[ReportMaterial]:
    settings = ModelSettings(api_key="k", base_url=server.url, draft_model="test-model", timeout_seconds=30.0)
    return reporter(settings, checkpoint_url)


async def written(
    agent: DeepAgentDrafter[ReportMaterial],
    dataset: Sales | None = None,
    earlier: DraftObject | None = None,
    **more: Any,
) -> Written:
    """One draft of version one, first attempt, unless `more` says otherwise."""
    heard = more.get("heard", unheard)
    result = await agent.draft(
        more.get("thread", THREAD), more.get("attempt", 1), sales_material(dataset), earlier,
        more.get("feedback", ()), {}, True, heard,
    )  # fmt: skip
    assert isinstance(result, Written)
    return result


def told(server: ModelServer, call: int) -> str:
    """Everything that the model was told in a request."""
    return json.dumps(server.requests[call]["messages"], ensure_ascii=False)


async def test_a_draft_is_written_from_what_the_tools_answered(checkpoint_url: str) -> None:
    with running_model_server([DESCRIBE, QUERY, DELIVER]) as server:
        sales, heard = Sales(), Heard()
        result = await written(drafter(server, checkpoint_url), sales, heard=heard)

    assert result == Written(draft=good_draft(), model="test-model")
    assert sales.queries == ["SELECT sum(amount) FROM data"]
    assert '\\"21\\"' in told(server, 2)
    tools = ("tool_called describe_dataset", "tool_called query_dataset")
    assert heard.calls() == ["model call 1", tools[0], "model call 2", tools[1], "model call 3"]


@pytest.mark.guarantee("G39")
async def test_a_model_is_offered_our_tools_and_the_draft_and_nothing_else(checkpoint_url: str) -> None:
    with running_model_server([DESCRIBE, QUERY, DELIVER]) as server:
        await written(drafter(server, checkpoint_url))

    assert [server.tools(call) for call in range(3)] == [{"describe_dataset", "query_dataset", "ask_user", "Draft"}] * 3


@pytest.mark.guarantee("G39")
@pytest.mark.parametrize("name", ["execute", "write_file", "read_file", "task", "write_todos", "publish_report"])
async def test_a_tool_that_is_not_ours_is_refused_when_a_model_calls_it_all_the_same(
    checkpoint_url: str, name: str
) -> None:
    arguments = {"command": "id", "file_path": "/etc/passwd", "content": "x", "description": "x", "todos": []}
    with running_model_server([Turn(calls=((name, arguments),)), DELIVER]) as server:
        await written(drafter(server, checkpoint_url))

    assert f"{name} is not a valid tool" in told(server, 1)


async def test_a_refused_query_is_told_to_the_model_which_goes_on(checkpoint_url: str) -> None:
    bad = Turn(calls=(("query_dataset", {"sql": "SELECT nothing FROM nowhere"}),))
    with running_model_server([bad, DELIVER]) as server:
        await written(drafter(server, checkpoint_url))

    assert "refused: query not possible" in told(server, 1)


@pytest.mark.parametrize(
    "bad",
    [
        Turn(calls=(("Draft", good_draft(claims=[])),)),
        Turn(calls=(("Draft", good_draft(approved=True)),)),
        Turn(calls=(("Draft", '{"title": "cut off'),)),
        Turn(calls=(("Draft", good_draft()), ("Draft", good_draft()))),
        Turn(text="Here is your report: sales are fine."),
        Turn(text="", finish="length"),
        Turn(calls=(("query_dataset", {}),)),
    ],
    ids=["no claims", "unknown field", "cut JSON", "two drafts", "prose", "cut off", "missing argument"],
)
async def test_an_answer_in_the_wrong_form_goes_back_to_the_model(checkpoint_url: str, bad: Turn) -> None:
    with running_model_server([bad, DELIVER]) as server:
        result = await written(drafter(server, checkpoint_url))

    assert result.draft["title"] == "Sales"
    assert server.calls == 2


async def test_a_model_that_never_delivers_is_stopped_after_a_bounded_number_of_calls(checkpoint_url: str) -> None:
    with running_model_server([QUERY] * 100) as server:
        agent = drafter(server, checkpoint_url)
        with pytest.raises(DraftingFailed, match=f"after {MAX_MODEL_CALLS} model calls"):
            await written(agent)
        with pytest.raises(DraftingFailed):
            await written(agent, attempt=2)

    assert server.calls == MAX_MODEL_CALLS


async def test_a_later_version_is_told_the_feedback_and_the_version_before(checkpoint_url: str) -> None:
    feedback = ["claims.c1.value: value_mismatch: expected 21, found 22"]
    earlier = good_draft(title="Version one")
    with running_model_server([DELIVER]) as server:
        await written(drafter(server, checkpoint_url), None, earlier, thread="acme:op-1:run:v2", feedback=feedback)

    assert feedback[0] in told(server, 0)
    assert "Version one" in told(server, 0)


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (Turn(status=503), "HTTP 503"),
        (Turn(raw='{"choices": null}'), "no readable answer"),
        (Turn(raw='{"id": "x", "choi'), "no readable answer"),
    ],
    ids=["503", "no choices", "cut body"],
)
async def test_a_passing_failure_is_left_to_the_next_attempt_which_goes_on(
    checkpoint_url: str, turn: Turn, words: str
) -> None:
    with running_model_server([DESCRIBE, turn, DELIVER]) as server:
        agent = drafter(server, checkpoint_url)
        with pytest.raises(ModelUnavailable, match=words):
            await written(agent)
        calls_of_the_first_attempt = server.calls
        result = await written(agent, attempt=2)

    assert (calls_of_the_first_attempt, server.calls) == (2, 3)
    assert result.draft["title"] == "Sales"


async def test_a_model_that_is_not_there_is_left_to_the_next_attempt(checkpoint_url: str) -> None:
    with running_model_server([]) as server:
        agent = drafter(server, checkpoint_url)
    with pytest.raises(ModelUnavailable):
        await written(agent)


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (Turn(status=401, error="invalid_api_key"), "check the key"),
        (Turn(status=400, error="context_length_exceeded"), "context_length_exceeded"),
        (Turn(status=404, error="model_not_found"), "check the model's name"),
        (Turn(status=429, error="insufficient_quota"), "quota is used up"),
        (Turn(refusal="I cannot help with that."), "refused to write"),
    ],
    ids=["key", "request", "model", "quota", "refusal"],
)
async def test_a_lasting_failure_is_told_in_one_plain_line(checkpoint_url: str, turn: Turn, words: str) -> None:
    with running_model_server([turn]) as server, pytest.raises(CountersignError, match=words) as failure:
        await written(drafter(server, checkpoint_url))

    assert isinstance(failure.value, ModelRefused)
    assert "\n" not in failure.value.message


@pytest.mark.guarantee("G46")
async def test_a_failure_names_neither_the_key_nor_the_prompt(checkpoint_url: str) -> None:
    with running_model_server([Turn(status=400, error="x")]) as server:
        settings = ModelSettings(api_key="sk-secret-1", base_url=server.url, draft_model="test-model")
        agent = reporter(settings, checkpoint_url)
        with pytest.raises(CountersignError) as failure:
            await written(agent)

    assert "sk-secret-1" not in failure.value.message + repr(settings)
    assert "Where do we sell most?" not in failure.value.message


async def test_a_checkpoint_file_that_cannot_be_used_is_said_plainly(tmp_path: Path) -> None:
    with running_model_server([DELIVER]) as server:
        agent = drafter(server, f"sqlite:///{tmp_path / 'missing' / 'checkpoints.sqlite'}")
        with pytest.raises(Unavailable, match=r"checkpoint file .* cannot be used"):
            await written(agent)


async def test_an_attempt_that_ends_in_the_middle_of_a_write_does_not_keep_the_file_from_the_next(
    checkpoint_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "BUSY_SECONDS", 0)
    store = checkpoints_at(checkpoint_url, THREAD_KEYS)
    at_commit, goes_on = asyncio.Event(), asyncio.Event()
    async with store.open(THREAD, 1, Draft) as saver:
        assert isinstance(saver, AsyncSqliteSaver)
        commit = saver.conn.commit

        async def late_commit() -> None:
            at_commit.set()
            await goes_on.wait()
            await commit()

        monkeypatch.setattr(saver.conn, "commit", late_commit)
        write = asyncio.create_task(saver.aput_writes(STEP, [("messages", "late")], "task"))
        await at_commit.wait()

    async with store.open(THREAD, 2, Draft) as saver:
        goes_on.set()
        with pytest.raises(ValueError, match="no active connection"):
            await write
        await saver.aput_writes(STEP, [("messages", "in time")], "task")
    with closing(sqlite3.connect(checkpoint_url.removeprefix("sqlite:///"))) as connection:
        assert connection.execute("SELECT count(*) FROM writes").fetchone() == (1,)


@pytest.mark.parametrize(
    "raised", [BudgetExceeded("no more"), ControlChanged("lea is in control"), RuntimeError("odd")]
)
@pytest.mark.parametrize("words", ["model call 1", "model answer", "tool_called describe_dataset"])
async def test_what_whoever_watches_raises_ends_the_draft_as_it_is(
    checkpoint_url: str, raised: Exception, words: str
) -> None:
    def stop(told: str) -> None:
        if told == words:
            raise raised

    with running_model_server([DESCRIBE, DELIVER]) as server, pytest.raises(type(raised)) as out:
        await written(drafter(server, checkpoint_url), heard=Heard(stop))

    assert out.value is raised
    assert server.calls == (0 if words == "model call 1" else 1)


@pytest.mark.guarantee("G46")
async def test_a_tool_that_the_model_made_up_is_told_to_nobody(checkpoint_url: str) -> None:
    heard = Heard()
    with running_model_server([Turn(calls=(("pay_4111111111111111", {}),)), DELIVER]) as server:
        await written(drafter(server, checkpoint_url), heard=heard)

    assert not any("4111" in words for words in heard.told)
