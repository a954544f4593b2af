"""What holds at the moment of execution: where something a grant rests on has changed, people are asked anew.

What no honest course leads to is in test_grant; here somebody had every right to make the change.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.administration import DirectoryChange, KeyAddition, KeyRevocation
from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import ApprovalStatus
from countersign.signing.statements import sign_decision, sign_request
from tests.gateway.attempt import Attempt
from tests.gateway.rules import need, policy
from tests.gateway.tampering import changed_json, merged_json
from tests.gateway.world import DOCUMENT, TENANT, World, a_key

OTHER_HASH = "sha256:" + "7" * 64
EXECUTED = ExecutionStatus.EXECUTED


PERSON_CHANGES: list[tuple[str, Callable[[World], None], str]] = [
    ("demoted", lambda world: world.move("bob", roles=frozenset({"clerk"})), "bob: no longer has the role reviewer"),
    ("without any role", lambda world: world.move("bob", roles=frozenset()), "bob: no longer has the role reviewer"),
    ("deactivated", lambda world: world.move("bob", active=False), "bob: is no longer active"),
    ("key revoked", lambda world: world.revoke_key("bob"), "bob: key bob-1 is not valid now"),
]


class TestPersonsNow:
    """G06: who may decide is asked again at execution."""

    @pytest.mark.guarantee("G06")
    @pytest.mark.parametrize(
        ("change", "found"), [case[1:] for case in PERSON_CHANGES], ids=[c[0] for c in PERSON_CHANGES]
    )
    def test_an_approver_who_counts_no_longer(
        self, world: World, attempt: Attempt, change: Callable[[World], None], found: str
    ) -> None:
        approval = world.granted()
        change(world)
        record = attempt.is_voided(approval, "roles")
        assert str(record.detail["found"]).startswith(found)
        assert record.detail["expected"] == "1 of role reviewer"

    @pytest.mark.guarantee("G06")
    @pytest.mark.parametrize(
        ("change", "found"), [case[1:] for case in PERSON_CHANGES], ids=[c[0] for c in PERSON_CHANGES]
    )
    def test_one_of_two_who_counts_no_longer(
        self, world: World, attempt: Attempt, change: Callable[[World], None], found: str
    ) -> None:
        approval = world.granted(by=policy(2, approvals=2), by_persons=("bob", "ben"))
        change(world)
        record = attempt.is_voided(approval, "roles")
        assert str(record.detail["found"]).startswith(found)
        assert "ben" not in str(record.detail["found"])

    @pytest.mark.guarantee("G06")
    def test_one_of_two_roles_of_a_person_that_another_cannot_stand_in_for(
        self, world: World, attempt: Attempt
    ) -> None:
        """Bob approved as a clerk and Ben as a reviewer; now Bob is a reviewer too, and nobody a clerk."""
        world.move("bob", roles=frozenset({"reviewer", "clerk"}))
        rules = policy(2).rules
        needs = (
            need("reviewer").model_copy(update={"distinct": True}),
            need("clerk").model_copy(update={"distinct": True}),
        )
        both = (rules[1].model_copy(update={"id": f"external-{one.role}", "need": one}) for one in needs)
        approval = world.granted(by=policy(2).model_copy(update={"rules": tuple(both)}), by_persons=("bob", "ben"))
        assert approval.status == ApprovalStatus.GRANTED
        world.move("bob", roles=frozenset({"reviewer"}))
        record = attempt.is_voided(approval, "roles")
        assert record.detail["found"] == "the roles that they have now do not meet the policy's needs together"

    @pytest.mark.guarantee("G06")
    def test_a_statement_that_its_signer_limited_in_time(self, world: World, attempt: Attempt) -> None:
        approval = world.propose()
        until = approval.proposal.deadline
        world.now = until - timedelta(minutes=10)
        world.decide(approval, "bob", expires_at=until)
        world.now = until
        assert "was good until" in str(attempt.is_voided(approval, "roles").detail["found"])

    @pytest.mark.guarantee("G06")
    def test_somebody_else_who_still_counts_is_enough(self, world: World, attempt: Attempt) -> None:
        """More voted than were needed: what is left suffices."""
        approval = world.granted(by=policy(2, approvals=2), by_persons=("bob", "ben"))
        world.move("rita", roles=frozenset({"requester"}))
        assert attempt.execute(approval).status == EXECUTED

    @pytest.mark.guarantee("G06")
    def test_a_requester_whose_key_was_revoked(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.revoke_key("rita")
        attempt.is_ended(approval, "request")

    @pytest.mark.guarantee("G06")
    @pytest.mark.parametrize(("roles", "active"), [({"requester"}, False), ({"reviewer"}, True), (set(), True)])
    def test_a_requester_who_is_gone_or_no_longer_one(
        self, world: World, attempt: Attempt, roles: set[str], active: bool
    ) -> None:
        approval = world.granted()
        world.move("rita", roles=frozenset(roles), active=active)
        attempt.is_ended(approval, "requester")

    @pytest.mark.guarantee("G06")
    def test_who_may_ask_is_the_policys_word(self, world: World, attempt: Attempt) -> None:
        clerks_ask = policy(2, asked_by="clerk")
        attempt.is_ended(world.granted(by=clerks_ask), "requester")


@pytest.mark.guarantee("G04")
def test_two_valid_votes_of_two_persons_are_enough_for_two(world: World, attempt: Attempt) -> None:
    approval = world.granted(by=policy(2, approvals=2), by_persons=("bob", "ben"))
    assert attempt.execute(approval).status == EXECUTED


@pytest.mark.guarantee("G05")
def test_where_two_rules_apply_each_ones_threshold_is_met(world: World, attempt: Attempt) -> None:
    """Whether one of them was a clerk before cannot be seen; that nobody is one now is enough to stop it."""
    first = policy(2, approvals=2).rules[1]
    both = policy(2).model_copy(
        update={"rules": (first, first.model_copy(update={"id": "a-clerk", "need": need("clerk")}))}
    )
    approval = world.granted(by=both, by_persons=("bob", "ben"))
    assert approval.status == ApprovalStatus.PENDING
    world.tamper("approvals", "status", lambda _: "granted")
    attempt.is_voided(approval, "roles")


@pytest.mark.guarantee("G03")
@pytest.mark.guarantee("G04")
def test_one_person_with_two_keys_is_one_person(world: World, attempt: Attempt) -> None:
    approval = world.granted(by=policy(2, approvals=2), by_persons=("bob", "ben"))
    second = Ed25519PrivateKey.generate()
    world.make(DirectoryChange(keys_added=(KeyAddition(person="bob", key=a_key("bob-2", second)),)))
    statement = world.statement(approval, "bob", key_id="bob-2", id="bobs-second-statement")
    told = {"person": "bob", "statement_id": statement.id, "statement": sign_decision(statement, second)}
    world.tamper("votes", "vote", merged_json(told), where="person = 'ben'")
    attempt.is_forged(approval, "quorum")


@pytest.mark.guarantee("G06")
def test_a_new_key_does_not_bring_back_what_the_revoked_one_signed(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    key = a_key("bob-2", Ed25519PrivateKey.generate())
    revoked = KeyRevocation(person="bob", key_id="bob-1")
    world.make(DirectoryChange(keys_added=(KeyAddition(person="bob", key=key),), keys_revoked=(revoked,)))
    attempt.is_voided(approval, "roles")


@pytest.mark.guarantee("G22")
def test_a_vote_against_outweighs_enough_votes_for(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    statement = world.statement(approval, "ben", "reject")
    told = {"person": "ben", "statement_id": statement.id, "statement": sign_decision(statement, world.keys["ben"])}
    world.insert_vote(TENANT, approval.proposal.approval_id, approval.votes[0].model_copy(update=told))
    attempt.is_forged(approval, "rejected")


class TestRequest:
    """G02: whom the agent acts for is known from a signature, so the requester cannot become somebody else."""

    def resigned(self, world: World, person: str, **changes: Any) -> str:
        statement = world.request("q2-report", person).model_copy(update=changes)
        return sign_request(statement, world.keys[person])

    @pytest.mark.guarantee("G02")
    def test_a_request_signed_by_its_own_approver(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.move("bob", roles=frozenset({"requester", "reviewer"}))
        world.tamper("operations", "statement", lambda _: self.resigned(world, "bob"))
        world.tamper("operations", "requester", lambda _: "bob")
        world.tamper("approvals", "proposal", changed_json("requester", to="bob"))
        attempt.is_forged(approval, "own_vote")

    @pytest.mark.guarantee("G02")
    @pytest.mark.parametrize(
        "changes",
        [{"operation": "q3-report"}, {"tenant": "globex"}, {"installation": "x"}, {"request_hash": OTHER_HASH}],
    )
    def test_a_request_that_was_signed_for_something_else(
        self, world: World, attempt: Attempt, changes: dict[str, Any]
    ) -> None:
        approval = world.granted()
        world.tamper("operations", "statement", lambda _: self.resigned(world, "rita", **changes))
        attempt.is_forged(approval, "request")

    @pytest.mark.guarantee("G02")
    @pytest.mark.parametrize("statement", ["", "forged", "a.b.c"])
    def test_a_request_that_nobody_signed(self, world: World, attempt: Attempt, statement: str) -> None:
        approval = world.granted(channel="internal", by_persons=())
        world.tamper("operations", "statement", lambda _: statement)
        attempt.is_forged(approval, "request")

    @pytest.mark.guarantee("G22")
    def test_an_operation_of_another_case(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.tamper("operations", "case", lambda _: "administration", where="operation = 'q2-report'")
        attempt.is_forged(approval, "request")


@pytest.mark.guarantee("G22")
def test_an_untouched_grant_passes(world: World, attempt: Attempt) -> None:
    """The measure of this file: without a change everything above would have been published."""
    assert attempt.execute(world.granted()).status == EXECUTED
    assert [body for _, body in attempt.publisher.effects()] == [DOCUMENT]
