"""Policies at execution: the pinned one is the measure, and any change of it means that people are asked anew (G12)."""

from __future__ import annotations

import pytest

from countersign.domain.execution import ExecutionStatus
from countersign.domain.need import Need
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval, ApprovalStatus
from tests.gateway.attempt import Attempt
from tests.gateway.rules import editable, need, policy
from tests.gateway.tampering import changed_json
from tests.gateway.world import TENANT, World

OTHER_HASH = "sha256:" + "7" * 64
EXECUTED = ExecutionStatus.EXECUTED


LATER_POLICIES: list[tuple[str, Policy]] = [
    ("asks for more", policy(2, approvals=2)),
    ("asks for less", policy(2, internal="by_rule", decisions=("approve", "edit", "reject"))),
    ("asks for another role", policy(2, role="clerk")),
    ("lets nobody approve", policy(2, decisions=("reject",))),
    ("says the same under a new version", policy(2)),
    ("has no rule for it", policy(2).model_copy(update={"rules": policy().rules[:1]})),
]


class TestPolicies:
    """G12: a policy that was changed voids what was agreed to under the old one, stricter or not."""

    @pytest.mark.guarantee("G12")
    @pytest.mark.guarantee("G01")
    @pytest.mark.parametrize("later", [case[1] for case in LATER_POLICIES], ids=[case[0] for case in LATER_POLICIES])
    def test_a_later_version(self, world: World, attempt: Attempt, later: Policy) -> None:
        approval = world.granted()
        world.adopt(later)
        record = attempt.is_voided(approval, "policy")
        assert (record.detail["expected"], record.detail["found"]) == (policy().label(), later.label())

    @pytest.mark.guarantee("G12")
    def test_a_later_version_that_no_longer_grants_by_rule(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(channel="internal", by_persons=())
        world.adopt(policy(2, internal="people"))
        attempt.is_voided(approval, "policy")

    @pytest.mark.guarantee("G12")
    def test_a_looser_version_cannot_take_away_what_the_first_ask_needed(self, world: World, attempt: Attempt) -> None:
        """Two were needed; under the looser policy it is asked anew, and one is still not enough."""
        approval = world.granted(by=policy(2, approvals=2), by_persons=("bob", "ben"))
        world.adopt(policy(3))
        attempt.is_voided(approval, "policy")
        again = world.propose_again(world.approval(approval))
        world.decide(again, "bob")
        assert world.approval(again).status == ApprovalStatus.PENDING
        world.decide(again, "ben")
        assert attempt.execute(again).status == EXECUTED

    @pytest.mark.guarantee("G12")
    def test_an_assessment_without_the_floor_that_it_tells_of(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(by=policy(2, approvals=2), by_persons=("bob", "ben"))
        world.adopt(policy(3))
        attempt.execute(approval)
        again = world.propose_again(world.approval(approval))
        world.decide(again, "bob")
        looser = changed_json("assessment", "needs", to=lambda needs: needs[:1])
        where = "approval_version = 2"
        world.tamper("approvals", "proposal", looser, where)
        world.tamper("approvals", "status", lambda _: "granted", where)
        result = attempt.execute(again)
        assert (result.status, result.reason.partition(":")[0]) == (None, "assessment")
        assert len(attempt.records("alarm.raised")) == 1

    @pytest.mark.guarantee("G12")
    @pytest.mark.guarantee("G22")
    def test_a_version_that_was_never_kept(self, world: World, attempt: Attempt) -> None:
        attempt.is_forged(world.granted(policy_version=f"report/9@{OTHER_HASH}"), "policy_unknown")

    @pytest.mark.guarantee("G22")
    @pytest.mark.parametrize("kept", [b"{}", b"not a policy"])
    def test_a_version_whose_hash_stands_for_something_else(self, world: World, attempt: Attempt, kept: bytes) -> None:
        sha256 = world.ledger.documents.put(TENANT, kept)
        attempt.is_forged(world.granted(policy_version=f"report/1@{sha256}"), "policy_unknown")

    @pytest.mark.guarantee("G22")
    def test_a_version_under_another_name(self, world: World, attempt: Attempt) -> None:
        label = world.in_force("report").label().replace("report/1", "report/7")
        attempt.is_forged(world.granted(policy_version=label), "policy_unknown")

    @pytest.mark.guarantee("G01")
    def test_an_action_that_no_rule_allows(self, world: World, attempt: Attempt) -> None:
        """The ledger would not stop a worker that proposes what its policy denies; the gateway does."""
        approval = world.propose(side_effect="no_such_effect")
        world.tamper("approvals", "status", lambda _: "granted")
        attempt.is_forged(approval, "denied")


class TestFloor:
    """G12: what a version before needed stays needed, whatever the next proposal says it has to keep."""

    @pytest.fixture
    def asked_of_two(self, world: World, attempt: Attempt) -> Approval:
        """A void grant by two under a policy that a laxer one has replaced."""
        approval = world.granted(by=editable(2, approvals=2), by_persons=("bob", "ben"))
        world.adopt(editable(3, counts="never"))
        attempt.is_voided(approval, "policy")
        return world.approval(approval)

    def stopped(self, attempt: Attempt, approval: Approval) -> None:
        """The ledger granted it to one person; the gateway raises the alarm."""
        assert attempt.world.approval(approval).status == ApprovalStatus.GRANTED
        result = attempt.execute(approval)
        assert (result.status, result.reason.partition(":")[0]) == (None, "floor")
        assert [record.detail["reason"] for record in attempt.records("alarm.raised")] == [result.reason]
        attempt.nothing_happened()

    @pytest.mark.guarantee("G12")
    @pytest.mark.guarantee("G22")
    @pytest.mark.parametrize("floor", [(), (need(),)])
    def test_a_proposal_that_forgets_what_the_void_one_needed(
        self, world: World, attempt: Attempt, asked_of_two: Approval, floor: tuple[Need, ...]
    ) -> None:
        again = world.propose_again(asked_of_two, floor=floor)
        world.decide(again, "bob")
        self.stopped(attempt, again)

    @pytest.mark.guarantee("G12")
    @pytest.mark.guarantee("G22")
    def test_an_edit_that_forgets_it(self, world: World, attempt: Attempt, asked_of_two: Approval) -> None:
        again = world.propose_again(asked_of_two)
        edited = world.edited(again, floor=())
        world.decide(edited, "ben")
        self.stopped(attempt, edited)

    @pytest.mark.guarantee("G12")
    def test_an_edit_keeps_it(self, world: World, attempt: Attempt, asked_of_two: Approval) -> None:
        edited = world.edited(world.propose_again(asked_of_two))
        world.decide(edited, "ben")
        assert world.approval(edited).status == ApprovalStatus.PENDING
        world.move("cora", roles=frozenset({"reviewer"}))
        world.decide(edited, "cora")
        assert attempt.execute(edited).status == EXECUTED

    @pytest.mark.guarantee("G05")
    @pytest.mark.guarantee("G12")
    def test_of_two_equal_needs_for_different_persons_one_is_not_enough(self, world: World, attempt: Attempt) -> None:
        rule = policy().rules[1]
        apart = rule.model_copy(update={"need": need().model_copy(update={"distinct": True})})
        twice = policy(2).model_copy(update={"rules": (apart, apart.model_copy(update={"id": "again"}))})
        approval = world.granted(by=twice, by_persons=("bob", "ben"))
        assert approval.status == ApprovalStatus.GRANTED
        world.adopt(policy(3).model_copy(update={"rules": (apart,)}))
        attempt.is_voided(approval, "policy")
        again = world.propose_again(world.approval(approval), floor=approval.proposal.assessment.needs[:1])
        world.decide(again, "bob")
        self.stopped(attempt, again)
