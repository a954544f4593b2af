"""Why a policy answers as it does: example actions, and each rule with the facts on which it applies or not.

Apart from the commands that show it: what counts is `domain.policy`; this only tells what was compared there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, get_args

from pydantic import TypeAdapter

from countersign.domain.action import Action, FactName
from countersign.domain.canonical import sha256_hex
from countersign.domain.money import Amount
from countersign.domain.need import Need
from countersign.domain.policy import AmountCondition, Answer, Assessment, Policy, Rule, Spent, assess
from countersign.domain.values import Value

NOTHING = sha256_hex(b"")
ANSWERS = {
    Answer.DENIED: "denied: no rule applies, so nobody is asked",
    Answer.BY_RULE: "granted by rule: nobody is asked",
    Answer.PEOPLE: "people are asked; all of this must be met",
}


class Reason(NamedTuple):
    """One rule and what it says about an action."""

    rule: str
    applies: bool
    because: str
    """The facts and amounts on which it applies, or the ones that do not fit."""


class Answered(NamedTuple):
    """An action and what a policy says about it."""

    facts: Mapping[str, str]
    amount: Amount | None
    assessment: Assessment
    reasons: list[Reason]


class Example(Value):
    """What is known of an action that nobody proposed; a fact that is left out fits no rule that looks at it."""

    tool: str = ""
    tool_version: str = ""
    channel: str = ""
    target: str = ""
    side_effect: str = ""
    scope: str = ""
    environment: str = ""
    amount: Amount | None = None

    def action(self) -> Action:
        """The action with what rules do not look at made up."""
        return Action(
            tenant="example", operation="example", args={}, content_hash=NOTHING, evidence_hash=NOTHING,
            policy_version="", **dict(self),
        )  # fmt: skip


def example_for(rule: Rule) -> Example:
    """The plainest action that fits a rule: the first of each fact's values, and an amount within its bounds."""
    facts: dict[FactName, str] = {name: rule.allowed(name)[0] for name in rule.when}
    return TypeAdapter(Example).validate_python({**facts, "amount": _fitting(rule.amount)})


def spent_in_each(policy: Policy, minor: int) -> tuple[Spent, ...]:
    """The same earlier amount in each of the policy's windows."""
    return tuple(Spent(window=window, minor=minor) for window in policy.windows())


def answered(policy: Policy, action: Action, spent: Iterable[Spent]) -> Answered:
    """What `policy` says about `action`, with a reason for each of its rules."""
    known = tuple(spent)
    facts = {name: value for name, value in action.facts().items() if value}
    reasons = [_reason(rule, action, known) for rule in policy.rules]
    return Answered(facts, action.amount, assess(policy, action, known), reasons)


def asked_for(need: Need) -> str:
    """A need in words: `1 of role reviewer, who can approve, edit, reject, within 72h`, with its ladder."""
    distinct = ", nobody of whom counts for another need" if need.distinct else ""
    can = ", ".join(need.decisions)
    return f"{need}, who can {can}, within {need.decide_within}{distinct}{''.join(_steps(need))}"


def _steps(need: Need) -> Iterator[str]:
    ladder = need.ladder
    if ladder.remind:
        yield f"; reminded after {', '.join(ladder.remind)}"
    for tier in ladder.tiers:
        extends = f", who have {tier.extends} at the least" if tier.extends is not None else ""
        yield f"; after {tier.after} role {tier.role} too, who can {', '.join(tier.decisions)}{extends}"
    if ladder.then == "freeze":
        yield "; held at the deadline, until somebody takes it over or ends it"


def in_words(reason: Reason) -> str:
    """`two-admins applies: tool is change_policy, ...`."""
    return f"{reason.rule} {'applies' if reason.applies else 'does not apply'}: {reason.because}"


def _fitting(condition: AmountCondition | None) -> Amount | None:
    if condition is None:
        return None
    if condition.up_to is not None:
        return condition.up_to
    least = condition.over.minor + 1 if condition.over is not None else 0
    return Amount(currency=condition.currency, minor=least)


def _reason(rule: Rule, action: Action, spent: tuple[Spent, ...]) -> Reason:
    # In the action's order: a policy that was stored has its facts in another than its file.
    facts = {name: value for name, value in action.facts().items() if name in rule.when}
    if rule.applies(action, spent):
        matched = [f"{name} is {value}" for name, value in facts.items()]
        return Reason(rule.id, True, ", ".join([*matched, *_compared(rule.amount, action, spent, "is")]))
    missed = [
        f"{name} is {facts[name] or 'not given'}, not {' or '.join(rule.allowed(name))}"
        for name in get_args(FactName)
        if name in facts and facts[name] not in rule.allowed(name)
    ]
    return Reason(rule.id, False, ", ".join(missed or _compared(rule.amount, action, spent, "is not")))


def _compared(condition: AmountCondition | None, action: Action, spent: tuple[Spent, ...], verb: str) -> list[str]:
    """The comparison of money, where a rule makes one: `amount 60.00 EUR is over 50.00 EUR`."""
    if condition is None:
        return []
    bounds = [f"over {condition.over}" if condition.over else "", f"up to {condition.up_to}" if condition.up_to else ""]
    window = condition.window
    before = next((Amount(currency=condition.currency, minor=one.minor) for one in spent if one.window == window), None)
    earlier = f", with {before} before per {window.per} within {window.within}," if before and window else ""
    return [f"amount {action.amount or '(none)'}{earlier} {verb} {' and '.join(filter(None, bounds))}"]
