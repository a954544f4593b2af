"""Changes of who may do what, executed: two admins, exactly what they signed, on what they saw, once (G13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from countersign.domain.administration import (
    Change,
    DirectoryChange,
    KeyRevocation,
    PersonChange,
    PolicyChange,
    content,
)
from countersign.domain.canonical import canonical_bytes
from countersign.domain.directory import ADMIN, Standing
from countersign.domain.errors import Unavailable
from countersign.domain.execution import ExecutionStatus
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.gateway.authority_channel import AuthorityChannel
from countersign.gateway.gateway import CLAIM_MARGIN
from tests.gateway.asking import in_parallel
from tests.gateway.attempt import Attempt
from tests.gateway.rules import administration, policy
from tests.gateway.world import TENANT, World, unsigned_text

EXECUTED = ExecutionStatus.EXECUTED
PROMOTION = DirectoryChange(
    persons=(PersonChange(person="eve", standing=Standing(roles=frozenset({"reviewer", "clerk"}))),),
    keys_revoked=(KeyRevocation(person="ben", key_id="ben-1"),),
)
STRICTER = PolicyChange(policy=policy(2, approvals=2))


def agreed(world: World, change: Change, *persons: str, **changes: Any) -> Approval:
    """A change that these admins approved."""
    approval = world.propose_change(change, **changes)
    for person in persons or ("ada", "abe"):
        world.decide(approval, person)
    return world.approval(approval)


def untouched(world: World) -> bool:
    """Whether authority is as it was at first."""
    eve = world.ledger.directory.persons(TENANT)["eve"]
    return eve.roles == frozenset({"clerk"}) and world.in_force("report") == policy()


class TestMade:
    @pytest.mark.guarantee("G13")
    def test_a_change_of_persons_and_keys(self, world: World, attempt: Attempt) -> None:
        approval = agreed(world, PROMOTION)
        result = attempt.execute(approval)
        assert result.status == EXECUTED
        assert result.receipt is not None
        assert (result.receipt.channel, result.receipt.reference) == ("authority", "directory")
        persons = world.ledger.directory.persons(TENANT)
        assert persons["eve"].may("reviewer")
        assert not persons["ben"].has_good_key(world.now)
        assert world.approval(approval).status == ApprovalStatus.CONSUMED
        changed = [*attempt.records("directory.person_changed"), *attempt.records("directory.key_revoked")]
        assert {record.detail["basis"] for record in changed if record.operation} == {"a-change"}

    @pytest.mark.guarantee("G13")
    def test_a_change_of_policy(self, world: World, attempt: Attempt) -> None:
        result = attempt.execute(agreed(world, STRICTER))
        assert result.status == EXECUTED
        assert world.in_force("report") == STRICTER.policy

    @pytest.mark.guarantee("G13")
    @pytest.mark.guarantee("G12")
    def test_a_change_of_its_own_policy(self, world: World, attempt: Attempt) -> None:
        """Once it is made the grant's own policy is another one; the answer is still what was done."""
        approval = agreed(world, PolicyChange(policy=administration(2)))
        first = attempt.execute(approval)
        assert first.status == EXECUTED
        assert attempt.execute(approval) == first

    @pytest.mark.guarantee("G13")
    @pytest.mark.guarantee("G31")
    def test_many_at_once_make_it_once(self, world: World, attempt: Attempt) -> None:
        approval = agreed(world, STRICTER)
        results = in_parallel(6, lambda number: attempt.execute(approval))
        assert {result.status for result in results} <= {EXECUTED, ExecutionStatus.UNKNOWN}
        assert attempt.execute(approval).status == EXECUTED
        assert len([record for record in attempt.records("policy.adopted") if record.operation]) == 1

    @pytest.mark.guarantee("G13")
    @pytest.mark.guarantee("G37")
    @pytest.mark.parametrize(("step", "made"), [("claimed", False), ("sent", True)])
    def test_interrupted_it_is_looked_up_and_made_once(
        self, world: World, attempt: Attempt, step: str, made: bool
    ) -> None:
        approval = agreed(world, PROMOTION)

        def interrupt(done: str) -> None:
            if done == step:
                raise Unavailable("interrupted here")

        with pytest.raises(Unavailable, match="interrupted"):
            attempt.execute(approval, on_step=interrupt)
        world.now += 2 * AuthorityChannel.time_limit + CLAIM_MARGIN
        found = world.gateway().reconcile(TENANT, approval.proposal.approval_id)
        assert found.status == (EXECUTED if made else ExecutionStatus.NOT_SENT)
        assert attempt.execute(approval).status == EXECUTED
        assert len([record for record in attempt.records("directory.key_revoked") if record.operation]) == 1


