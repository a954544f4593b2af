"""A chat model that answers by rules; what the offline drafter and the offline grader have in common.

It stands apart because LangChain asks more of a chat model than a rule needs: everything that concerns sampling,
streaming and tool schemas is taken in and left aside here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolCall
from langchain_core.messages.ai import AIMessage, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

Rule = Callable[[str, Mapping[str, Any]], str]
"""How a criterion is graded: from the whole text and what was asked to what is missing, or nothing."""


class RuleModel(BaseChatModel):
    """A model whose answer is always a list of tool calls; the same conversation always gives the same one."""

    called: ClassVar[str]
    """Its name in records."""

    @abstractmethod
    def next_calls(self, messages: Sequence[BaseMessage]) -> list[ToolCall]:
        """The answer to a conversation."""

    @property
    def _llm_type(self) -> str:
        return type(self).__name__

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[Any, AIMessage]:  # noqa: ARG002  # rules know the tools
        """Nothing needs binding."""
        return self

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        # On the event loop: quicker than the thread that LangChain would take.
        return self._generate(messages)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        # Nothing is bought, which is known: a rule has no tokens.
        nothing = UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
        message = AIMessage("", tool_calls=self.next_calls(messages), usage_metadata=nothing)
        message.response_metadata = {"model_name": self.called}
        return ChatResult(generations=[ChatGeneration(message=message)])
