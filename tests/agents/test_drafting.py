"""The drafting agent over real HTTP: what it may call, what it is told, and what each failure of a model becomes."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from countersign.agents.drafting import MAX_MODEL_CALLS, DeepAgentDrafter
from countersign.agents.failures import DraftingFailed, ModelRefused, ModelUnavailable
from countersign.agents.models import ModelSettings
from countersign.domain.draft import DraftObject
from countersign.domain.errors import BudgetExceeded, ControlChanged, CountersignError, Unavailable
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


@pytest.fixture
def checkpoint_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'checkpoints.sqlite'}"


def drafter(server: ModelServer, checkpoint_url: str, timeout: float = 30.0) -> DeepAgentDrafter[ReportMaterial]:
    settings = ModelSettings(api_key="k", base_url=server.url, draft_model="test-model", timeout_seconds=timeout)
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
        more.get("thread", "acme:op-1:run:v1"), more.get("attempt", 1), sales_material(dataset), earlier,
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
        (Turn(status=429, error="rate_limit_exceeded", headers=(("Retry-After", "7"),)), "HTTP 429"),
        (Turn(status=500), "HTTP 500"),
        (Turn(status=503), "HTTP 503"),
        (Turn(cut=True, text="x" * 5_000), "no readable answer"),
        (Turn(raw="<html>gateway</html>"), "no readable answer"),
        (Turn(raw='{"choices": null}'), "no readable answer"),
        (Turn(raw='{"id": "x", "choi'), "no readable answer"),
    ],
    ids=["429", "500", "503", "connection cut", "html", "no choices", "cut body"],
)
async def test_a_passing_failure_is_left_to_the_next_attempt(checkpoint_url: str, turn: Turn, words: str) -> None:
    with running_model_server([DESCRIBE, turn, DELIVER]) as server:
        agent = drafter(server, checkpoint_url)
        with pytest.raises(Unavailable, match=words) as failure:
            await written(agent)
        calls_of_the_first_attempt = server.calls
        result = await written(agent, attempt=2)

    assert isinstance(failure.value, ModelUnavailable)
    assert failure.value.retry_after == (7.0 if turn.headers else None)
    assert (calls_of_the_first_attempt, server.calls) == (2, 3)
    assert result.draft["title"] == "Sales"


async def test_a_model_that_does_not_answer_in_time_is_left_to_the_next_attempt(checkpoint_url: str) -> None:
    with running_model_server([Turn(held=True)]) as server:
        with pytest.raises(ModelUnavailable, match="no readable answer"):
            await written(drafter(server, checkpoint_url, timeout=0.2))
        server.release()


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


async def test_an_answer_without_usage_is_an_answer(checkpoint_url: str) -> None:
    with running_model_server([Turn(calls=DELIVER.calls, usage=False)]) as server:
        assert (await written(drafter(server, checkpoint_url))).draft["title"] == "Sales"


async def test_a_checkpoint_file_that_cannot_be_used_is_said_plainly(tmp_path: Path) -> None:
    with running_model_server([DELIVER]) as server:
        agent = drafter(server, f"sqlite:///{tmp_path / 'missing' / 'checkpoints.sqlite'}")
        with pytest.raises(Unavailable, match=r"checkpoint file .* cannot be used"):
            await written(agent)


@pytest.mark.parametrize(
    ("first", "error", "answered", "tokens"),
    [
        (DESCRIBE, "", "test-model", (10, 5)),
        (Turn(calls=DESCRIBE.calls, usage=False), "", "test-model", (None, None)),
        (Turn(status=500), "UNAVAILABLE", "", (None, None)),
        (Turn(raw="<html>gateway</html>"), "UNAVAILABLE", "", (None, None)),
        (Turn(status=401, error="invalid_api_key"), "MODEL_REFUSED", "", (None, None)),
        (Turn(refusal="I cannot help with that."), "MODEL_REFUSED", "test-model", (10, 5)),
    ],
    ids=["answer", "no usage", "500", "malformed", "key", "refusal"],
)
async def test_every_model_call_is_told_with_what_is_known_of_it(
    checkpoint_url: str, first: Turn, error: str, answered: str, tokens: tuple[int | None, int | None]
) -> None:
    heard = Heard()
    with running_model_server([first, DELIVER]) as server, suppress(CountersignError):
        await written(drafter(server, checkpoint_url), heard=heard)

    end = heard.ends[0]
    assert (end.error, end.answered, (end.input_tokens, end.output_tokens)) == (error, answered, tokens)
    assert 0 <= end.milliseconds < 30_000
    assert len(heard.ends) == server.calls


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
