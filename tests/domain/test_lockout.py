"""A tenant must always be able to change its own directory: what would end that is refused before it happens (G13)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from countersign.domain.administration import check_floor, lockout
from countersign.domain.directory import Person
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.policy import Policy
from tests.domain.samples import NOW, a_key, a_person, a_policy, administration, by_people, by_rule

pytestmark = pytest.mark.guarantee("G13")

HOUR = timedelta(hours=1)
CHANGES, CHANGE_POLICY = {"side_effect": "authority_change"}, {"tool": "change_policy"}


def people(text: str) -> dict[str, Person]:
    """`ada:admin` and so on; a `-` before the name is somebody inactive, a `?` somebody without a good key."""
    found = {}
    for word in text.split():
        name, _, roles = word.lstrip("-?").partition(":")
        key = a_key(name).model_copy(update={"revoked_at": NOW if word.startswith("?") else None})
        found[name] = a_person(name, *roles.split("+"), active=not word.startswith("-"), keys=[key])
    return found


STAFFED = [
    # who is there, whether they can change their own directory under a policy of two admins
    ("", False),
    ("ada:admin", False),
    ("ada:admin ben:admin", False),
    ("ada:admin ben:admin cyd:admin", True),
    ("ada:admin ben:admin -cyd:admin", False),
    ("ada:admin ben:admin ?cyd:admin", False),
    ("ada:admin ben:admin cyd:reviewer", False),
    ("ada:admin+reviewer ben:admin cyd:admin bob:reviewer", True),
    ("ada:admin ben:admin cyd:admin -dan:admin ?eve:admin", True),
]


@pytest.mark.parametrize(("persons", "can"), STAFFED)
def test_one_asks_and_two_others_approve_each_with_a_good_key(persons: str, can: bool) -> None:
    assert (not lockout(people(persons), administration(), NOW)) is can


THREE = "ada:admin ben:admin cyd:admin"


def governed(*rules: dict[str, Any], **changes: Any) -> Policy:
    return a_policy(*rules, **{"policy": "administration", "asked_by": "admin", **changes})


def two(rule: str, when: dict[str, Any], **need: Any) -> dict[str, Any]:
    return by_people(rule, when, **{"role": "admin", "approvals": 2, **need})


LADDER = {"tiers": [{"after": "48h", "role": "admin", "decisions": ["approve", "reject"]}]}
NO_YES = {"tiers": [{"after": "48h", "role": "admin", "decisions": ["reject"]}]}
POLICIES = [
    # the policy, what keeps three admins from ever changing anything; empty if nothing does
    (governed(two("all", CHANGES)), ""),
    (governed(two("all", {"tool": ["change_directory", "change_policy"]})), ""),
    (governed(two("d", {"tool": "change_directory"}), two("p", {"target": "policy:administration"})), ""),
    (governed(two("d", {"target": "directory"}), two("p", {"tool": "change_policy", "tool_version": "1"})), ""),
    (governed(two("all", CHANGES, distinct=True)), ""),
    # Rules for different changes need their persons one after the other.
    (governed(two("d", {"target": "directory"}, distinct=True), two("p", CHANGE_POLICY, distinct=True)), ""),
    # What it would need is more than there is.
    (governed(two("all", CHANGES), asked_by="clerk"), "one person with the role clerk"),
    (governed(two("all", CHANGES, role="lawyer")), "2 others with the role lawyer"),
    (governed(two("all", CHANGES), two("too", CHANGES, role="lawyer")), "2 others with the role lawyer"),
    (governed(two("one", CHANGES, distinct=True), two("two", CHANGES, distinct=True)), "nobody could change"),
    # No rule would ever let it happen.
    (governed(two("all", {"tool": "publish_report"})), "no rule lets people approve change_directory of directory"),
    (governed(two("d", {"tool": "change_directory"})), "approve change_policy of policy:administration"),
    (governed(two("d", {"tool": "change_directory"}), two("p", {"target": "policy:report"})), "change_policy"),
    (governed(two("all", {**CHANGES, "tool_version": "2"})), "no rule lets people approve"),
    (governed(two("all", {**CHANGES, "environment": "production"})), "in environment any other"),
    (governed(two("all", CHANGES, amount={"over": "1.00 EUR"})), "no rule lets people approve"),
    (governed(two("all", CHANGES, decisions=["reject"])), "no rule lets people approve"),
    (governed(two("all", CHANGES), two("no", CHANGES, decisions=["reject"])), "no rule lets people approve"),
    (governed(by_rule("all", CHANGES)), "no rule lets people approve"),
    # A policy from before there were freezes has no word for lifting them, and can be given one.
    (governed(two("all", {"tool": ["change_directory", "change_policy"], **CHANGES})), ""),
    # Whom a ladder asks later can approve too, if they may say yes and their time comes before the deadline.
    (governed(two("all", CHANGES, role="lawyer", ladder=LADDER)), ""),
    (governed(two("all", CHANGES, role="lawyer", ladder=NO_YES)), "2 others with the role lawyer"),
    (governed(two("all", CHANGES, role="lawyer", ladder=LADDER),
              two("too", CHANGES, decide_within="48h")), "2 others with the role lawyer"),
    (governed(two("all", CHANGES, decisions=["reject"], ladder=LADDER)), ""),
    # One environment may ask for more than another; each must do.
    (governed(two("all", CHANGES), two("p", {**CHANGES, "environment": "production"}, role="lawyer")), "role lawyer"),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "problem"), POLICIES, ids=range(len(POLICIES)))
def test_a_policy_under_which_nothing_could_be_changed_is_told(policy: Policy, problem: str) -> None:
    found = lockout(people(THREE), policy, NOW)

    assert any(problem in one for one in found) if problem else found == ()


def test_break_glass_keys_of_tomorrow_and_no_policy_open_nothing() -> None:
    tomorrow = {name: a_person(name, "admin", keys=[a_key(name).model_copy(update={"not_before": NOW + HOUR})])
                for name in ("ada", "ben", "cyd")}  # fmt: skip
    glass = governed(two("all", CHANGES, role="lawyer"), terms={"break_glass": {"role": "admin", "approvals": 2}})

    assert lockout(tomorrow, administration(), NOW)
    assert not lockout(tomorrow, administration(), NOW + HOUR)
    assert lockout(people(THREE), glass, NOW)
    assert "there is no policy 'administration'" in lockout(people(THREE), None, NOW)[0]


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        (two("all", CHANGES), True),
        (two("all", CHANGES, approvals=3), True),
        (two("all", CHANGES, approvals=1), False),
        (two("all", CHANGES, approvals=1, distinct=True), False),
        (by_rule("all", CHANGES), False),
        (by_rule("all", {"tool": "unfreeze_effects"}), False),
        (two("all", {"tool": "unfreeze_effects"}, approvals=1), False),
    ],
)
def test_no_policy_lets_one_person_change_authority(rule: dict[str, Any], allowed: bool) -> None:
    policy = governed(two("other", CHANGES), rule)

    if allowed:
        check_floor(policy)
    else:
        with pytest.raises(ConfigurationRefused, match=r"rules\.all: changes of authority need two persons"):
            check_floor(policy)


@pytest.mark.parametrize(
    ("window", "enough"),
    [
        ({"decide_within": "1h", "execute_within": "5m"}, True),
        ({"decide_within": "3600s", "execute_within": "300s"}, True),
        ({"decide_within": "1s"}, False),
        ({"decide_within": "59m"}, False),
        ({"execute_within": "1s"}, False),
        ({"execute_within": "299s"}, False),
    ],
)
def test_no_policy_leaves_administrators_too_short_a_time_to_change_authority(
    window: dict[str, str], enough: bool
) -> None:
    policy = governed(two("other", CHANGES), two("all", CHANGES, **window))

    if enough:
        check_floor(policy)
    else:
        with pytest.raises(ConfigurationRefused, match=r"rules\.all\.need: nobody could decide in so short a time"):
            check_floor(policy)


def test_no_policy_makes_one_persons_no_to_a_change_of_authority_final() -> None:
    with pytest.raises(ConfigurationRefused, match=r"terms\.after_rejection\.then"):
        check_floor(governed(two("all", CHANGES), terms={"after_rejection": {"then": "refuse"}}))


def test_a_key_counts_if_it_lasts_through_the_longest_way_that_a_change_can_take() -> None:
    policy = governed(two("d", {"target": "directory"}), two("p", CHANGE_POLICY, decide_within="5d"))
    extends = {"tiers": [{"after": "4d", "role": "admin", "decisions": ["approve"], "extends": "2d"}]}
    laddered = governed(two("all", CHANGES, decide_within="5d", ladder=extends))
    longest = timedelta(days=5) + HOUR

    def until(end: timedelta) -> dict[str, Person]:
        return {name: a_person(name, "admin", keys=[a_key(name).model_copy(update={"not_after": NOW + end})])
                for name in ("ada", "ben", "cyd")}  # fmt: skip

    assert lockout(until(timedelta(seconds=1)), policy, NOW)
    assert lockout(until(longest), policy, NOW)
    assert not lockout(until(longest + timedelta(microseconds=1)), policy, NOW)
    # A further line's extension makes it longer.
    assert lockout(until(longest + timedelta(days=1)), laddered, NOW)
    assert not lockout(until(longest + timedelta(days=1, microseconds=1)), laddered, NOW)


def test_other_policies_may_do_with_one_person_or_none() -> None:
    check_floor(a_policy(by_rule("r", {"tool": "publish_report"}), by_people("p", {"tool": "refund"})))
