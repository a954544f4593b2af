"""What makes a drafting agent the agent of one case: what it is told, which tools it has, and what it delivers.

Apart from the agent itself, which is the same for every case; a new case brings one more of these, in its own file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from langchain_core.tools import BaseTool
from pydantic import Field, JsonValue, SkipValidation

from countersign.agents.models import ChatModel
from countersign.agents.rule_model import Rule
from countersign.domain.draft import DraftObject
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.question import Answer, AnsweredCall, AnswerKind
from countersign.domain.values import Value
from countersign.ports import Watching

M = TypeVar("M")


@dataclass(frozen=True)
class DraftingContext(Generic[M]):
    """What one drafting run works on; it comes with the run, so that one compiled agent serves every draft."""

    material: Annotated[M, SkipValidation]
    """Not looked into by LangChain, which would take a protocol in it for a class."""
    watching: Annotated[Watching, SkipValidation]
    """Told of each model call and each tool call; the call is not made where it raises."""
    answers: Mapping[str, AnsweredCall]
    """All that people answered in this thread, by the id of the call; of another call of that id it says nothing."""
    may_ask: bool
    """Whether anything more may be brought before people."""

    def answer_to(self, id: str, tool: str, args: Mapping[str, JsonValue]) -> Answer | None:
        """What people said of this very call, or nothing."""
        said = self.answers.get(id)
        return said.answer if said is not None and said.is_about(tool, args) else None


class AskUser(Value):
    """What a question to people holds."""

    question: Annotated[str, Field(min_length=1, max_length=2_000)]


def always(material: Any, args: Any) -> bool:  # noqa: ARG001  # whatever it is about
    """Every call waits."""
    return True


@dataclass(frozen=True)
class Guarded(Generic[M]):
    """A tool whose calls wait for people, all of them or some."""

    form: type[Value]
    """Its arguments, strictly; those of a person who changes a call as well. A call of another form never waits, and
    the tool's body refuses it."""
    decisions: tuple[AnswerKind, ...]
    """What people may answer."""
    description: str | Callable[[M, Any], str]
    """Why they are asked: the same for every call, or from the material and the call's arguments in their form."""
    when: Callable[[M, Any], bool] = always
    """Whether a call waits, from the material and its arguments in their form: trusted things that do not change."""


@dataclass(frozen=True)
class AgentKind(Generic[M]):
    """The agent of one case."""

    form: type[Value]
    """What it delivers: the form of the case's drafts. It does so by calling a tool of the form's own name."""
    system_prompt: str
    tools: tuple[BaseTool, ...]
    """The whole of what it can make happen besides (G39); all of them only read the material."""
    assignment: Callable[[M, bool], dict[str, JsonValue]]
    """From the material, and whether it is to write anew, to what it is asked; texts of people and data as values."""
    guarded: Mapping[str, Guarded[M]]
    """By name, those of its tools whose calls can wait for people (agents.asking)."""
    nudge: str
    """What it is told when it stops without having delivered."""
    offline: ChatModel
    """Drafts by rules, through the same tools, where no provider is configured."""
    rules: Mapping[str, Rule]
    """By criterion of the case's rubric: how it is graded where no provider is configured."""

    def first_message(self, material: M, earlier: DraftObject | None, feedback: Sequence[str]) -> str:
        """The first message of a thread: what is asked, and for a later version what was wrong with the one before.

        Texts of people and data reach the model only as JSON strings, so that they stay data.
        """
        content = {
            **self.assignment(material, earlier is not None),
            "earlier_draft": earlier,
            "feedback": list(feedback),
        }
        return json.dumps(content, ensure_ascii=False)


def all_rules(kinds: Iterable[AgentKind[Any]]) -> dict[str, Rule]:
    """The rules of all agents by criterion, for the one model that grades them all.

    Raises:
        ConfigurationRefused: two agents have a rule for the same criterion, and one would be graded by the other's.
    """
    rules: dict[str, Rule] = {}
    for kind in kinds:
        for criterion, rule in kind.rules.items():
            if criterion in rules:
                raise ConfigurationRefused(
                    f"criterion {criterion!r}: two agents have a rule for it, {kind.form.__name__}'s the second; name"
                    " one of them otherwise, in its rubric and its rules"
                )
            rules[criterion] = rule
    return rules
