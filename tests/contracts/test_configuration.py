"""What `interrupt_on` and its surroundings may look like, and what each form means.

`countersign/agents/asking.py` makes these configurations of a case's own guards; what is silently accepted here is
checked there, since a guard that is not one must not start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolCallRequest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph

from countersign.agents import checkpoints
from tests.contracts.scripted import DONE, THREAD, Mode, ScriptedModel, Trial, call, schema_of

Agent = CompiledStateGraph[Any, Any, Any, Any]
ALL = {"approve", "edit", "reject", "respond"}
SALARY = ("read", {"column": "salary", "rows": 1})


@dataclass
class Trusted:
    """What the run says of itself, not the conversation."""

    guarded: bool = True
    case: str = "report"


def decisions_of(schema: Any) -> set[str]:
    return set(schema["discriminator"]["mapping"])


async def test_true_allows_all_four_decisions() -> None:
    (waiting,) = await Trial(interrupt_on={"read": True}).start()

    assert decisions_of(schema_of(waiting)) == ALL


@pytest.mark.parametrize("interrupt_on", [{"read": False}, {}, {"raed": True}], ids=["False", "absent", "misspelt"])
async def test_false_no_entry_and_the_name_of_no_tool_all_guard_nothing(interrupt_on: dict[str, bool]) -> None:
    """The misspelt one without a word: our adapter refuses a guard whose tool the agent does not have."""
    trial = Trial(interrupt_on=interrupt_on)

    assert await trial.start() == []
    assert trial.ran == [SALARY]


async def test_a_configuration_allows_what_it_lists() -> None:
    (waiting,) = await Trial(interrupt_on={"read": {"allowed_decisions": ["reject", "approve"]}}).start()

    assert decisions_of(schema_of(waiting)) == {"approve", "reject"}


async def test_a_single_allowed_decision_has_a_plain_schema() -> None:
    (waiting,) = await Trial(interrupt_on={"read": {"allowed_decisions": ["respond"]}}).start()

    assert schema_of(waiting)["properties"]["type"]["const"] == "respond"


@pytest.mark.parametrize("wrong", [{}, {"allowed_decisions": []}, {"allowed_decision": ["approve"]}])
def test_a_configuration_that_allows_nothing_is_refused_instead_of_dropped(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must be a non-empty list"):
        HumanInTheLoopMiddleware(interrupt_on={"read": wrong})


def test_another_interrupt_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="'batched' or 'per_call'"):
        HumanInTheLoopMiddleware(interrupt_on={}, interrupt_mode="each")  # type: ignore[arg-type]  # that is the test


def test_the_mode_is_batched_unless_it_is_named() -> None:
    """Planned to change in the next major release; our adapter names per_call."""
    assert HumanInTheLoopMiddleware(interrupt_on={}).interrupt_mode == "batched"


@pytest.mark.parametrize("mode", ["per_call", "batched"])
async def test_a_call_passes_by_where_when_is_false(mode: Mode) -> None:
    def when(request: ToolCallRequest) -> bool:
        return bool(request.tool_call["args"]["column"] == "salary")

    calls = [call("call-1", column="region"), call("call-2", column="salary")]
    trial = Trial(calls, {"read": {"allowed_decisions": ["approve"], "when": when}}, mode)
    (waiting,) = await trial.start()

    # Batched holds the whole turn back; per call, what needs nobody has run already.
    assert trial.ran == ([("read", {"column": "region", "rows": 1})] if mode == "per_call" else [])
    assert "salary" in str(waiting.value)
    assert "region" not in str(waiting.value)


async def test_when_sees_the_call_its_tool_and_the_trusted_context() -> None:
    seen: list[ToolCallRequest] = []

    def when(request: ToolCallRequest) -> bool:
        seen.append(request)
        return True

    trusted = Trusted()
    await Trial(interrupt_on={"read": {"allowed_decisions": ["approve"], "when": when}}, context=trusted).start()

    assert seen[0].tool_call == call("call-1")
    assert seen[0].tool is not None
    assert seen[0].tool.name == "read"
    assert seen[0].runtime.context is trusted


async def test_when_is_asked_again_at_the_answer_and_a_changed_mind_runs_what_a_person_rejected() -> None:
    """The trap: so our predicates depend on the call and the material alone, and the tool bodies look once more."""
    trusted = Trusted()
    guard = {"allowed_decisions": ["reject"], "when": lambda request: request.runtime.context.guarded}
    trial = Trial(interrupt_on={"read": guard}, context=trusted)
    (waiting,) = await trial.start()
    trusted.guarded = False
    await trial.answer({waiting.id: {"type": "reject"}})

    assert trial.ran == [SALARY]


async def test_a_static_description_is_shown_as_it_is() -> None:
    guard = {"allowed_decisions": ["approve"], "description": "Salaries are private."}
    (waiting,) = await Trial(interrupt_on={"read": guard}).start()

    assert waiting.value["description"] == "Salaries are private."


@pytest.mark.parametrize("mode", ["per_call", "batched"])
async def test_a_dynamic_description_is_made_of_call_state_and_runtime(mode: Mode) -> None:
    def description(tool_call: Any, state: Any, runtime: Any) -> str:
        return f"{tool_call['id']} after {len(state['messages'])} messages of a {runtime.context.case}"

    guard = {"allowed_decisions": ["approve"], "description": description}
    (waiting,) = await Trial(interrupt_on={"read": guard}, mode=mode, context=Trusted()).start()

    assert "call-1 after 2 messages of a report" in str(waiting.value)


async def test_the_prefix_of_a_plain_description_can_be_given() -> None:
    (waiting,) = await Trial(more={"description_prefix": "A person must look"}).start()

    assert waiting.value["description"].startswith("A person must look\n\nTool: read\n")


class Falsy(InMemorySaver):
    """A saver whose truth value is no, as one that counts its rows by `__len__` has when it is new."""

    def __bool__(self) -> bool:
        return False


@pytest.mark.parametrize("build", [create_agent, create_deep_agent])
def test_a_falsy_checkpointer_is_kept_by_whoever_builds_the_agent(build: Any) -> None:
    saver = Falsy()

    assert build(ScriptedModel(turns=[DONE]), tools=[], checkpointer=saver).checkpointer is saver


async def test_a_falsy_checkpointer_saves_nothing_when_the_agent_runs() -> None:
    """Otherwise than the builders: the loop asks for its truth. A pause is then reported and cannot be answered.

    So every saver of ours is truthy (below), and our adapter reads a pause from the stored thread, never from a result.
    """
    trial = Trial(saver=Falsy())
    (waiting,) = await trial.start()

    assert trial.waits_for() == []
    with pytest.raises(RuntimeError, match="without checkpointer"):
        await trial.answer({waiting.id: {"type": "approve"}})
    assert trial.ran == []


def test_none_of_our_savers_can_be_falsy() -> None:
    ours = [
        each
        for each in vars(checkpoints).values()
        if isinstance(each, type) and issubclass(each, BaseCheckpointSaver) and each.__module__ == checkpoints.__name__
    ]

    assert ours
    assert not [each for each in ours if hasattr(each, "__bool__") or hasattr(each, "__len__")]


async def test_without_a_checkpointer_a_pause_cannot_be_answered() -> None:
    trial = Trial(saver=None)
    (waiting,) = await trial.start()
    with pytest.raises(RuntimeError, match="without checkpointer"):
        await trial.answer({waiting.id: {"type": "approve"}})

    assert trial.ran == []


async def test_interrupt_on_of_a_deep_agent_is_batched() -> None:
    """So our agent is not built with it: it brings the middleware itself, in the mode that names its calls."""
    trial = Trial(saver=InMemorySaver())
    agent: Agent = create_deep_agent(
        ScriptedModel(turns=[AIMessage("", tool_calls=[call("call-1")])]), tools=trial.tools(),
        interrupt_on={"read": True}, checkpointer=InMemorySaver(),
    )  # fmt: skip
    result = await agent.ainvoke({"messages": [("user", "Go.")]}, THREAD)

    assert set(result["__interrupt__"][0].value) == {"action_requests", "review_configs"}


async def test_a_deep_agent_takes_the_middleware_in_its_own_mode() -> None:
    trial = Trial()
    guard: HumanInTheLoopMiddleware[Any, Any, Any] = HumanInTheLoopMiddleware({"read": True}, interrupt_mode="per_call")
    agent: Agent = create_deep_agent(
        ScriptedModel(turns=[AIMessage("", tool_calls=[call("call-1")])]), tools=trial.tools(),
        middleware=[guard], checkpointer=InMemorySaver(),
    )  # fmt: skip
    result = await agent.ainvoke({"messages": [("user", "Go.")]}, THREAD)

    assert result["__interrupt__"][0].value["tool_call_id"] == "call-1"
    assert trial.ran == []


async def test_a_sub_agent_is_not_guarded_by_the_middleware_of_its_agent() -> None:
    """Only `interrupt_on` is handed down. So our agent has no sub-agents: nothing in it is outside its guards."""
    trial = Trial()
    guard: HumanInTheLoopMiddleware[Any, Any, Any] = HumanInTheLoopMiddleware({"read": True}, interrupt_mode="per_call")
    delegate = call("call-1", "task", description="Read the salaries.", subagent_type="general-purpose")
    turns = [AIMessage("", tool_calls=[each]) for each in (delegate, call("call-2"))]
    agent: Agent = create_deep_agent(
        ScriptedModel(turns=[*turns, DONE, DONE]), tools=trial.tools(), middleware=[guard], checkpointer=InMemorySaver()
    )
    result = await agent.ainvoke({"messages": [("user", "Go.")]}, THREAD)

    assert "__interrupt__" not in result
    assert trial.ran == [SALARY]
