"""Edited actions at the gateway: whose edit counts as an approval, and that its editor stays an author (G02)."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import Approval, ApprovalStatus, Vote
from countersign.signing.statements import sign_decision
from tests.gateway.attempt import Attempt
from tests.gateway.rules import editable, policy
from tests.gateway.tampering import changed_json, merged_json
from tests.gateway.world import TENANT, World

EXECUTED = ExecutionStatus.EXECUTED
OTHER_HASH = "sha256:" + "7" * 64
SECOND = "approval_version = 2"


@pytest.fixture
def edited(world: World) -> Approval:
    """A proposal that Bob's edit made, and that his edit alone approves."""
    approval = world.edited(world.propose(by=editable()))
    assert approval.status == ApprovalStatus.GRANTED
    return approval


@pytest.mark.guarantee("G02")
def test_where_one_person_suffices_the_edit_is_the_approval(world: World, attempt: Attempt, edited: Approval) -> None:
    result = attempt.execute(edited)
    assert result.status == EXECUTED
    assert result.receipt is not None
    assert result.receipt.key == edited.proposal.action.idempotency_key()


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G04")
def test_where_two_are_needed_the_edit_is_none(world: World, attempt: Attempt) -> None:
    approval = world.edited(world.propose(by=editable(approvals=2)))
    assert (approval.status, approval.votes) == (ApprovalStatus.PENDING, ())
    world.move("cora", roles=frozenset({"reviewer"}))
    world.decide(approval, "ben")
    world.decide(approval, "cora")
    assert attempt.execute(approval).status == EXECUTED


@pytest.mark.guarantee("G02")
def test_the_editor_cannot_approve_on_top(world: World, attempt: Attempt) -> None:
    """The ledger refuses the vote; written there all the same, it is refused here."""
    approval = world.edited(world.propose(by=editable(approvals=2)))
    world.decide(approval, "bob")
    world.decide(approval, "ben")
    assert world.approval(approval).status == ApprovalStatus.PENDING
    world.insert_vote(TENANT, approval.proposal.approval_id, approval_by(world, approval, "bob"))
    world.tamper("approvals", "status", lambda _: "granted", SECOND)
    attempt.is_forged(approval, "own_vote")


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("authors", [[], ["ben"], ["bob", "ben"]])
def test_other_authors_than_the_one_who_edited(
    world: World, attempt: Attempt, edited: Approval, authors: list[str]
) -> None:
    """Without his name among them, Bob could approve his own edit."""
    world.tamper("approvals", "proposal", changed_json("authors", to=authors), SECOND)
    attempt.is_forged(edited, "authors")


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G22")
def test_an_edit_whose_traces_are_wiped_off_the_proposal(world: World, attempt: Attempt) -> None:
    approval = world.edited(world.propose(by=editable(counts="never")))
    wiped = merged_json({"authors": [], "edited_from": ""})
    world.tamper("approvals", "proposal", wiped, SECOND)
    world.insert_vote(TENANT, approval.proposal.approval_id, approval_by(world, approval, "bob"))
    world.tamper("approvals", "status", lambda _: "granted", SECOND)
    attempt.is_forged(approval, "authors")


