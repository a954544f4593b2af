"""Who is who in the gateway tests' tenant, and the policies in force there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from countersign.domain.administration import ADMINISTRATION, SIDE_EFFECT, TOOLS
from countersign.domain.control import Takeover
from countersign.domain.directory import ADMIN, Limit
from countersign.domain.money import amount
from countersign.domain.need import DecisionKind, Need
from countersign.domain.policy import AmountCondition, Editing, Policy, Rule, Terms, Window

PERSONS = {
    "rita": {"requester", "reviewer", "chief"}, "bob": {"reviewer"}, "ben": {"reviewer"}, "eve": {"clerk"},
    "cora": {"chief"}, "carl": {"chief"}, "ann": {"admin"}, "ada": {"admin"}, "abe": {"admin"},
}  # fmt: skip
"""Rita could review, too: only the rule that a requester may not approve stops her."""
LIMITS = {
    "bob": Limit(each=amount("1000.00 EUR"), total=amount("1500.00 EUR"), within="24h"),
    "ben": Limit(each=amount("5000.00 EUR")),
}
A_DAY = Window(within="24h")


def need(role: str = "reviewer", approvals: int = 1, decisions: Sequence[DecisionKind] = ("approve", "reject")) -> Need:
    """So many of a role, who then have three days, and the gateway an hour."""
    return Need(
        role=role, approvals=approvals, decisions=tuple(decisions), decide_within="72h", execute_within="1h"
    )  # fmt: skip


def policy(
    version: int = 1,
    *,
    approvals: int = 1,
    role: str = "reviewer",
    internal: str = "by_rule",
    decisions: Sequence[DecisionKind] = ("approve", "reject"),
    **more: Any,
) -> Policy:
    """Internal reports by rule (or, with `internal="people"`, not), external ones by `approvals` persons."""
    people = need(role, approvals, decisions)
    by_rule = Rule(id="internal", when={"side_effect": "internal_publication"}, grant="by_rule")
    by_people = Rule(id="internal", when={"side_effect": "internal_publication"}, need=people)
    external = Rule(id="external", when={"side_effect": "external_publication"}, need=people)
    rules = (by_rule if internal == "by_rule" else by_people, external)
    return Policy(policy="report", version=version, rules=rules, **more)


def laddered(version: int = 2, *, approvals: int = 1, **tier: Any) -> Policy:
    """After a day and a half a chief may decide too, unless `tier` says otherwise."""
    asks = {"after": "36h", "role": "chief", "decisions": ["approve", "reject"], **tier}
    asked = Need.model_validate({**need(approvals=approvals).model_dump(), "ladder": {"tiers": [asks]}})
    rule = Rule(id="external", when={"side_effect": "external_publication"}, need=asked)
    return Policy(policy="report", version=version, rules=(rule,))


def takeable(version: int = 2) -> Policy:
    """One reviewer; a chief may take over."""
    return policy(version, takeover=Takeover(role="chief"))


def editable(version: int = 2, *, approvals: int = 1, counts: str = "where_one_suffices") -> Policy:
    """Titles may be edited."""
    terms = Terms(editing=Editing.model_validate({"fields": ["title"], "raises_risk": [], "counts": counts}))
    return policy(version, approvals=approvals, decisions=("approve", "edit", "reject"), terms=terms)


def breakable(version: int = 2) -> Policy:
    """Two reviewers, or in an emergency two chiefs."""
    terms = Terms.model_validate({"break_glass": {"role": "chief", "approvals": 2}})
    return policy(version, approvals=2, terms=terms)


def by_amount(version: int = 2) -> Policy:
    """Up to 100 EUR a day one reviewer, beyond that two."""
    small = AmountCondition(up_to=amount("100.00 EUR"), window=A_DAY)
    large = AmountCondition(over=amount("100.00 EUR"), window=A_DAY)
    when: Any = {"side_effect": "external_publication"}
    rules = (
        Rule(id="small", when=when, amount=small, need=need()),
        Rule(id="large", when=when, amount=large, need=need(approvals=2)),
    )
    return Policy(policy="report", version=version, rules=rules)


def administration(version: int = 1, *, approvals: int = 2) -> Policy:
    """Two admins change who may do what; with fewer it is no policy that the ledger would take."""
    rule = Rule(
        id="two-admins",
        when={"tool": tuple(TOOLS.values()), "side_effect": SIDE_EFFECT},
        need=need(ADMIN, approvals),
    )
    return Policy(policy=ADMINISTRATION, version=version, asked_by=ADMIN, rules=(rule,))
