"""The one file that knows LangChain's HumanInTheLoopMiddleware, by which an agent pauses until people have answered.

It stands apart so that an upgrade is met here and in the contract tests only. The middleware pauses each call for
itself (`per_call`), and a pause is answered by its id, never by its place. What it is not trusted with: which calls may
be brought before people at all is decided before it (`_Gate`), and the body of a guarded tool looks for itself whether
a person allowed exactly this call (`person_allowed`), so that a middleware that lets a call through reads nothing.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, InterruptOnConfig
from langchain.agents.middleware.types import ToolCallRequest
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command, Interrupt, PregelTask, StateSnapshot
from pydantic import JsonValue, ValidationError

from countersign.agents.failures import DraftingFailed
from countersign.agents.kind import AskUser, DraftingContext, Guarded
from countersign.domain.errors import InputRefused
from countersign.domain.question import MAX_CALLS, NOT_EXECUTED, Answer, PendingCall
from countersign.domain.strict_json import check_text
from countersign.domain.values import Value, first_problem

MAX_ID = 200
MAX_DESCRIPTION = 8_000
REFUSED = "refused: nothing was executed, since no person allowed exactly this call; do not try it again"
"""What a guarded tool says that was reached without a person's word."""

Runtime = ToolRuntime[DraftingContext[Any]]
ToolResult = ToolMessage | Command[Any]


@tool
async def ask_user(question: str, runtime: Runtime) -> str:  # noqa: ARG001  # people answer, not this
    """Ask people what only they can know, in 1 to 2000 characters; the work waits until somebody has answered."""
    return "refused: nobody was asked; a question has 1 to 2000 characters"


ASK_USER: Guarded[Any] = Guarded(
    form=AskUser,
    decisions=("respond",),
    description="The agent asks what only people can know. Your words are handed to it as they are.",
)
"""How a call of `ask_user` is answered: in words."""


def guarding(guarded: Mapping[str, Guarded[Any]]) -> tuple[AgentMiddleware[Any, Any, Any], ...]:
    """The middleware that makes calls of these tools wait for people, outermost first."""
    pausing: HumanInTheLoopMiddleware[Any, Any, Any] = HumanInTheLoopMiddleware(
        {name: _config(each) for name, each in guarded.items()}, interrupt_mode="per_call"
    )
    return (_Gate(guarded), pausing)


def waiting(state: StateSnapshot, guarded: Mapping[str, Guarded[Any]]) -> dict[str, PendingCall]:
    """The calls that wait for people, by the id of their pause, in the order in which the model made them.

    Raises:
        DraftingFailed: the agent waits for something else than a person's word on one of its calls.
    """
    order = [str(call["id"]) for call in _calls(state.values.get("messages", ()))]
    pauses = {pause.id: _pending(pause, guarded) for task in state.tasks for pause in task.interrupts}
    return dict(sorted(pauses.items(), key=lambda each: order.index(each[1].id) if each[1].id in order else -1))


def is_settled(tasks: Sequence[PregelTask]) -> bool:
    """Whether each call of the agent's step is done or waits; else a kill came between, and the others go on first."""
    return all(task.interrupts or task.result is not None for task in tasks)


def answered(
    calls: Mapping[str, PendingCall], answers: Mapping[str, Answer], guarded: Mapping[str, Guarded[Any]]
) -> Command[Any]:
    """What makes the agent go on: for each pause what was answered to its call.

    Raises:
        DraftingFailed: an answer is of a kind that its call does not take; nothing of it is carried out.
    """
    return Command(
        resume={pause: _decision(call, answers[call.id], guarded[call.tool].form) for pause, call in calls.items()}
    )


def person_allowed(runtime: Runtime, args: Mapping[str, JsonValue]) -> bool | None:
    """What people said of the very call that a tool's body is in, with the very arguments that it is about to use.

    True: it was approved as the model made it, or changed to exactly this. False: they said something else. None: they
    were never asked about it.
    """
    call = runtime.tool_call_id
    made = [each for each in _calls(runtime.state["messages"]) if each["id"] == call]
    answer = _answer_to(runtime.context, made[0]) if len(made) == 1 else None
    if answer is None:
        return None
    allowed = {"approve": made[0]["args"], "edit": answer.args}.get(answer.decision)
    return allowed == dict(args)


def context_of(request: ToolCallRequest) -> DraftingContext[Any]:
    """What the run of the agent works on that makes a call of a tool."""
    return cast("DraftingContext[Any]", request.runtime.context)


