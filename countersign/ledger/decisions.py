"""What people decide, and every message that tried to: ruled on, counted once, recorded with its outcome.

Apart from the approvals' own life because most messages change nothing of it, and are recorded all the same (G47).
"""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from countersign.domain.decision import Background, Outcome, Ruling, rule_on
from countersign.domain.directory import Person
from countersign.domain.edit import Edit
from countersign.domain.proposal import ApprovalStatus, Vote
from countersign.ledger.approval_rows import cast, find, newest, set_status
from countersign.ledger.authority import load_persons
from countersign.ledger.messages import Sent, keep, keep_statement, recall, seen_before
from countersign.ledger.precedents import approved_by
from countersign.ledger.store import Writing
from countersign.ports import Received

_NO_STATEMENT = ""


def decide(writing: Writing, received: Received, signer: Person, edit: Edit | None) -> Outcome:
    """Rule on a verified statement in this transaction; as in ports.Approvals."""
    statement, now = received.statement, received.at
    token_hash = keep_statement(writing, received.token)
    sent = Sent(statement.operation, received.message_id, received.transport, token_hash, now)
    writing.lock_operation(sent.operation)
    recorded = recall(writing, sent)
    if recorded is not None:
        return recorded
    seen = seen_before(writing, sent, statement.id)
    outcome = _ruled(writing, received, signer, edit) if seen is None else _as_it_stands(writing, received, seen)
    if not keep(writing, sent, outcome):
        # Only where there is no operation to lock can the same message have come twice at once.
        return recall(writing, sent) or outcome
    _record(writing, sent.operation, signer.id, _said(received, token_hash), outcome, now)
    return outcome


def record_refusal(
    writing: Writing, operation: str, message_id: str, transport: str, outcome: Outcome, now: datetime
) -> Outcome:
    """Record a message without a verified statement, once; a repeat returns what was recorded."""
    sent = Sent(operation, message_id, transport, _NO_STATEMENT, now)
    if not keep(writing, sent, outcome):
        return recall(writing, sent) or outcome
    _record(writing, operation, "unknown", {"message_id": message_id, "transport": transport}, outcome, now)
    return outcome


def _ruled(writing: Writing, received: Received, signer: Person, edit: Edit | None) -> Outcome:
    statement = received.statement
    approval = newest(writing.connection, writing.tenant, statement.operation)
    state = writing.state_of(statement.operation)
    over = approval is not None and approval.status == ApprovalStatus.PENDING and state is not None and state.terminal
    if approval is None or over:
        return Outcome(ruling=Ruling.NOTHING_PENDING)
    # Two decisions of one person in two operations would each miss the other's amount.
    writing.lock_person(signer.id)
    persons = load_persons(writing.connection, writing.tenant, [signer.id, *(vote.person for vote in approval.votes)])
    # As they are now: whoever was demoted since the signature was verified has nothing to say any more.
    present = persons.get(signer.id, signer.model_copy(update={"roles": frozenset(), "active": False}))
    action = approval.proposal.action if edit is None else edit.action
    used = approved_by(writing.connection, present, action, received.at)
    background = Background(persons=persons, now=received.at, assurance=received.assurance, used=used, edit=edit)
    outcome = rule_on(statement, present, approval, background)
    if outcome.ruling != Ruling.ACCEPTED:
        return outcome
    if not cast(writing, approval, _vote(received)):
        return Outcome(ruling=Ruling.ALREADY_VOTED, status=approval.status)
    if outcome.status is not None and outcome.status != approval.status:
        set_status(writing, statement.approval_id, outcome.status, received.at)
    return outcome


def _vote(received: Received) -> Vote:
    statement = received.statement
    return Vote(
        person=statement.person,
        decision=statement.decision,
        assurance=received.assurance,
        statement_id=statement.id,
        statement=received.token,
        edited_action=statement.edited_action,
        comment_hash=statement.comment_hash,
        decided_at=received.at,
    )


def _as_it_stands(writing: Writing, received: Received, seen: Outcome) -> Outcome:
    """What came again changes nothing, but its sender learns how the approval stands by now."""
    approval = find(writing.connection, writing.tenant, received.statement.approval_id)
    return seen.model_copy(update={"status": approval.status if approval is not None else None})


def _said(received: Received, token_hash: str) -> dict[str, JsonValue]:
    statement = received.statement
    said: dict[str, JsonValue] = {
        "message_id": received.message_id, "transport": received.transport, "assurance": received.assurance,
        "statement_id": statement.id, "statement_hash": token_hash, "approval_id": statement.approval_id,
        "approval_version": statement.approval_version, "action_hash": statement.action_hash,
        "decision": statement.decision, "comment_hash": statement.comment_hash,
    }  # fmt: skip
    return {**said, "edited_action": statement.edited_action} if statement.edited_action else said


def _record(
    writing: Writing, operation: str, subject: str, detail: dict[str, JsonValue], outcome: Outcome, now: datetime
) -> None:
    ruled: dict[str, JsonValue] = {**detail, "ruling": outcome.ruling.value, "reason": outcome.sentence()}
    if outcome.ruling != Ruling.ACCEPTED:
        writing.record(outcome.record_type("decision"), operation, subject, now, **ruled)
        return
    glass = detail["decision"] == "break_glass"
    writing.record(outcome.record_type("break_glass" if glass else "decision"), operation, subject, now, **ruled)
    if outcome.status not in (None, ApprovalStatus.PENDING):
        kept = ("approval_id", "approval_version", "action_hash", "statement_id", "edited_action")
        names = {name: detail[name] for name in kept if name in detail}
        kind = "break_glass" if glass else "approval"
        writing.record(f"{kind}.{outcome.status.value}", operation, subject, now, **names)