@pytest.mark.guarantee("G22")
def test_a_second_version_without_the_first(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    world.tamper("approvals", "proposal", changed_json("approval_version", to=2))
    attempt.is_forged(approval, "authors")


@pytest.mark.guarantee("G02")
def test_an_author_stays_one_when_it_is_asked_anew(world: World, attempt: Attempt, edited: Approval) -> None:
    world.adopt(editable(3))
    attempt.is_voided(edited, "policy")
    again = world.propose_again(world.approval(edited))
    assert again.proposal.authors == ("bob",)
    world.decide(again, "bob")
    assert world.approval(again).status == ApprovalStatus.PENDING
    world.decide(again, "ben")
    assert attempt.execute(again).status == EXECUTED


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G22")
def test_an_author_who_is_forgotten_when_it_is_asked_anew(world: World, attempt: Attempt, edited: Approval) -> None:
    world.revoke_key("bob")
    assert attempt.execute(edited).voided
    again = world.propose_again(world.approval(edited), authors=())
    world.decide(again, "ben")
    result = attempt.execute(again)
    assert (result.status, result.reason.partition(":")[0]) == (None, "authors")
    assert len(attempt.records("alarm.raised")) == 1


@pytest.mark.guarantee("G06")
def test_an_editor_who_counts_no_longer(world: World, attempt: Attempt, edited: Approval) -> None:
    world.move("bob", roles=frozenset({"clerk"}))
    attempt.is_voided(edited, "roles")


STATEMENTS: list[dict[str, Any]] = [
    {"edited_action": OTHER_HASH}, {"action_hash": OTHER_HASH}, {"approval_version": 2}, {"approval_id": "apr-other"},
    {"operation": "q3-report"}, {"tenant": "globex"}, {"installation": "elsewhere"},
    {"decision": "approve", "edited_action": ""}, {"decision": "break_glass", "edited_action": ""},
]  # fmt: skip


@pytest.mark.guarantee("G16")
@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("changes", STATEMENTS, ids=str)
def test_an_edit_that_was_signed_otherwise(
    world: World, attempt: Attempt, edited: Approval, changes: dict[str, Any]
) -> None:
    """A well-signed edit of another action, of another proposal, or no edit at all, told as the edit that made this."""
    (vote,) = edited.votes
    first = world.ledger.approvals.get(TENANT, edited.proposal.edited_from)
    said = {"edited_action": edited.proposal.action_hash, "id": vote.statement_id, **changes}
    statement = world.statement(first, "bob", "edit").model_copy(update=said)
    told = {"statement": sign_decision(statement, world.keys["bob"]), "edited_action": statement.edited_action}
    of_second = f"approval_id = '{edited.proposal.approval_id}'"
    world.tamper("votes", "vote", merged_json(told), of_second)
    attempt.is_forged(edited, "vote_forged")


@pytest.mark.guarantee("G14")
@pytest.mark.guarantee("G22")
def test_an_edit_is_no_approval_of_what_another_edit_made_of_it(world: World, attempt: Attempt) -> None:
    second = world.edited(world.propose(by=editable(approvals=2, counts="unless_risk_raised")))
    (by_bob,) = second.votes
    third = world.edited(second, "ben", "Sales, edited again")
    assert [vote.person for vote in third.votes] == ["ben"]
    world.insert_vote(TENANT, third.proposal.approval_id, by_bob)
    world.tamper("approvals", "status", lambda _: "granted", "approval_version = 3")
    attempt.is_forged(third, "vote_forged")


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G04")
def test_where_the_policy_says_so_the_edit_is_one_of_two(world: World, attempt: Attempt) -> None:
    approval = world.edited(world.propose(by=editable(approvals=2, counts="unless_risk_raised")))
    world.decide(approval, "ben")
    assert attempt.execute(approval).status == EXECUTED


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("status", ["pending", "granted", "rejected"])
def test_the_edited_proposal_must_be_one(world: World, attempt: Attempt, edited: Approval, status: str) -> None:
    world.tamper("approvals", "status", lambda _: status, "approval_version = 1")
    attempt.is_forged(edited, "authors")


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G22")
def test_an_edit_that_the_policy_counts_never(world: World, attempt: Attempt) -> None:
    approval = world.edited(world.propose(by=editable(counts="never")))
    assert approval.status == ApprovalStatus.PENDING
    first = world.ledger.approvals.get(TENANT, approval.proposal.edited_from)
    world.insert_vote(TENANT, approval.proposal.approval_id, first.votes[0])
    world.tamper("approvals", "status", lambda _: "granted", SECOND)
    attempt.is_forged(approval, "vote_forged")


@pytest.mark.guarantee("G22")
def test_an_edit_by_somebody_who_is_no_author(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    edit = approval.votes[0].model_copy(update={"decision": "edit"})
    world.tamper("votes", "vote", lambda _: edit.model_dump_json())
    attempt.is_forged(approval, "vote_forged")


@pytest.mark.guarantee("G22")
def test_approving_where_the_policy_does_not_offer_it(world: World, attempt: Attempt) -> None:
    approval = world.propose(by=policy(2, decisions=("reject",)))
    world.insert_vote(TENANT, approval.proposal.approval_id, approval_by(world, approval, "bob"))
    world.tamper("approvals", "status", lambda _: "granted")
    attempt.is_forged(approval, "vote_forged")


def approval_by(world: World, approval: Approval, person: str) -> Vote:
    """A vote with a good signature, as the ledger would keep it if it were accepted."""
    statement = world.statement(approval, person)
    return Vote(
        person=person, decision="approve", statement_id=statement.id,
        statement=sign_decision(statement, world.keys[person]), decided_at=world.now,
    )  # fmt: skip
