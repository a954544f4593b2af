"""Persons: what they may do, how much money they may approve, and whether they can sign."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from countersign.domain.directory import Key, Limit, Person
from countersign.domain.money import amount
from tests.domain.samples import NOW, a_person

HOUR = timedelta(hours=1)


def a_limit(**fields: Any) -> Limit:
    return Limit.model_validate({"each": "1000.00 EUR", **fields})


@pytest.mark.guarantee("G08")
def test_a_limit_is_per_action_and_where_it_says_so_in_sum() -> None:
    assert a_limit().currency == "EUR"
    assert a_limit(total="5000.00 EUR", within="24h").total == amount("5000.00 EUR")


@pytest.mark.guarantee("G08")
@pytest.mark.parametrize(
    "fields",
    [
        {"total": "5000.00 EUR"},
        {"within": "24h"},
        {"total": "5000.00 USD", "within": "24h"},
        {"each": "1000"},
        {"each": None},
        {"total": "5000.00 EUR", "within": "0h"},
        {"each": "1.00 EUR", "per": "tenant"},
    ],
)
def test_half_a_limit_is_none(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_limit(**fields)


@pytest.mark.guarantee("G08")
def test_a_person_has_at_most_one_limit_per_currency_and_none_where_none_is_given() -> None:
    euros, dollars = a_limit(), a_limit(each="50.00 USD")
    bob = a_person("bob", limits=[euros, dollars])

    assert (bob.limit("EUR"), bob.limit("USD"), bob.limit("JPY")) == (euros, dollars, None)
    with pytest.raises(ValidationError, match="at most one limit per currency"):
        a_person("bob", limits=[euros, a_limit(each="9999.00 EUR")])


@pytest.mark.guarantee("G14")
def test_limits_are_the_same_in_whatever_order_they_are_written() -> None:
    euros, dollars = a_limit(), a_limit(each="50.00 USD")

    assert a_person("bob", limits=[dollars, euros]) == a_person("bob", limits=[euros, dollars])


@pytest.mark.parametrize(
    ("bob", "may"),
    [
        (a_person("bob", "reviewer", "lawyer"), True),
        (a_person("bob", "lawyer"), False),
        (a_person("bob", "reviewers"), False),
        (a_person("bob", "reviewer", active=False), False),
    ],
)
def test_a_person_may_act_in_a_role_they_have_while_they_are_active(bob: Person, may: bool) -> None:
    assert bob.may("reviewer") is may


def test_standing_is_what_an_administrator_writes_of_a_person() -> None:
    bob = a_person("bob", limits=[a_limit()], keys=[Key(id="bob-1", public_key="k", not_before=NOW)])

    assert (bob.standing.roles, bob.standing.active, bob.standing.limits) == (bob.roles, bob.active, bob.limits)
    assert set(bob.standing.model_dump()) == {"roles", "active", "limits"}


@pytest.mark.guarantee("G06")
def test_a_person_can_sign_while_one_of_their_keys_is_good() -> None:
    revoked = Key(id="bob-1", public_key="k", not_before=NOW, revoked_at=NOW + HOUR)
    later = Key(id="bob-2", public_key="m", not_before=NOW + 2 * HOUR)
    bob = a_person("bob", keys=[revoked, later])

    can = [bob.has_good_key(NOW + n * HOUR) for n in (-1, 0, 1, 2)]

    assert can == [False, True, False, True]
    assert not a_person("ivan").has_good_key(NOW)
