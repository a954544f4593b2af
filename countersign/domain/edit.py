"""A reviewer's edit: what may be changed, when it raises the risk, and whether it counts as an approval. Pure."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from countersign.domain.action import Action
from countersign.domain.need import asks_two_persons
from countersign.domain.policy import Answer, Assessment
from countersign.domain.proposal import Proposal

# What no argument may lead to another of.
_KEPT = ("tenant", "operation", "tool", "environment")


MAX_VERSIONS = 20
"""How often one action is put before people; each edit asks everybody anew, with a new deadline."""


class Edit(NamedTuple):
    """What an edit would make of a proposal, worked out before it is ruled on."""

    action: Action
    """The edited action, rebuilt from its arguments by the case; not what the message says of it."""
    assessment: Assessment
    """What the policy in force says about it."""
    problem: str = ""
    """Why the case or its checks refuse it; empty if they do not."""


def changed_arguments(before: Action, after: Action) -> tuple[str, ...]:
    """Names of the arguments that differ, added and removed ones too, by name."""
    names = sorted(before.args.keys() | after.args.keys())
    return tuple(name for name in names if (name in before.args, before.args.get(name))
                 != (name in after.args, after.args.get(name)))  # fmt: skip


def refusal(before: Proposal, edit: Edit) -> str:
    """Why `before` may not be edited so, in a sentence; empty if it may."""
    editing = before.terms.editing
    if editing is None:
        return "the policy allows no edit"
    if before.approval_version >= MAX_VERSIONS:
        return f"it was put before people {MAX_VERSIONS} times; approve or reject it as it is"
    changed = changed_arguments(before.action, edit.action)
    forbidden = [name for name in changed if name not in editing.fields]
    if forbidden:
        return f"{', '.join(forbidden)[:120]} may not be edited; allowed: {', '.join(editing.fields)}"
    if edit.problem:
        return edit.problem
    if any(getattr(before.action, name) != getattr(edit.action, name) for name in _KEPT):
        return f"an edit keeps {', '.join(_KEPT)}"
    if edit.action.hash() == before.action_hash:
        return "nothing was changed"
    if edit.assessment.answer == Answer.DENIED:
        return "no rule of the policy allows the edited action"
    return ""


def risks_raised(before: Proposal, action: Action, assessment: Assessment) -> tuple[str, ...]:
    """What makes the edited action riskier than the proposed one: facts that the policy names, money, further needs."""
    editing = before.terms.editing
    facts, then = action.facts(), before.action.facts()
    raised: list[str] = [name for name in (editing.raises_risk if editing else ()) if facts[name] != then[name]]
    if _more_money(before.action, action):
        raised.append("amount")
    if Counter(assessment.needs) - Counter(before.assessment.needs):
        raised.append("needs")
    return tuple(raised)


def edit_counts(before: Proposal, editor: str, action: Action, assessment: Assessment) -> bool:
    """Whether the edit is itself one approval of the edited action, by the word of the policy that `before` pins.

    Never by somebody who edited it before: an edit that did not count would be made to count by a second one.
    """
    editing = before.terms.editing
    if editing is None or editing.counts == "never" or editor in before.authors:
        return False
    if risks_raised(before, action, assessment):
        return False
    return editing.counts == "unless_risk_raised" or not asks_two_persons(assessment.needs)


def _more_money(before: Action, after: Action) -> bool:
    if after.amount is None:
        return False
    if before.amount is None or before.amount.currency != after.amount.currency:
        return True
    return after.amount.minor > before.amount.minor
