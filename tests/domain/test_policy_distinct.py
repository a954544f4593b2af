"""Distinct needs: whoever counts for one counts for no other, and nobody is asked in vain because of who came first."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.need import Need, unmet
from countersign.domain.policy import assess
from tests.domain.samples import a_need, a_person, a_policy, an_action, approvers, by_people

pytestmark = [pytest.mark.guarantee("G03"), pytest.mark.guarantee("G04"), pytest.mark.guarantee("G05")]

ROLES = {"a": "author", "l": "lawyer", "r": "reviewer"}


def needs_of(text: str) -> tuple[Need, ...]:
    """`r2 l+` is two reviewers, and a lawyer who counts for nothing else that is distinct."""
    return tuple(
        a_need(ROLES[word[0]], int(word[1:].rstrip("+") or 1), distinct=word.endswith("+")) for word in text.split()
    )


TABLE = [
    # needs (+ is distinct), persons by their roles, roles that stay open
    ("r l", "rl", ""),
    ("r+ l+", "rl", "l"),
    ("r+ l+", "rl r", ""),
    ("r+ l+", "r rl", ""),
    ("r+ l+", "rl l", ""),
    ("r+ l+", "rl rl", ""),
    ("r+ l+", "r r", "l"),
    # A need that is not distinct shares its persons with all others.
    ("r+ l", "rl", ""),
    ("r2+ l+", "rl rl", "l"),
    ("r2+ l+", "rl r l", ""),
    ("r2+ l+", "rl rl rl", ""),
    ("r+ l+ a+", "rla rl r", ""),
    ("r+ l+ a+", "rla rla", "a"),
    ("r+ l+ a+", "rla rla rla", ""),
    # Two rules may ask for the same: each wants a person of its own.
    ("r+ r+", "r", "r r"),
    ("r+ r+", "r r", ""),
    ("r2+ r2+", "r r r", "r r"),
    ("r2+ r2+", "r r r r", ""),
    ("r r", "r", ""),
]


@pytest.mark.parametrize(("needed", "persons", "still_open"), TABLE, ids=[f"{n} by {p}" for n, p, _ in TABLE])
def test_no_person_counts_for_two_distinct_needs(needed: str, persons: str, still_open: str) -> None:
    for order in itertools.permutations(persons.split()):
        agreed = approvers(
            *(a_person(f"p{number}", *(ROLES[letter] for letter in roles)) for number, roles in enumerate(order))
        )
        found = [need.role[0] for need in unmet(needs_of(needed), agreed)]
        assert (len(found), set(found) <= set(needed)) == (len(still_open.split()), True)


def test_two_rules_that_ask_for_the_same_distinct_person_ask_for_two() -> None:
    same: dict[str, Any] = {"when": {"tool": "publish_report"}, "distinct": True}
    policy = a_policy(by_people("first", **same), by_people("second", **same))

    needs = assess(policy, an_action()).needs

    assert len(needs) == 2
    assert unmet(needs, approvers(a_person("bob")))
    assert not unmet(needs, approvers(a_person("bob"), a_person("carl")))


def seats_filled(needs: list[tuple[str, int]], persons: list[frozenset[str]]) -> bool:
    """Whether somebody can sit on every seat, found by trying every seating: the slow, plain way."""
    seats = [role for role, count in needs for _ in range(count)]
    return any(
        all(role in roles for role, roles in zip(seats, chosen, strict=True))
        for chosen in itertools.permutations(persons, len(seats))
    )


@given(
    st.lists(st.tuples(st.sampled_from("arl"), st.integers(1, 2)), min_size=1, max_size=3),
    st.lists(st.frozensets(st.sampled_from("arl"), min_size=1), max_size=5),
)
def test_distinct_needs_are_met_exactly_where_a_seating_exists(
    needs: list[tuple[str, int]], persons: list[frozenset[str]]
) -> None:
    wanted = tuple(a_need(ROLES[role], count, distinct=True) for role, count in needs)
    agreed = approvers(*(a_person(f"p{n}", *(ROLES[role] for role in roles)) for n, roles in enumerate(persons)))

    assert (not unmet(wanted, agreed)) == seats_filled(needs, persons)
