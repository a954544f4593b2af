"""Rulings while a ladder is climbed: who decides what from when on, and what earlier votes then come to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from countersign.domain.decision import Background, Outcome, Ruling, break_glass_needs, may, may_edit, rule_on
from countersign.domain.edit import Edit
from countersign.domain.need import Need
from countersign.domain.policy import Answer, Assessment, BreakGlass, Editing, Terms
from countersign.domain.proposal import ApprovalStatus, Proposal, Vote, authors_of
from tests.domain.samples import (
    DEADLINE,
    NOW,
    a_need,
    a_person,
    a_proposal,
    a_statement,
    a_vote,
    an_action,
    an_approval,
)

pytestmark = pytest.mark.guarantee("G27")

PENDING, GRANTED, REJECTED = ApprovalStatus.PENDING, ApprovalStatus.GRANTED, ApprovalStatus.REJECTED
OK, ROLE, NOT_ALLOWED, LATE = Ruling.ACCEPTED, Ruling.ROLE_MISSING, Ruling.DECISION_NOT_ALLOWED, Ruling.LATE
MOMENT = timedelta(microseconds=1)
BEFORE, AT_TIER, LATER = NOW + timedelta(hours=48) - MOMENT, NOW + timedelta(hours=48), NOW + timedelta(hours=60)
EXTENDED = NOW + timedelta(hours=96)
PERSONS = {
    one.id: one for one in [
        a_person("rita", "requester", "lead"), a_person("bob"), a_person("carl"), a_person("lea", "lead"),
        a_person("lou", "lead", "lawyer"), a_person("lena", "lawyer"), a_person("omar", "operator"),
    ]
}  # fmt: skip


def laddered(approvals: int = 1, role: str = "reviewer", **tier: Any) -> Need:
    asks = {"after": "48h", "role": "lead", "decisions": ["approve", "reject"], **tier}
    return a_need(role, approvals, ladder={"tiers": [asks]})


ONE, TWO, STOPS = laddered(), laddered(2), laddered(decisions=["reject"])
LONGER = laddered(extends="48h")
TERMS = Terms(
    editing=Editing(fields=("title",), raises_risk=("target",)), break_glass=BreakGlass(role="operator", approvals=2)
)


def proposed(*needs: Need, **changes: Any) -> Proposal:
    assessment = Assessment(answer=Answer.PEOPLE, rules=("r",), needs=needs)
    deadline, execute_by = assessment.times(NOW)
    return a_proposal(*needs, deadline=deadline, execute_by=execute_by, terms=TERMS, **changes)


def ruled(who: str, does: str, needs: tuple[Need, ...], when: datetime, *votes: Vote, **known: Any) -> Outcome:
    proposal = proposed(*needs)
    signed = {"expires_at": NOW + timedelta(days=9), **known.pop("signed", {})}
    statement = a_statement(proposal, person=who, decision=does, **signed)
    approval = an_approval(proposal, votes=votes)
    outcome = rule_on(statement, PERSONS[who], approval, Background(PERSONS, when, **known))
    if does != "edit" and when < proposal.deadline:
        # What people are told before they sign is what the ruling then says.
        told = may(does, PERSONS[who], approval, when)  # type: ignore[arg-type] # as in the table
        assert (told.ruling, told.detail) == (outcome.ruling, outcome.detail)
    return outcome


def early(person: str) -> Vote:
    return a_vote(person, decided_at=BEFORE)


def late(person: str) -> Vote:
    return a_vote(person, decided_at=AT_TIER)


TABLE = [
    # needs, votes of before, who, does, when; ruling, how it then stands
    ((ONE,), [], "lea", "approve", BEFORE, ROLE, PENDING),
    ((ONE,), [], "lea", "reject", BEFORE, ROLE, PENDING),
    ((ONE,), [], "lea", "approve", AT_TIER, OK, GRANTED),
    ((ONE,), [], "lea", "reject", AT_TIER, OK, REJECTED),
    ((ONE,), [], "bob", "approve", LATER, OK, GRANTED),
    ((ONE,), [], "rita", "approve", LATER, Ruling.REQUESTER_MAY_NOT_DECIDE, PENDING),
    ((ONE,), [], "omar", "approve", LATER, ROLE, PENDING),
    # Never fewer persons, whichever lines they come from.
    ((TWO,), [], "lea", "approve", LATER, OK, PENDING),
    ((TWO,), [early("bob")], "lea", "approve", LATER, OK, GRANTED),
    ((TWO,), [late("lea")], "bob", "approve", LATER, OK, GRANTED),
    ((TWO,), [late("lea")], "lou", "approve", LATER, OK, GRANTED),
    ((TWO,), [late("lea")], "lea", "approve", LATER, Ruling.ALREADY_VOTED, PENDING),
    # A vote from before its line was asked counts for nothing, even if one lay there.
    ((TWO,), [early("lea")], "bob", "approve", LATER, OK, PENDING),
    # What a line may decide.
    ((STOPS,), [], "lea", "reject", LATER, OK, REJECTED),
    ((STOPS,), [], "lea", "approve", LATER, NOT_ALLOWED, PENDING),
    ((STOPS,), [], "bob", "approve", LATER, OK, GRANTED),
    ((STOPS, a_need("lawyer")), [early("bob")], "lou", "approve", LATER, NOT_ALLOWED, PENDING),
    ((STOPS, a_need("lawyer")), [early("bob")], "lou", "approve", BEFORE, OK, GRANTED),
    ((ONE, a_need("lawyer")), [], "lou", "approve", LATER, OK, GRANTED),
    ((ONE, a_need("lawyer")), [], "lou", "approve", BEFORE, OK, PENDING),
    ((a_need(decisions=("approve",)), laddered(role="lawyer")), [], "lea", "reject", LATER, NOT_ALLOWED, PENDING),
    # The deadline.
    ((ONE,), [], "lea", "approve", DEADLINE - MOMENT, OK, GRANTED),
    ((ONE,), [], "lea", "approve", DEADLINE, LATE, PENDING),
    ((ONE,), [], "lea", "reject", DEADLINE, LATE, PENDING),
    ((LONGER,), [], "lea", "approve", DEADLINE, OK, GRANTED),
    ((LONGER,), [], "bob", "approve", EXTENDED - MOMENT, OK, GRANTED),
    ((LONGER,), [], "bob", "approve", EXTENDED, LATE, PENDING),
    ((LONGER,), [], "lea", "reject", EXTENDED, LATE, PENDING),
]


@pytest.mark.guarantee("G06")
@pytest.mark.guarantee("G26")
@pytest.mark.parametrize(
    ("needs", "votes", "who", "does", "when", "ruling", "then"),
    TABLE, ids=[f"{number}-{row[2]}-{row[3]}-{row[5]}" for number, row in enumerate(TABLE)],
)  # fmt: skip
def test_a_further_line_decides_from_its_time_on(
    needs: Any, votes: list[Vote], who: str, does: str, when: datetime, ruling: Ruling, then: ApprovalStatus
) -> None:
    outcome = ruled(who, does, needs, when, *votes)

    assert (outcome.ruling, outcome.status) == (ruling, then), outcome.sentence()


def test_who_is_not_asked_yet_is_told_from_when_on() -> None:
    told = f"you are asked from {AT_TIER.isoformat()} on, if nobody has decided by then"

    assert ruled("lea", "approve", (ONE,), NOW).detail == told
    assert ruled("omar", "approve", (ONE,), NOW).detail == ""
    # A line that begins when another need's time is over is never asked.
    assert ruled("lea", "approve", (ONE, a_need("lawyer", decide_within="48h")), NOW).detail == ""


@pytest.mark.guarantee("G11")
def test_no_ladder_leads_around_the_rules() -> None:
    (glass,) = break_glass_needs(proposed(ONE))

    assert glass.roles(timedelta(days=9)) == ("operator",)
    assert ruled("lea", "break_glass", (ONE,), LATER).ruling == ROLE


EDIT = {"decisions": ["approve", "edit", "reject"]}


def an_edit(need: Need, **changes: Any) -> Edit:
    args = {"channel": "public", "name": "report-1.md", "title": "Sales of Q2"}
    return Edit(an_action(args=args, **changes), Assessment(answer=Answer.PEOPLE, rules=("r",), needs=(need,)))


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(
    ("tier", "target", "when", "ruling"),
    [
        (EDIT, "public:report-1.md", LATER, OK),
        (EDIT, "public:report-1.md", BEFORE, ROLE),
        ({}, "public:report-1.md", LATER, NOT_ALLOWED),
        # What raises the risk is theirs to change if they are asked about the outcome too.
        (EDIT, "public:other.md", LATER, OK),
    ],
)
def test_a_further_line_edits_where_the_policy_says_so(
    tier: dict[str, Any], target: str, when: datetime, ruling: Ruling
) -> None:
    need = laddered(**tier).model_copy(update={"decisions": ("approve", "edit", "reject")})
    edit = an_edit(need, target=target)

    outcome = ruled("lea", "edit", (need,), when, edit=edit, signed={"edited_action": edit.action.hash()})

    assert outcome.ruling == ruling, outcome.sentence()
    assert may_edit(edit, PERSONS["lea"], an_approval(proposed(need)), when).ruling == ruling


@pytest.mark.guarantee("G02")
def test_whoever_wrote_edited_or_proposed_an_action_is_among_its_authors() -> None:
    before = an_approval(a_proposal(authors=("ann",)), ApprovalStatus.EDITED, [a_vote("bob", "edit"), a_vote("carl")])

    assert authors_of(None, "agent", ()) == ()
    assert authors_of(None, "lea", ("lou", "lea")) == ("lou", "lea")
    assert authors_of(before, "lea", ("lou", "ann")) == ("ann", "bob", "lou", "lea")


@pytest.mark.guarantee("G02")
def test_whoever_proposed_an_action_does_not_approve_it_by_a_ladder_either() -> None:
    proposal = proposed(ONE, authors=("lea",), proposed_by="lea")
    statement = a_statement(proposal, person="lea", expires_at=NOW + timedelta(days=9))

    outcome = rule_on(statement, PERSONS["lea"], an_approval(proposal), Background(PERSONS, LATER))

    assert outcome.ruling == Ruling.AUTHOR_MAY_NOT_APPROVE
    assert "wrote, edited or proposed" in outcome.sentence()
