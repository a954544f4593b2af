"""What the contract tests talk to: a model that answers as a script says, and an agent with three tools that record.

Apart from the tests so that each of them is one sentence. Nothing of ours is in here: it is the installed framework
that is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt
from pydantic import Field

Mode = Literal["batched", "per_call"]
Turn = AIMessage | Exception
DONE = AIMessage("done")
THREAD: RunnableConfig = {"configurable": {"thread_id": "t-1"}}


class ScriptedModel(BaseChatModel):
    """Answers call n with turn n; an exception among the turns is raised."""

    turns: list[Any]
    seen: list[list[BaseMessage]] = Field(default_factory=list)
    """The messages of each call."""
    offered: list[set[str]] = Field(default_factory=list)
    """The names of the tools, each time that some were bound."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:
        """The same model; what it was offered is kept."""
        self.offered.append({_name_of(each) for each in tools})
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        self.seen.append(messages)
        turn: Turn = self.turns[len(self.seen) - 1]
        if isinstance(turn, Exception):
            raise turn
        return ChatResult(generations=[ChatGeneration(message=turn.model_copy(update={"id": None}))])


def _name_of(offered: Any) -> str:
    if isinstance(offered, BaseTool):
        return offered.name
    return str(offered.get("name") or offered["function"]["name"]) if isinstance(offered, dict) else offered.__name__


def call(call_id: str | None, name: str = "read", **arguments: Any) -> ToolCall:
    """A tool call as a model makes it."""
    return ToolCall(name=name, args=arguments or {"column": "salary"}, id=call_id, type="tool_call")


@dataclass
class Trial:
    """One conversation with one agent: what it waits for, what ran, what its model was shown."""

    calls: Sequence[ToolCall] = (call("call-1"),)
    """What the model calls in its first turn; in its second it is done, unless `then` says otherwise."""
    interrupt_on: Mapping[str, Any] = field(default_factory=lambda: {"read": True})
    mode: Mode = "per_call"
    saver: BaseCheckpointSaver[Any] | None = field(default_factory=InMemorySaver)
    then: Sequence[Turn] = (DONE,)
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the middleware."""
    middle: Sequence[Any] = ()
    """Middleware after it."""
    context: Any = None
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    broken: bool = True
    """Whether the tool `fail` fails."""

    def __post_init__(self) -> None:
        self.model = ScriptedModel(turns=[AIMessage("", tool_calls=list(self.calls)), *self.then])
        self.agent = self.build()

    def build(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The agent; a second one of the same trial is what another worker has after a restart."""
        guard: HumanInTheLoopMiddleware[Any, Any, Any] = HumanInTheLoopMiddleware(
            interrupt_on=dict(self.interrupt_on), interrupt_mode=self.mode, **self.more
        )
        return create_agent(
            self.model,
            tools=self.tools(),
            middleware=[guard, *self.middle],
            checkpointer=self.saver,
            context_schema=type(self.context) if self.context else None,
        )

    def tools(self) -> list[BaseTool]:
        """`read` and `ask_user` say what they did, `fail` raises; each leaves its arguments in `ran`."""

        @tool
        def read(column: str, rows: int = 1) -> str:
            """Read some rows of a column."""
            self.ran.append(("read", {"column": column, "rows": rows}))
            return f"{rows} of {column}"

        @tool
        def ask_user(question: str) -> str:
            """Ask a person."""
            self.ran.append(("ask_user", {"question": question}))
            return "nobody was asked"

        @tool
        def fail(column: str) -> str:
            """Fail."""
            self.ran.append(("fail", {"column": column}))
            if self.broken:
                raise OSError("the disk is gone")
            return f"mended {column}"

        return [read, ask_user, fail]

    async def start(self) -> list[Interrupt[Any]]:
        """Let the agent go until it waits or is done; what it waits for."""
        return await self._go({"messages": [("user", "Read the salaries.")]})

    async def answer(self, resume: Any) -> list[Interrupt[Any]]:
        """Resume with this; what it still waits for."""
        return await self._go(Command(resume=resume))

    async def started_and_answered(self, decision: Mapping[str, Any]) -> ToolMessage:
        """The message that the model gets where the one call that waits is answered so."""
        (waiting,) = await self.start()
        batched = {"decisions": [dict(decision)]}
        assert await self.answer(batched if self.mode == "batched" else {waiting.id: dict(decision)}) == []
        (message,) = self.results()
        assert message in self.model.seen[-1]
        return message

    async def _go(self, entered: Any) -> list[Interrupt[Any]]:
        result = await self.agent.ainvoke(entered, THREAD, context=self.context)
        return list(result.get("__interrupt__", ()))

    def waits_for(self) -> list[Interrupt[Any]]:
        """What the stored thread says that it waits for."""
        return list(self.agent.get_state(THREAD).interrupts)

    def results(self) -> list[ToolMessage]:
        """The tool messages of the stored thread."""
        messages = self.agent.get_state(THREAD).values["messages"]
        return [message for message in messages if isinstance(message, ToolMessage)]


def schema_of(waiting: Interrupt[Any]) -> dict[str, Any]:
    """The JSON schema of the answers that are allowed."""
    assert isinstance(waiting.response_schema, dict)
    return waiting.response_schema


def by_call(waiting: Sequence[Interrupt[Any]]) -> dict[str, str]:
    """From the model's id of a call to the id of the interrupt that answers it."""
    return {each.value["tool_call_id"]: each.id for each in waiting}


def grader_says(
    result: str, *passed: bool, explanation: str = "Because.", names: Callable[[int], str] = "criterion-{}".format
) -> AIMessage:
    """A grader's structured answer, with one criterion for each of `passed`."""
    criteria = [
        {"name": names(at), "passed": True} if met else {"name": names(at), "passed": False, "gap": f"gap of {at}"}
        for at, met in enumerate(passed, 1)
    ]
    arguments = {"result": result, "explanation": explanation, "criteria": criteria}
    return AIMessage("", tool_calls=[call("grade-1", "GraderResponse", **arguments)])
