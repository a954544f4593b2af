"""Rulings on money and on missing signatures, and what a person is told of them before they sign."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.domain.decision import Ruling, approving, may
from countersign.domain.need import Need
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Vote
from tests.domain.ruling import ALL, OLGA, ONE, PERSONS, REASON_HASH, TWO, an_edit, edits, proposed, ruled
from tests.domain.samples import NOW, a_need, a_vote, an_approval

PENDING, GRANTED, EDITED = ApprovalStatus.PENDING, ApprovalStatus.GRANTED, ApprovalStatus.EDITED
ACCEPTED, ROLE, LIMIT = Ruling.ACCEPTED, Ruling.ROLE_MISSING, Ruling.LIMIT_EXCEEDED
VOTED, REQUESTER = Ruling.ALREADY_VOTED, Ruling.REQUESTER_MAY_NOT_DECIDE

MONEY = [
    # who, does, the amount, approved before in minor units; ruling
    ("bob", "approve", "1000.00 EUR", 0, ACCEPTED),
    ("bob", "approve", "1000.01 EUR", 0, LIMIT),
    ("bob", "approve", "1000.00 EUR", 50_000, ACCEPTED),
    ("bob", "approve", "1000.00 EUR", 50_001, LIMIT),
    ("bob", "approve", "0.01 EUR", 150_000, LIMIT),
    ("bob", "approve", "10.00 USD", 10_000_000, ACCEPTED),
    ("bob", "approve", "10.01 USD", 0, LIMIT),
    ("bob", "approve", "1 JPY", 0, LIMIT),
    ("carl", "approve", "0.01 EUR", 0, LIMIT),
    ("carl", "approve", "0.00 EUR", 0, LIMIT),
    ("carl", "reject", "5000.00 EUR", 0, ACCEPTED),
    ("otto", "break_glass", "9.00 EUR", 0, ACCEPTED),
    ("otto", "break_glass", "9.01 EUR", 0, LIMIT),
    ("olga", "break_glass", "0.01 EUR", 0, LIMIT),
]


@pytest.mark.guarantee("G08")
@pytest.mark.parametrize(("who", "does", "money", "used", "ruling"), MONEY)
def test_nobody_lets_more_money_out_than_their_own_limit(
    who: str, does: str, money: str, used: int, ruling: Ruling
) -> None:
    outcome = ruled(who, does, proposed(money=money), signed={"comment_hash": REASON_HASH}, used=used)

    assert outcome.ruling == ruling


@pytest.mark.guarantee("G08")
def test_an_editor_stays_within_their_own_limit() -> None:
    """What the edit makes of the amount counts, not what was proposed."""
    cheap, dear = proposed(money="10.00 EUR"), proposed(money="2000.00 EUR")

    assert edits("bob", an_edit(money="1000.01 EUR"), proposal=cheap).ruling == LIMIT
    assert edits("bob", an_edit(money="1000.00 EUR"), proposal=cheap).status == EDITED
    assert edits("bob", an_edit(money="900.00 EUR"), proposal=dear).status == EDITED
    assert edits("bob", an_edit(money="900.00 EUR"), proposal=dear, used=60_001).ruling == LIMIT
    assert edits("bob", an_edit(money="11.00 USD"), proposal=cheap).ruling == LIMIT


DISTINCT = a_need(distinct=True, decisions=ALL)
UNSIGNED = [
    # needs, who, does; what becomes of it without a signature
    ((ONE,), "bob", "approve", ACCEPTED, GRANTED),
    ((ONE,), "bob", "reject", ACCEPTED, ApprovalStatus.REJECTED),
    ((TWO,), "bob", "approve", Ruling.SIGNATURE_NEEDED, PENDING),
    ((DISTINCT,), "bob", "approve", Ruling.SIGNATURE_NEEDED, PENDING),
    ((TWO,), "bob", "reject", ACCEPTED, ApprovalStatus.REJECTED),
    ((ONE,), "olga", "break_glass", Ruling.SIGNATURE_NEEDED, PENDING),
]


@pytest.mark.guarantee("G04")
@pytest.mark.guarantee("G21")
@pytest.mark.parametrize(("needs", "who", "does", "ruling", "then"), UNSIGNED)
def test_a_decision_that_nobody_signed_never_counts_towards_two_persons(
    needs: tuple[Need, ...], who: str, does: str, ruling: Ruling, then: ApprovalStatus
) -> None:
    signed = {"key_id": "", "comment_hash": REASON_HASH}

    outcome = ruled(who, does, proposed(*needs), signed=signed, assurance="namespace-only")

    assert (outcome.ruling, outcome.status) == (ruling, then)


@pytest.mark.guarantee("G04")
def test_an_unsigned_vote_of_before_completes_no_two() -> None:
    unsigned = a_vote("carl", assurance="namespace-only")
    votes = [unsigned, a_vote("bob"), a_vote("lena", "edit"), a_vote("omar", "reject"), OLGA]

    assert ruled("bob", "approve", proposed(TWO), unsigned).status == PENDING
    assert [vote.person for vote in approving(votes, (TWO,))] == ["bob", "lena"]
    assert [vote.person for vote in approving(votes, (ONE,))] == ["carl", "bob", "lena"]


def about(proposal: Proposal, *votes: Vote) -> Approval:
    return an_approval(proposal, votes=votes)


@pytest.mark.guarantee("G07")
@pytest.mark.parametrize(
    ("who", "does", "ruling"),
    [
        ("bob", "approve", ACCEPTED),
        ("bob", "edit", ACCEPTED),
        ("carl", "approve", LIMIT),
        ("carl", "edit", ACCEPTED),
        ("carl", "reject", ACCEPTED),
        ("lena", "approve", ROLE),
        ("rita", "approve", REQUESTER),
        ("bob", "respond", Ruling.RESPOND_IS_FOR_QUESTIONS),
        ("otto", "break_glass", ACCEPTED),
    ],
)
def test_a_person_is_told_what_they_could_decide_before_they_sign(who: str, does: Any, ruling: Ruling) -> None:
    assert may(does, PERSONS[who], about(proposed(money="5.00 EUR")), NOW).ruling == ruling


@pytest.mark.guarantee("G08")
def test_a_person_is_told_by_what_they_approved_before() -> None:
    approval = about(proposed(money="1000.00 EUR"))

    assert may("approve", PERSONS["bob"], approval, NOW, used=50_000).ruling == ACCEPTED
    assert "more than 1500.00 EUR in 24h" in may("approve", PERSONS["bob"], approval, NOW, used=50_001).detail
    assert may("approve", PERSONS["bob"], about(proposed(), a_vote("bob")), NOW).ruling == VOTED
