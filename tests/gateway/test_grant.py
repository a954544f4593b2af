"""What the gateway checks for itself: every fact that a grant rests on, changed or missing, stops the effect.

The changes are made directly in the database, as whoever controls workflow, worker or database could make them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.action import Action
from countersign.domain.decision import Statement
from countersign.domain.directory import Key, Person
from countersign.domain.errors import ConfigurationRefused, NotFound, Unavailable
from countersign.domain.execution import EffectResult, ExecutionStatus
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.http_channel import HttpChannel
from countersign.signing.keys import public_text
from countersign.signing.statements import sign_decision, sign_request
from tests.gateway.world import DOCUMENT, START, TENANT, World, changed_json, policy
from tests.support.publisher import Publisher

OTHER_HASH = "sha256:" + "7" * 64
TOMORROW = (START + timedelta(days=1)).isoformat()


class Attempt:
    """Executes and says what came of it, at the outside and in the record."""

    def __init__(self, world: World, press: HttpChannel, publisher: Publisher) -> None:
        self.world, self.press, self.publisher = world, press, publisher
        self.internal = FileChannel("internal", world.folder / "published", "internal_publication")

    def execute(self, approval: Approval, **wiring: Any) -> EffectResult:
        gateway = self.world.gateway(self.press, self.internal, **wiring)
        return gateway.execute(TENANT, approval.proposal.approval_id)

    def is_refused(self, approval: Approval, reason: str, **wiring: Any) -> None:
        """The execution is refused for good, with this code, in one line, on record; nothing happened outside."""
        result = self.execute(approval, **wiring)
        assert (result.status, result.reason.partition(":")[0]) == (None, reason)
        assert len(result.reason.splitlines()) == 1
        self.nothing_happened()
        records = [record for record in self.world.ledger.audit.records(TENANT) if record.type == "effect.refused"]
        assert [record.detail["reason"] for record in records] == [result.reason]

    def nothing_happened(self) -> None:
        assert self.publisher.calls("POST") + self.publisher.calls("GET") == []
        assert list((self.world.folder / "published").iterdir()) == []


@pytest.fixture
def attempt(world: World, press: HttpChannel, publisher: Publisher) -> Attempt:
    return Attempt(world, press, publisher)


ACTION_CHANGES = [
    ("tenant", "globex"), ("operation", "q3-report"), ("tool", "refund"), ("tool_version", "2"),
    ("target", "press:other.md"), ("side_effect", "internal_publication"), ("scope", "everything"),
    ("environment", "production"), ("content_hash", OTHER_HASH), ("evidence_hash", OTHER_HASH),
    ("policy_version", "report/2@" + OTHER_HASH), ("schema_version", "2"),
]  # fmt: skip


@pytest.mark.guarantee("G14")
@pytest.mark.guarantee("G22")
@pytest.mark.parametrize(("field", "value"), ACTION_CHANGES)
def test_a_changed_field_of_the_action_voids_the_votes(world: World, attempt: Attempt, field: str, value: str) -> None:
    approval = world.granted()
    world.tamper("approvals", "proposal", changed_json("action", field, to=value))
    result = attempt.execute(approval)
    assert (result.status, result.reason.partition(":")[0]) in [(None, "action_changed"), (None, "approval_changed")]
    attempt.nothing_happened()


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(
    ("name", "value"), [("channel", "internal"), ("name", "x.md"), ("title", "Sale"), ("title", 1.5), ("more", "1")]
)
def test_a_changed_argument_voids_the_votes(world: World, attempt: Attempt, name: str, value: Any) -> None:
    approval = world.granted()
    world.tamper("approvals", "proposal", changed_json("action", "args", to=lambda args: {**args, name: value}))
    attempt.is_refused(approval, "action_changed")


def test_every_field_of_an_action_is_among_the_changes() -> None:
    assert {field for field, _ in ACTION_CHANGES} | {"args"} == set(Action.model_fields)


def with_new_hash(change: Callable[[dict[str, Any]], None]) -> Callable[[str], str]:
    """A forger's change of an action, with the hash put right after it."""

    def rehash(proposal: Any) -> Any:
        change(proposal["action"])
        proposal["action_hash"] = Action.model_validate(proposal["action"]).hash()
        proposal["document"] = proposal["action"]["content_hash"]
        return proposal

    return lambda text: changed_json("it", to=rehash)('{"it": ' + text + "}")[len('{"it": ') : -1]


@pytest.mark.guarantee("G14")
@pytest.mark.guarantee("G22")
def test_a_changed_action_with_its_hash_put_right_has_no_votes(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    evil = world.ledger.documents.put(TENANT, b"evil text")
    world.tamper("approvals", "proposal", with_new_hash(lambda action: action.update(content_hash=evil)))
    attempt.is_refused(approval, "quorum")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("approval_id", "apr-other", "approval_changed"),
        ("approval_version", 2, "quorum"),
        ("action_hash", OTHER_HASH, "action_changed"),
        ("document", OTHER_HASH, "document"),
        ("requester", "eve", "request"),
        ("requester", "bob", "request"),
        ("execute_by", START.isoformat(), "window_closed"),
        ("deadline", START.isoformat(), "quorum"),
        ("assessment", {"answer": "granted_by_rule", "rules": ["external"], "needs": []}, "assessment"),
        ("assessment", {"answer": "needs_people", "rules": ["external"], "needs": []}, "assessment"),
    ],
)
@pytest.mark.guarantee("G22")
def test_a_changed_field_of_the_proposal_stops_the_effect(
    world: World, attempt: Attempt, field: str, value: Any, reason: str
) -> None:
    approval = world.granted()
    world.tamper("approvals", "proposal", changed_json(field, to=value))
    attempt.is_refused(approval, reason)


