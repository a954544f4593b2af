"""Decisions that nobody signed, at the gateway: the `dev` profile alone takes them, and never towards two persons."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.domain.execution import ExecutionStatus
from tests.gateway.attempt import Attempt
from tests.gateway.rules import policy
from tests.gateway.tampering import changed_json, merged_json
from tests.gateway.world import World, unsigned_text

OTHER_HASH = "sha256:" + "7" * 64
EXECUTED = ExecutionStatus.EXECUTED


class TestUnsigned:
    """Decisions that nobody signed count in the `dev` profile alone, and never towards two persons."""

    def granted(self, world: World) -> Any:
        approval = world.propose()
        world.decide(approval, "bob", signed=False)
        return world.approval(approval)

    def test_one_is_enough_where_one_person_is(self, world: World, attempt: Attempt) -> None:
        assert attempt.execute(self.granted(world), unsigned=True).status == EXECUTED

    @pytest.mark.guarantee("G22")
    def test_it_is_a_forgery_where_decisions_are_signed(self, world: World, attempt: Attempt) -> None:
        attempt.is_forged(self.granted(world), "vote_forged")

    @pytest.mark.guarantee("G04")
    def test_it_never_counts_towards_two_persons(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(by=policy(2, approvals=2), by_persons=("bob", "ben"))
        text = unsigned_text(world.statement(approval, "ben"))
        unsigned = merged_json({"assurance": "namespace-only", "statement": text})
        world.tamper("votes", "vote", unsigned, where="person = 'ben'")
        attempt.is_forged(approval, "quorum", unsigned=True)

    @pytest.mark.guarantee("G16")
    @pytest.mark.parametrize(
        "changes",
        [{"approval_id": "apr-other"}, {"approval_version": 2}, {"action_hash": OTHER_HASH}, {"person": "ben"}],
    )
    def test_it_is_good_for_one_approval_alone(self, world: World, attempt: Attempt, changes: dict[str, Any]) -> None:
        approval = self.granted(world)
        text = unsigned_text(world.statement(approval, "bob").model_copy(update=changes))
        world.tamper("votes", "vote", changed_json("statement", to=text))
        attempt.is_forged(approval, "vote_forged", unsigned=True)
