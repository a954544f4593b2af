"""What a provider's answer says, and each way of not answering: over real HTTP, the same whole and streamed."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from countersign.agents.failures import MAX_RETRY_AFTER, ModelRefused, ModelUnavailable, model_failure
from countersign.agents.models import ModelSettings, draft_model
from countersign.agents.report import REPORT_AGENT
from countersign.domain.errors import CountersignError
from tests.support.model_server import MISSING, ModelServer, Turn, running_model_server

SHORT, LONG = 0.2, 30.0
"""Seconds; short where nothing is to come in time."""
SQL = "SELECT sum(amount) FROM data WHERE region = 'North'"
QUERY = ("query_dataset", {"sql": SQL})
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streaming(request: pytest.FixtureRequest) -> bool:
    """Whether the provider is asked for a stream."""
    return bool(request.param)


async def ask(server: ModelServer, streaming: bool, limit: float = LONG, **options: Any) -> AIMessage:
    """One call of the model that the settings name."""
    settings = ModelSettings("k", server.url, "asked", streaming=streaming, timeout_seconds=limit)
    answer = await draft_model(settings, REPORT_AGENT.offline).model.ainvoke("Well?", **options)
    assert isinstance(answer, AIMessage)
    return answer


async def answered(turn: Turn, streaming: bool, **options: Any) -> AIMessage:
    """The answer of a server that has this one turn."""
    with running_model_server([turn]) as server:
        answer = await ask(server, streaming, **options)
        assert bool(server.requests[0]["stream"]) == streaming
    return answer


async def failed(turn: Turn, streaming: bool) -> CountersignError:
    """What the failure of a server that has this one turn becomes."""
    with running_model_server([turn]) as server:
        try:
            answer = await ask(server, streaming, SHORT if turn.held or turn.pause else LONG)
        except Exception as error:
            return model_failure("asked", error)
        finally:
            server.release()
    raise AssertionError(answer)


async def test_texts_calls_and_tokens_come_as_they_were_sent(streaming: bool) -> None:
    answer = await answered(Turn(text="Two queries, then.", calls=(QUERY, ("describe_dataset", {}))), streaming)

    assert answer.content == "Two queries, then."
    assert [(call["name"], call["args"], call["id"]) for call in answer.tool_calls] == [
        ("query_dataset", {"sql": SQL}, "call-1-0"), ("describe_dataset", {}, "call-1-1")
    ]  # fmt: skip
    assert answer.usage_metadata is not None
    assert (answer.usage_metadata["input_tokens"], answer.usage_metadata["output_tokens"]) == (10, 5)
    assert answer.response_metadata["model_name"] == "asked"


async def test_structured_output_is_asked_for_and_comes_as_text(streaming: bool) -> None:
    with running_model_server([Turn(text=json.dumps({"result": "satisfied"}))]) as server:
        answer = await ask(server, streaming, response_format=FORM)

    assert server.requests[0]["response_format"] == FORM
    assert json.loads(str(answer.content)) == {"result": "satisfied"}
    assert answer.usage_metadata is not None


@pytest.mark.parametrize(
    ("said", "known"),
    [("another-model", "another-model"), ("", ""), ("a\x1b[31mred", "a\\u{001b}[31mred"), ("x" * 5_000, "x" * 120)],
    ids=["another", "none", "hidden characters", "endless"],
)
async def test_the_model_that_answered_is_the_one_that_the_provider_names(
    streaming: bool, said: str, known: str
) -> None:
    answer = await answered(Turn(text="Yes.", model=said), streaming)

    assert answer.response_metadata["model_name"] == known


async def test_tokens_that_the_provider_does_not_tell_stay_unknown(streaming: bool) -> None:
    assert (await answered(Turn(text="Yes.", usage=False), streaming)).usage_metadata is None


@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": 10}, {"prompt_tokens": -1, "completion_tokens": 5}, {"prompt_tokens": "ten"}, [], "many"],
    ids=["half", "negative", "words", "list", "text"],
)
async def test_half_a_usage_is_unknown_and_no_reason_to_lose_an_answer(usage: Any) -> None:
    message = {"role": "assistant", "content": "Yes."}
    body = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}

    answer = await answered(Turn(raw=json.dumps(body)), streaming=False)

    assert (answer.content, answer.usage_metadata) == ("Yes.", None)


@pytest.mark.parametrize(
    "turn",
    [Turn(refusal="I cannot help with that."), Turn(text="Sales were", finish="content_filter")],
    ids=["refusal", "held back by the provider"],
)
async def test_a_refusal_is_seen_as_one_and_its_tokens_are_counted(streaming: bool, turn: Turn) -> None:
    answer = await answered(turn, streaming)

    assert answer.additional_kwargs["refusal"] == (turn.refusal or turn.finish)
    assert answer.usage_metadata is not None


@pytest.mark.parametrize("finish", ["length", "stop"])
async def test_arguments_that_break_off_are_never_completed(streaming: bool, finish: str) -> None:
    broken = '{"sql": "SELECT sum(amount) FROM data'
    answer = await answered(Turn(calls=(("query_dataset", broken),), finish=finish), streaming)

    assert (answer.tool_calls, answer.invalid_tool_calls[0]["args"]) == ([], broken)


async def test_half_a_character_in_arguments_makes_them_malformed_and_elsewhere_it_is_replaced(streaming: bool) -> None:
    calls = (("query_dataset", '{"sql": "SELECT \\ud83d"}'), ("query_\ud83d", {"sql": "\U0001f600"}))
    answer = await answered(Turn(text="Well \udc00 then", calls=calls, ids=("call-\ud83d", "call-2")), streaming)

    assert answer.content == "Well \ufffd then"
    (malformed,) = answer.invalid_tool_calls
    assert (malformed["name"], malformed["id"]) == ("query_dataset", "call-\ufffd")
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("query_\ufffd", {"sql": "\U0001f600"})]
    answer.model_dump_json().encode()


async def test_half_a_character_in_a_refusal_makes_it_no_less_of_one(streaming: bool) -> None:
    answer = await answered(Turn(refusal="I will \ud83d not."), streaming)

    assert answer.additional_kwargs["refusal"] == "I will \ufffd not."


@pytest.mark.parametrize("id", [None, MISSING, ""], ids=["null", "missing", "empty"])
async def test_a_call_without_an_id_gets_one_of_its_own(streaming: bool, id: Any) -> None:
    answer = await answered(Turn(calls=(QUERY, QUERY), ids=(id, id)), streaming)

    first, second = (call["id"] for call in answer.tool_calls)
    assert first
    assert second
    assert first != second


async def test_a_stream_that_ends_in_the_middle_as_if_it_were_whole_is_no_answer() -> None:
    failure = await failed(Turn(calls=(QUERY,), ended=True), streaming=True)

    assert isinstance(failure, ModelUnavailable)


async def test_the_time_limit_of_a_stream_holds_from_chunk_to_chunk() -> None:
    text, limit = "A slow model of one's own.", 1.0
    with running_model_server([Turn(text=text, pause=limit / 4)]) as server:
        began = time.monotonic()
        answer = await ask(server, streaming=True, limit=limit)
        assert time.monotonic() - began > limit
    assert answer.content == text

    assert isinstance(await failed(Turn(text=text, pause=SHORT * 3), streaming=True), ModelUnavailable)


FAULTS: dict[str, tuple[Turn, type[CountersignError], str]] = {
    "429": (Turn(status=429, error="rate_limit_exceeded"), ModelUnavailable, "HTTP 429"),
    "500": (Turn(status=500), ModelUnavailable, "HTTP 500"),
    "slow": (Turn(held=True), ModelUnavailable, "no readable answer"),
    "cut off": (Turn(text="x" * 5_000, cut=True), ModelUnavailable, "no readable answer"),
    "no JSON": (Turn(raw="<html>gateway</html>"), ModelUnavailable, "no readable answer"),
    "empty": (Turn(raw=""), ModelUnavailable, "no readable answer"),
    "no choices": (Turn(raw='{"choices": []}'), ModelUnavailable, "no readable answer"),
    "an error in a good answer": (Turn(raw='data: {"error": {"message": "x"}}\n\n'), ModelUnavailable, "no readable"),
    "key": (Turn(status=401, error="invalid_api_key"), ModelRefused, "check the key"),
    "model": (Turn(status=404, error="model_not_found"), ModelRefused, "check the model's name"),
    "quota": (Turn(status=429, error="insufficient_quota"), ModelRefused, "quota is used up"),
}


@pytest.mark.guarantee("G46")
@pytest.mark.parametrize("name", FAULTS)
async def test_each_fault_is_one_of_two_kinds_in_one_line_without_the_providers_words(
    streaming: bool, name: str
) -> None:
    turn, kind, words = FAULTS[name]
    if turn.status != 200:
        turn = replace(turn, text="sk-planted said Well?")
    failure = await failed(turn, streaming)

    assert type(failure) is kind
    assert words in failure.message
    assert "\n" not in failure.message
    assert "sk-planted" not in failure.message
    assert "Well?" not in failure.message


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("86400", MAX_RETRY_AFTER), ("nan", None), ("-3", None), ("soon", None), ("", None)],
)
async def test_the_wait_that_a_provider_asks_for_is_kept_within_reason(said: str, seconds: float | None) -> None:
    failure = await failed(Turn(status=429, headers=(("Retry-After", said),)), streaming=False)

    assert isinstance(failure, ModelUnavailable)
    assert failure.retry_after == seconds


async def test_a_wait_given_as_a_date_is_reckoned_from_now() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=90)
    failure = await failed(Turn(status=429, headers=(("Retry-After", format_datetime(soon, usegmt=True)),)), False)

    assert isinstance(failure, ModelUnavailable)
    assert failure.retry_after is not None
    assert 80 < failure.retry_after < 91


def test_the_offline_models_say_who_answers_and_that_nothing_was_bought() -> None:
    offline = REPORT_AGENT.offline
    answer = offline.model.invoke('{"request": {"language": "en"}}')

    assert answer.response_metadata["model_name"] == offline.name
    assert answer.usage_metadata == {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
