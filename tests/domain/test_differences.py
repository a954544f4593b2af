"""Differences, whole: one changed byte is one difference, and a change of authority is told role by role."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.administration import (
    Authority,
    DirectoryChange,
    KeyAddition,
    KeyRevocation,
    PersonChange,
    PolicyChange,
    UnfreezeChange,
    content,
    present,
)
from countersign.domain.authority_differences import authority_differences
from countersign.domain.differences import Difference, differences, facts, line_differences
from countersign.domain.directory import Key, Limit, Person, Standing
from countersign.domain.freeze import Freeze
from countersign.domain.money import Amount
from countersign.domain.policy import BreakGlass, Policy
from tests.domain.samples import NOW, a_person

KEY = "A" * 43
BOB = a_person("bob", "reviewer", keys=(Key(id="bob-1", public_key=KEY, not_before=NOW),))


def told(found: tuple[Difference, ...]) -> dict[str, tuple[str | None, str | None]]:
    return {one.place: (one.before, one.after) for one in found}


@pytest.mark.guarantee("G14")
@given(st.text(min_size=1, max_size=200), st.data())
def test_one_changed_character_of_an_argument_is_one_difference(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters().filter(lambda one: one != text[at]))
    after = text[:at] + letter + text[at + 1 :]

    found = differences(facts({"args": {"title": text}}), facts({"args": {"title": after}}))

    assert told(found) == {"args.title": (text, after)}


@given(st.text("ab\n\r", max_size=40), st.text("ab\n\r", max_size=40))
def test_both_texts_can_be_read_back_from_their_line_differences(before: str, after: str) -> None:
    lines = line_differences(before, after)

    if before == after:
        assert lines == ()
    else:
        assert "\n".join(line[2:] for line in lines if line[0] in " -") == before
        assert "\n".join(line[2:] for line in lines if line[0] in " +") == after


def test_a_missing_last_line_end_is_a_difference() -> None:
    assert line_differences("a\nb\n", "a\nb") == ("  a", "  b", "- ")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"a": {"b": ["x", 2]}, "c": None}, {"a.b.1": "x", "a.b.2": "2", "c": "null"}),
        ({"a": [], "b": {}, "c": ""}, {"a": "[]", "b": "{}", "c": ""}),
        ({"text": "2", "number": 2}, {"text": "2", "number": "2"}),
    ],
)
def test_data_comes_apart_into_its_single_facts(value: Any, found: dict[str, str]) -> None:
    assert facts(value) == found


def change_told(change: DirectoryChange | PolicyChange, *persons: Person, policies: dict[str, Policy] | None = None):
    authority = Authority(tenant="acme", persons={one.id: one for one in persons}, policies=policies or {})
    return told(authority_differences("acme", content(change), present(change, authority), NOW))


@pytest.mark.guarantee("G13")
def test_a_change_of_roles_and_limits_is_told_one_by_one() -> None:
    limit = Limit(each=Amount(currency="EUR", minor=100_000), total=Amount(currency="EUR", minor=500_000), within="24h")
    standing = Standing(roles=frozenset({"admin"}), limits=(limit,))

    assert change_told(DirectoryChange(persons=(PersonChange(person="bob", standing=standing),)), BOB) == {
        "bob.limits.EUR": (None, "1000.00 EUR at once, 5000.00 EUR within 24h"),
        "bob.roles.admin": (None, "held"),
        "bob.roles.reviewer": ("held", None),
    }


@pytest.mark.guarantee("G13")
def test_a_new_person_with_a_key_and_one_who_leaves_are_told_whole() -> None:
    joins = PersonChange(person="eve", standing=Standing(roles=frozenset({"reviewer"})))
    leaves = PersonChange(person="bob", standing=Standing(roles=frozenset({"reviewer"}), active=False))
    key = Key(id="eve-1", public_key="B" * 43, not_before=NOW, not_after=NOW + timedelta(days=1))

    change = DirectoryChange(persons=(joins, leaves), keys_added=(KeyAddition(person="eve", key=key),))

    assert change_told(change, BOB) == {
        "bob.active": ("yes", "no"),
        "eve.active": (None, "yes"),
        "eve.keys.eve-1": (
            None, f"{'B' * 43}, good from 2024-11-30T12:00:00+00:00 until 2024-12-01T12:00:00+00:00"),
        "eve.roles.reviewer": (None, "held"),
    }  # fmt: skip


@pytest.mark.guarantee("G13")
def test_a_revoked_key_is_told() -> None:
    before, after = change_told(DirectoryChange(keys_revoked=(KeyRevocation(person="bob", key_id="bob-1"),)), BOB)[
        "bob.keys.bob-1"
    ]

    assert before == f"{KEY}, good from 2024-11-30T12:00:00+00:00"
    assert after == f"{before}, revoked"


def a_policy(version: int, approvals: int, over: str) -> Policy:
    need = {
        "role": "payer", "approvals": approvals, "decisions": ["approve", "reject"], "decide_within": "1h",
        "execute_within": "1h",
    }  # fmt: skip
    rule = {"id": "large", "when": {"tool": "refund"}, "amount": {"over": over}, "need": need}
    return Policy.model_validate({"policy": "refund", "version": version, "rules": [rule]})


@pytest.mark.guarantee("G13")
def test_a_change_of_policy_is_told_rule_by_rule() -> None:
    change = PolicyChange(policy=a_policy(2, 1, "900.00 EUR"))

    assert change_told(change, policies={"refund": a_policy(1, 2, "500.00 EUR")}) == {
        "rules.large.amount.over": ("500.00 EUR", "900.00 EUR"),
        "rules.large.need.approvals": ("2", "1"),
        "version": ("1", "2"),
    }


@pytest.mark.guarantee("G13")
def test_a_new_policy_is_told_whole() -> None:
    found = change_told(PolicyChange(policy=a_policy(1, 2, "500.00 EUR")))

    assert {before for before, _ in found.values()} == {None}
    assert found["rules.large.need.role"] == (None, "payer")
    assert found["asked_by"] == (None, "requester")


@pytest.mark.guarantee("G13")
@pytest.mark.parametrize(
    ("tool", "held"), [("", "every effect but changes of authority"), ("refund", "tool refund")]
)  # fmt: skip
def test_a_freeze_that_is_to_be_lifted_is_told_whole(tool: str, held: str) -> None:
    freeze = Freeze(tenant="acme", number=2, tool=tool, reason="a leak", person="omar", since=NOW)
    change = UnfreezeChange(freeze=2)
    live = present(change, Authority(tenant="acme", persons={}, policies={}, freezes=(freeze,)))

    assert told(authority_differences("acme", content(change), live, NOW)) == {
        "freeze.2": (f"{held} held since 2024-11-30T12:00:00+00:00 by omar: a leak", None)
    }


@pytest.mark.guarantee("G13")
def test_a_ladder_that_a_policy_takes_up_is_told_tier_by_tier() -> None:
    before = a_policy(1, 2, "500.00 EUR")
    tier = {"after": "30m", "role": "lead", "decisions": ["approve"], "extends": "2h"}
    rule = before.rules[0].model_dump(mode="json", exclude_none=True)
    laddered = {**rule, "amount": {"over": "500.00 EUR"}, "need": {**rule["need"], "ladder": {"tiers": [tier]}}}
    after = Policy.model_validate_json(json.dumps({"policy": "refund", "version": 2, "rules": [laddered]}))

    found = change_told(PolicyChange(policy=after), policies={"refund": before})

    assert {place: now for place, (_, now) in found.items() if "tiers" in place} == {
        "rules.large.need.ladder.tiers.1.after": "30m", "rules.large.need.ladder.tiers.1.decisions.1": "approve",
        "rules.large.need.ladder.tiers.1.extends": "2h", "rules.large.need.ladder.tiers.1.role": "lead",
        "rules.large.need.ladder.tiers.1.tell": "[]",
    }  # fmt: skip


def test_a_term_that_a_policy_takes_up_is_told_and_nothing_beside_it() -> None:
    """Where there was none before, "nothing" is no value that went away."""
    before = Policy.model_validate(
        {"policy": "report", "version": 1, "rules": [{"id": "all", "when": {"tool": "x"}, "grant": "by_rule"}]}
    )
    terms = before.terms.model_copy(update={"break_glass": BreakGlass(role="emergency", approvals=2)})
    after = before.model_copy(update={"version": 2, "terms": terms})

    assert change_told(PolicyChange(policy=after), policies={"report": before}) == {
        "terms.break_glass.approvals": (None, "2"),
        "terms.break_glass.role": (None, "emergency"),
        "version": ("1", "2"),
    }
