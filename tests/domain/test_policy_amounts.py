"""Rules about money: bounds to the cent, one currency, and windows that splitting does not get around (G08)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from countersign.domain.action import Action
from countersign.domain.errors import InputRefused
from countersign.domain.money import Amount, amount
from countersign.domain.policy import Answer, Policy, Spent, Window, assess
from tests.domain.samples import a_policy, an_action, by_people, by_rule

pytestmark = pytest.mark.guarantee("G08")

REFUND = {"tool": "refund"}
DAY = Window(within="24h")
TARGET_DAY = Window(within="24h", per="target")


def refund(sum_: str | None) -> Action:
    return an_action(tool="refund", amount=amount(sum_) if sum_ else None)


def bounded(**bounds: Any) -> Policy:
    return a_policy(by_rule("small", REFUND, amount=bounds))


BOUNDS = [
    # bounds, amount, whether the rule applies
    ({"up_to": "100.00 EUR"}, "100.00 EUR", True),
    ({"up_to": "100.00 EUR"}, "100.01 EUR", False),
    ({"up_to": "100.00 EUR"}, "0.00 EUR", True),
    ({"over": "100.00 EUR"}, "100.00 EUR", False),
    ({"over": "100.00 EUR"}, "100.01 EUR", True),
    ({"over": "100.00 EUR", "up_to": "200.00 EUR"}, "100.00 EUR", False),
    ({"over": "100.00 EUR", "up_to": "200.00 EUR"}, "200.00 EUR", True),
    ({"over": "100.00 EUR", "up_to": "200.00 EUR"}, "200.01 EUR", False),
    ({"up_to": "100 JPY"}, "100 JPY", True),
    # No two currencies are compared, and what has no amount fits no bound.
    ({"up_to": "100.00 EUR"}, "1.00 USD", False),
    ({"up_to": "100.00 EUR"}, "1 JPY", False),
    ({"up_to": "100.00 EUR"}, None, False),
    ({"over": "100.00 EUR"}, None, False),
]


@pytest.mark.parametrize(("bounds", "sum_", "applies"), BOUNDS)
def test_a_rule_applies_within_its_bounds(bounds: dict[str, Any], sum_: str | None, applies: bool) -> None:
    assert assess(bounded(**bounds), refund(sum_)).answer == (Answer.BY_RULE if applies else Answer.DENIED)


TIERED = a_policy(
    by_rule("small", REFUND, amount={"up_to": "100.00 EUR", "window": {"within": "24h"}}),
    by_people("more", REFUND, amount={"over": "100.00 EUR", "window": {"within": "24h"}}),
    by_people("much", REFUND, amount={"over": "1000.00 EUR", "window": {"within": "24h", "per": "target"}}, role="cfo"),
)


def spent(day: str, target: str) -> tuple[Spent, ...]:
    return (Spent(window=DAY, minor=amount(day).minor), Spent(window=TARGET_DAY, minor=amount(target).minor))


@pytest.mark.parametrize(
    ("sum_", "of_day", "of_target", "rules"),
    [
        ("100.00 EUR", "0.00 EUR", "0.00 EUR", ["small"]),
        ("50.00 EUR", "50.00 EUR", "0.00 EUR", ["small"]),
        ("50.00 EUR", "50.01 EUR", "0.00 EUR", ["more"]),
        ("0.01 EUR", "100.00 EUR", "100.00 EUR", ["more"]),
        ("0.01 EUR", "5000.00 EUR", "999.99 EUR", ["more"]),
        ("0.01 EUR", "5000.00 EUR", "1000.00 EUR", ["more", "much"]),
    ],
)
def test_earlier_amounts_of_the_window_are_added(sum_: str, of_day: str, of_target: str, rules: list[str]) -> None:
    assert list(assess(TIERED, refund(sum_), spent(of_day, of_target)).rules) == rules


def test_a_policy_names_each_of_its_windows_once() -> None:
    assert TIERED.windows() == (DAY, TARGET_DAY)
    assert bounded(up_to="1.00 EUR").windows() == ()
    assert a_policy(by_rule("r", REFUND)).windows() == ()


@pytest.mark.parametrize(
    "known", [(), (Spent(window=Window(within="48h"), minor=0),), (Spent(window=TARGET_DAY, minor=0),)]
)
def test_a_window_of_which_nothing_is_known_is_never_taken_for_nought(known: tuple[Spent, ...]) -> None:
    with pytest.raises(InputRefused, match="within 24h per tenant is not known"):
        assess(TIERED, refund("1.00 EUR"), known)


MIXED = [
    # the tools of a grant without an amount, and of a rule that looks at money; whether they stand side by side
    ({"tool": "refund"}, {"tool": "refund"}, False),
    ({"tool": ["refund", "other"]}, {"tool": ["refund"]}, False),
    ({"tool": "refund", "target": "shop"}, {"tool": "refund", "environment": "production"}, False),
    ({"environment": "dev"}, {"tool": "refund"}, False),
    ({"tool": "refund"}, {"environment": "dev"}, False),
    ({"tool": "publish_report"}, {"tool": "refund"}, True),
    ({"tool": ["publish_report", "other"]}, {"tool": ["refund"]}, True),
]


@pytest.mark.guarantee("G01")
@pytest.mark.parametrize(("granted", "about_money", "allowed"), MIXED)
@pytest.mark.parametrize("turned", [False, True])
def test_a_grant_of_any_sum_does_not_stand_beside_bounds_of_the_same_tool(
    granted: Any, about_money: Any, allowed: bool, turned: bool
) -> None:
    """The bound in euros would say nothing of dollars, and the grant would let any number of them through."""
    rules = [by_rule("any", granted), by_people("much", about_money, amount={"over": "100.00 EUR"})]
    rules = rules[::-1] if turned else rules

    if allowed:
        assert len(a_policy(*rules).rules) == 2
    else:
        with pytest.raises(ValidationError, match="rule 'any' grants any amount where other rules look at it"):
            a_policy(*rules)


def test_people_may_be_asked_about_any_sum_beside_bounds() -> None:
    always = by_people("always", REFUND)

    assert len(a_policy(always, by_rule("small", REFUND, amount={"up_to": "1.00 EUR"})).rules) == 2


@given(st.integers(1, 50_000), st.lists(st.integers(1, 50_000), min_size=1, max_size=8))
def test_small_amounts_pass_no_bound_that_their_sum_would_not_pass(limit: int, parts: list[int]) -> None:
    """Whatever way a sum is split, all parts go by rule only if the whole would."""
    most = Amount(currency="EUR", minor=limit)
    policy = bounded(up_to=str(most), window={"within": "24h"})
    before, by_rule_alone = 0, True
    for part in parts:
        action = refund(str(Amount(currency="EUR", minor=part)))
        by_rule_alone &= assess(policy, action, (Spent(window=DAY, minor=before),)).answer == Answer.BY_RULE
        before += part

    assert by_rule_alone == (sum(parts) <= limit)
