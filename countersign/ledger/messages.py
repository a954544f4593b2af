"""Every message that came to a run, with what it came to: each way of sending the same thing twice is told apart (G17).

Apart from decisions and commands because both count here: an id that one has used is no longer good for the other.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.strict_json import check_text
from countersign.domain.values import Instant
from countersign.ledger.store import Writing
from countersign.ledger.tables import documents, messages, statements


class Sent(NamedTuple):
    """One message, however it was sent."""

    operation: str
    message_id: str
    transport: str
    statement_hash: str
    """Of the compact JWS, or of the canonical JSON of a decision that nobody signed; empty where there is neither."""
    at: Instant


def statement_hash(token: str) -> str:
    """The hash by which a statement is known."""
    check_text(token, "statement")
    return sha256_hex(token.encode())


def keep_statement(writing: Writing, token: str) -> str:
    """Keep a verified statement among the documents, so that its signature can be looked at again; returns its hash."""
    sha256 = statement_hash(token)
    writing.insert_once(documents, sha256=sha256, data=token.encode())
    return sha256


def recall(writing: Writing, sent: Sent) -> Outcome | None:
    """What this very message came to before; nothing where it is new."""
    found: Outcome | None = writing.connection.execute(
        select(messages.c.outcome).where(
            messages.c.tenant == writing.tenant,
            messages.c.operation == sent.operation,
            messages.c.message_id == sent.message_id,
            messages.c.statement_hash == sent.statement_hash,
        )
    ).scalar()
    return found


def seen_before(writing: Writing, sent: Sent, statement_id: str) -> Outcome | None:
    """The ruling on a statement that came in an earlier message, or whose id another has used; nothing if it is new."""
    values = {"hash": sent.statement_hash, "operation": sent.operation, "seen_at": sent.at}
    if writing.insert_once(statements, id=statement_id, **values):
        return None
    is_it = (statements.c.tenant == writing.tenant) & (statements.c.id == statement_id)
    if writing.connection.execute(select(statements.c.hash).where(is_it)).scalar_one() != sent.statement_hash:
        return Outcome(ruling=Ruling.ID_CONFLICT)
    refused = "this very statement was refused before and does not count; sign a new one"
    return Outcome(ruling=Ruling.REPLAY, detail="" if _counts(writing, sent) else refused)


def keep(writing: Writing, sent: Sent, outcome: Outcome) -> bool:
    """Write down what a message came to; False where that was done before."""
    return writing.insert_once(
        messages,
        operation=sent.operation,
        message_id=sent.message_id,
        statement_hash=sent.statement_hash,
        transport=sent.transport,
        outcome=outcome,
        received_at=sent.at,
    )


def _counts(writing: Writing, sent: Sent) -> bool:
    came = select(messages.c.outcome).where(
        messages.c.tenant == writing.tenant,
        messages.c.operation == sent.operation,
        messages.c.statement_hash == sent.statement_hash,
    )
    return any(outcome.ruling == Ruling.ACCEPTED for outcome in writing.connection.execute(came).scalars())
