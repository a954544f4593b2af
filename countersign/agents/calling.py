"""One call of a model, told to whoever watches before and after: by which model, how long, how many tokens, what error.

It stands apart because drafting and grading make their calls in different frameworks and tell them alike.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import ModelResponse
from langchain_core.messages import AIMessage, BaseMessage

from countersign.agents.failures import ModelRefused, cause_of, model_failure
from countersign.domain.errors import CountersignError
from countersign.domain.model_call import CallEnd
from countersign.ports import Watching

MOST_TOKENS = 10**9
"""A count above this is no count: no call has so many, and what it cost would be beyond what the ledger counts."""
MAX_NAME = 120
"""Characters of a model's name as the provider tells it."""
UNUSABLE = "UNUSABLE_ANSWER"
"""The error code of an answer that came, and cost tokens, in a form that the framework refused."""


async def watched_call(
    watching: Watching, model: str, call: Callable[[], Awaitable[ModelResponse[Any]]]
) -> ModelResponse[Any]:
    """Make one call of `model`, unless whoever watches raises; whatever the call raises is passed on.

    A call that is cancelled is told no end, like one of a killed process: nobody knows what became of it.
    """
    number = await watching.calling(model)
    began = time.monotonic()
    try:
        response = await call()
    except Exception as error:
        await watching.called(number, _failed(model, error, _milliseconds(began)))
        raise
    await watching.called(number, _answered(response.result, _milliseconds(began)))
    return response


def is_refusal(messages: Sequence[BaseMessage]) -> bool:
    """Whether the model's answer is that it will not do it."""
    return any(isinstance(each, AIMessage) and each.additional_kwargs.get("refusal") for each in messages)


def _milliseconds(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _answered(messages: Sequence[BaseMessage], milliseconds: int) -> CallEnd:
    answer = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)
    usage: Any = (answer and answer.usage_metadata) or {}
    return CallEnd(
        answered=_name(answer.response_metadata.get("model_name") if answer else None),
        error=ModelRefused.code if is_refusal(messages) else "",
        input_tokens=_count(usage.get("input_tokens")),
        output_tokens=_count(usage.get("output_tokens")),
        milliseconds=milliseconds,
    )


def _failed(model: str, error: Exception, milliseconds: int) -> CallEnd:
    """What an error says of the call; LangChain's own carries the answer that came and could not be used."""
    answer = getattr(error, "ai_message", None)
    if isinstance(answer, AIMessage):
        return _answered([answer], milliseconds).model_copy(update={"error": UNUSABLE})
    failure = error if isinstance(error, CountersignError) else model_failure(model, error)
    return CallEnd(error=failure.code, cause=cause_of(error), milliseconds=milliseconds)


def _name(value: object) -> str:
    return value[:MAX_NAME] if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if known and isinstance(value, int) else None