class _Gate(AgentMiddleware[Any, DraftingContext[Any], Any]):
    """Around every tool call, before it can pause: refuses what must not be brought before people."""

    def __init__(self, guarded: Mapping[str, Guarded[Any]]) -> None:
        super().__init__()
        self._guarded = guarded

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Refuse by an answer to the model; nothing is executed, and nobody asked."""
        reason = self._refusal(request)
        if not reason:
            return await handler(request)
        call = request.tool_call
        return ToolMessage(f"not executed: {reason}", name=call["name"], tool_call_id=call["id"] or "", status="error")

    def _refusal(self, request: ToolCallRequest) -> str:
        call, context = request.tool_call, context_of(request)
        guard = self._guarded.get(call["name"])
        if guard is None or not _waits(guard, context, call):
            return ""
        name, calls = call["id"] or "", _calls(request.state["messages"])
        try:
            check_text([name, call["args"]], "the call")
        except InputRefused as refused:
            return refused.message
        if not 1 <= len(name) <= MAX_ID or [each["id"] for each in calls].count(name) != 1:
            return "the call needs an id of its own, which no other call of this work has; make it again"
        if _answer_to(context, call) is not None:
            return ""
        if not context.may_ask:
            return "people have been asked as often as they may be; go on without, and say what is missing"
        if name not in self._brought(request.state["messages"], context):
            return f"{MAX_CALLS} calls at most wait for people at once; make this one again later"
        return ""

    def _brought(self, messages: Sequence[AnyMessage], context: DraftingContext[Any]) -> Sequence[str]:
        """The ids of the calls of the last answer that may be brought before people together."""
        calls = next((each.tool_calls for each in reversed(messages) if isinstance(each, AIMessage)), [])
        guards = ((call, self._guarded.get(call["name"])) for call in calls)
        return [call["id"] or "" for call, guard in guards if guard and _waits(guard, context, call)][:MAX_CALLS]


def _config(guard: Guarded[Any]) -> InterruptOnConfig:
    return InterruptOnConfig(
        allowed_decisions=list(guard.decisions),
        description=_describing(guard),
        when=lambda request: _waits(guard, context_of(request), request.tool_call),
    )


def _describing(guard: Guarded[Any]) -> Any:
    said = guard.description
    if isinstance(said, str):
        return said

    def describe(call: ToolCall, state: object, runtime: Any) -> str:  # noqa: ARG001  # not by the conversation
        return said(runtime.context.material, guard.form.model_validate(call["args"]))[:MAX_DESCRIPTION]

    return describe


def _waits(guard: Guarded[Any], context: DraftingContext[Any], call: ToolCall) -> bool:
    """Whether a call waits for people; one that they have answered does so for good.

    By its own arguments and by the material, never by what the conversation says. A call that has not the form is left
    to the tool, which refuses it.
    """
    args = _read(guard.form, call["args"])
    if isinstance(args, str):
        return False
    return _answer_to(context, call) is not None or guard.when(context.material, args)


def _answer_to(context: DraftingContext[Any], call: ToolCall) -> Answer | None:
    return context.answer_to(call["id"] or "", call["name"], call["args"])


def _read(form: type[Value], args: object) -> Value | str:
    """The arguments by their form, or what is wrong with them."""
    try:
        return form.model_validate(args)
    except ValidationError as error:
        return first_problem(error)


def _calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    return [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]


def _pending(pause: Interrupt, guarded: Mapping[str, Guarded[Any]]) -> PendingCall:
    asked = pause.value
    known = isinstance(asked, dict) and asked.get("type") == "tool_approval" and asked.get("name") in guarded
    if not known:
        raise DraftingFailed("the agent waits for something that is no call of a guarded tool; it cannot go on")
    return PendingCall(
        id=asked["tool_call_id"],
        tool=asked["name"],
        args=asked["args"],
        description=asked["description"],
        decisions=guarded[asked["name"]].decisions,
    )


def _decision(call: PendingCall, answer: Answer, form: type[Value]) -> dict[str, Any]:
    """An answer in the middleware's words; a person's own are a JSON string, so that they stay data."""
    if answer.decision not in call.decisions:
        raise DraftingFailed(
            f"call {call.id!r} of {call.tool} was answered by {answer.decision}, which it does not take; "
            f"allowed: {', '.join(call.decisions)}"
        )
    words = json.dumps(answer.message, ensure_ascii=False)
    if answer.decision == "approve":
        return {"type": "approve"}
    if answer.decision == "respond":
        return {"type": "respond", "message": words}
    if answer.decision == "reject":
        return {"type": "reject", "message": words if answer.message else NOT_EXECUTED}
    problem = _read(form, answer.args)
    if isinstance(problem, str):
        return {"type": "reject", "message": f"a person changed the call to one that cannot be made: {problem}"}
    return {"type": "edit", "edited_action": {"name": call.tool, "args": answer.args}}
