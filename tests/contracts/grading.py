"""One agent whose work a RubricMiddleware grades, with a script for the one and another for the other.

Apart from the tests, as `scripted.py` is. Nothing of ours is in here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from deepagents.middleware.rubric import RubricEvaluation, RubricMiddleware
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph

from tests.contracts.scripted import THREAD, ScriptedModel, Turn

RUBRIC = "- first: The report names its source.\n- second: The report states a limitation."


@dataclass
class Graded:
    """A conversation that ends when the grader is content, or the middleware has had enough."""

    grades: Sequence[Turn]
    drafts: Sequence[Turn] = tuple(AIMessage(f"draft {number}") for number in range(1, 25))
    more: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the middleware."""
    seen: list[RubricEvaluation] = field(default_factory=list)
    """What its callback was told."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """What it sent to whoever watches."""

    def __post_init__(self) -> None:
        self.drafter = ScriptedModel(turns=list(self.drafts))
        self.grader = ScriptedModel(turns=list(self.grades))
        middleware: RubricMiddleware[Any, Any] = RubricMiddleware(
            **{"model": self.grader, "on_evaluation": self.seen.append, **self.more}
        )
        self.agent: CompiledStateGraph[Any, Any, Any, Any] = create_agent(
            self.drafter, tools=[], middleware=[middleware], checkpointer=InMemorySaver()
        )

    async def run(self, rubric: str | None = RUBRIC, **entered: Any) -> Graded:
        """Let it go from a request to the end of the grading."""
        state: dict[str, Any] = {"messages": [("user", "Write the report.")], **entered}
        if rubric is not None:
            state["rubric"] = rubric
        async for event in self.agent.astream(state, THREAD, stream_mode="custom"):
            self.events.append(event)
        return self

    @property
    def results(self) -> list[str]:
        """The verdict of each evaluation."""
        return [evaluation["result"] for evaluation in self.seen]

    @property
    def status(self) -> str | None:
        """The last verdict, as the private state has it."""
        return str(found) if (found := self.state.get("_rubric_status")) else None

    @property
    def state(self) -> dict[str, Any]:
        """All values of the stored thread, private ones too."""
        return dict(self.agent.get_state(THREAD).values)

    @property
    def messages(self) -> list[BaseMessage]:
        """What the thread holds."""
        return list(self.state["messages"])

    def prompt(self, call: int = 0) -> str:
        """The message that the grader got in one of its calls."""
        return str(self.grader.seen[call][-1].content)
