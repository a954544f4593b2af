"""What `audit export` writes: all with which somebody else can verify a tenant's record without our database.

Apart from the command: each line is one JSON object, told from the others by its first field, so that a reader can take
the records alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from countersign.cli.proving.rebuild_proof import token_of
from countersign.cli.session import Session
from countersign.domain.audit import AuditRecord
from countersign.domain.errors import NotFound

FORM = "countersign-audit/1"


def export_lines(session: Session, tenant: str, records: Sequence[AuditRecord]) -> Iterator[dict[str, Any]]:
    """The head, the records as they are, the persons with their public keys, and the signed statements.

    The head's checkpoint is made here, of the chain as it has just been verified: ChainBroken where it does not hold.
    """
    yield _head(session, tenant)
    for record in records:
        yield record.model_dump(mode="json")
    for person in session.ledger.directory.persons(tenant).values():
        yield {"person": person.model_dump(mode="json")}
    yield from _statements(session, records)


def _head(session: Session, tenant: str) -> dict[str, Any]:
    from countersign.bootstrap import installation_key
    from countersign.signing.checkpoints import sign_checkpoint
    from countersign.signing.keys import public_text

    key, checkpoint = installation_key(session.settings), session.ledger.audit.verify(tenant)
    return {
        "export": FORM, "installation": session.settings.installation, "tenant": tenant,
        "public_key": public_text(key), "checkpoint": sign_checkpoint(checkpoint, key),
    }  # fmt: skip


def _statements(session: Session, records: Sequence[AuditRecord]) -> Iterator[dict[str, Any]]:
    """Each statement that a record names by its hash, once; one that the ledger no longer has is not among them."""
    seen: set[str] = set()
    for record in records:
        sha256 = str(record.detail.get("statement_hash") or record.detail.get("order_hash") or "")
        if not sha256 or sha256 in seen:
            continue
        seen.add(sha256)
        try:
            yield {"statement": sha256, "text": token_of(session, record)}
        except NotFound:
            continue
