"""Policy: what no rule names is denied, every applying rule counts, and persons count, not keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from countersign.domain.directory import Key
from countersign.domain.errors import InputRefused
from countersign.domain.policy import Answer, Need, Policy, Rule, assess, duration, unmet
from tests.domain.samples import NOW, a_need, a_person, an_action

EXTERNAL = {"side_effect": "external_publication"}
PUBLISH = {"tool": "publish_report"}
NEED = a_need().model_dump()


def by_rule(rule: str, when: dict[str, Any]) -> dict[str, Any]:
    return {"id": rule, "when": when, "grant": "by_rule"}


def by_people(rule: str, when: dict[str, Any], **need: Any) -> dict[str, Any]:
    return {"id": rule, "when": when, "need": {**NEED, **need}}


def a_policy(*rules: dict[str, Any], **changes: Any) -> Policy:
    return Policy.model_validate({"policy": "report", "version": 1, "rules": rules, **changes})


ASSESSED = [
    # rules, answer, ids of the rules that apply
    ([by_rule("r", {"tool": "refund"})], Answer.DENIED, []),
    ([by_rule("r", {"tool": "Publish_report"})], Answer.DENIED, []),
    ([by_rule("r", {**PUBLISH, "environment": "production"})], Answer.DENIED, []),
    ([by_rule("r", {"side_effect": ["internal_publication", "none"]})], Answer.DENIED, []),
    ([by_people("p", {"tool": "refund"})], Answer.DENIED, []),
    ([by_rule("r", PUBLISH)], Answer.BY_RULE, ["r"]),
    ([by_rule("r", {"side_effect": ["internal_publication", "external_publication"]})], Answer.BY_RULE, ["r"]),
    ([by_rule("r", PUBLISH), by_rule("s", {"tool": "refund"})], Answer.BY_RULE, ["r"]),
    ([by_people("p", EXTERNAL)], Answer.PEOPLE, ["p"]),
    ([by_rule("r", PUBLISH), by_people("p", EXTERNAL)], Answer.PEOPLE, ["r", "p"]),
    ([by_people("p", EXTERNAL), by_rule("r", PUBLISH)], Answer.PEOPLE, ["p", "r"]),
    ([by_people("p", EXTERNAL), by_people("q", PUBLISH, role="lawyer")], Answer.PEOPLE, ["p", "q"]),
]


@pytest.mark.guarantee("G01")
@pytest.mark.guarantee("G05")
@pytest.mark.parametrize(("rules", "answer", "applying"), ASSESSED)
def test_the_answer_follows_from_the_rules_that_apply(rules: Any, answer: Answer, applying: list[str]) -> None:
    assessment = assess(a_policy(*rules), an_action())

    assert (assessment.answer, list(assessment.rules)) == (answer, applying)
    assert bool(assessment.needs) == (answer == Answer.PEOPLE)


@pytest.mark.guarantee("G05")
def test_where_several_rules_apply_each_one_has_its_need() -> None:
    policy = a_policy(
        by_people("p", EXTERNAL, approvals=2), by_rule("r", PUBLISH), by_people("q", PUBLISH, role="lawyer")
    )

    needs = assess(policy, an_action()).needs

    assert needs == (a_need(approvals=2), a_need("lawyer"))
    assert unmet(needs, {"bob": a_person("bob"), "carl": a_person("carl")}) == (a_need("lawyer"),)


UNMET = [
    # needs, approving persons, the roles that are still open
    ([("reviewer", 1)], [], ["reviewer"]),
    ([("reviewer", 1)], [a_person("bob")], []),
    ([("reviewer", 1)], [a_person("bob", "lawyer")], ["reviewer"]),
    ([("reviewer", 1)], [a_person("bob", active=False)], ["reviewer"]),
    ([("reviewer", 2)], [a_person("bob")], ["reviewer"]),
    ([("reviewer", 2)], [a_person("bob"), a_person("carl")], []),
    ([("reviewer", 2)], [a_person("bob"), a_person("carl", active=False)], ["reviewer"]),
    ([("reviewer", 1), ("lawyer", 1)], [a_person("bob")], ["lawyer"]),
    ([("reviewer", 1), ("lawyer", 1)], [a_person("bob", "reviewer", "lawyer")], []),
    ([("reviewer", 2), ("lawyer", 1)], [a_person("bob", "reviewer", "lawyer")], ["reviewer"]),
]


@pytest.mark.guarantee("G05")
@pytest.mark.parametrize(("needs", "persons", "still_open"), UNMET)
def test_a_need_is_met_by_enough_active_persons_of_its_role(needs: Any, persons: Any, still_open: list[str]) -> None:
    wanted = tuple(a_need(role, approvals) for role, approvals in needs)

    assert [need.role for need in unmet(wanted, {person.id: person for person in persons})] == still_open


@pytest.mark.guarantee("G03")
@pytest.mark.guarantee("G04")
def test_one_person_counts_once_whatever_keys_and_roles_they_have() -> None:
    keys = tuple(Key(id=f"bob-{number}", public_key="k", not_before=NOW) for number in range(3))
    bob = a_person("bob", "reviewer", "lawyer", "publisher", keys=keys)

    assert unmet((a_need(approvals=2),), {"bob": bob}) == (a_need(approvals=2),)


@pytest.mark.guarantee("G01")
def test_an_empty_set_of_needs_is_met_by_nobody() -> None:
    with pytest.raises(InputRefused, match="no need of people applies"):
        unmet((), {"bob": a_person()})


@pytest.mark.guarantee("G12")
@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "other"},
        {"version": 2},
        {"rules": [by_people("q", EXTERNAL)]},
        {"rules": [by_people("p", PUBLISH)]},
        {"rules": [by_people("p", EXTERNAL, approvals=2)]},
        {"rules": [by_people("p", EXTERNAL, role="lawyer")]},
        {"rules": [by_people("p", EXTERNAL, decisions=["approve"])]},
        {"rules": [by_people("p", EXTERNAL, decide_within="71h")]},
        {"rules": [by_people("p", EXTERNAL, execute_within="2h")]},
        {"rules": [by_rule("p", EXTERNAL)]},
        {"rules": [by_people("p", EXTERNAL), by_rule("r", PUBLISH)]},
    ],
)
def test_any_change_of_a_policy_changes_its_label(changes: dict[str, Any]) -> None:
    original = a_policy(by_people("p", EXTERNAL))

    assert a_policy(by_people("p", EXTERNAL)).label() == original.label()
    assert a_policy(**{"rules": [by_people("p", EXTERNAL)], **changes}).label() != original.label()


def test_a_label_says_name_and_version_to_people() -> None:
    assert a_policy(by_rule("r", PUBLISH)).label().startswith("report/1@sha256:")


@pytest.mark.parametrize(
    ("text", "elapsed"),
    [
        ("1s", timedelta(seconds=1)),
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("72h", timedelta(days=3)),
        ("7d", timedelta(days=7)),
    ],
)
def test_durations(text: str, elapsed: timedelta) -> None:
    assert duration(text) == elapsed
    assert a_need(decide_within=text).decide_within == text


@pytest.mark.parametrize(
    "text", ["", "0s", "01h", "h", "1", "1.5h", "-1h", "1w", "1 h", "1H", "100000s", "1h\n", "１h", 90]
)
def test_other_durations_are_refused(text: Any) -> None:
    with pytest.raises(ValidationError):
        a_need(decide_within=text)


MALFORMED_RULES: list[dict[str, Any]] = [
    {"id": "r", "when": PUBLISH},
    {"id": "r", "when": PUBLISH, "grant": "by_rule", "need": NEED},
    {"id": "r", "when": {}, "grant": "by_rule"},
    {"id": "r", "when": {"tool": ""}, "grant": "by_rule"},
    {"id": "r", "when": {"tool": []}, "grant": "by_rule"},
    {"id": "r", "when": {"tool": [""]}, "grant": "by_rule"},
    {"id": "r", "when": {"side_efect": "x"}, "grant": "by_rule"},
    {"id": "r", "when": {"title": "x"}, "grant": "by_rule"},
    {"id": "r", "when": PUBLISH, "grant": "always"},
    {"id": "R", "when": PUBLISH, "grant": "by_rule"},
    {"id": "r", "when": PUBLISH, "grant": "by_rule", "unless": PUBLISH},
    by_people("r", PUBLISH, approvals=0),
    by_people("r", PUBLISH, approvals=True),
    by_people("r", PUBLISH, decisions=[]),
    by_people("r", PUBLISH, decisions=["edit"]),
    by_people("r", PUBLISH, role=""),
]


@pytest.mark.guarantee("G01")
@pytest.mark.parametrize("rule", MALFORMED_RULES)
def test_a_rule_that_would_mean_less_than_it_says_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Rule.model_validate(rule)


def test_a_policy_has_rules_and_no_id_stands_for_two_of_them() -> None:
    with pytest.raises(ValidationError, match="rules"):
        a_policy()
    with pytest.raises(ValidationError, match="id of its own"):
        a_policy(by_rule("r", PUBLISH), by_people("r", EXTERNAL))


@pytest.mark.guarantee("G04")
@given(st.integers(1, 9), st.sets(st.sampled_from("abcdefghijkl")))
def test_a_quorum_is_met_by_that_many_persons_and_no_fewer(approvals: int, ids: set[str]) -> None:
    need: Need = a_need(approvals=approvals)

    assert (unmet((need,), {name: a_person(name) for name in ids}) == ()) == (len(ids) >= approvals)
