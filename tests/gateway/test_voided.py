"""What a grant that became void answers: again, after earlier attempts, and when something was forged besides."""

from __future__ import annotations

import pytest

from countersign.domain.errors import NotFound
from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import ApprovalStatus
from tests.gateway.attempt import Attempt
from tests.gateway.tampering import changed_json
from tests.gateway.world import World

EXECUTED = ExecutionStatus.EXECUTED


class TestVoided:
    """What a void grant answers, again and after earlier attempts."""

    @pytest.mark.guarantee("G10")
    def test_a_repeated_attempt_hears_the_same_answer(self, world: World, attempt: Attempt) -> None:
        """The activity that was told so may have died before it could tell the run."""
        approval = world.granted()
        world.revoke_key("bob")
        attempt.is_voided(approval, "roles")
        repeated = attempt.execute(approval)
        assert (repeated.status, repeated.voided) == (None, True)
        assert repeated.reason.startswith("approval_voided: ")
        assert attempt.records("alarm.raised") == []
        assert len(attempt.records("approval.voided")) == 1

    @pytest.mark.guarantee("G36")
    def test_what_may_have_been_sent_is_not_voided(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        attempt.publisher.fail_next("close_after")
        assert attempt.execute(approval).status == ExecutionStatus.UNKNOWN
        world.revoke_key("bob")
        result = attempt.execute(approval)
        assert (result.status, result.voided, result.reason.partition(":")[0]) == (
            ExecutionStatus.UNKNOWN, False, "roles"
        )  # fmt: skip
        assert world.approval(approval).status == ApprovalStatus.GRANTED

    @pytest.mark.guarantee("G34")
    def test_what_was_surely_not_sent_is(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        attempt.publisher.fail_next("rate_limited")
        assert attempt.execute(approval).status == ExecutionStatus.NOT_SENT
        world.revoke_key("bob")
        assert attempt.execute(approval).voided
        assert attempt.publisher.effects() == []
        again = world.propose_again(world.approval(approval))
        world.decide(again, "ben")
        assert attempt.execute(again).status == EXECUTED
        assert len(attempt.publisher.effects()) == 1

    @pytest.mark.guarantee("G33")
    def test_a_change_that_came_while_another_attempt_executed_does_not_hide_the_effect(
        self, world: World, attempt: Attempt
    ) -> None:
        approval = world.granted()

        def verify(tenant: str, sha256: str) -> None:
            attempt.execute(approval)
            raise NotFound("the evidence was taken away just then")

        result = attempt.execute(approval, verify_evidence=verify)
        assert result.status == EXECUTED
        assert len(attempt.publisher.effects()) == 1

    @pytest.mark.guarantee("G22")
    def test_a_forged_approval_that_was_voided_before_is_not_asked_anew(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.revoke_key("bob")
        assert attempt.execute(approval).voided
        world.tamper("approvals", "proposal", changed_json("action", "target", to="press:other.md"))
        result = attempt.execute(approval)
        assert (result.status, result.voided) == (None, False)
        assert len(attempt.records("alarm.raised")) == 1
