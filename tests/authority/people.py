"""Who is who in the tenants of the specification, and the policies that its rows name."""

from __future__ import annotations

from typing import Any

from countersign.domain.administration import ADMINISTRATION, SIDE_EFFECT
from countersign.domain.directory import ADMIN, Standing
from countersign.domain.policy import Policy

ROLES = {
    "rita": "requester reviewer lawyer officer lead", "nora": "requester",
    "bob": "reviewer", "carl": "reviewer", "dora": "reviewer", "lena": "lawyer", "lois": "lawyer reviewer",
    "olga": "officer", "otto": "officer", "omar": "operator", "ivan": "reviewer",
    "lea": "lead", "levi": "lead", "lara": "lead lawyer", "chad": "chief",
    "ada": "admin", "abe": "admin", "amy": "admin",
}  # fmt: skip
"""Rita asks; she has every role, so that nothing but having asked stops her. Ivan has left."""
LIMITS: dict[str, list[dict[str, str]]] = {
    "bob": [{"each": "1000.00 EUR", "total": "1500.00 EUR", "within": "24h"}, {"each": "10.00 USD"}],
    "carl": [{"each": "100.00 EUR"}],
    "dora": [{"each": "5000.00 EUR"}],
    "otto": [{"each": "100.00 EUR"}],
}


def standing(person: str) -> Standing:
    """What somebody may do at first."""
    return Standing.model_validate(
        {"roles": ROLES[person].split(), "active": person != "ivan", "limits": LIMITS.get(person, [])}
    )


def _rule(name: str, need: str, tool: str = "publish_report", **conditions: Any) -> dict[str, Any]:
    """`reviewer 2` needs two reviewers; `lawyer distinct` one lawyer who counts for nothing else that is distinct."""
    role, *more = need.split()
    people = {
        "role": role, "approvals": next((int(word) for word in more if word.isdigit()), 1),
        "distinct": "distinct" in more, "decisions": ["approve", "edit", "reject"],
        "decide_within": "72h", "execute_within": "1h",
    }  # fmt: skip
    return {"id": name, "when": {"tool": tool}, "need": people, **conditions}


def _policy(*needs: str, rules: list[dict[str, Any]] | None = None, **terms: Any) -> Policy:
    made = rules or [_rule(f"rule-{number}", need) for number, need in enumerate(needs)]
    return Policy.model_validate({"policy": "report", "version": 1, "rules": made, "terms": terms})


def _laddered(need: str, *tiers: dict[str, Any]) -> dict[str, Any]:
    rule = _rule(f"{need.split()[0]}s-first", need)
    return {**rule, "need": {**rule["need"], "ladder": {"tiers": tiers}}}


def _money(one_decides_up_to: str) -> Policy:
    bound = {"window": {"within": "24h"}}
    return _policy(
        rules=[
            _rule("small", "reviewer", "refund", amount={"up_to": one_decides_up_to, **bound}),
            _rule("large", "reviewer 2", "refund", amount={"over": one_decides_up_to, **bound}),
        ],
        editing={"fields": ["title", "amount"], "raises_risk": []},
    )


def _editing(counts: str = "where_one_suffices") -> dict[str, Any]:
    return {"fields": ["title", "channel"], "raises_risk": ["side_effect"], "counts": counts}


_APPROVE_ONLY = _rule("yes", "reviewer")
_APPROVE_ONLY["need"]["decisions"] = ["approve"]
_IN_PRESS = {**_rule("press", "reviewer"), "when": {"channel": "press"}}
_BY_RULE = {"when": {"tool": "publish_report"}, "grant": "by_rule"}
_INTERNAL = {"when": {"side_effect": "internal_publication"}, "grant": "by_rule"}
_GLASS = {"role": "officer", "approvals": 2}
_ANY = ["approve", "edit", "reject"]
_LEADS = {"after": "48h", "role": "lead", "decisions": _ANY}

POLICIES = {
    "one": _policy("reviewer"),
    "two": _policy("reviewer 2"),
    "three": _policy("reviewer 3"),
    "lawyer": _policy("lawyer"),
    "both": _policy("reviewer", "lawyer"),
    "both-distinct": _policy("reviewer distinct", "lawyer distinct"),
    "twice-distinct": _policy("reviewer distinct", "reviewer distinct"),
    "two-and-lawyer": _policy("reviewer 2", "lawyer"),
    "approve-only": _policy(rules=[_APPROVE_ONLY]),
    "by-rule": _policy(rules=[{"id": "all", **_BY_RULE}]),
    "rule-and-people": _policy(rules=[{"id": "all", **_BY_RULE}, _rule("also", "reviewer")]),
    "other-tool": _policy(rules=[{"id": "other", "when": {"tool": "refund"}, "grant": "by_rule"}]),
    "internal-only": _policy(rules=[{"id": "internal", **_INTERNAL}]),
    "edit": _policy("reviewer", editing=_editing()),
    "edit-never-counts": _policy("reviewer", editing=_editing("never")),
    "edit-two": _policy("reviewer 2", editing=_editing()),
    "edit-counts-of-two": _policy("reviewer 2", editing=_editing("unless_risk_raised")),
    "both-edit": _policy("reviewer", "lawyer", editing=_editing()),
    "edit-distinct": _policy("reviewer distinct", "lawyer distinct", editing=_editing("unless_risk_raised")),
    "glass": _policy("reviewer 2", break_glass=_GLASS),
    "glass-edit": _policy("reviewer 2", break_glass=_GLASS, editing=_editing("never")),
    "tier": _policy(rules=[_laddered("reviewer", _LEADS)]),
    "tier-two": _policy(rules=[_laddered("reviewer 2", _LEADS)]),
    "tier-stops": _policy(rules=[_laddered("reviewer", {**_LEADS, "decisions": ["reject"]})]),
    "tier-extends": _policy(rules=[_laddered("reviewer", {**_LEADS, "extends": "48h"})]),
    "tier-edit": _policy(
        rules=[_laddered("reviewer", {**_LEADS, "decisions": ["approve", "edit"]})], editing=_editing()
    ),
    "tiers": _policy(rules=[_laddered("reviewer", _LEADS, {"after": "60h", "role": "chief", "decisions": _ANY})]),
    "tier-and-lawyer": _policy(rules=[_laddered("reviewer", _LEADS), _rule("lawyers", "lawyer")]),
    "tier-distinct": _policy(
        rules=[_laddered("reviewer distinct", _LEADS), _rule("lawyers", "lawyer distinct")]
    ),
    "tier-glass": _policy(rules=[_laddered("reviewer 2", _LEADS)], break_glass=_GLASS),
    "press-only": _policy(rules=[_IN_PRESS], editing=_editing()),
    "money": _money("200.00 EUR"),
    "more-money": _money("1000.00 EUR"),
}  # fmt: skip


def administration() -> Policy:
    """Two admins change who may do what."""
    rule = _rule("two-admins", f"{ADMIN} 2")
    rule["when"] = {"side_effect": SIDE_EFFECT}
    return Policy.model_validate({"policy": ADMINISTRATION, "version": 1, "asked_by": ADMIN, "rules": [rule]})
