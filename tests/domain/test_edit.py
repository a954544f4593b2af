"""A reviewer's edit: what it may touch, when it raises the risk, and whether it counts as an approval."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.edit import MAX_VERSIONS, Edit, changed_arguments, edit_counts, refusal, risks_raised
from countersign.domain.money import amount
from countersign.domain.need import Need
from countersign.domain.policy import Answer, Assessment, Editing, Terms
from countersign.domain.proposal import Proposal
from tests.domain.samples import a_need, a_proposal, an_action

ONE, TWO, LAWYER = a_need(), a_need(approvals=2), a_need("lawyer")
ARGS = {"channel": "public", "name": "report-1.md", "title": "Sales"}
RETITLED = {**ARGS, "title": "Sales of Q2"}


def assessed(*needs: Need) -> Assessment:
    return Assessment(answer=Answer.PEOPLE if needs else Answer.BY_RULE, rules=("r",), needs=needs)


DENIED = Assessment(answer=Answer.DENIED, rules=(), needs=())


def proposed(*needs: Need, amount_: str | None = None, **editing: Any) -> Proposal:
    """A proposal whose title and channel may be edited."""
    rules = Editing.model_validate({"fields": ["title", "channel"], "raises_risk": [], **editing})
    money = amount(amount_) if amount_ else None
    return a_proposal(*needs, terms=Terms(editing=rules), action=an_action(amount=money))


def edited(**changes: Any) -> Action:
    return an_action(**{"args": RETITLED, "content_hash": sha256_hex(b"the retitled report"), **changes})


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (ARGS, ARGS, ()),
        (ARGS, RETITLED, ("title",)),
        (ARGS, {**ARGS, "note": None}, ("note",)),
        ({**ARGS, "note": None}, ARGS, ("note",)),
        ({"a": [1, 2]}, {"a": [2, 1]}, ("a",)),
        ({"b": 1, "a": 1}, {}, ("a", "b")),
    ],
)
def test_every_argument_that_differs_is_named(before: Any, after: Any, changed: tuple[str, ...]) -> None:
    assert changed_arguments(an_action(args=before), an_action(args=after)) == changed


REFUSED = [
    # the edited action, how it is assessed, what the refusal says
    (
        edited(args={**RETITLED, "name": "report-2.md"}),
        assessed(ONE),
        "name may not be edited; allowed: title, channel",
    ),
    (edited(args={**RETITLED, "note": ""}), assessed(ONE), "note may not be edited"),
    (edited(args={"channel": "public", "title": "Sales"}), assessed(ONE), "name may not be edited"),
    (edited(tenant="umbrella"), assessed(ONE), "an edit keeps tenant"),
    (edited(operation="report-2"), assessed(ONE), "an edit keeps tenant, operation"),
    (edited(tool="delete_report"), assessed(ONE), "tool"),
    (edited(environment="production"), assessed(ONE), "environment"),
    (an_action(), assessed(ONE), "nothing was changed"),
    (edited(), DENIED, "no rule of the policy allows the edited action"),
]


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(("action", "assessment", "why"), REFUSED, ids=[why for _, _, why in REFUSED])
def test_an_edit_beyond_what_the_policy_allows_is_refused(action: Action, assessment: Assessment, why: str) -> None:
    assert why in refusal(proposed(ONE), Edit(action, assessment))


def test_an_edit_within_it_is_not() -> None:
    assert refusal(proposed(ONE), Edit(edited(), assessed(ONE))) == ""
    assert refusal(proposed(ONE), Edit(edited(), assessed())) == ""


def test_what_the_checks_found_against_it_refuses_an_edit_in_their_words() -> None:
    assert refusal(proposed(ONE), Edit(edited(), assessed(ONE), "the title is empty")) == "the title is empty"


@pytest.mark.guarantee("G01")
def test_where_the_policy_says_nothing_about_editing_nothing_is_edited() -> None:
    silent = a_proposal(ONE)

    assert refusal(silent, Edit(edited(), assessed(ONE))) == "the policy allows no edit"
    assert not edit_counts(silent, "bob", edited(), assessed(ONE))


RISKS = [
    # amount before and after, needs before and after, facts that count, the other target; what raises the risk
    (None, None, [ONE], [ONE], [], False, ()),
    (None, None, [ONE], [ONE], [], True, ()),
    (None, None, [ONE], [ONE], ["target"], True, ("target",)),
    (None, None, [ONE], [ONE], ["scope", "target"], True, ("target",)),
    (None, None, [ONE], [ONE], ["target"], False, ()),
    (None, None, [ONE], [ONE], ["channel"], True, ("channel",)),
    ("10.00 EUR", "10.01 EUR", [ONE], [ONE], [], False, ("amount",)),
    ("10.00 EUR", "10.00 EUR", [ONE], [ONE], [], False, ()),
    ("10.00 EUR", "9.99 EUR", [ONE], [ONE], [], False, ()),
    ("10.00 EUR", "1.00 USD", [ONE], [ONE], [], False, ("amount",)),
    (None, "0.01 EUR", [ONE], [ONE], [], False, ("amount",)),
    ("10.00 EUR", None, [ONE], [ONE], [], False, ()),
    (None, None, [ONE], [ONE, LAWYER], [], False, ("needs",)),
    (None, None, [ONE, LAWYER], [ONE], [], False, ()),
    (None, None, [ONE], [TWO], [], False, ("needs",)),
    (None, None, [ONE], [ONE, ONE], [], False, ("needs",)),
    (None, None, [ONE], [], [], False, ()),
    ("1.00 EUR", "2.00 EUR", [ONE], [LAWYER], ["target"], True, ("target", "amount", "needs")),
]


@pytest.mark.guarantee("G08")
@pytest.mark.parametrize(("then", "now", "before", "after", "counting", "moved", "raised"), RISKS)
def test_more_money_further_needs_and_named_facts_raise_the_risk(
    then: str | None, now: str | None, before: list[Need], after: list[Need], counting: list[str], moved: bool,
    raised: tuple[str, ...],
) -> None:  # fmt: skip
    channel = "press" if moved else "public"
    action = edited(channel=channel, target=f"{channel}:report-1.md", amount=amount(now) if now else None)

    assert risks_raised(proposed(*before, amount_=then, raises_risk=counting), action, assessed(*after)) == raised


def test_a_proposal_that_names_no_fact_has_its_risk_raised_by_money_and_needs_alone() -> None:
    assert risks_raised(a_proposal(ONE), edited(target="press:x"), assessed(ONE)) == ()
    assert risks_raised(a_proposal(ONE), edited(), assessed(TWO)) == ("needs",)


COUNTS = [
    # the policy's word, needs of the edited action, whether the risk is raised; whether the edit is an approval
    ("never", [ONE], False, False),
    ("where_one_suffices", [ONE], False, True),
    ("where_one_suffices", [ONE, LAWYER], False, True),
    ("where_one_suffices", [ONE], True, False),
    ("where_one_suffices", [TWO], False, False),
    ("where_one_suffices", [a_need(distinct=True)], False, False),
    ("unless_risk_raised", [ONE], False, True),
    ("unless_risk_raised", [TWO], False, True),
    ("unless_risk_raised", [TWO], True, False),
]


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G04")
@pytest.mark.parametrize(("word", "needs", "raised", "counts"), COUNTS)
def test_whether_an_edit_is_one_approval_is_the_policys_word(
    word: str, needs: list[Need], raised: bool, counts: bool
) -> None:
    before = proposed(*needs, counts=word, raises_risk=["target"])
    action = edited(target="press:report-1.md" if raised else "public:report-1.md")

    assert edit_counts(before, "bob", action, assessed(*needs)) is counts


def test_without_a_word_an_edit_counts_where_one_person_suffices() -> None:
    assert edit_counts(proposed(ONE), "bob", edited(), assessed(ONE))
    assert not edit_counts(proposed(TWO), "bob", edited(), assessed(TWO))


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G04")
@pytest.mark.parametrize("word", ["where_one_suffices", "unless_risk_raised"])
def test_a_second_harmless_edit_does_not_make_the_authors_first_risky_one_count(word: str) -> None:
    """Raise the risk, which does not count; then rename: compared with their own version, it would raise nothing."""
    first = proposed(ONE, counts=word, raises_risk=["target"])
    risky = edited(target="press:report-1.md")
    by_bob = first.model_copy(
        update={"action": risky, "action_hash": risky.hash(), "approval_version": 3, "authors": ("bob",)}
    )
    renamed = edited(target="press:report-1.md", args={**ARGS, "title": "Sales of the second quarter"})

    assert not edit_counts(first, "bob", risky, assessed(ONE))
    assert risks_raised(by_bob, renamed, assessed(ONE)) == ()
    assert not edit_counts(by_bob, "bob", renamed, assessed(ONE))
    assert edit_counts(by_bob, "carl", renamed, assessed(ONE))


@pytest.mark.parametrize(("version", "refused"), [(MAX_VERSIONS - 1, False), (MAX_VERSIONS, True)])
def test_an_action_is_not_put_before_people_for_ever_by_editing_it(version: int, refused: bool) -> None:
    before = proposed(ONE).model_copy(update={"approval_version": version})

    found = refusal(before, Edit(edited(), assessed(ONE)))

    assert found == ("it was put before people 20 times; approve or reject it as it is" if refused else "")


def test_a_policy_offers_edit_only_where_its_terms_say_what_may_be_edited() -> None:
    need = a_need(decisions=("approve", "edit", "reject"))

    assert proposed(need).decisions == {"approve", "edit", "reject"}
    assert a_proposal(need).decisions == {"approve", "reject"}
    assert proposed(need, a_need("lawyer")).decisions == {"approve", "reject"}
