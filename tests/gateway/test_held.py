"""What the gateway does not send: while effects are frozen, and what was granted under another's control."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.domain.administration import PolicyChange, UnfreezeChange
from countersign.domain.decision import Ruling
from countersign.domain.execution import EffectResult, ExecutionStatus
from countersign.domain.freeze import Freeze
from countersign.domain.proposal import Approval, ApprovalStatus
from tests.gateway.asking import code, reconcile
from tests.gateway.attempt import Attempt
from tests.gateway.rules import policy, takeable
from tests.gateway.tampering import changed_json
from tests.gateway.world import TENANT, World

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN


def frozen(world: World, tool: str = "", id: str = "an-order-of-freezing") -> Freeze:
    return world.freeze("ann", tool, id)


def lifted(world: World, attempt: Attempt, freeze: Freeze, *persons: str) -> EffectResult:
    """What comes of asking to lift it where these admins approve."""
    approval = world.propose_change(UnfreezeChange(freeze=freeze.number))
    for person in persons:
        world.decide(approval, person)
    return attempt.execute(approval)


class TestFrozen:
    @pytest.mark.parametrize("tool", ["", "publish_report"])
    def test_nothing_is_sent_and_it_is_tried_again_until_two_persons_lift_it(
        self, world: World, attempt: Attempt, tool: str
    ) -> None:
        approval = world.granted()
        freeze = frozen(world, tool)

        for _ in range(3):
            held = attempt.execute(approval)
            assert (held.status, held.voided, code(held)) == (NOT_SENT, False, "frozen")
        attempt.nothing_happened()
        assert world.audit_types() == ["effect.held"]
        assert world.ledger.executions.get(TENANT, "q2-report") is None
        assert world.approval(approval).status == ApprovalStatus.GRANTED

        assert lifted(world, attempt, freeze, "ada", "abe").status == EXECUTED
        assert attempt.execute(approval).status == EXECUTED
        assert len(attempt.publisher.effects()) == 1

    def test_another_tools_freeze_holds_nothing_else(self, world: World, attempt: Attempt) -> None:
        frozen(world, "refund")
        assert attempt.execute(world.granted()).status == EXECUTED

    @pytest.mark.guarantee("G13")
    def test_one_admin_lifts_nothing(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        freeze = frozen(world)
        assert lifted(world, attempt, freeze, "ada").status is None
        assert code(attempt.execute(approval)) == "frozen"

    @pytest.mark.guarantee("G13")
    @pytest.mark.guarantee("G12")
    def test_a_freeze_that_was_lifted_meanwhile_is_not_lifted_twice(self, world: World, attempt: Attempt) -> None:
        """The grant rests on the freeze as it was: what is lifted by then is drift, and no other is lifted for it."""
        freeze = frozen(world)
        approval = world.propose_change(UnfreezeChange(freeze=freeze.number))
        world.decide(approval, "ada")
        world.decide(approval, "abe")
        world.make(UnfreezeChange(freeze=freeze.number))
        again = frozen(world, id="another-order-of-it")
        result = attempt.execute(approval)
        assert (result.status, result.voided, code(result)) == (None, True, "evidence")
        assert world.ledger.freezes.of_tenant(TENANT)[-1] == again

    def test_changes_of_authority_go_on(self, world: World, attempt: Attempt) -> None:
        frozen(world)
        approval = world.propose_change(PolicyChange(policy=policy(2, approvals=2)))
        for person in ("ada", "abe"):
            world.decide(approval, person)
        assert attempt.execute(approval).status == EXECUTED

    @pytest.mark.guarantee("G22")
    def test_a_forged_grant_raises_its_alarm_all_the_same(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        frozen(world)
        world.tamper("votes", "vote", changed_json("statement", to="no.jws.here"))
        attempt.is_forged(approval, "vote_forged")

    @pytest.mark.guarantee("G33")
    def test_what_was_executed_before_answers_as_before(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        first = attempt.execute(approval)
        frozen(world)
        assert attempt.execute(approval) == first

    @pytest.mark.guarantee("G36")
    @pytest.mark.parametrize("fault", ["close_after", "close_before"])
    def test_what_may_be_on_its_way_is_looked_up_and_not_sent_again(
        self, world: World, attempt: Attempt, fault: Any
    ) -> None:
        approval = world.granted()
        attempt.publisher.fail_next(fault)
        assert attempt.execute(approval).status == UNKNOWN
        frozen(world)

        result = attempt.execute(approval)

        arrived = fault == "close_after"
        assert (result.status, code(result)) == ((EXECUTED, "") if arrived else (NOT_SENT, "frozen"))
        assert len(attempt.publisher.effects()) == arrived
        # Known by now not to be there, it is held like anything else.
        assert arrived or code(attempt.execute(approval)) == "frozen"
        assert len(attempt.publisher.calls("POST")) == 1


def taken_over(world: World) -> None:
    outcome = world.command("cora", "take_over")
    assert outcome.ruling == Ruling.ACCEPTED, outcome.sentence()


@pytest.mark.guarantee("G29")
@pytest.mark.guarantee("G30")
class TestTakenOver:
    def test_what_was_granted_before_does_nothing(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(by=takeable())
        taken_over(world)
        attempt.is_ended(approval, "approval_superseded")

    def test_whatever_the_ledger_says_of_the_grant_an_older_version_of_control_does_nothing(
        self, world: World, attempt: Attempt
    ) -> None:
        approval = world.granted(by=takeable())
        taken_over(world)
        world.tamper("approvals", "status", lambda _: "granted")
        attempt.is_ended(approval, "control_changed")

    def test_what_may_be_on_its_way_is_looked_up_and_not_sent_again(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(by=takeable())
        attempt.publisher.fail_next("close_before")
        assert attempt.execute(approval).status == UNKNOWN
        taken_over(world)

        assert world.approval(approval).status == ApprovalStatus.GRANTED
        result = attempt.execute(approval)

        assert (result.status, code(result)) == (NOT_SENT, "control_changed")
        assert code(attempt.execute(approval)) == "control_changed"
        assert attempt.publisher.effects() == []

    def test_what_arrived_before_is_found(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(by=takeable())
        attempt.publisher.fail_next("close_after")
        assert attempt.execute(approval).status == UNKNOWN
        taken_over(world)
        assert reconcile(world.gateway(attempt.press, attempt.internal), approval).status == EXECUTED


@pytest.mark.guarantee("G02")
class TestProposedByAPerson:
    def proposed(self, world: World, **fields: Any) -> Approval:
        """What Cora proposes once she is in control."""
        first = world.propose(by=takeable())
        taken_over(world)
        version = {"control_version": 2, "proposed_by": "cora", "authors": ("cora",), **fields}
        return world.propose_again(world.approval(first), **version)

    def test_others_approve_it_and_it_goes_out(self, world: World, attempt: Attempt) -> None:
        approval = self.proposed(world)
        world.decide(approval, "bob")
        assert attempt.execute(approval).status == EXECUTED

    @pytest.mark.guarantee("G22")
    def test_they_are_among_its_authors_whatever_it_says(self, world: World, attempt: Attempt) -> None:
        approval = self.proposed(world, authors=())
        world.decide(approval, "bob")
        attempt.is_forged(approval, "authors")

    def test_they_do_not_approve_it_themselves(self, world: World, attempt: Attempt) -> None:
        world.move("cora", roles=frozenset({"chief", "reviewer"}))
        approval = self.proposed(world)
        assert world.decide(approval, "cora").ruling == Ruling.AUTHOR_MAY_NOT_APPROVE
        world.tamper("approvals", "status", lambda _: "granted")
        attempt.is_forged(approval, "quorum")
