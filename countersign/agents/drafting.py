"""The drafting agent: a deep agent with its case's tools, a structured draft at its end, a checkpoint after every step.

It stands apart because a draft outlives its worker. The compiled agent is built once per process and case; each draft
runs it on a thread of its own, whose checkpoint is written before the next step begins, so a killed worker repeats at
most the model call that was in flight.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from deepagents import create_deep_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot
from langsmith import tracing_context

from countersign.agents.checkpoints import Checkpoints
from countersign.agents.failures import DraftingFailed, ModelRefused, model_failure
from countersign.agents.kind import AgentKind, DraftingContext
from countersign.agents.models import ChatModel
from countersign.domain.draft import DraftObject
from countersign.domain.errors import ConfigurationRefused, CountersignError
from countersign.domain.values import Value
from countersign.ports import Written

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
        on_progress: Callable[[str], Awaitable[None]],
    ) -> Written:
        """Write a draft, or go on with the one that an earlier attempt at `thread` left unfinished.

        Args:
            thread: what the checkpoint is keyed on: tenant, operation, run and draft version.
            attempt: the activity attempt, rising; an older one's writes are refused.
            material: what was asked, and all that the tools read.
            earlier: the version before, None for the first.
            feedback: what the checks and the grader said of that version.
            on_progress: told before each model and tool call; what it raises ends the draft, and the call is not made.

        Raises:
            Unavailable: worth another attempt; `retry_after` holds the provider's wish where it has one.
            ModelRefused, DraftingFailed: another attempt would end the same.
            AttemptSuperseded: a newer attempt has taken over.
            ControlChanged: as `on_progress` says.
        """
        prompt = HumanMessage(self._kind.first_message(material, earlier, feedback))
        context = DraftingContext(material, on_progress)
        # Whatever the environment says of LangSmith: a draft goes to its model and to nobody else.
        with tracing_context(enabled=False):
            async with self._checkpoints.open(thread, attempt, self._kind.form) as saver:
                agent = self._agent.copy(update={"checkpointer": saver})
                draft = await self._run_to_draft(agent, thread, prompt, context)
        return Written(draft=draft.model_dump(mode="json"), model=self._name)

    async def _run_to_draft(
        self, agent: Agent, thread: str, prompt: HumanMessage, context: DraftingContext[M]
    ) -> Value:
        config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": 4 * MAX_MODEL_CALLS}
        while True:
            state = await agent.aget_state(config)
            draft = state.values.get("structured_response")
            if isinstance(draft, self._kind.form) and not state.next:
                return draft
            await agent.ainvoke(self._next_input(state, prompt), config, context=context, durability="sync")

    def _next_input(self, state: StateSnapshot, prompt: HumanMessage) -> dict[str, list[AnyMessage]] | None:
        """A fresh thread takes the prompt and an interrupted one goes on (None).

        No next step alone does not mean finished: the model can have answered in prose; it is then asked for the draft.
        """
        if state.next:
            return None
        return {"messages": [HumanMessage(self._kind.nudge) if state.values.get("messages") else prompt]}


def build_agent(model: ChatModel, kind: AgentKind[Any]) -> Agent:
    """The compiled agent of a kind, without a checkpointer.

    Raises:
        ConfigurationRefused: the installed deepagents brings a tool that is not ours (G39).
    """
    watch = _Watch(model.name)
    agent = create_deep_agent(
        model.model,
        tools=list(kind.tools),
        system_prompt=kind.system_prompt,
        middleware=[*map(_Nothing, BUILT_IN), watch],
        response_format=ToolStrategy(kind.form, tool_message_content="Draft received."),
        context_schema=DraftingContext,
    )
    allowed = {tool.name for tool in kind.tools}
    bound = set(agent.nodes["tools"].bound.tools_by_name)  # type: ignore[attr-defined]  # ToolNode, seen as Runnable
    if bound != allowed:
        raise ConfigurationRefused(f"the agent framework binds tools {sorted(bound)}; allowed: {sorted(allowed)}")
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
    """Around every model call: progress, the limit on calls, and plain errors."""

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
        await request.runtime.context.on_progress(f"model call {number}")
        try:
            response = await handler(request)
        except CountersignError:
            raise
        except Exception as error:
            raise model_failure(self._model, error) from error
        _refuse_refusal(self._model, response.result)
        return response


def _refuse_refusal(model: str, messages: Sequence[BaseMessage]) -> None:
    for message in messages:
        if isinstance(message, AIMessage) and message.additional_kwargs.get("refusal"):
            raise ModelRefused(f"model {model} refused to write this draft; change the request or the model")
