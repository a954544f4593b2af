"""A further line of people, as the gateway sees it: whoever voted counts by the time of their vote, then and now."""

from __future__ import annotations

from datetime import timedelta

import pytest

from countersign.domain.decision import Ruling
from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.signing.statements import sign_decision
from tests.gateway.attempt import Attempt
from tests.gateway.rules import laddered
from tests.gateway.tampering import changed_json, merged_json
from tests.gateway.world import START, TENANT, World

pytestmark = pytest.mark.guarantee("G27")

EXECUTED = ExecutionStatus.EXECUTED
MOMENT = timedelta(microseconds=1)
TIER = START + timedelta(hours=36)


def agreed(world: World, *persons: str, approvals: int = 1) -> Approval:
    """An approval that these persons approved just when the chiefs came to be asked."""
    approval = world.propose(by=laddered(approvals=approvals))
    world.now = TIER
    for person in persons:
        assert world.decide(approval, person, expires_at=approval.proposal.execute_by).ruling == Ruling.ACCEPTED
    return world.approval(approval)


def test_a_chief_who_was_asked_lets_it_out(world: World, attempt: Attempt) -> None:
    assert attempt.execute(agreed(world, "carl")).status == EXECUTED


@pytest.mark.guarantee("G22")
def test_a_chiefs_vote_from_before_they_were_asked_never_counts(world: World, attempt: Attempt) -> None:
    """The ledger takes none; somebody moved it to before. Asking people anew is safe."""
    approval = agreed(world, "carl")
    world.tamper("votes", "vote", changed_json("decided_at", to=(TIER - MOMENT).isoformat()))
    attempt.is_voided(approval, "roles")


@pytest.mark.guarantee("G22")
def test_an_early_yes_that_somebody_wrote_into_the_ledger_never_counts(world: World, attempt: Attempt) -> None:
    approval = world.granted(by=laddered())
    early = world.statement(approval, "carl")
    told = {"person": "carl", "statement_id": early.id, "statement": sign_decision(early, world.keys["carl"])}
    world.tamper("votes", "vote", merged_json(told))
    attempt.is_voided(approval, "roles")


@pytest.mark.guarantee("G04")
def test_a_further_line_never_makes_one_person_enough_where_two_are_needed(world: World, attempt: Attempt) -> None:
    approval = agreed(world, "carl", approvals=2)
    assert approval.status == ApprovalStatus.PENDING
    world.tamper("approvals", "status", lambda _: "granted")
    attempt.is_forged(approval, "quorum")


def test_one_of_each_line_is_two(world: World, attempt: Attempt) -> None:
    assert attempt.execute(agreed(world, "bob", "carl", approvals=2)).status == EXECUTED


@pytest.mark.guarantee("G06")
def test_a_chief_who_is_none_any_more(world: World, attempt: Attempt) -> None:
    approval = agreed(world, "carl")
    world.move("carl", roles=frozenset({"clerk"}))
    record = attempt.is_voided(approval, "roles")
    assert record.detail["found"] == "carl: no longer has the role reviewer or chief"


@pytest.mark.guarantee("G22")
def test_what_a_line_may_not_decide_does_not_count_whoever_signed_it(world: World, attempt: Attempt) -> None:
    """A chief may only stop it; a genuine yes of one was written over the reviewer's."""
    approval = world.propose(by=laddered(decisions=["reject"]))
    world.now = TIER
    assert world.decide(approval, "carl").ruling == Ruling.DECISION_NOT_ALLOWED
    world.decide(approval, "bob")
    said = world.statement(approval, "carl")
    told = {"person": "carl", "statement_id": said.id, "statement": sign_decision(said, world.keys["carl"])}
    world.tamper("votes", "vote", merged_json(told))
    record = attempt.is_voided(approval, "roles")
    assert record.detail["found"] == "carl: may no longer decide 'approve', with the roles of now"


@pytest.mark.guarantee("G26")
@pytest.mark.parametrize(("left", "ruling"), [(MOMENT, Ruling.ACCEPTED), (0 * MOMENT, Ruling.LATE)])
def test_the_deadline_is_later_only_as_the_policy_says(
    world: World, attempt: Attempt, left: timedelta, ruling: Ruling
) -> None:
    approval = world.propose(by=laddered(extends="48h"))
    assert approval.proposal.deadline == TIER + timedelta(hours=48)
    world.now = approval.proposal.deadline - left
    assert world.decide(approval, "carl").ruling == ruling
    assert (attempt.execute(approval).status == EXECUTED) == (ruling == Ruling.ACCEPTED)


@pytest.mark.guarantee("G22")
@pytest.mark.guarantee("G12")
def test_a_ladder_that_the_policy_does_not_have_is_none(world: World, attempt: Attempt) -> None:
    """Somebody lets the chiefs decide from the beginning on."""
    approval = agreed(world, "carl")
    ladder = {"remind": [], "tiers": [], "then": "expire"}
    needs = approval.proposal.assessment.model_dump(mode="json")["needs"]
    made_up = {
        "answer": "needs_people",
        "rules": ["external"],
        "needs": [{**needs[0], "role": "chief", "ladder": ladder}],
    }
    world.tamper("approvals", "proposal", changed_json("assessment", to=made_up))
    attempt.is_forged(approval, "assessment")
    assert world.ledger.approvals.get(TENANT, approval.proposal.approval_id).status == ApprovalStatus.GRANTED