@pytest.mark.parametrize("text", ["", "{", "{}", "null", '{"approval_id": 1}'])
@pytest.mark.guarantee("G22")
def test_a_proposal_that_cannot_be_read_stops_the_effect(world: World, attempt: Attempt, text: str) -> None:
    approval = world.granted()
    world.tamper("approvals", "proposal", lambda _: text)
    attempt.is_refused(approval, "approval_unreadable")


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("status", ["granted", "consumed"])
def test_a_status_that_claims_more_than_the_votes_say_is_not_believed(
    world: World, attempt: Attempt, status: str
) -> None:
    approval = world.propose()
    world.tamper("approvals", "status", lambda _: status)
    attempt.is_refused(approval, "quorum" if status == "granted" else "approval_consumed")


@pytest.mark.parametrize("status", ["pending", "rejected", "expired", "cancelled", "consumed"])
@pytest.mark.guarantee("G22")
def test_nothing_but_a_grant_is_executed(world: World, attempt: Attempt, status: str) -> None:
    approval = world.granted()
    world.tamper("approvals", "status", lambda _: status)
    attempt.is_refused(approval, f"approval_{status}")


class TestDocumentAndEvidence:
    @pytest.mark.guarantee("G14")
    def test_one_changed_byte_of_the_document(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.tamper("documents", "data", lambda data: data.replace(b"35.2", b"35.3"))
        attempt.is_refused(approval, "document")

    @pytest.mark.guarantee("G14")
    def test_a_document_that_is_gone(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.tamper("documents", "sha256", lambda _: OTHER_HASH, where=f"sha256 = '{approval.proposal.document}'")
        attempt.is_refused(approval, "document")

    @pytest.mark.guarantee("G14")
    def test_one_changed_byte_of_the_evidence(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        stored = world.evidence.path(world.evidence_hash)
        stored.chmod(0o600)
        stored.write_bytes(stored.read_bytes().replace(b"352", b"353"))
        attempt.is_refused(approval, "evidence")

    @pytest.mark.guarantee("G14")
    def test_evidence_that_is_gone(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.evidence.path(world.evidence_hash).unlink()
        attempt.is_refused(approval, "evidence")


VOTE_CHANGES = [
    ("person", "ben"), ("person", "nobody"), ("person", "rita"), ("decision", "reject"),
    ("statement_id", "another-statement-id"), ("comment_hash", OTHER_HASH), ("statement", "no.jws.here"),
    ("statement", ""), ("statement", lambda jws: jws[:-4] + "AAAA"), ("statement", lambda jws: jws.replace(".", "", 1)),
    ("decided_at", (START - timedelta(minutes=5)).isoformat()), ("decided_at", TOMORROW),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), VOTE_CHANGES)
@pytest.mark.guarantee("G22")
@pytest.mark.guarantee("G18")
def test_a_changed_vote_does_not_count(world: World, attempt: Attempt, field: str, value: Any) -> None:
    approval = world.granted()
    world.tamper("votes", "vote", changed_json(field, to=value))
    attempt.is_refused(approval, "rejected" if value == "reject" else "quorum")


STATEMENT_CHANGES: list[dict[str, Any]] = [
    {"installation": "elsewhere"}, {"tenant": "globex"}, {"operation": "q3-report"}, {"approval_id": "apr-other"},
    {"approval_version": 2}, {"action_hash": OTHER_HASH}, {"decision": "reject"}, {"expires_at": START},
    {"issued_at": START + timedelta(hours=1)}, {"key_id": "ben-1"}, {"key_id": "bob-9"}, {"person": "nobody"},
    {"person": "ben"}, {"person": "eve", "key_id": "eve-1"}, {"person": "rita", "key_id": "rita-1"},
]  # fmt: skip


@pytest.mark.parametrize("changes", STATEMENT_CHANGES, ids=str)
@pytest.mark.guarantee("G16")
@pytest.mark.guarantee("G18")
@pytest.mark.guarantee("G22")
def test_a_statement_that_says_anything_else_does_not_count(
    world: World, attempt: Attempt, changes: dict[str, Any]
) -> None:
    """Whoever controls the ledger writes a vote with a well-signed statement that is not about this, or not by them."""
    approval = world.granted()
    statement = world.statement(approval, "bob", **changes)
    key = world.keys[statement.person if statement.key_id == f"{statement.person}-1" else "bob"]
    forge_vote(world, statement, sign_decision(statement, key))
    attempt.is_refused(approval, "rejected" if "decision" in changes else "quorum")


def forge_vote(world: World, statement: Statement, token: str) -> None:
    """Make the one stored vote tell exactly what this statement says."""
    told = {"person": statement.person, "decision": "approve", "statement_id": statement.id, "statement": token}
    world.tamper("votes", "vote", merged(told))


def merged(told: dict[str, Any]) -> Callable[[str], str]:
    def change(text: str) -> str:
        for name, value in told.items():
            text = changed_json(name, to=value)(text)
        return text

    return change


@pytest.mark.guarantee("G18")
@pytest.mark.guarantee("G22")
def test_a_signature_by_an_unknown_key_does_not_count(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    statement = world.statement(approval, "bob")
    forge_vote(world, statement, sign_decision(statement, Ed25519PrivateKey.generate()))
    attempt.is_refused(approval, "quorum")


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
    def test_a_requester_who_is_gone(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        rita = Person(tenant=TENANT, id="rita", roles=frozenset({"requester"}), active=False)
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
    world.tamper("votes", "vote", merged(told), where="person = 'ben'")
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
