"""What holds at the moment of execution: persons, keys, request, policies, and whether the words fit the effect."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.directory import Key, Person
from countersign.domain.errors import ConfigurationRefused, NotFound, Unavailable
from countersign.domain.execution import EffectResult, ExecutionStatus
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval
from countersign.signing.keys import public_text
from countersign.signing.statements import sign_decision, sign_request
from tests.gateway.attempt import Attempt
from tests.gateway.world import DOCUMENT, START, TENANT, World, changed_json, merged_json, policy

OTHER_HASH = "sha256:" + "7" * 64


class TestPersonsNow:
    """G06: who may decide is asked again at execution."""

    @pytest.mark.guarantee("G06")
    def test_a_revoked_key(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.ledger.directory.revoke_key(TENANT, "bob", "bob-1", "admin", world.now)
        attempt.is_refused(approval, "quorum")

    @pytest.mark.guarantee("G06")
    @pytest.mark.parametrize(("roles", "active"), [({"clerk"}, True), (set(), True), ({"reviewer"}, False)])
    def test_a_lost_role_or_person(self, world: World, attempt: Attempt, roles: set[str], active: bool) -> None:
        approval = world.granted()
        bob = Person(tenant=TENANT, id="bob", roles=frozenset(roles), active=active)
        world.ledger.directory.put_person(bob, "admin", world.now)
        attempt.is_refused(approval, "quorum")

    @pytest.mark.guarantee("G06")
    def test_one_of_two_who_is_gone(self, world: World, attempt: Attempt) -> None:
        two = policy(approvals=2)
        approval = world.granted(by=two, by_persons=("bob", "ben"))
        world.ledger.directory.revoke_key(TENANT, "ben", "ben-1", "admin", world.now)
        attempt.is_refused(approval, "quorum", policies=[two])

    @pytest.mark.guarantee("G06")
    def test_a_requester_whose_key_was_revoked(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.ledger.directory.revoke_key(TENANT, "rita", "rita-1", "admin", world.now)
        attempt.is_refused(approval, "request")

    @pytest.mark.guarantee("G06")
    @pytest.mark.parametrize(("roles", "active"), [({"requester"}, False), ({"reviewer"}, True), (set(), True)])
    def test_a_requester_who_is_gone_or_no_longer_one(
        self, world: World, attempt: Attempt, roles: set[str], active: bool
    ) -> None:
        approval = world.granted()
        rita = Person(tenant=TENANT, id="rita", roles=frozenset(roles), active=active)
        world.ledger.directory.put_person(rita, "admin", world.now)
        attempt.is_refused(approval, "request")


@pytest.mark.guarantee("G04")
def test_two_valid_votes_of_two_persons_are_enough_for_two(world: World, attempt: Attempt) -> None:
    two = policy(approvals=2)
    approval = world.granted(by=two, by_persons=("bob", "ben"))
    assert attempt.execute(approval, policies=[two]).status == ExecutionStatus.EXECUTED


@pytest.mark.guarantee("G03")
@pytest.mark.guarantee("G04")
def test_one_person_with_two_keys_is_one_person(world: World, attempt: Attempt) -> None:
    two = policy(approvals=2)
    approval = world.granted(by=two, by_persons=("bob", "ben"))
    second = Ed25519PrivateKey.generate()
    key = Key(id="bob-2", public_key=public_text(second), not_before=START)
    world.ledger.directory.add_key(TENANT, "bob", key, "test", START)
    statement = world.statement(approval, "bob", key_id="bob-2", id="bobs-second-statement")
    told = {"person": "bob", "statement_id": statement.id, "statement": sign_decision(statement, second)}
    world.tamper("votes", "vote", merged_json(told), where="person = 'ben'")
    attempt.is_refused(approval, "quorum", policies=[two])


@pytest.mark.guarantee("G22")
def test_a_vote_against_outweighs_enough_votes_for(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    statement = world.statement(approval, "ben", "reject")
    row = (
        world.ledger.approvals.get(TENANT, approval.proposal.approval_id)
        .votes[0]
        .model_copy(
            update={
                "person": "ben",
                "statement_id": statement.id,
                "statement": sign_decision(statement, world.keys["ben"]),
            }
        )
    )
    world.insert_vote(approval, row)
    attempt.is_refused(approval, "rejected")


class TestRequest:
    """G02: whom the agent acts for is known from a signature, so the requester cannot become somebody else."""

    def resigned(self, world: World, person: str, **changes: Any) -> str:
        statement = world.request("q2-report", person).model_copy(update=changes)
        return sign_request(statement, world.keys[person])

    @pytest.mark.guarantee("G02")
    def test_a_request_signed_by_its_own_approver(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        both = Person(tenant=TENANT, id="bob", roles=frozenset({"requester", "reviewer"}))
        world.ledger.directory.put_person(both, "admin", world.now)
        world.tamper("operations", "statement", lambda _: self.resigned(world, "bob"))
        world.tamper("operations", "requester", lambda _: "bob")
        world.tamper("approvals", "proposal", changed_json("requester", to="bob"))
        attempt.is_refused(approval, "quorum")

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
        attempt.is_refused(approval, "request")

    @pytest.mark.guarantee("G02")
    @pytest.mark.parametrize("statement", ["", "forged", "a.b.c"])
    def test_a_request_that_nobody_signed(self, world: World, attempt: Attempt, statement: str) -> None:
        approval = world.granted(channel="internal", by_persons=())
        world.tamper("operations", "statement", lambda _: statement)
        attempt.is_refused(approval, "request")


class TestPolicies:
    """G12: the pinned policy is the measure, and today's can only make it stricter."""

    def run(self, attempt: Attempt, approval: Approval, *policies: Policy) -> EffectResult:
        return attempt.execute(approval, policies=policies)

    @pytest.mark.guarantee("G12")
    def test_a_version_that_is_not_known_here(self, world: World, attempt: Attempt) -> None:
        attempt.is_refused(world.granted(by=policy(7)), "policy_unknown", policies=[policy()])

    @pytest.mark.guarantee("G12")
    def test_no_policy_at_all(self, world: World, attempt: Attempt) -> None:
        attempt.is_refused(world.granted(), "policy_unknown", policies=[])

    @pytest.mark.guarantee("G12")
    def test_a_later_version_that_asks_for_more(self, world: World, attempt: Attempt) -> None:
        attempt.is_refused(world.granted(), "quorum", policies=[policy(), policy(2, approvals=2)])

    @pytest.mark.guarantee("G12")
    def test_a_later_version_that_asks_for_another_role_too(self, world: World, attempt: Attempt) -> None:
        attempt.is_refused(world.granted(), "quorum", policies=[policy(), policy(2, role="clerk")])

    @pytest.mark.guarantee("G12")
    def test_a_later_version_in_which_nobody_may_approve(self, world: World, attempt: Attempt) -> None:
        no_approval = policy(2, decisions=("reject",))
        attempt.is_refused(world.granted(), "quorum", policies=[policy(), no_approval])

    @pytest.mark.guarantee("G12")
    def test_a_later_version_that_asks_for_less(self, world: World, attempt: Attempt) -> None:
        two = policy(1, approvals=2)
        approval = world.granted(by=two, by_persons=("bob",))
        world.tamper("approvals", "status", lambda _: "granted")
        attempt.is_refused(approval, "quorum", policies=[two, policy(2, approvals=1)])

    @pytest.mark.guarantee("G12")
    def test_a_later_version_that_no_longer_grants_by_rule(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(channel="internal", by_persons=())
        attempt.is_refused(approval, "quorum", policies=[policy(), policy(2, internal="people")])

    @pytest.mark.guarantee("G12")
    def test_a_later_version_that_grants_by_rule_what_needed_people(self, world: World, attempt: Attempt) -> None:
        strict = policy(1, internal="people")
        approval = world.propose(channel="internal", by=strict)
        world.tamper("approvals", "status", lambda _: "granted")
        attempt.is_refused(approval, "quorum", policies=[strict, policy(2)])

    @pytest.mark.guarantee("G01")
    @pytest.mark.guarantee("G12")
    def test_a_later_version_in_which_no_rule_applies(self, world: World, attempt: Attempt) -> None:
        narrow = Policy(policy="report", version=2, rules=(policy().rules[0],))
        attempt.is_refused(world.granted(), "denied", policies=[policy(), narrow])

    def test_a_later_version_that_is_met_as_well(self, world: World, attempt: Attempt) -> None:
        result = self.run(attempt, world.granted(by_persons=("bob",)), policy(), policy(2, internal="people"))
        assert result.status == ExecutionStatus.EXECUTED

    def test_an_older_version_does_not_count_as_todays(self, world: World, attempt: Attempt) -> None:
        result = self.run(attempt, world.granted(by=policy(2)), policy(2), policy(1, approvals=2))
        assert result.status == ExecutionStatus.EXECUTED

    def test_two_contents_of_one_version_stop_the_start(self, world: World) -> None:
        with pytest.raises(ConfigurationRefused, match="two contents for version 1"):
            world.gateway(policies=[policy(), policy(approvals=2)])


class TestWords:
    """G39: only registered tools run, and an action's words are what it would really do."""

    @pytest.mark.guarantee("G39")
    @pytest.mark.parametrize(("field", "value"), [("tool", "refund"), ("tool_version", "2")])
    def test_an_unregistered_tool(self, world: World, attempt: Attempt, field: str, value: str) -> None:
        attempt.is_refused(world.granted(**{field: value}), "tool_not_registered")

    @pytest.mark.guarantee("G39")
    @pytest.mark.parametrize(
        "args",
        [
            {},
            {"channel": "press", "name": "a.md"},
            {"channel": "press", "name": "a.md", "title": "T", "url": "https://evil.example.com/"},
            {"channel": "press", "name": "../a.md", "title": "T"},
            {"channel": "../press", "name": "a.md", "title": "T"},
            {"channel": "press", "name": 1, "title": "T"},
            {"channel": "press", "name": "a.md", "title": ""},
        ],
    )
    def test_arguments_of_another_form(self, world: World, attempt: Attempt, args: dict[str, Any]) -> None:
        attempt.is_refused(world.granted(args=args), "arguments_refused")

    def test_a_channel_that_is_not_configured(self, world: World, attempt: Attempt) -> None:
        attempt.is_refused(world.granted(channel="fax"), "channel_unknown")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("target", "press:other.md"),
            ("target", "internal:q2-report.md"),
            ("scope", "all_documents"),
        ],
    )
    def test_words_that_hide_the_effect(self, world: World, attempt: Attempt, field: str, value: str) -> None:
        attempt.is_refused(world.granted(**{field: value}), "words_do_not_fit")

    def test_an_external_publication_that_calls_itself_internal(self, world: World, attempt: Attempt) -> None:
        """The policy would grant it by rule; only the gateway knows what the channel really does."""
        approval = world.propose(side_effect="internal_publication")
        attempt.is_refused(approval, "words_do_not_fit")

    def test_another_environment(self, world: World, attempt: Attempt) -> None:
        attempt.is_refused(world.granted(), "environment", environment="production")


@pytest.mark.guarantee("G22")
def test_an_untouched_grant_passes(world: World, attempt: Attempt) -> None:
    """The measure of this file: without a change everything above would have been published."""
    assert attempt.execute(world.granted()).status == ExecutionStatus.EXECUTED
    assert [body for _, body in attempt.publisher.effects()] == [DOCUMENT]


def test_evidence_is_asked_for_by_tenant(world: World, attempt: Attempt) -> None:
    asked = []

    def verify(tenant: str, sha256: str) -> None:
        asked.append((tenant, sha256))
        raise NotFound("no such evidence")

    attempt.is_refused(world.granted(), "evidence", verify_evidence=verify)
    assert asked == [(TENANT, world.evidence_hash)]


def test_evidence_that_cannot_be_reached_is_no_refusal(world: World, attempt: Attempt) -> None:
    def verify(tenant: str, sha256: str) -> None:
        raise Unavailable("the evidence store's disk does not answer")

    approval = world.granted()
    with pytest.raises(Unavailable, match="disk"):
        attempt.execute(approval, verify_evidence=verify)
    attempt.nothing_happened()
    assert attempt.execute(approval).status == ExecutionStatus.EXECUTED
