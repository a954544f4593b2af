"""Policy: which actions are granted by rule, which need which people; what no rule names is denied (G01)."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from countersign.domain.action import Action, FactName
from countersign.domain.canonical import digest
from countersign.domain.control import Takeover
from countersign.domain.directory import REQUESTER, Role
from countersign.domain.durations import Duration, duration
from countersign.domain.errors import Conflict, InputRefused
from countersign.domain.escalation import Reason, Route
from countersign.domain.identity import Name
from countersign.domain.lookalikes import bare_name
from countersign.domain.model_call import Budgets
from countersign.domain.money import WrittenAmount
from countersign.domain.need import Need
from countersign.domain.question import Answering
from countersign.domain.settlement import Settling
from countersign.domain.values import Value

BY_RULE_EXECUTE_WITHIN = timedelta(hours=1)
"""How long a grant by rule may wait for its execution; it is as short-lived as one by people."""

Fact = Annotated[str, Field(min_length=1)]


class Window(Value):
    """Over what earlier amounts are added to an action's own."""

    within: Duration
    per: Literal["tenant", "target"] = "tenant"


class AmountCondition(Value):
    """When a rule applies by money. Splitting does not help where `window` is given (G08)."""

    over: WrittenAmount | None = None
    """Strictly more than this."""
    up_to: WrittenAmount | None = None
    """At most this."""
    window: Window | None = None
    """What is compared: the action's amount with all of the same tool and currency in the window; else its own."""

    @model_validator(mode="after")
    def _of_one_currency(self) -> AmountCondition:
        given = [bound for bound in (self.over, self.up_to) if bound is not None]
        if not given or len({bound.currency for bound in given}) > 1:
            raise ValueError("give 'over', 'up_to' or both, in one currency")
        return self

    @property
    def currency(self) -> str:
        """The one currency that it is about."""
        bound = self.over or self.up_to
        return bound.currency if bound is not None else ""

    def fits(self, action: Action, spent: Iterable[Spent]) -> bool:
        """Whether the action's amount, with what was spent before, lies within the bounds; no amount never does."""
        if action.amount is None or action.amount.currency != self.currency:
            return False
        total = action.amount.minor + (_spent_in(self.window, spent) if self.window is not None else 0)
        return (self.over is None or total > self.over.minor) and (self.up_to is None or total <= self.up_to.minor)


class Spent(Value):
    """What earlier actions of the tenant, by the same tool and in the same currency, come to in a window."""

    window: Window
    minor: Annotated[int, Field(ge=0)]


class Rule(Value):
    """One line of a policy: when it applies, and what it grants or needs; exactly one of the two."""

    id: Name
    when: Annotated[
        dict[FactName, Fact | Annotated[tuple[Fact, ...], Field(strict=False, min_length=1)]], Field(min_length=1)
    ]
    """Facts of the action (tool, side_effect, environment, ...) and the value, or list of values, each must have."""
    amount: AmountCondition | None = None
    grant: Literal["by_rule"] | None = None
    need: Need | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Rule:
        if (self.grant is None) == (self.need is None):
            raise ValueError("give exactly one of 'grant' and 'need'")
        return self

    def allowed(self, fact: FactName) -> tuple[str, ...]:
        """The values that it lets a fact have; none where it does not look at it."""
        wanted = self.when.get(fact, ())
        return (wanted,) if isinstance(wanted, str) else wanted

    def shares_tool_with(self, other: Rule) -> bool:
        """Whether some tool can fall under both."""
        mine, its = self.allowed("tool"), other.allowed("tool")
        return not mine or not its or not set(mine).isdisjoint(its)

    def fits(self, facts: Mapping[str, str]) -> bool:
        """Whether every fact in `when` has an allowed value; an absent fact never matches."""
        return all(facts.get(name) in self.allowed(name) for name in self.when)

    def applies(self, action: Action, spent: Iterable[Spent]) -> bool:
        """Whether the action's facts and its amount fit."""
        return self.fits(action.facts()) and (self.amount is None or self.amount.fits(action, spent))


class Editing(Value):
    """What a reviewer may change before agreeing."""

    fields: Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
    """Names of the action's arguments."""
    raises_risk: Annotated[tuple[FactName, ...], Field(strict=False)]
    """Facts whose change counts as raising the risk; a larger amount and a further need of people always do. Never left
    out: a lost line would make the policy laxer in silence."""
    counts: Literal["never", "where_one_suffices", "unless_risk_raised"] = "where_one_suffices"
    """Whether the edit is itself one approval; never where it raises the risk. The middle one: not where a need asks
    for two persons."""


class AfterRejection(Value):
    """What becomes of an action that is proposed again after people rejected it."""

    within: Duration = "30d"
    then: Literal["flag", "refuse"] = "flag"


class BreakGlass(Value):
    """Who may, in an emergency, let a proposal through without the people whom its rules name (G11)."""

    role: Role
    approvals: Annotated[int, Field(ge=2, le=9)]


class Terms(Value):
    """What a policy says about handling proposals, whichever rules apply; pinned in each proposal."""

    editing: Editing | None = None
    """Nothing: a proposal cannot be edited."""
    requester_may_withdraw: bool = True
    after_rejection: AfterRejection = AfterRejection()
    break_glass: BreakGlass | None = None
    """Nothing: there is no way around the rules."""

    def after(self, before: Terms) -> Terms:
        """These terms for a version that follows one under `before`: the glass is not put in later (G12)."""
        return self if self.break_glass == before.break_glass else self.model_copy(update={"break_glass": None})