class TestTwoPersons:
    @pytest.mark.guarantee("G13")
    @pytest.mark.guarantee("G04")
    def test_one_admin_is_not_enough(self, world: World, attempt: Attempt) -> None:
        approval = agreed(world, PROMOTION, "ada")
        world.tamper("approvals", "status", lambda _: "granted")
        attempt.is_forged(approval, "quorum")
        assert untouched(world)

    @pytest.mark.guarantee("G13")
    @pytest.mark.guarantee("G02")
    def test_the_admin_who_asks_is_none_of_the_two(self, world: World, attempt: Attempt) -> None:
        approval = agreed(world, PROMOTION, "ada", "ann")
        assert approval.status == ApprovalStatus.PENDING
        attempt.is_forged(approval, "approval_pending")
        assert untouched(world)

    @pytest.mark.guarantee("G13")
    def test_a_policy_that_asks_for_one_does_not_help(self, world: World, attempt: Attempt) -> None:
        """Written into the database, since the ledger adopts no such policy."""
        one = administration(1, approvals=1)
        weaken(world, one)
        approval = agreed(world, PROMOTION, "ada")
        assert approval.status == ApprovalStatus.GRANTED
        attempt.is_forged(approval, "two_persons")
        assert untouched(world)

    @pytest.mark.guarantee("G13")
    def test_a_policy_that_grants_by_rule_does_not_help(self, world: World, attempt: Attempt) -> None:
        by_rule = administration(1).rules[0].model_copy(update={"need": None, "grant": "by_rule"})
        weaken(world, administration(1).model_copy(update={"rules": (by_rule,)}))
        approval = agreed(world, PROMOTION)
        assert approval.status == ApprovalStatus.GRANTED
        attempt.is_forged(approval, "two_persons")
        assert untouched(world)

    @pytest.mark.guarantee("G13")
    def test_nobody_who_did_not_sign_is_one_of_the_two(self, world: World, attempt: Attempt) -> None:
        weaken(world, administration(1, approvals=1))
        approval = agreed(world, PROMOTION, "ada")
        unsigned = unsigned_text(world.statement(approval, "abe"))
        told = {"person": "abe", "assurance": "namespace-only", "statement": unsigned}
        vote = approval.votes[0].model_copy(update={**told, "statement_id": world.statement(approval, "abe").id})
        world.insert_vote(TENANT, approval.proposal.approval_id, vote)
        attempt.is_forged(approval, "two_persons", unsigned=True)
        assert untouched(world)

    @pytest.mark.guarantee("G13")
    def test_a_report_is_no_disguise_for_it(self, world: World, attempt: Attempt) -> None:
        """Reviewers under the report's policy have no say in it, however many they are."""
        world.adopt(policy(2, approvals=2))
        action = world.change_action("q2-report", PROMOTION)
        fields = action.model_dump(exclude={"tenant", "operation", "policy_version", "side_effect"})
        approval = world.granted(by_persons=("bob", "ben"), wanted=world.wanted(), **fields)
        attempt.is_forged(approval, "case")
        assert not world.ledger.directory.persons(TENANT)["eve"].may("reviewer")

    @pytest.mark.guarantee("G06")
    @pytest.mark.guarantee("G13")
    def test_an_admin_who_is_one_no_longer(self, world: World, attempt: Attempt) -> None:
        approval = agreed(world, PROMOTION)
        world.move("rita", roles=frozenset({ADMIN}))
        world.move("abe", roles=frozenset())
        attempt.is_voided(approval, "roles")
        assert untouched(world)


