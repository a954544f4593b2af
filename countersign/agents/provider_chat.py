"""The chat model of a provider, as langchain-openai has it, held to what the provider really said.

It stands apart because only a process that drafts with a provider loads langchain-openai. Four things are held down
here, each the same for whole and for streamed answers: a number or name that the provider did not give stays unknown,
an answer that broke off is no answer, what cannot be written as text never passes as if it could, and silence ends with
the time limit.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, TypeVar
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from openai import BaseModel
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion

from countersign.agents.calling import MAX_NAME
from countersign.domain.visible import escaped

T = TypeVar("T")

FILTERED = "content_filter"
"""The finish reason of an answer that the provider held back; a refusal, whatever is left of its text."""


class BrokenOff(Exception):
    """The provider's answer ended before it was whole."""


class ProviderChat(ChatOpenAI):
    """Answers with whole messages only.

    `streamed` asks the provider for a stream, which is put together before any of it is read: LangChain's own way with
    a stream completes the arguments of a tool call that broke off, and drops a refusal.
    """

    streamed: bool
    limit: float
    """Seconds for a whole answer; of a streamed one, for each wait for its next chunk."""

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002  # nothing is handed on in pieces
        **kwargs: Any,
    ) -> ChatResult:
        payload = self._get_request_payload(messages, stop=stop, **kwargs)
        if self.streamed:
            return self._create_chat_result(await self._put_together(payload))
        # The client's own limit is for each read from the socket, so that a trickle of blanks would never end.
        async with asyncio.timeout(self.limit):
            return self._create_chat_result(await self.async_client.create(**payload))

    async def _put_together(self, payload: dict[str, Any]) -> BaseModel:
        asked = {"stream": True, "stream_options": {"include_usage": True}}
        state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
        began = False
        async with await self.async_client.create(**{**payload, **asked}) as stream:
            async for chunk in _in_time(stream, self.limit):
                began = True
                state.handle_chunk(chunk)
        # A stream whose source broke can end in good order; the reason for the end is what a whole answer has.
        if not began or any(not choice.finish_reason for choice in state.current_completion_snapshot.choices):
            raise BrokenOff
        return state.current_completion_snapshot

    def _create_chat_result(
        self, response: dict[Any, Any] | BaseModel, generation_info: dict[Any, Any] | None = None
    ) -> ChatResult:
        if isinstance(response, ChatCompletion):
            response.usage = _usage(response.usage)
            for choice in response.choices:
                _mend(choice.message)
        result = super()._create_chat_result(response, generation_info)
        # Without a name in the answer the name that was asked for would stand there.
        name = getattr(response, "model", None)
        answered = escaped(name)[:MAX_NAME] if isinstance(name, str) else ""
        result.llm_output = {**(result.llm_output or {}), "model_name": answered}
        for generation in result.generations:
            if (generation.generation_info or {}).get("finish_reason") == FILTERED:
                generation.message.additional_kwargs["refusal"] = FILTERED
        return result


async def _in_time(source: AsyncIterator[T], limit: float) -> AsyncIterator[T]:
    """The same items; TimeoutError where the next one takes longer than `limit` seconds."""
    items = aiter(source)
    while True:
        try:
            item = await asyncio.wait_for(anext(items), limit)
        except StopAsyncIteration:
            return
        yield item


def _mend(message: Any) -> None:
    """Have an answer hold nothing that neither LangChain nor a ledger takes, and that no second try would change.

    Text is made well-formed; arguments that would not be are left as what they are, malformed, of which the model is
    told; a call that came without an id of its own gets one, since its answer must name it.
    """
    message.content, message.refusal = _well_formed(message.content), _well_formed(message.refusal)
    for call in message.tool_calls or ():
        call.id = _well_formed(call.id) if isinstance(call.id, str) and call.id else f"call-{uuid4().hex}"
        function = getattr(call, "function", None)
        if function is not None:
            function.name = _well_formed(function.name)
            function.arguments = _readable(_well_formed(function.arguments))


def _well_formed(text: Any) -> Any:
    """The same text with U+FFFD for each half of a character that stands alone."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if isinstance(text, str) else text


def _readable(arguments: Any) -> Any:
    """The arguments as they came, or a text that is no JSON where what they stand for is no well-formed text."""
    try:
        json.dumps(json.loads(arguments), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return f"half a character stands alone in: {arguments}"
    except (TypeError, ValueError, RecursionError):
        return arguments
    return arguments


def _usage(said: Any) -> CompletionUsage | None:
    """Both token counts as the provider told them, or nothing: half a usage would count the other half as none."""
    counts = [getattr(said, name, None) for name in ("prompt_tokens", "completion_tokens")]
    read, written = (count if type(count) is int and count >= 0 else None for count in counts)
    if read is None or written is None:
        return None
    return CompletionUsage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)
