"""Approvals and decisions: counted once, settled once, refused ones recorded; on both engines."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text

from countersign.domain.audit import AuditRecord
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.errors import Conflict, InputRefused, NotFound
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.ledger import SqlLedger
from countersign.signing.statements import sign_decision
from tests.ledger.builders import (
    DEADLINE,
    NOW,
    OPERATION,
    OTHER_HASH,
    PERSON_KEY,
    ROOM,
    TENANT,
    VIEW,
    audit_types,
    claim,
    decide,
    granted,
    operation,
    proposal,
    statement,
)

LATER = NOW + timedelta(minutes=1)
PROPOSED = proposal()


def open_one(ledger: SqlLedger, approvals: int = 1) -> Approval:
    """A pending approval."""
    ledger.operations.register(operation())
    return ledger.approvals.open(proposal(approvals=approvals), "run-1", VIEW, NOW, ROOM)


def refusals(ledger: SqlLedger) -> list[AuditRecord]:
    return [record for record in ledger.audit.records(TENANT) if record.type == "decision.refused"]


def status(ledger: SqlLedger, approval_id: str = "approval-1") -> ApprovalStatus:
    return ledger.approvals.get(TENANT, approval_id).status


def test_opening_twice_stores_and_records_once(ledger: SqlLedger) -> None:
    first = open_one(ledger)
    again = ledger.approvals.open(first.proposal, "run-1", VIEW, LATER, ROOM)
    assert again == first == ledger.approvals.current(TENANT, OPERATION)
    records = [record for record in ledger.audit.records(TENANT) if record.type == "approval.opened"]
    assert len(records) == 1
    assert (records[0].detail["view"], records[0].detail["run_id"]) == (VIEW, "run-1")


def test_a_repeated_opening_returns_the_approval_as_it_stands_with_its_votes(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    assert ledger.approvals.open(approval.proposal, "run-1", VIEW, LATER, ROOM) == approval
    assert [vote.person for vote in approval.votes] == ["bob"]


def test_what_the_policy_grants_by_rule_is_recorded_as_that(ledger: SqlLedger) -> None:
    approval = granted(ledger, proposal(by_rule=True))
    assert (approval.status, approval.votes) == (ApprovalStatus.GRANTED, ())
    assert audit_types(ledger) == ["operation.registered", "approval.granted_by_rule"]


def test_an_approval_needs_its_operation(ledger: SqlLedger) -> None:
    with pytest.raises(NotFound, match=OPERATION):
        ledger.approvals.open(PROPOSED, "run-1", VIEW, NOW, ROOM)


def test_an_approval_id_stands_for_one_proposal(ledger: SqlLedger) -> None:
    open_one(ledger)
    with pytest.raises(Conflict, match="approval-1"):
        ledger.approvals.open(proposal(content=b"other", version=2), "run-1", VIEW, NOW, ROOM)
    assert status(ledger) == ApprovalStatus.PENDING


@pytest.mark.guarantee("G16")
@pytest.mark.parametrize(("run_id", "version"), [("run-1", 2), ("run-2", 1)])
def test_a_newer_proposal_supersedes_the_pending_one_and_takes_over_no_vote(
    ledger: SqlLedger, run_id: str, version: int
) -> None:
    old = open_one(ledger, approvals=2).proposal
    decide(ledger, statement(old, "bob"))
    new = proposal("approval-2", version=version, content=b"edited", approvals=2)
    ledger.approvals.open(new, run_id, VIEW, LATER, ROOM)
    assert status(ledger) == ApprovalStatus.SUPERSEDED
    assert ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.CANCELLED, LATER) == ApprovalStatus.SUPERSEDED
    current = ledger.approvals.current(TENANT, OPERATION)
    assert current is not None
    assert (current.proposal, current.status, current.votes) == (new, ApprovalStatus.PENDING, ())
    superseded = next(record for record in ledger.audit.records(TENANT) if record.type == "approval.superseded")
    assert (superseded.detail["approval_id"], superseded.detail["by"]) == ("approval-1", "approval-2")
    late = decide(ledger, statement(old, "carl"), message_id="m-2")
    assert late.ruling in (Ruling.NOT_THIS_APPROVAL, Ruling.NOT_THIS_VERSION)


@pytest.mark.guarantee("G23")
def test_a_grant_of_another_run_is_void_once_the_new_run_proposes(ledger: SqlLedger) -> None:
    old = granted(ledger)
    ledger.approvals.open(proposal("approval-2", content=b"redrafted"), "run-2", VIEW, LATER, ROOM)
    with pytest.raises(Conflict, match="superseded"):
        claim(ledger, old)


def test_a_grant_whose_effect_is_on_its_way_is_not_cancelled_under_it(ledger: SqlLedger) -> None:
    old = granted(ledger)
    claim(ledger, old)
    with pytest.raises(Conflict, match="may have taken effect"):
        ledger.approvals.open(proposal("approval-2", content=b"redrafted"), "run-2", VIEW, LATER, ROOM)
    assert status(ledger) == ApprovalStatus.GRANTED


def test_a_version_older_than_the_open_one_comes_too_late(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    ledger.approvals.open(proposal("approval-2", version=2), "run-1", VIEW, NOW, ROOM)
    with pytest.raises(Conflict, match="too late"):
        ledger.approvals.open(proposal("approval-1", version=1), "run-1", VIEW, NOW, ROOM)
    assert status(ledger, "approval-2") == ApprovalStatus.PENDING


def test_one_vote_of_the_role_grants_and_says_who_and_what(ledger: SqlLedger) -> None:
    proposed = open_one(ledger).proposal
    said = statement(proposed, "bob", comment_hash=OTHER_HASH)
    outcome = decide(ledger, said)
    assert outcome == Outcome(ruling=Ruling.ACCEPTED, status=ApprovalStatus.GRANTED)
    vote = ledger.approvals.get(TENANT, "approval-1").votes[0]
    assert (vote.person, vote.statement_id, vote.statement) == ("bob", said.id, sign_decision(said, PERSON_KEY))
    accepted, settled = list(ledger.audit.records(TENANT))[-2:]
    assert (accepted.type, settled.type) == ("decision.accepted", "approval.granted")
    assert accepted.subject == "bob"
    assert accepted.detail["action_hash"] == proposed.action_hash
    assert accepted.detail["comment_hash"] == OTHER_HASH


def test_two_needed_approvals_are_two_persons_in_order_of_arrival(ledger: SqlLedger) -> None:
    proposed = open_one(ledger, approvals=2).proposal
    first = decide(ledger, statement(proposed, "carl"), message_id="m-1")
    second = decide(ledger, statement(proposed, "bob"), message_id="m-2")
    assert (first.status, second.status) == (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)
    assert [vote.person for vote in ledger.approvals.get(TENANT, "approval-1").votes] == ["carl", "bob"]
    assert audit_types(ledger).count("approval.granted") == 1


def test_one_rejection_settles(ledger: SqlLedger) -> None:
    proposed = open_one(ledger, approvals=2).proposal
    assert decide(ledger, statement(proposed, "bob", decision="reject")).status == ApprovalStatus.REJECTED
    assert status(ledger) == ApprovalStatus.REJECTED
    assert audit_types(ledger)[-2:] == ["decision.accepted", "approval.rejected"]


@pytest.mark.guarantee("G17")
def test_the_same_message_again_has_the_same_answer_and_one_record(ledger: SqlLedger) -> None:
    proposed = open_one(ledger, approvals=2).proposal
    first = decide(ledger, statement(proposed, "bob"))
    before = audit_types(ledger)
    assert decide(ledger, statement(proposed, "bob")) == first
    assert audit_types(ledger) == before


@pytest.mark.guarantee("G17")
def test_the_same_statement_in_another_message_is_a_replay_with_the_present_status(ledger: SqlLedger) -> None:
    proposed = open_one(ledger, approvals=2).proposal
    decide(ledger, statement(proposed, "bob"), message_id="m-1")
    decide(ledger, statement(proposed, "carl"), message_id="m-2")
    replay = decide(ledger, statement(proposed, "bob"), message_id="m-3")
    assert (replay.ruling, replay.status) == (Ruling.REPLAY, ApprovalStatus.GRANTED)
    assert len(ledger.approvals.get(TENANT, "approval-1").votes) == 2
    assert refusals(ledger) == []
    (repeated,) = [record for record in ledger.audit.records(TENANT) if record.type == "decision.repeated"]
    assert (repeated.subject, repeated.detail["ruling"]) == ("bob", "replay")


@pytest.mark.guarantee("G17")
def test_a_used_statement_id_with_another_body_is_a_conflict(ledger: SqlLedger) -> None:
    proposed = open_one(ledger, approvals=2).proposal
    decide(ledger, statement(proposed, "bob", id="one-id-for-all-16"), message_id="m-1")
    other = decide(ledger, statement(proposed, "carl", id="one-id-for-all-16"), message_id="m-2")
    assert (other.ruling, other.status) == (Ruling.ID_CONFLICT, ApprovalStatus.PENDING)
    assert len(ledger.approvals.get(TENANT, "approval-1").votes) == 1


@pytest.mark.guarantee("G17")
def test_another_statement_under_a_used_message_id_is_ruled_on_for_itself(ledger: SqlLedger) -> None:
    proposed = open_one(ledger, approvals=2).proposal
    decide(ledger, statement(proposed, "bob"), message_id="m-1")
    assert decide(ledger, statement(proposed, "carl"), message_id="m-1").status == ApprovalStatus.GRANTED


def test_a_refused_statement_that_comes_again_is_not_said_to_count(ledger: SqlLedger) -> None:
    proposed = open_one(ledger).proposal
    decide(ledger, statement(proposed, "ivan"), message_id="m-1")
    again = decide(ledger, statement(proposed, "ivan"), message_id="m-2")
    assert (again.ruling, again.counts) == (Ruling.REPLAY, False)
    assert "does not count" in again.sentence()
    assert [record.detail["ruling"] for record in refusals(ledger)] == ["role_missing"]


@pytest.mark.guarantee("G03")
def test_one_person_counts_once_whatever_the_statement_id(ledger: SqlLedger) -> None:
    proposed = open_one(ledger, approvals=2).proposal
    decide(ledger, statement(proposed, "bob"), message_id="m-1")
    again = decide(ledger, statement(proposed, "bob", id="another-statement-id"), message_id="m-2")
    assert again.ruling == Ruling.ALREADY_VOTED
    assert status(ledger) == ApprovalStatus.PENDING


@pytest.mark.guarantee("G24")
def test_nothing_expires_before_its_deadline_whoever_says_it_is_over(ledger: SqlLedger) -> None:
    deadline = open_one(ledger).proposal.deadline
    with pytest.raises(InputRefused, match="not yet"):
        ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.EXPIRED, deadline - timedelta(microseconds=1))
    assert status(ledger) == ApprovalStatus.PENDING
    assert ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.EXPIRED, deadline) == ApprovalStatus.EXPIRED


@pytest.mark.guarantee("G10")
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_settled_approval_never_changes(ledger: SqlLedger, decision: str) -> None:
    proposed = open_one(ledger).proposal
    decide(ledger, statement(proposed, "bob", decision=decision), message_id="m-1")
    settled = ledger.approvals.get(TENANT, "approval-1")
    for number, other in enumerate(["approve", "reject"], start=2):
        said = statement(proposed, "carl", id=f"second-thought-{number}0", decision=other)
        assert decide(ledger, said, message_id=f"m-{number}").ruling == Ruling.ALREADY_SETTLED
    assert ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.EXPIRED, LATER) == settled.status
    assert ledger.approvals.get(TENANT, "approval-1") == settled


@pytest.mark.guarantee("G01")
@pytest.mark.guarantee("G47")
@pytest.mark.parametrize(
    ("ruling", "changes"),
    [
        (Ruling.NOT_THIS_VERSION, {"approval_version": 2}),
        (Ruling.NOT_THIS_ACTION, {"action_hash": OTHER_HASH}),
        (Ruling.NOT_THIS_APPROVAL, {"approval_id": "approval-9"}),
        (Ruling.NOTHING_PENDING, {"operation": "nowhere"}),
        (Ruling.ROLE_MISSING, {"person": "ivan"}),
        (Ruling.REQUESTER_MAY_NOT_DECIDE, {"person": "rita"}),
        (Ruling.RESPOND_IS_FOR_QUESTIONS, {"decision": "respond"}),
        (Ruling.EDIT_REFUSED, {"decision": "edit", "edited_action": OTHER_HASH}),
        (Ruling.REASON_MISSING, {"decision": "break_glass"}),
    ],
)
def test_each_refusal_leaves_a_record_with_its_ruling_and_changes_nothing(
    ledger: SqlLedger, ruling: Ruling, changes: dict[str, Any]
) -> None:
    proposed = open_one(ledger).proposal
    said = statement(proposed, "bob", **changes)
    for _ in range(2):
        assert decide(ledger, said).ruling == ruling
    assert status(ledger) == ApprovalStatus.PENDING
    assert [(record.detail["ruling"], record.detail["statement_id"]) for record in refusals(ledger)] == [
        (ruling.value, said.id)
    ]


@pytest.mark.guarantee("G26")
@pytest.mark.guarantee("G47")
def test_a_vote_at_the_deadline_is_late_and_recorded_as_late(ledger: SqlLedger) -> None:
    proposed = open_one(ledger).proposal
    assert decide(ledger, statement(proposed, "bob"), now=DEADLINE).ruling == Ruling.LATE
    assert [record.detail["ruling"] for record in refusals(ledger)] == ["late"]
    assert ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.EXPIRED, DEADLINE) == ApprovalStatus.EXPIRED


@pytest.mark.guarantee("G19")
@pytest.mark.guarantee("G47")
def test_a_message_without_a_statement_leaves_one_record_and_changes_nothing(ledger: SqlLedger) -> None:
    open_one(ledger)
    refusal = Outcome(ruling=Ruling.MALFORMED, detail="no input")
    for _ in range(3):
        assert ledger.approvals.record_refusal(TENANT, OPERATION, "m-1", "signal", refusal, NOW) == refusal
    other = Outcome(ruling=Ruling.UNKNOWN_MESSAGE)
    assert ledger.approvals.record_refusal(TENANT, OPERATION, "m-1", "signal", other, NOW) == refusal
    ledger.approvals.record_refusal(TENANT, "never-registered", "m-1", "signal", other, NOW)
    assert [record.detail["ruling"] for record in refusals(ledger)] == ["malformed", "unknown_message"]
    assert [record.subject for record in refusals(ledger)] == ["unknown", "unknown"]
    assert status(ledger) == ApprovalStatus.PENDING


@pytest.mark.guarantee("G24")
def test_expiry_names_no_decider_and_is_recorded_once(ledger: SqlLedger) -> None:
    open_one(ledger)
    for _ in range(2):
        assert ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.EXPIRED, DEADLINE) == ApprovalStatus.EXPIRED
    expired = [record for record in ledger.audit.records(TENANT) if record.type == "approval.expired"]
    assert [record.subject for record in expired] == ["clock"]
    assert ledger.approvals.get(TENANT, "approval-1").votes == ()


def test_a_cancellation_is_told_apart_from_an_expiry(ledger: SqlLedger) -> None:
    open_one(ledger)
    assert ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.CANCELLED, NOW) == ApprovalStatus.CANCELLED
    assert ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.EXPIRED, DEADLINE) == ApprovalStatus.CANCELLED
    assert audit_types(ledger)[-1] == "approval.cancelled"


@pytest.mark.parametrize("wrong", [ApprovalStatus.GRANTED, ApprovalStatus.CONSUMED, ApprovalStatus.REJECTED])
def test_nothing_is_granted_by_settling(ledger: SqlLedger, wrong: ApprovalStatus) -> None:
    open_one(ledger)
    with pytest.raises(InputRefused, match=wrong.value):
        ledger.approvals.settle(TENANT, "approval-1", wrong, NOW)
    assert status(ledger) == ApprovalStatus.PENDING


@pytest.mark.guarantee("G03")
def test_the_table_itself_holds_one_vote_per_person(ledger: SqlLedger, database: Engine) -> None:
    """Where the first vote is hidden from the rules, the second line of defence still counts the person once."""
    proposed = open_one(ledger, approvals=2).proposal
    decide(ledger, statement(proposed, "bob"), message_id="m-1")
    with database.begin() as connection:
        connection.execute(text("UPDATE votes SET vote = replace(vote, '\"bob\"', '\"carl\"')"))
    again = decide(ledger, statement(proposed, "bob", id="another-statement-id"), message_id="m-2")
    assert (again.ruling, again.status) == (Ruling.ALREADY_VOTED, ApprovalStatus.PENDING)
    assert len(ledger.approvals.get(TENANT, "approval-1").votes) == 1


@pytest.mark.guarantee("G09")
def test_what_waits_is_listed_by_its_deadline_and_for_its_tenant_alone(ledger: SqlLedger) -> None:
    later = open_one(ledger).proposal
    ledger.operations.register(operation("report-8"))
    soon = proposal("approval-8", operation="report-8", deadline=DEADLINE - timedelta(minutes=1), execute_by=DEADLINE)
    ledger.approvals.open(soon, "run-8", VIEW, NOW, ROOM)
    assert [one.proposal for one in ledger.approvals.pending(TENANT)] == [soon, later]
    assert ledger.approvals.pending("globex") == []
    ledger.approvals.settle(TENANT, "approval-8", ApprovalStatus.CANCELLED, LATER)
    assert [one.proposal for one in ledger.approvals.pending(TENANT)] == [later]
