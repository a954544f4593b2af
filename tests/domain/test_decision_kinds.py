"""Rulings on what is more than a plain yes or no: edits, broken glass and answers."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import pytest

from countersign.domain.decision import Ruling, break_glass_needs, may_edit
from countersign.domain.edit import Edit
from countersign.domain.need import Need
from countersign.domain.policy import Answer, Assessment, Terms
from countersign.domain.proposal import ApprovalStatus, Vote
from tests.domain.ruling import OLGA, ONE, PERSONS, REASON_HASH, TERMS, TWO, an_edit, edits, proposed, ruled
from tests.domain.samples import DEADLINE, NOW, a_need, a_vote, an_approval

PENDING, GRANTED, EDITED = ApprovalStatus.PENDING, ApprovalStatus.GRANTED, ApprovalStatus.EDITED
ACCEPTED, ROLE, NOT_ALLOWED = Ruling.ACCEPTED, Ruling.ROLE_MISSING, Ruling.DECISION_NOT_ALLOWED
VOTED, AUTHOR, REQUESTER = Ruling.ALREADY_VOTED, Ruling.AUTHOR_MAY_NOT_APPROVE, Ruling.REQUESTER_MAY_NOT_DECIDE
REFUSED, REASON, TOO_SOON = Ruling.EDIT_REFUSED, Ruling.REASON_MISSING, Ruling.EXPIRES_TOO_SOON
NONE, TICK, HOUR = timedelta(0), timedelta(microseconds=1), timedelta(hours=1)


class Row(NamedTuple):
    """Who does what about which needs, and what becomes of it; the rest is ordinary."""

    who: str
    does: str
    ruling: Ruling
    then: ApprovalStatus
    needs: tuple[Need, ...] = (ONE,)
    voted: tuple[Vote, ...] = ()
    because: str | None = REASON_HASH
    terms: Terms = TERMS
    authors: tuple[str, ...] = ()


OFF = Terms()
GLASS = [
    Row("olga", "break_glass", ACCEPTED, PENDING),
    Row("otto", "break_glass", ACCEPTED, GRANTED, voted=(OLGA,)),
    Row("olga", "break_glass", VOTED, PENDING, voted=(OLGA,)),
    Row("otto", "break_glass", ACCEPTED, GRANTED, needs=(a_need(approvals=9),), voted=(OLGA,)),
    Row("bob", "break_glass", ROLE, PENDING),
    Row("rita", "break_glass", REQUESTER, PENDING, voted=(OLGA,)),
    Row("otto", "break_glass", AUTHOR, PENDING, voted=(OLGA,), authors=("otto",)),
    Row("olga", "break_glass", REASON, PENDING, because=None),
    Row("olga", "break_glass", ROLE, PENDING, terms=OFF),
    Row("bob", "break_glass", NOT_ALLOWED, PENDING, terms=OFF),
    # Breaking the glass and agreeing are two ways; no vote of the one counts on the other.
    Row("bob", "approve", ACCEPTED, PENDING, needs=(TWO,), voted=(OLGA,)),
    Row("olga", "break_glass", ACCEPTED, PENDING, needs=(TWO,), voted=(a_vote("bob"),)),
    Row("bob", "approve", ACCEPTED, GRANTED, voted=(OLGA,)),
    Row("olga", "approve", ROLE, PENDING),
    Row("bob", "reject", ACCEPTED, ApprovalStatus.REJECTED, voted=(OLGA,)),
]


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize("row", GLASS, ids=[f"{n}-{row.who}-{row.does}-{row.ruling}" for n, row in enumerate(GLASS)])
def test_glass_is_broken_by_two_officers_with_a_reason_where_the_policy_has_any(row: Row) -> None:
    proposal = proposed(*row.needs, terms=row.terms, authors=row.authors)

    outcome = ruled(row.who, row.does, proposal, *row.voted, signed={"comment_hash": row.because or ""})

    assert (outcome.ruling, outcome.status) == (row.ruling, row.then)


@pytest.mark.guarantee("G11")
def test_what_no_rule_leaves_to_people_has_no_glass_to_break() -> None:
    by_rule = proposed(assessment=Assessment(answer=Answer.BY_RULE, rules=("r",), needs=()))

    assert break_glass_needs(by_rule) == ()
    assert [(need.role, need.approvals, need.distinct) for need in break_glass_needs(proposed())] == [
        ("officer", 2, False)
    ]
    assert ruled("olga", "break_glass", by_rule).ruling == ROLE


@pytest.mark.parametrize("who", ["bob", "rita", "omar"])
def test_an_answer_is_no_decision_about_an_outward_action(who: str) -> None:
    outcome = ruled(who, "respond", proposed())

    assert (outcome.ruling, outcome.status) == (Ruling.RESPOND_IS_FOR_QUESTIONS, PENDING)
    assert "approved, edited or rejected" in outcome.sentence()


EDITS = [
    ("bob", an_edit(), ACCEPTED, EDITED, ""),
    ("bob", None, REFUSED, PENDING, "not in the ledger"),
    ("bob", an_edit(problem="the title is empty"), REFUSED, PENDING, "the title is empty"),
    ("bob", an_edit(args={"channel": "press"}), REFUSED, PENDING, "may not be edited"),
    ("bob", an_edit(target="press:x"), ACCEPTED, EDITED, ""),
    ("bob", an_edit(a_need("lawyer"), target="press:x"), REFUSED, PENDING, "beyond what your roles"),
    ("bob", an_edit(ONE, a_need("lawyer")), ACCEPTED, EDITED, ""),
    ("omar", an_edit(), ROLE, PENDING, ""),
    ("rita", an_edit(), REQUESTER, PENDING, ""),
]  # fmt: skip


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(("who", "edit", "ruling", "then", "why"), EDITS)
def test_an_edit_is_ruled_on_like_a_decision(
    who: str, edit: Edit | None, ruling: Ruling, then: ApprovalStatus, why: str
) -> None:
    outcome = edits(who, edit)

    assert (outcome.ruling, outcome.status) == (ruling, then)
    assert why in outcome.detail


@pytest.mark.guarantee("G02")
def test_an_edit_to_what_a_rule_grants_is_refused_where_the_policy_counts_it_as_a_risk() -> None:
    by_rule = Assessment(answer=Answer.BY_RULE, rules=("r",), needs=())

    riskier = edits("bob", an_edit(target="press:x")._replace(assessment=by_rule))
    no_riskier = edits("bob", an_edit()._replace(assessment=by_rule))

    assert (riskier.ruling, no_riskier.ruling) == (REFUSED, ACCEPTED)
    assert riskier.detail == (
        "the edited action would be granted by rule, without people, and the policy counts this change as a risk"
    )


@pytest.mark.guarantee("G02")
def test_what_a_person_is_told_of_an_edit_is_what_the_ruling_on_it_says() -> None:
    for who, edit, ruling, _, why in EDITS:
        if edit is not None:
            told = may_edit(edit, PERSONS[who], an_approval(proposed()), NOW)
            assert (told.ruling, why in told.detail) == (ruling, True)


@pytest.mark.guarantee("G02")
def test_an_author_may_edit_again_or_reject_and_never_approve() -> None:
    by_bob = proposed(authors=("bob",))

    assert edits("bob", an_edit(), proposal=by_bob).status == EDITED
    assert ruled("bob", "reject", by_bob).status == ApprovalStatus.REJECTED
    assert ruled("bob", "approve", by_bob).ruling == AUTHOR
    assert ruled("carl", "approve", by_bob).status == GRANTED


@pytest.mark.guarantee("G03")
def test_an_editor_whose_edit_counts_counts_once() -> None:
    by_bob = proposed(TWO, authors=("bob",))

    assert ruled("bob", "reject", by_bob, a_vote("bob", "edit")).ruling == VOTED
    assert ruled("carl", "approve", by_bob, a_vote("bob", "edit")).status == GRANTED


@pytest.mark.guarantee("G04")
def test_who_edits_twice_is_an_author_still_and_others_must_approve() -> None:
    by_bob = proposed(TWO, authors=("bob",))

    assert ruled("bob", "approve", by_bob).ruling == AUTHOR
    assert ruled("carl", "approve", by_bob).status == PENDING


SOON = [
    # who, does, how long before the deadline the statement expires; what becomes of it
    ("bob", "approve", TICK, TOO_SOON, PENDING),
    ("bob", "approve", NONE, ACCEPTED, GRANTED),
    ("otto", "break_glass", TICK, TOO_SOON, PENDING),
    ("otto", "break_glass", NONE, ACCEPTED, GRANTED),
    ("bob", "reject", 71 * HOUR, ACCEPTED, ApprovalStatus.REJECTED),
    ("omar", "approve", TICK, ROLE, PENDING),
]


@pytest.mark.guarantee("G18")
@pytest.mark.parametrize(("who", "does", "before", "ruling", "then"), SOON)
def test_a_yes_that_is_void_before_the_deadline_is_none(
    who: str, does: str, before: timedelta, ruling: Ruling, then: ApprovalStatus
) -> None:
    """It would settle the approval, and then let it lapse: a no that nobody gave."""
    signed = {"expires_at": DEADLINE - before, "comment_hash": REASON_HASH}

    outcome = ruled(who, does, proposed(), OLGA, signed=signed)

    assert (outcome.ruling, outcome.status) == (ruling, then)


@pytest.mark.guarantee("G18")
@pytest.mark.parametrize(("before", "ruling", "then"), [(TICK, TOO_SOON, PENDING), (NONE, ACCEPTED, EDITED)])
def test_an_edit_that_is_void_before_the_deadline_is_none(
    before: timedelta, ruling: Ruling, then: ApprovalStatus
) -> None:
    edit = an_edit()
    signed = {"edited_action": edit.action.hash(), "expires_at": DEADLINE - before}

    outcome = ruled("bob", "edit", proposed(), signed=signed, edit=edit)

    assert (outcome.ruling, outcome.status) == (ruling, then)


def test_what_nobody_signed_expires_with_nothing() -> None:
    """It holds no time of its own; the message is as old as the run says."""
    signed = {"key_id": "", "expires_at": NOW + HOUR}

    assert ruled("bob", "approve", proposed(), signed=signed, assurance="namespace-only").status == GRANTED


@pytest.mark.guarantee("G14")
def test_an_edit_is_what_was_signed_and_not_what_the_run_makes_of_it() -> None:
    proposal, edit = proposed(), an_edit()
    other = {"edited_action": an_edit(scope="all_documents").action.hash()}

    outcome = ruled("bob", "edit", proposal, signed=other, edit=edit)

    assert (outcome.ruling, outcome.status) == (REFUSED, PENDING)
    assert "not what your changes come to now" in outcome.detail


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(("does", "named"), [("approve", 1), ("reject", 1), ("break_glass", 1), ("edit", 0)])
def test_only_an_edit_names_an_edited_action(does: str, named: int) -> None:
    who = "olga" if does == "break_glass" else "bob"
    signed = {"edited_action": an_edit().action.hash() if named else "", "comment_hash": REASON_HASH}

    assert ruled(who, does, proposed(), signed=signed, edit=an_edit()).ruling == REFUSED
