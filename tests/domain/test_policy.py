"""Policy: what no rule names is denied, every applying rule counts, and persons count, not keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from countersign.domain.directory import Key
from countersign.domain.errors import InputRefused
from countersign.domain.need import Need, asks_two_persons, unmet
from countersign.domain.policy import Answer, Assessment, BreakGlass, Editing, Rule, Terms, assess
from tests.domain.samples import NOW, a_need, a_person, a_policy, an_action, approvers, by_people, by_rule

EXTERNAL = {"side_effect": "external_publication"}
PUBLISH = {"tool": "publish_report"}
NEED = a_need().model_dump()


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
    assert unmet(needs, approvers(a_person("bob"), a_person("carl"))) == (a_need("lawyer"),)


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

    assert [need.role for need in unmet(wanted, approvers(*persons))] == still_open


@pytest.mark.guarantee("G03")
@pytest.mark.guarantee("G04")
def test_one_person_counts_once_whatever_keys_and_roles_they_have() -> None:
    keys = tuple(Key(id=f"bob-{number}", public_key="k", not_before=NOW) for number in range(3))
    bob = a_person("bob", "reviewer", "lawyer", "publisher", keys=keys)

    assert unmet((a_need(approvals=2),), approvers(bob)) == (a_need(approvals=2),)


@pytest.mark.guarantee("G01")
def test_an_empty_set_of_needs_is_met_by_nobody() -> None:
    with pytest.raises(InputRefused, match="no need of people applies"):
        unmet((), approvers(a_person()))


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
        {"rules": [by_people("p", EXTERNAL, distinct=True)]},
        {"rules": [by_people("p", EXTERNAL, amount={"over": "1.00 EUR"})]},
        {"rules": [by_people("p", EXTERNAL, ladder={"then": "freeze"})]},
        {"takeover": {"role": "lead"}},
        {"escalations": {"LOW_CONFIDENCE": {"role": "lead", "severity": "low"}}},
        {"sensitive_columns": ["iban"]},
        {"asked_by": "clerk"},
        {"terms": {"requester_may_withdraw": False}},
        {"terms": {"editing": {"fields": ["title"], "raises_risk": []}}},
        {"terms": {"break_glass": {"role": "officer", "approvals": 2}}},
        {"terms": {"after_rejection": {"then": "refuse"}}},
        {"rules": [by_rule("p", EXTERNAL)]},
        {"rules": [by_people("p", EXTERNAL), by_rule("r", PUBLISH)]},
    ],
)
def test_any_change_of_a_policy_changes_its_label(changes: dict[str, Any]) -> None:
    original = a_policy(by_people("p", EXTERNAL))

    assert a_policy(by_people("p", EXTERNAL)).label() == original.label()
    assert a_policy(**{"rules": [by_people("p", EXTERNAL)], **changes}).label() != original.label()


def test_a_policy_from_before_has_no_word_of_sensitive_columns() -> None:
    assert "sensitive_columns" not in a_policy(by_rule("r", PUBLISH)).model_dump()


def test_a_label_says_name_and_version_to_people() -> None:
    assert a_policy(by_rule("r", PUBLISH)).label().startswith("report/1@sha256:")


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
    by_people("r", PUBLISH, decisions=["withdraw"]),
    by_people("r", PUBLISH, decisions=["break_glass"]),
    by_people("r", PUBLISH, distinct="yes"),
    by_people("r", PUBLISH, amount={}),
    by_people("r", PUBLISH, amount={"over": "1000"}),
    by_people("r", PUBLISH, amount={"over": "1.00 EUR", "up_to": "2.00 USD"}),
    by_people("r", PUBLISH, amount={"window": {"within": "24h"}}),
    by_people("r", PUBLISH, amount={"over": "1.00 EUR", "window": {}}),
    by_people("r", PUBLISH, amount={"over": "1.00 EUR", "window": {"within": "24h", "per": "person"}}),
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

    assert (unmet((need,), approvers(*map(a_person, ids))) == ()) == (len(ids) >= approvals)


STRICTER = [
    # what today's rules need, what was needed before, the roles in the end
    ((), (), []),
    ((), (a_need(),), ["reviewer"]),
    ((a_need(),), (a_need(),), ["reviewer"]),
    ((a_need(),), (a_need("lawyer"),), ["reviewer", "lawyer"]),
    ((a_need(),), (a_need(approvals=2), a_need()), ["reviewer", "reviewer"]),
    ((a_need(distinct=True),), (a_need(distinct=True), a_need(distinct=True)), ["reviewer", "reviewer"]),
]


@pytest.mark.guarantee("G12")
@pytest.mark.parametrize(("today", "before", "roles"), STRICTER)
def test_needs_of_an_earlier_ask_are_never_lost(
    today: tuple[Need, ...], before: tuple[Need, ...], roles: list[str]
) -> None:
    answer = Answer.PEOPLE if today else Answer.BY_RULE

    both = Assessment(answer=answer, rules=("r",), needs=today).and_also(before)

    assert [need.role for need in both.needs] == roles
    assert both.answer == (Answer.PEOPLE if roles else Answer.BY_RULE)


@pytest.mark.guarantee("G01")
def test_earlier_needs_never_turn_a_denial_into_an_ask() -> None:
    denied = Assessment(answer=Answer.DENIED, rules=(), needs=())

    assert denied.and_also((a_need(),)) == denied


@pytest.mark.guarantee("G04")
@pytest.mark.parametrize(
    ("needs", "two"),
    [
        ([a_need()], False),
        ([a_need(), a_need("lawyer")], False),
        ([a_need(approvals=2)], True),
        ([a_need(), a_need("lawyer", distinct=True)], True),
    ],
)
def test_a_two_person_rule_is_more_than_one_approval_or_a_distinct_one(needs: list[Need], two: bool) -> None:
    assert asks_two_persons(needs) is two


@pytest.mark.guarantee("G11")
def test_without_a_word_about_them_nothing_is_edited_and_no_glass_is_broken() -> None:
    terms = a_policy(by_rule("r", PUBLISH)).terms

    assert (terms.editing, terms.break_glass, terms.requester_may_withdraw) == (None, None, True)
    assert (terms.after_rejection.within, terms.after_rejection.then) == ("30d", "flag")


GLASS, MORE = BreakGlass(role="officer", approvals=2), BreakGlass(role="officer", approvals=3)


@pytest.mark.guarantee("G11")
@pytest.mark.guarantee("G12")
@pytest.mark.parametrize(
    ("before", "today", "then"),
    [(None, None, None), (None, GLASS, None), (GLASS, None, None), (GLASS, GLASS, GLASS), (MORE, GLASS, None)],
)
def test_glass_that_the_version_before_did_not_have_is_not_put_in_later(
    before: BreakGlass | None, today: BreakGlass | None, then: BreakGlass | None
) -> None:
    editing = Editing(fields=("title",), raises_risk=())

    terms = Terms(break_glass=today, editing=editing).after(Terms(break_glass=before))

    assert (terms.break_glass, terms.editing) == (then, editing)


def test_a_need_reads_as_who_is_asked() -> None:
    assert str(a_need("lawyer", 2)) == "2 of role lawyer"


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize(
    "terms",
    [
        {"break_glass": {"role": "officer", "approvals": 1}},
        {"break_glass": {"role": "officer"}},
        {"break_glass": True},
        {"editing": {"fields": [], "raises_risk": []}},
        {"editing": {"fields": ["title"]}},
        {"editing": {"fields": ["title"], "raises_risk": [], "counts": "always"}},
        {"editing": {"fields": ["title"], "raises_risk": ["titel"]}},
        {"after_rejection": {"then": "forget"}},
        {"after_rejection": {"within": "0d"}},
        {"bypass": "admin"},
    ],
)
def test_terms_that_would_mean_less_than_they_say_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Terms.model_validate(terms)
