"""Policy: which actions are granted by rule, which need which people; what no rule names is denied (G01)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from countersign.domain.action import Action, FactName
from countersign.domain.canonical import digest
from countersign.domain.directory import Person, Role
from countersign.domain.errors import InputRefused
from countersign.domain.identity import Name
from countersign.domain.values import Value

DecisionKind = Literal["approve", "reject"]

_DURATION = r"^[1-9][0-9]{0,4}(s|m|h|d)$"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
Duration = Annotated[str, Field(pattern=_DURATION)]
"""Elapsed time such as `90s`, `15m`, `72h`, `7d`."""


def duration(text: str) -> timedelta:
    """The elapsed time a `Duration` stands for."""
    return timedelta(seconds=int(text[:-1]) * _SECONDS[text[-1]])


Fact = Annotated[str, Field(min_length=1)]


class Need(Value):
    """Who must agree before the action may happen."""

    role: Role
    approvals: Annotated[int, Field(ge=1, le=9)]
    """How many different persons of the role must approve."""
    decisions: Annotated[tuple[DecisionKind, ...], Field(strict=False, min_length=1)]
    decide_within: Duration
    """From proposal to deadline."""
    execute_within: Duration
    """From the deciding vote to the latest moment of execution (G25)."""


class Rule(Value):
    """One line of a policy: when it applies, and what it grants or needs; exactly one of the two."""

    id: Name
    when: Annotated[
        dict[FactName, Fact | Annotated[tuple[Fact, ...], Field(strict=False, min_length=1)]], Field(min_length=1)
    ]
    """Facts of the action (tool, side_effect, environment, ...) and the value, or list of values, each must have."""
    grant: Literal["by_rule"] | None = None
    need: Need | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Rule:
        if (self.grant is None) == (self.need is None):
            raise ValueError("give exactly one of 'grant' and 'need'")
        return self

    def applies(self, facts: Mapping[str, Any]) -> bool:
        """Whether every fact named in `when` has an allowed value; an absent fact never matches."""
        return all(
            facts.get(name) in ((wanted,) if isinstance(wanted, str) else wanted) for name, wanted in self.when.items()
        )


class Policy(Value):
    """A named, versioned list of rules."""

    policy: Name
    version: Annotated[int, Field(ge=1)]
    rules: Annotated[tuple[Rule, ...], Field(strict=False, min_length=1)]

    @model_validator(mode="after")
    def _one_rule_per_id(self) -> Policy:
        if len({rule.id for rule in self.rules}) < len(self.rules):
            raise ValueError("each rule needs an id of its own; one stands twice under 'rules'")
        return self

    def label(self) -> str:
        """Name, version and hash: `report/1@sha256:...`; what an action and a proposal pin (G12)."""
        return f"{self.policy}/{self.version}@{digest(self.model_dump(mode='json'))}"


class Answer(StrEnum):
    """What a policy says about an action."""

    DENIED = "denied"
    BY_RULE = "granted_by_rule"
    PEOPLE = "needs_people"


class Assessment(Value):
    """A policy's answer with its reasons."""

    answer: Answer
    rules: Annotated[tuple[str, ...], Field(strict=False)]
    """Ids of the rules that applied, in the policy's order."""
    needs: Annotated[tuple[Need, ...], Field(strict=False)]
    """All of them must be met (G05)."""


def assess(policy: Policy, action: Action) -> Assessment:
    """What `policy` says about `action`; needs of people always outweigh a grant by rule."""
    applying = [rule for rule in policy.rules if rule.applies(action.facts())]
    needs = tuple(rule.need for rule in applying if rule.need is not None)
    granted = Answer.PEOPLE if needs else Answer.BY_RULE
    answer = granted if applying else Answer.DENIED
    return Assessment(answer=answer, rules=tuple(rule.id for rule in applying), needs=needs)


def unmet(needs: tuple[Need, ...], approvers: Mapping[str, Person]) -> tuple[Need, ...]:
    """The needs that these approving persons, by id, do not meet yet.

    Raises:
        InputRefused: for no needs at all, which nobody can meet: "nothing is unmet" must not read as a grant (G01).
    """
    if not needs:
        raise InputRefused("no need of people applies, so no approval can meet it; only a rule can grant this")
    return tuple(need for need in needs if _count(need, approvers) < need.approvals)


def _count(need: Need, approvers: Mapping[str, Person]) -> int:
    return sum(1 for person in approvers.values() if person.active and need.role in person.roles)
