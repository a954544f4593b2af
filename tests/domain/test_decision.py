"""The ruling on a decision, as a table to read: who decides what, when, on an approval that stands how."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import MEANING, Background, Outcome, Ruling, rule_on
from countersign.domain.need import Need
from countersign.domain.policy import Answer, Assessment
from countersign.domain.proposal import ApprovalStatus, Vote
from tests.domain.samples import DEADLINE, NOW, a_need, a_person, a_proposal, a_statement, a_vote, an_approval

PENDING, GRANTED, REJECTED = ApprovalStatus.PENDING, ApprovalStatus.GRANTED, ApprovalStatus.REJECTED
EXPIRED, CANCELLED, CONSUMED = ApprovalStatus.EXPIRED, ApprovalStatus.CANCELLED, ApprovalStatus.CONSUMED
SUPERSEDED, EDITED = ApprovalStatus.SUPERSEDED, ApprovalStatus.EDITED
WITHDRAWN, VOIDED = ApprovalStatus.WITHDRAWN, ApprovalStatus.VOIDED

PERSONS = {
    person.id: person
    for person in [
        a_person("rita", "requester", "reviewer"),
        a_person("bob", "reviewer"),
        a_person("carl", "reviewer"),
        a_person("lena", "lawyer"),
        a_person("lois", "lawyer", "reviewer"),
        a_person("omar", "operator"),
        a_person("nora", "requester"),
        a_person("ivan", "reviewer", active=False),
    ]
}
ONE: tuple[Need, ...] = (a_need(),)
TWO = (a_need(approvals=2),)
BOTH = (a_need(), a_need("lawyer"))
APPROVE_ONLY = (a_need(decisions=("approve",)),)
LAWYER_APPROVES_ONLY = (a_need(), a_need("lawyer", decisions=("approve",)))
OTHER_HASH = sha256_hex(b"another action")
LONG_BEFORE, JUST_BEFORE = NOW, DEADLINE - timedelta(microseconds=1)
AT_IT, AFTER_IT = DEADLINE, DEADLINE + timedelta(days=30)


class Case(NamedTuple):
    """One line of the specification; a field that is not given is the ordinary one."""

    who: str
    does: str
    ruling: Ruling
    then: ApprovalStatus
    needs: tuple[Need, ...] = ONE
    voted: Sequence[Vote] = ()
    when: datetime = LONG_BEFORE
    stands: ApprovalStatus = PENDING
    signed: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple has no other way


ACCEPTED, LATE, SETTLED, VOTED = Ruling.ACCEPTED, Ruling.LATE, Ruling.ALREADY_SETTLED, Ruling.ALREADY_VOTED
NO_ROLE, NOT_ALLOWED = Ruling.ROLE_MISSING, Ruling.DECISION_NOT_ALLOWED
REQUESTER = Ruling.REQUESTER_MAY_NOT_DECIDE
WRONG_APPROVAL, WRONG_VERSION, WRONG_ACTION = (
    Ruling.NOT_THIS_APPROVAL,
    Ruling.NOT_THIS_VERSION,
    Ruling.NOT_THIS_ACTION,
)
BOB, CARL, LENA, REJECTER = a_vote("bob"), a_vote("carl"), a_vote("lena"), a_vote("carl", "reject")

WHO = [
    Case("bob", "approve", ACCEPTED, GRANTED),
    Case("bob", "reject", ACCEPTED, REJECTED),
    Case("lois", "approve", ACCEPTED, GRANTED),
    Case("rita", "approve", REQUESTER, PENDING),
    Case("rita", "reject", REQUESTER, PENDING),
    Case("rita", "approve", REQUESTER, PENDING, needs=TWO, voted=[BOB]),
    Case("nora", "approve", NO_ROLE, PENDING),
    Case("omar", "approve", NO_ROLE, PENDING),
    Case("omar", "reject", NO_ROLE, PENDING),
    Case("lena", "approve", NO_ROLE, PENDING),
    Case("ivan", "approve", NO_ROLE, PENDING),
    Case("ivan", "reject", NO_ROLE, PENDING),
]
HOW_MANY = [
    Case("bob", "approve", ACCEPTED, PENDING, needs=TWO),
    Case("carl", "approve", ACCEPTED, GRANTED, needs=TWO, voted=[BOB]),
    Case("bob", "approve", VOTED, PENDING, needs=TWO, voted=[BOB]),
    Case("bob", "reject", VOTED, PENDING, needs=TWO, voted=[BOB]),
    Case("carl", "reject", ACCEPTED, REJECTED, needs=TWO, voted=[BOB]),
    Case("lena", "approve", NO_ROLE, PENDING, needs=TWO, voted=[BOB]),
    Case("bob", "approve", ACCEPTED, PENDING, needs=BOTH),
    Case("lena", "approve", ACCEPTED, PENDING, needs=BOTH),
    Case("lena", "approve", ACCEPTED, GRANTED, needs=BOTH, voted=[BOB]),
    Case("bob", "approve", ACCEPTED, GRANTED, needs=BOTH, voted=[LENA]),
    Case("carl", "approve", ACCEPTED, PENDING, needs=BOTH, voted=[BOB]),
    Case("lena", "reject", ACCEPTED, REJECTED, needs=BOTH, voted=[BOB]),
    Case("lois", "approve", ACCEPTED, GRANTED, needs=BOTH),
    # An earlier voter counts as the directory has them now: gone, without the role, or inactive counts no more.
    Case("carl", "approve", ACCEPTED, PENDING, needs=TWO, voted=[a_vote("gone")]),
    Case("carl", "approve", ACCEPTED, PENDING, needs=TWO, voted=[a_vote("omar")]),
    Case("carl", "approve", ACCEPTED, PENDING, needs=TWO, voted=[a_vote("ivan")]),
    # A no never counts towards a yes, even if one lay in the votes of a pending approval.
    Case("bob", "approve", ACCEPTED, PENDING, needs=TWO, voted=[REJECTER]),
]
WHICH_DECISIONS = [
    Case("bob", "reject", NOT_ALLOWED, PENDING, needs=APPROVE_ONLY),
    Case("bob", "approve", ACCEPTED, GRANTED, needs=APPROVE_ONLY),
    Case("bob", "reject", NOT_ALLOWED, PENDING, needs=LAWYER_APPROVES_ONLY),
    Case("omar", "reject", NO_ROLE, PENDING, needs=APPROVE_ONLY),
]
WHAT = [
    Case("bob", "approve", WRONG_APPROVAL, PENDING, signed={"approval_id": "apr-2"}),
    Case("bob", "approve", WRONG_APPROVAL, PENDING, signed={"approval_id": "apr-1 "}),
    Case("bob", "approve", WRONG_APPROVAL, PENDING, signed={"tenant": "other"}),
    Case("bob", "approve", WRONG_APPROVAL, PENDING, signed={"operation": "report-2"}),
    Case("bob", "reject", WRONG_APPROVAL, PENDING, signed={"operation": "report-2"}),
    Case("bob", "approve", WRONG_VERSION, PENDING, signed={"approval_version": 1}),
    Case("bob", "approve", WRONG_VERSION, PENDING, signed={"approval_version": 3}),
    Case("bob", "reject", WRONG_VERSION, PENDING, signed={"approval_version": 1}),
    Case("bob", "approve", WRONG_ACTION, PENDING, signed={"action_hash": OTHER_HASH}),
    Case("bob", "reject", WRONG_ACTION, PENDING, signed={"action_hash": OTHER_HASH}),
    Case("rita", "approve", WRONG_ACTION, PENDING, signed={"action_hash": OTHER_HASH}),
    Case("bob", "approve", WRONG_APPROVAL, GRANTED, stands=GRANTED, signed={"approval_id": "apr-2"}),
    Case("bob", "approve", WRONG_VERSION, PENDING, when=AFTER_IT, signed={"approval_version": 1}),
]
WHEN = [
    Case("bob", "approve", ACCEPTED, GRANTED, when=JUST_BEFORE),
    Case("bob", "reject", ACCEPTED, REJECTED, when=JUST_BEFORE),
    Case("bob", "approve", LATE, PENDING, when=AT_IT),
    Case("bob", "reject", LATE, PENDING, when=AT_IT),
    Case("bob", "approve", LATE, PENDING, when=AFTER_IT),
    Case("carl", "approve", LATE, PENDING, needs=TWO, voted=[BOB], when=AT_IT),
    Case("omar", "approve", LATE, PENDING, when=AT_IT),
    Case("bob", "approve", LATE, EXPIRED, stands=EXPIRED, when=AFTER_IT),
    Case("bob", "approve", LATE, EXPIRED, stands=EXPIRED, when=LONG_BEFORE),
    Case("bob", "reject", LATE, EXPIRED, stands=EXPIRED, when=AFTER_IT),
]
STANDS = [
    Case("bob", "approve", SETTLED, GRANTED, stands=GRANTED, voted=[CARL]),
    Case("bob", "reject", SETTLED, GRANTED, stands=GRANTED, voted=[CARL]),
    Case("carl", "approve", SETTLED, GRANTED, stands=GRANTED, voted=[CARL]),
    Case("bob", "approve", SETTLED, REJECTED, stands=REJECTED, voted=[REJECTER]),
    Case("bob", "approve", SETTLED, CANCELLED, stands=CANCELLED),
    Case("bob", "approve", SETTLED, SUPERSEDED, stands=SUPERSEDED),
    Case("bob", "approve", SETTLED, EDITED, stands=EDITED),
    Case("bob", "approve", SETTLED, WITHDRAWN, stands=WITHDRAWN),
    Case("bob", "approve", SETTLED, VOIDED, stands=VOIDED, voted=[CARL]),
    Case("bob", "approve", SETTLED, CONSUMED, stands=CONSUMED, voted=[CARL]),
    Case("bob", "reject", SETTLED, CONSUMED, stands=CONSUMED, voted=[CARL]),
    Case("bob", "approve", SETTLED, GRANTED, stands=GRANTED, when=AFTER_IT),
]


def ruled(case: Case) -> Outcome:
    proposal = a_proposal(*case.needs)
    statement = a_statement(proposal, person=case.who, decision=case.does, **case.signed)
    approval = an_approval(proposal, case.stands, case.voted)
    return rule_on(statement, PERSONS[case.who], approval, Background(PERSONS, case.when))


def as_told(case: Case) -> None:
    assert (ruled(case).ruling, ruled(case).status) == (case.ruling, case.then)


def named(cases: list[Case]) -> pytest.MarkDecorator:
    ids = [f"{number}-{case.who}-{case.does}-{case.ruling}" for number, case in enumerate(cases)]
    return pytest.mark.parametrize("case", cases, ids=ids)


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G07")
@named(WHO)
def test_who_may_decide(case: Case) -> None:
    as_told(case)


@pytest.mark.guarantee("G03")
@pytest.mark.guarantee("G04")
@pytest.mark.guarantee("G05")
@named(HOW_MANY)
def test_how_many_must_agree(case: Case) -> None:
    as_told(case)


@named(WHICH_DECISIONS)
def test_which_decisions_the_policy_allows(case: Case) -> None:
    as_told(case)


@pytest.mark.guarantee("G14")
@pytest.mark.guarantee("G16")
@pytest.mark.guarantee("G20")
@named(WHAT)
def test_a_decision_is_good_for_one_approval_version_and_action(case: Case) -> None:
    as_told(case)


@pytest.mark.guarantee("G26")
@named(WHEN)
def test_a_decision_at_the_deadline_or_after_it_is_late(case: Case) -> None:
    as_told(case)


@pytest.mark.guarantee("G10")
@named(STANDS)
def test_what_is_settled_stays_as_it_is(case: Case) -> None:
    as_told(case)


@pytest.mark.guarantee("G01")
def test_a_proposal_without_needs_is_granted_by_nobody() -> None:
    proposal = a_proposal().model_copy(
        update={"assessment": Assessment(answer=Answer.PEOPLE, rules=("broken",), needs=())}
    )

    assert proposal.decisions == frozenset()
    outcome = rule_on(a_statement(), PERSONS["bob"], an_approval(proposal), Background(PERSONS, NOW))
    assert outcome.ruling == Ruling.ROLE_MISSING


@pytest.mark.guarantee("G06")
def test_an_earlier_vote_counts_by_the_role_of_today() -> None:
    today = {**PERSONS, "bob": a_person("bob", "operator")}
    proposal = a_proposal(*TWO)

    approval, statement = an_approval(proposal, votes=[BOB]), a_statement(proposal, person="carl")

    outcome = rule_on(statement, PERSONS["carl"], approval, Background(today, NOW))

    assert outcome.status == PENDING


@pytest.mark.guarantee("G24")
@pytest.mark.parametrize("does", ["approve", "reject"])
def test_an_expired_approval_names_no_decider(does: str) -> None:
    """A late no is no denial either."""
    outcome = ruled(Case("bob", does, LATE, EXPIRED, stands=EXPIRED))

    assert outcome.sentence() == "late: expired, not executed: the deadline had passed"
    assert not any(person in outcome.model_dump_json() for person in PERSONS)


@pytest.mark.guarantee("G26")
@given(st.timedeltas(timedelta(0), timedelta(days=3650)))
def test_no_time_after_the_deadline_is_early_enough(after: timedelta) -> None:
    assert ruled(Case("bob", "approve", LATE, PENDING, when=DEADLINE + after)).ruling == Ruling.LATE


@pytest.mark.guarantee("G04")
@given(st.lists(st.sampled_from(sorted(PERSONS)), max_size=6, unique=True), st.sampled_from(sorted(PERSONS)))
def test_a_grant_always_has_two_persons_of_the_role_where_two_are_needed(voted: list[str], who: str) -> None:
    outcome = ruled(Case(who, "approve", ACCEPTED, GRANTED, needs=TWO, voted=[a_vote(person) for person in voted]))
    eligible = {person for person in {*voted, who} if person in {"rita", "bob", "carl", "lois"}}

    if outcome.status == GRANTED:
        assert len(eligible) >= 2
        assert who != "rita"


def test_every_ruling_has_a_meaning_for_people() -> None:
    assert set(MEANING) == set(Ruling)
    for ruling in Ruling:
        assert Outcome(ruling=ruling).sentence() == f"{ruling.value}: {MEANING[ruling]}"


def test_denied_expired_superseded_and_settled_are_never_the_same_words() -> None:
    assert len(set(MEANING.values())) == len(Ruling)


def test_a_refusal_tells_its_detail_instead_where_there_is_one() -> None:
    outcome = Outcome(ruling=Ruling.BAD_STATEMENT, detail="signature: it does not fit")

    assert outcome.sentence() == "bad_statement: signature: it does not fit"


@pytest.mark.guarantee("G16")
@pytest.mark.parametrize(
    "changes",
    [
        {"person": "Bob"},
        {"approval_version": 0},
        {"approval_version": True},
        {"approval_version": 10**30},
        {"approval_version": "2"},
        {"action_hash": "sha256:"},
        {"comment_hash": "well done"},
        {"decision": "pardon"},
        {"decision": "APPROVE"},
        {"edited_action": "the retitled one"},
        {"issued_at": datetime(2026, 11, 30)},  # noqa: DTZ001 - a time without an offset is the case
        {"id": "short"},
        {"id": "x" * 65},
        {"id": "with blank 00000000"},
        {"also": "unknown"},
    ],
)
def test_a_malformed_statement_does_not_exist(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_statement(**changes)
