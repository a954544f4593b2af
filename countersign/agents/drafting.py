"""The drafting agent: a deep agent with two tools, a structured draft at its end, and a checkpoint after every step.

It stands apart because a draft outlives its worker. The compiled agent is built once per process; each draft runs it on
a thread of its own, whose checkpoint is written before the next step begins, so a killed worker repeats at most the
model call that was in flight.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

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
from countersign.agents.models import ChatModel
from countersign.agents.prompts import NUDGE, SYSTEM_PROMPT, assignment
from countersign.agents.tools import DRAFTING_TOOLS, DraftingContext
from countersign.domain.draft import Draft, ReportRequest
from countersign.domain.errors import ConfigurationRefused, CountersignError
from countersign.ports import DatasetReader, Written

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


class DeepAgentDrafter:
    """Drafts with a deep agent; safe to share between concurrent drafts of one process."""

    def __init__(self, model: ChatModel, checkpoints: Checkpoints) -> None:
        self._name = model.name
        self._checkpoints = checkpoints
        self._agent = build_agent(model)

    async def draft(
        self,
        thread: str,
        attempt: int,
        request: ReportRequest,
        dataset: DatasetReader,
        earlier: Draft | None,
        feedback: Sequence[str],
        on_progress: Callable[[str], Awaitable[None]],
    ) -> Written:
        """Write a draft, or go on with the one that an earlier attempt at `thread` left unfinished.

        Args:
            thread: what the checkpoint is keyed on: tenant, operation, run and draft version.
            attempt: the activity attempt, rising; an older one's writes are refused.
            request: what was asked.
            dataset: the pinned data that the tools read.
            earlier: the version before, None for the first.
            feedback: what the checks and the grader said of that version.
            on_progress: told before each model and tool call; what it raises ends the draft, and the call is not made.

        Raises:
            Unavailable: worth another attempt; `retry_after` holds the provider's wish where it has one.
            ModelRefused, DraftingFailed: another attempt would end the same.
            AttemptSuperseded: a newer attempt has taken over.
            ControlChanged: as `on_progress` says.
        """
        prompt = HumanMessage(assignment(request, feedback, earlier))
        context = DraftingContext(dataset, on_progress)
        # Whatever the environment says of LangSmith: a draft goes to its model and to nobody else.
        with tracing_context(enabled=False):
            async with self._checkpoints.open(thread, attempt) as saver:
                agent = self._agent.copy(update={"checkpointer": saver})
                draft = await _run_to_draft(agent, thread, prompt, context)
        return Written(draft=draft, model=self._name)


def build_agent(model: ChatModel) -> CompiledStateGraph[Any, DraftingContext, Any, Any]:
    """The compiled agent without a checkpointer.

    Raises:
        ConfigurationRefused: the installed deepagents brings a tool that is not ours (G39).
    """
    watch = _Watch(model.name)
    agent = create_deep_agent(
        model.model,
        tools=list(DRAFTING_TOOLS),
        system_prompt=SYSTEM_PROMPT,
        middleware=[*map(_Nothing, BUILT_IN), watch],
        response_format=ToolStrategy(Draft, tool_message_content="Draft received."),
        context_schema=DraftingContext,
    )
    allowed = {tool.name for tool in DRAFTING_TOOLS}
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


class _Watch(AgentMiddleware[Any, DraftingContext, Any]):
    """Around every model call: progress, the limit on calls, and plain errors."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model

    async def awrap_model_call(
        self,
        request: ModelRequest[DraftingContext],
        handler: Callable[[ModelRequest[DraftingContext]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Count by the messages of the thread, so that a resumed draft has no new budget."""
        number = 1 + sum(isinstance(message, AIMessage) for message in request.messages)
        if number > MAX_MODEL_CALLS:
            raise DraftingFailed(f"no valid draft after {MAX_MODEL_CALLS} model calls; ask a narrower question")
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
            raise ModelRefused(f"model {model} refused to write this report; change the question or the model")


async def _run_to_draft(
    agent: CompiledStateGraph[Any, DraftingContext, Any, Any],
    thread: str,
    prompt: HumanMessage,
    context: DraftingContext,
) -> Draft:
    config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": 4 * MAX_MODEL_CALLS}
    while True:
        state = await agent.aget_state(config)
        draft = state.values.get("structured_response")
        if isinstance(draft, Draft) and not state.next:
            return draft
        await agent.ainvoke(_next_input(state, prompt), config, context=context, durability="sync")


def _next_input(state: StateSnapshot, prompt: HumanMessage) -> dict[str, list[AnyMessage]] | None:
    """A fresh thread takes the prompt and an interrupted one goes on (None).

    No next step alone does not mean finished: the model can have answered in prose, and is then asked for the draft.
    """
    if state.next:
        return None
    return {"messages": [HumanMessage(NUDGE) if state.values.get("messages") else prompt]}