class TestWhatItRestsOn:
    @pytest.mark.guarantee("G13")
    @pytest.mark.parametrize(
        ("change", "meanwhile"),
        [
            (PROMOTION, lambda world: world.move("eve", roles=frozenset())),
            (PROMOTION, lambda world: world.revoke_key("ben")),
            (PolicyChange(policy=policy(3)), lambda world: world.adopt(policy(2))),
        ],
    )
    def test_what_it_is_about_was_changed_meanwhile(
        self, world: World, attempt: Attempt, change: DirectoryChange | PolicyChange, meanwhile: Callable[[World], None]
    ) -> None:
        approval = agreed(world, change)
        meanwhile(world)
        record = attempt.is_voided(approval, "evidence")
        assert record.detail["expected"] == approval.proposal.action.evidence_hash

    @pytest.mark.guarantee("G13")
    def test_others_may_have_been_changed(self, world: World, attempt: Attempt) -> None:
        approval = agreed(world, PROMOTION)
        world.move("carl", roles=frozenset())
        assert attempt.execute(approval).status == EXECUTED

    @pytest.mark.guarantee("G13")
    def test_a_change_that_came_between_looking_and_making(self, world: World, attempt: Attempt) -> None:
        """Nothing was made, so the key is free, the grant void, and people are asked anew."""
        approval = agreed(world, PROMOTION)

        def meanwhile(step: str) -> None:
            if step == "claimed":
                world.move("eve", roles=frozenset())

        result = attempt.execute(approval, on_step=meanwhile)
        assert (result.status, result.voided) == (None, True)
        assert world.approval(approval).status == ApprovalStatus.VOIDED
        assert world.audit_types("a-change") == ["effect.intended", "effect.not_sent", "effect.refused"]
        assert not world.ledger.directory.persons(TENANT)["eve"].roles
        again = world.propose_again(world.approval(approval), world.change_action("a-change", PROMOTION))
        assert again.proposal.action_hash != approval.proposal.action_hash

    @pytest.mark.guarantee("G13")
    def test_a_change_that_would_lock_everybody_out_by_now(self, world: World, attempt: Attempt) -> None:
        """Two admins leave at once: each alone would be fine, both together leave nobody who could change anything."""
        leave = DirectoryChange(persons=(PersonChange(person="rita", standing=Standing(roles=frozenset())),))
        world.move("rita", roles=frozenset({ADMIN}))
        approval = agreed(world, leave)

        def meanwhile(step: str) -> None:
            if step == "claimed":
                world.move("ann", roles=frozenset())

        result = attempt.execute(approval, on_step=meanwhile)
        assert (result.status, result.voided) == (None, True)
        assert result.reason.startswith("outside_refused: change_refused: ")
        assert world.ledger.directory.persons(TENANT)["rita"].may(ADMIN)


class TestWords:
    @pytest.mark.guarantee("G13")
    @pytest.mark.guarantee("G39")
    @pytest.mark.parametrize(
        ("field", "value", "reason"),
        [
            ("target", "policy:report", "words_do_not_fit"),
            ("side_effect", "authority_changed", "denied"),
            ("scope", "one_document", "words_do_not_fit"),
            ("tool", "change_policy", "arguments_refused"),
            ("args", {}, "arguments_refused"),
            ("args", {"change": {"kind": "directory", "persons": [], "everybody": True}}, "arguments_refused"),
            ("args", {"change": STRICTER.model_dump(mode="json")}, "arguments_refused"),
        ],
    )
    def test_words_that_hide_the_change(
        self, world: World, attempt: Attempt, field: str, value: Any, reason: str
    ) -> None:
        approval = agreed(world, PROMOTION, **{field: value})
        world.tamper("approvals", "status", lambda _: "granted")
        attempt.is_forged(approval, reason)
        assert untouched(world)

    @pytest.mark.guarantee("G13")
    @pytest.mark.guarantee("G39")
    def test_a_side_effect_that_no_configuration_could_change(self, world: World, attempt: Attempt) -> None:
        """A policy that does not look at it lets it through; no honest course leads there, so nobody is asked anew."""
        rule = administration().rules[0]
        when = {"tool": rule.when["tool"]}
        weaken(world, administration().model_copy(update={"rules": (rule.model_copy(update={"when": when}),)}))
        attempt.is_forged(agreed(world, PROMOTION, side_effect="internal_publication"), "words_do_not_fit")
        assert untouched(world)

    @pytest.mark.guarantee("G13")
    @pytest.mark.guarantee("G14")
    def test_a_document_that_states_another_change_than_the_arguments(self, world: World, attempt: Attempt) -> None:
        """People read one and the gateway would have made the other."""
        harmless = DirectoryChange(persons=(PersonChange(person="eve", standing=Standing(roles=frozenset({"clerk"}))),))
        shown = world.ledger.documents.put(TENANT, content(harmless))
        rests_on = world.change_action("a-change", PROMOTION).evidence_hash
        approval = agreed(world, PROMOTION, content_hash=shown, evidence_hash=rests_on)
        attempt.is_forged(approval, "words_do_not_fit")
        assert untouched(world)


def weaken(world: World, rules: Policy) -> None:
    """Put a policy in force directly in the database, which its own checks would refuse."""
    text = canonical_bytes(rules.model_dump(mode="json")).decode()
    world.tamper("policies", "policy", lambda _: text, "name = 'administration'")