class Policy(Value):
    """A named, versioned list of rules."""

    policy: Name
    version: Annotated[int, Field(ge=1)]
    asked_by: Role = REQUESTER
    """The role that may ask for operations under this policy."""
    terms: Terms = Terms()
    takeover: Annotated[Takeover | None, Field(exclude_if=operator.not_)] = None
    """Who may take a run over from the agent; nothing: nobody. Not written down where it is nothing, nor are
    `settling`, `answering`, `budgets`, `sensitive_columns` and `escalations`: policies from before there were any keep
    their labels."""
    settling: Annotated[Settling | None, Field(exclude_if=operator.not_)] = None
    """Who may say what became of an effect whose outcome stays unknown; nothing: nobody, it is only looked up."""
    answering: Annotated[Answering | None, Field(exclude_if=operator.not_)] = None
    """Who answers the agent while it drafts; nothing: nobody, and whatever would ask is refused to it."""
    budgets: Annotated[Budgets | None, Field(exclude_if=operator.not_)] = None
    """What runs may spend on models; nothing: it is not limited."""
    sensitive_columns: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(strict=False, max_length=200)
    ] = Field(default=(), exclude_if=operator.not_)
    """Columns that are sensitive in every dataset of the case, declared so by the requester or not; a name stands for
    all that look like it (lookalikes.bare_name)."""
    escalations: dict[Annotated[Reason, Field(strict=False)], Route] = Field(
        default_factory=dict, exclude_if=operator.not_
    )
    """To whom a run that cannot go on is brought, by reason; one that has no route ends as failed."""
    rules: Annotated[tuple[Rule, ...], Field(strict=False, min_length=1)]

    @model_validator(mode="after")
    def _one_rule_per_id(self) -> Policy:
        if len({rule.id for rule in self.rules}) < len(self.rules):
            raise ValueError("each rule needs an id of its own; one stands twice under 'rules'")
        return self

    @model_validator(mode="after")
    def _columns_can_be_told(self) -> Policy:
        """A name that no column can have would protect nothing, in silence."""
        names: dict[str, str] = {}
        for column in self.sensitive_columns:
            bare = bare_name(column)
            if not bare:
                raise ValueError(f"sensitive column {column!r} has no letter or digit; write the name of a column")
            if bare in names:
                raise ValueError(
                    f"sensitive columns {names[bare]!r} and {column!r} look alike; one of them stands for both"
                )
            names[bare] = column
        return self

    @model_validator(mode="after")
    def _grants_name_amounts(self) -> Policy:
        """A grant without an amount, beside needs that look at money, would let any sum of another currency through."""
        about_money = [rule for rule in self.rules if rule.amount is not None]
        for rule in self.rules:
            if rule.grant is not None and rule.amount is None and any(map(rule.shares_tool_with, about_money)):
                raise ValueError(
                    f"rule {rule.id!r} grants any amount where other rules look at it; give it an 'amount'"
                )
        return self

    def label(self) -> str:
        """Name, version and hash: `report/1@sha256:...`; what an action and a proposal pin (G12)."""
        return f"{self.policy}/{self.version}@{digest(self.model_dump(mode='json'))}"

    def windows(self) -> tuple[Window, ...]:
        """All windows that its rules look at, each once."""
        found = (rule.amount.window for rule in self.rules if rule.amount is not None)
        return tuple(dict.fromkeys(window for window in found if window is not None))


def kept_under(label: str) -> str:
    """The hash under which a policy with this label is kept."""
    return label.rpartition("@")[2]


def read_pinned(label: str, kept: bytes) -> Policy:
    """The policy of that label, read from what is kept under its hash; Conflict where that is another one, or none."""
    try:
        policy = Policy.model_validate_json(kept)
    except ValidationError:
        raise Conflict(f"what is kept of policy {label[:120]} is no policy; restore a backup") from None
    if policy.label() != label:
        raise Conflict(f"what is kept of policy {label[:120]} is policy {policy.label()}; restore a backup")
    return policy


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

    def times(self, proposed_at: datetime) -> tuple[datetime, datetime]:
        """Until when people can decide, and until when a grant can be executed: the shortest of the needs' times."""
        if not self.needs:
            return proposed_at + BY_RULE_EXECUTE_WITHIN, proposed_at + BY_RULE_EXECUTE_WITHIN
        deadline = proposed_at + min(need.open_for() for need in self.needs)
        return deadline, deadline + min(duration(need.execute_within) for need in self.needs)

    def and_also(self, needs: Iterable[Need]) -> Assessment:
        """The same with further needs, which an earlier proposal of the action had: it only gets stricter (G12)."""
        # Counted, not compared: of two equal distinct needs each wants persons of its own.
        more = tuple((Counter(needs) - Counter(self.needs)).elements())
        if not more or self.answer == Answer.DENIED:
            return self
        return Assessment(answer=Answer.PEOPLE, rules=self.rules, needs=self.needs + more)


def assess(policy: Policy, action: Action, spent: Iterable[Spent] = ()) -> Assessment:
    """What `policy` says about `action`; needs of people always outweigh a grant by rule.

    Args:
        policy: the rules.
        action: what would be done.
        spent: earlier amounts in each of the policy's windows; one that lacks is an InputRefused, never nought.
    """
    applying = [rule for rule in policy.rules if rule.applies(action, tuple(spent))]
    needs = tuple(rule.need for rule in applying if rule.need is not None)
    granted = Answer.PEOPLE if needs else Answer.BY_RULE
    answer = granted if applying else Answer.DENIED
    return Assessment(answer=answer, rules=tuple(rule.id for rule in applying), needs=needs)


def _spent_in(window: Window, spent: Iterable[Spent]) -> int:
    for one in spent:
        if one.window == window:
            return one.minor
    raise InputRefused(
        f"what was spent within {window.within} per {window.per} is not known, so nothing can be allowed"
    )
