"""What people decide, and every message that tried to: ruled on, counted once, recorded with its outcome.

Apart from the approvals' own life because here each way of sending the same thing twice is told apart (G17): the same
message again, the same statement in another message, another statement under a used id.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import select

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Outcome, Ruling, Statement, rule_on
from countersign.domain.directory import Person
from countersign.domain.proposal import Approval, ApprovalStatus, Vote
from countersign.domain.strict_json import check_text
from countersign.ledger.approval_rows import find, newest, set_status
from countersign.ledger.directory import load_persons
from countersign.ledger.store import Writing
from countersign.ledger.tables import messages, statements, votes

_NO_STATEMENT = ""


def decide(
    writing: Writing, message_id: str, token: str, statement: Statement, signer: Person, transport: str, now: datetime
) -> Outcome:
    """Rule on a verified statement in this transaction; as in ports.Approvals."""
    check_text(token, "statement")
    statement_hash = sha256_hex(token.encode())
    writing.lock_operation(statement.operation)
    recorded = _recorded(writing, statement.operation, message_id, statement_hash)
    if recorded is not None:
        return recorded
    first = writing.insert_once(
        statements, id=statement.id, hash=statement_hash, operation=statement.operation, seen_at=now
    )
    if first:
        outcome = _ruled(writing, token, statement, signer, now)
    else:
        outcome = _seen_before(writing, statement, statement_hash)
    detail: dict[str, JsonValue] = {
        "message_id": message_id, "transport": transport, "statement_id": statement.id,
        "statement_hash": statement_hash, "approval_id": statement.approval_id,
        "approval_version": statement.approval_version, "action_hash": statement.action_hash,
        "decision": statement.decision, "comment_hash": statement.comment_hash,
    }  # fmt: skip
    if not _keep(writing, statement.operation, message_id, statement_hash, transport, outcome, now):
        # Only where there is no operation to lock can the same message have come twice at once.
        return _recorded(writing, statement.operation, message_id, statement_hash) or outcome
    _record(writing, statement.operation, signer.id, detail, outcome, now)
    return outcome


def record_refusal(
    writing: Writing, operation: str, message_id: str, transport: str, outcome: Outcome, now: datetime
) -> Outcome:
    """Record a message without a verified statement, once; a repeat returns what was recorded."""
    if not _keep(writing, operation, message_id, _NO_STATEMENT, transport, outcome, now):
        return _recorded(writing, operation, message_id, _NO_STATEMENT) or outcome
    _record(writing, operation, "unknown", {"message_id": message_id, "transport": transport}, outcome, now)
    return outcome


def _ruled(writing: Writing, token: str, statement: Statement, signer: Person, now: datetime) -> Outcome:
    approval = newest(writing.connection, writing.tenant, statement.operation)
    voters = [vote.person for vote in approval.votes] if approval is not None else []
    persons = load_persons(writing.connection, writing.tenant, voters)
    outcome = rule_on(statement, signer, approval, persons, now)
    if approval is None or outcome.ruling != Ruling.ACCEPTED:
        return outcome
    if not _cast(writing, approval, token, statement, signer, now):
        return Outcome(ruling=Ruling.ALREADY_VOTED, status=approval.status)
    if outcome.status is not None and outcome.status != approval.status:
        set_status(writing, statement.approval_id, outcome.status)
    return outcome


def _cast(
    writing: Writing, approval: Approval, token: str, statement: Statement, signer: Person, now: datetime
) -> bool:
    """Insert the vote; False where the table's own rule of one vote per person forbids it (G03)."""
    vote = Vote(
        person=signer.id,
        decision=statement.decision,
        statement_id=statement.id,
        statement=token,
        comment_hash=statement.comment_hash,
        decided_at=now,
    )
    number = len(approval.votes) + 1
    return writing.insert_once(votes, approval_id=statement.approval_id, person=signer.id, number=number, vote=vote)


def _seen_before(writing: Writing, statement: Statement, statement_hash: str) -> Outcome:
    approval = find(writing.connection, writing.tenant, statement.approval_id)
    status = approval.status if approval is not None else None
    is_it = (statements.c.tenant == writing.tenant) & (statements.c.id == statement.id)
    if writing.connection.execute(select(statements.c.hash).where(is_it)).scalar_one() != statement_hash:
        return Outcome(ruling=Ruling.ID_CONFLICT, status=status)
    if approval is not None and any(vote.statement_id == statement.id for vote in approval.votes):
        return Outcome(ruling=Ruling.REPLAY, status=status)
    refused = "this very statement was refused before and does not count; sign a new one"
    return Outcome(ruling=Ruling.REPLAY, detail=refused, status=status)


def _record(
    writing: Writing, operation: str, subject: str, detail: dict[str, JsonValue], outcome: Outcome, now: datetime
) -> None:
    ruled: dict[str, JsonValue] = {**detail, "ruling": outcome.ruling.value, "reason": outcome.sentence()}
    if outcome.ruling != Ruling.ACCEPTED:
        writing.record("decision.refused", operation, subject, now, **ruled)
        return
    writing.record("decision.accepted", operation, subject, now, **ruled)
    if outcome.status in (ApprovalStatus.GRANTED, ApprovalStatus.REJECTED):
        names = {name: detail[name] for name in ("approval_id", "approval_version", "action_hash", "statement_id")}
        writing.record(f"approval.{outcome.status.value}", operation, subject, now, **names)


def _recorded(writing: Writing, operation: str, message_id: str, statement_hash: str) -> Outcome | None:
    found: Outcome | None = writing.connection.execute(
        select(messages.c.outcome).where(
            messages.c.tenant == writing.tenant,
            messages.c.operation == operation,
            messages.c.message_id == message_id,
            messages.c.statement_hash == statement_hash,
        )
    ).scalar()
    return found


def _keep(
    writing: Writing, operation: str, message_id: str, statement_hash: str, transport: str, outcome: Outcome,
    now: datetime,
) -> bool:  # fmt: skip
    return writing.insert_once(
        messages,
        operation=operation,
        message_id=message_id,
        statement_hash=statement_hash,
        transport=transport,
        outcome=outcome,
        received_at=now,
    )
