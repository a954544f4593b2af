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
from countersign.signing.statements import sign_decision
from tests.gateway.attempt import Attempt
from tests.gateway.tampering import changed_json, merged_json
from tests.gateway.world import START, TENANT, World

OTHER_HASH = "sha256:" + "7" * 64
TOMORROW = (START + timedelta(days=1)).isoformat()


ACTION_CHANGES = [
    ("tenant", "globex"), ("operation", "q3-report"), ("tool", "refund"), ("tool_version", "2"),
    ("channel", "internal"), ("target", "press:other.md"), ("side_effect", "internal_publication"),
    ("scope", "everything"), ("environment", "production"), ("content_hash", OTHER_HASH), ("evidence_hash", OTHER_HASH),
    ("policy_version", "report/2@" + OTHER_HASH), ("schema_version", "1"),
    ("amount", {"currency": "EUR", "minor": 1}),
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
    attempt.is_forged(approval, "action_changed")


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
    attempt.is_forged(approval, "vote_forged")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("approval_id", "apr-other", "approval_changed"),
        ("approval_version", 2, "authors"),
        ("case", "administration", "policy_unknown"),
        ("authors", ["eve"], "authors"),
        ("edited_from", "apr-other", "authors"),
        ("proposed_by", "bob", "authors"),
        ("proposed_by", "eve", "authors"),
        ("terms", {"break_glass": {"role": "clerk", "approvals": 2}}, "terms"),
        (
            "floor",
            [
                {
                    "role": "clerk",
                    "approvals": 1,
                    "decisions": ["approve"],
                    "decide_within": "72h",
                    "execute_within": "1h",
                }
            ],
            "assessment",
        ),
        ("action_hash", OTHER_HASH, "action_changed"),
        ("requester", "eve", "request"),
        ("requester", "bob", "request"),
        ("deadline", START.isoformat(), "times"),
        ("deadline", (START + timedelta(days=30)).isoformat(), "times"),
        ("execute_by", (START + timedelta(days=30)).isoformat(), "times"),
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
    attempt.is_forged(approval, reason)


@pytest.mark.parametrize("text", ["", "{", "{}", "null", '{"approval_id": 1}'])
@pytest.mark.guarantee("G22")
def test_a_proposal_that_cannot_be_read_stops_the_effect(world: World, attempt: Attempt, text: str) -> None:
    approval = world.granted()
    world.tamper("approvals", "proposal", lambda _: text)
    attempt.is_forged(approval, "approval_unreadable")


@pytest.mark.guarantee("G22")
def test_a_status_that_claims_more_than_the_votes_say_is_not_believed(world: World, attempt: Attempt) -> None:
    approval = world.propose()
    world.tamper("approvals", "status", lambda _: "granted")
    attempt.is_forged(approval, "quorum")


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("status", ["pending", "rejected", "consumed"])
def test_what_was_never_granted_is_not_executed(world: World, attempt: Attempt, status: str) -> None:
    approval = world.granted()
    world.tamper("approvals", "status", lambda _: status)
    attempt.is_forged(approval, f"approval_{status}")


@pytest.mark.guarantee("G10")
@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("status", ["expired", "cancelled", "superseded", "withdrawn", "edited"])
def test_what_ended_while_a_run_was_on_its_way_here_is_not_executed(
    world: World, attempt: Attempt, status: str
) -> None:
    approval = world.granted()
    world.tamper("approvals", "status", lambda _: status)
    attempt.is_ended(approval, f"approval_{status}")


@pytest.mark.guarantee("G14")
def test_a_proposal_that_shows_another_document_than_its_action_holds(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    world.tamper("approvals", "proposal", changed_json("document", to=world.ledger.documents.put(TENANT, b"mild")))
    attempt.is_forged(approval, "document")


VOTE_CHANGES = [
    ("person", "ben"), ("person", "nobody"), ("person", "rita"), ("decision", "reject"),
    ("decision", "edit"), ("decision", "break_glass"), ("edited_action", OTHER_HASH), ("assurance", "namespace-only"),
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
    attempt.is_forged(approval, "own_vote" if value == "rita" else "rejected" if value == "reject" else "vote_forged")


STATEMENT_CHANGES: list[dict[str, Any]] = [
    {"installation": "elsewhere"}, {"tenant": "globex"}, {"operation": "q3-report"}, {"approval_id": "apr-other"},
    {"approval_version": 2}, {"action_hash": OTHER_HASH}, {"decision": "reject"}, {"decision": "respond"},
    {"decision": "break_glass"}, {"decision": "edit", "edited_action": OTHER_HASH}, {"edited_action": OTHER_HASH},
    {"issued_at": START + timedelta(hours=1)}, {"key_id": "ben-1"}, {"key_id": "bob-9"}, {"person": "nobody"},
    {"person": "ben"}, {"person": "rita", "key_id": "rita-1"},
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
    reasons = {"reject": "rejected", "respond": "rejected"}
    reason = "own_vote" if changes.get("person") == "rita" else reasons.get(changes.get("decision", ""), "vote_forged")
    attempt.is_forged(approval, reason)


def forge_vote(world: World, statement: Statement, token: str) -> None:
    """Make the one stored vote tell exactly what this statement says."""
    told = {"person": statement.person, "decision": "approve", "statement_id": statement.id, "statement": token}
    world.tamper("votes", "vote", merged_json(told))


@pytest.mark.guarantee("G18")
@pytest.mark.guarantee("G22")
def test_a_signature_by_an_unknown_key_does_not_count(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    statement = world.statement(approval, "bob")
    forge_vote(world, statement, sign_decision(statement, Ed25519PrivateKey.generate()))
    attempt.is_forged(approval, "vote_forged")


@pytest.mark.guarantee("G22")
def test_a_vote_of_somebody_without_the_role_was_forged_or_has_lapsed_and_never_counts(
    world: World, attempt: Attempt
) -> None:
    """Whether Eve was a reviewer when she signed cannot be seen in the vote: asking people anew is safe either way."""
    approval = world.granted()
    statement = world.statement(approval, "eve")
    forge_vote(world, statement, sign_decision(statement, world.keys["eve"]))
    attempt.is_voided(approval, "roles")
