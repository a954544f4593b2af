"""The drafting agent: a deep agent with its case's tools, a structured draft at its end, a checkpoint after every step.

It stands apart because a draft outlives its worker. The compiled agent is built once per process and case; each draft
runs it on a thread of its own, whose checkpoint is written before the next step begins, so a killed worker repeats at
most the model call that was in flight.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from deepagents import create_deep_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot
from langsmith import tracing_context

from countersign.agents.asking import answered, context_of, guarding, is_settled, waiting
from countersign.agents.calling import is_refusal, watched_call
from countersign.agents.checkpoints import Checkpoints
from countersign.agents.failures import DraftingFailed, ModelRefused, model_failure
from countersign.agents.kind import AgentKind, DraftingContext
from countersign.agents.models import ChatModel
from countersign.domain.draft import DraftObject
from countersign.domain.errors import ConfigurationRefused, CountersignError
from countersign.domain.progress import ProgressKind
from countersign.domain.question import AnsweredCall
from countersign.ports import Waiting, Watching, Written

M = TypeVar("M")
Context = DraftingContext[Any]
Agent = CompiledStateGraph[Any, Context, Any, Any]

MAX_MODEL_CALLS = 24
BUILT_IN = (
    "FilesystemMiddleware",
    "SubAgentMiddleware",
    "_ParentNotifierMiddleware",
    "SummarizationMiddleware",
    "PatchToolCallsMiddleware",
    "UnsupportedContentMiddleware",
)
"""What create_deep_agent adds by itself: file tools, sub-agents, hidden model calls. None of it is needed to draft."""


class DeepAgentDrafter(Generic[M]):
    """Drafts for one case with a deep agent; safe to share between concurrent drafts of one process."""

    def __init__(self, model: ChatModel, checkpoints: Checkpoints, kind: AgentKind[M]) -> None:
        self._name = model.name
        self._checkpoints = checkpoints
        self._kind = kind
        self._agent = build_agent(model, kind)

    async def draft(
        self,
        thread: str,
        attempt: int,
        material: M,
        earlier: DraftObject | None,
        feedback: Sequence[str],
        answers: Mapping[str, AnsweredCall],
        may_ask: bool,
        watching: Watching,
    ) -> Written | Waiting:
        """See `ports.Drafter`.

        Raises:
            Unavailable: worth another attempt; `retry_after` holds the provider's wish where it has one.
            ModelRefused, DraftingFailed: another attempt would end the same.
            AttemptSuperseded: a newer attempt has taken over.
            ControlChanged, BudgetExceeded, and others: as `watching` says.
        """
        prompt = HumanMessage(self._kind.first_message(material, earlier, feedback))
        context = DraftingContext(material, watching, answers, may_ask)
        # Whatever the environment says of LangSmith: a draft goes to its model and to nobody else.
        with tracing_context(enabled=False):
            async with self._checkpoints.open(thread, attempt, self._kind.form) as saver:
                agent = self._agent.copy(update={"checkpointer": saver})
                return await self._run(agent, thread, prompt, context)

    async def _run(
        self, agent: Agent, thread: str, prompt: HumanMessage, context: DraftingContext[M]
    ) -> Written | Waiting:
        config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": 4 * MAX_MODEL_CALLS}
        resumed: Mapping[str, object] = {}
        while True:
            state = await agent.aget_state(config)
            draft = state.values.get("structured_response")
            if isinstance(draft, self._kind.form) and not state.next:
                return Written(draft=draft.model_dump(mode="json"), model=self._name)
            calls = waiting(state, self._kind.guarded)
            following: Command[Any] | dict[str, list[AnyMessage]] | None
            if calls and is_settled(state.tasks):
                said = {call.id: context.answer_to(call.id, call.tool, call.args) for call in calls.values()}
                given = {id: answer for id, answer in said.items() if answer is not None}
                if len(given) < len(said):
                    return Waiting(tuple(calls.values()), self._name)
                if calls == resumed:
                    raise DraftingFailed("the agent framework does not go on with calls that people have answered")
                following, resumed = answered(calls, given, self._kind.guarded), calls
            else:
                following = self._next_input(state, prompt)
            await agent.ainvoke(following, config, context=context, durability="sync")

    def _next_input(self, state: StateSnapshot, prompt: HumanMessage) -> dict[str, list[AnyMessage]] | None:
        """A fresh thread takes the prompt and one that broke off goes on (None).

        No next step alone does not mean finished: the model can have answered in prose; it is then asked for the draft.
        """
        if state.next:
            return None
        return {"messages": [HumanMessage(self._kind.nudge) if state.values.get("messages") else prompt]}


def build_agent(model: ChatModel, kind: AgentKind[Any]) -> Agent:
    """The compiled agent of a kind, without a checkpointer.

    Raises:
        ConfigurationRefused: the installed deepagents brings a tool that is not ours (G39), or a tool is guarded that
            is not there.
    """
    watch = _Watch(model.name)
    agent = create_deep_agent(
        model.model,
        tools=list(kind.tools),
        system_prompt=kind.system_prompt,
        middleware=[*map(_Nothing, BUILT_IN), *guarding(kind.guarded), watch],
        response_format=ToolStrategy(kind.form, tool_message_content="Draft received."),
        context_schema=DraftingContext,
    )
    allowed = {tool.name for tool in kind.tools}
    bound = set(agent.nodes["tools"].bound.tools_by_name)  # type: ignore[attr-defined]  # ToolNode, seen as Runnable
    if bound != allowed:
        raise ConfigurationRefused(f"the agent framework binds tools {sorted(bound)}; allowed: {sorted(allowed)}")
    if unknown := set(kind.guarded) - allowed:
        raise ConfigurationRefused(
            f"calls of {sorted(unknown)} are to wait for people; the tools are {sorted(allowed)}"
        )
    return agent


class _Nothing(AgentMiddleware[Any, Any, Any]):
    """Takes a built-in middleware's place by its name, and does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @property
    def name(self) -> str:
        return self._name


class _Watch(AgentMiddleware[Any, Context, Any]):
    """Around every model call and tool call, innermost: whoever watches, the limit on calls, and plain errors."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model

    async def awrap_model_call(
        self,
        request: ModelRequest[Context],
        handler: Callable[[ModelRequest[Context]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Count by the messages of the thread, so that a resumed draft has no new budget."""
        number = 1 + sum(isinstance(message, AIMessage) for message in request.messages)
        if number > MAX_MODEL_CALLS:
            raise DraftingFailed(f"no valid draft after {MAX_MODEL_CALLS} model calls; ask for something narrower")
        response = await watched_call(
            request.runtime.context.watching, self._model, lambda: self._ask(request, handler)
        )
        if is_refusal(response.result):
            raise ModelRefused(f"model {self._model} refused to write this draft; change the request or the model")
        return response

    async def _ask(
        self,
        request: ModelRequest[Context],
        handler: Callable[[ModelRequest[Context]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        try:
            return await handler(request)
        except CountersignError:
            raise
        except Exception as error:
            raise model_failure(self._model, error) from error

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Tell of a call that is about to be made; one that waits for people, or was refused, does not come here."""
        if request.tool is not None:
            await context_of(request).watching.happened(ProgressKind.TOOL_CALLED, request.tool.name)
        return await handler(request)
