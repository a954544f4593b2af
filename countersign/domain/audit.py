"""The audit chain: what a record holds, how each binds the one before, and how a break is found. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, JsonValue

from countersign.domain.canonical import digest
from countersign.domain.errors import CountersignError, InputRefused
from countersign.domain.values import Sha256, Value

GENESIS = Sha256("sha256:" + "0" * 64)
"""What the first record of a tenant binds instead of a record before."""


class AuditRecord(Value):
    """One fact. Order is `sequence`, never the clock."""

    tenant: str
    sequence: Annotated[int, Field(ge=1)]
    recorded_at: str
    """UTC, RFC 3339; when the writer says it happened, for people."""
    origin: str
    """The installation that wrote it."""
    type: str
    """What happened, `subject.verb`: `decision.accepted`, `effect.intended`."""
    operation: str
    """The operation it concerns; empty for directory and policy matters."""
    subject: str
    """Who or what did it: a person id, `agent`, `gateway`, `policy`, `clock`, or `unknown`."""
    detail: dict[str, JsonValue]
    """Ids, hashes and small values; never documents, comments or secrets."""
    previous: Sha256
    hash: Sha256

    def body(self) -> dict[str, Any]:
        """All that the hash covers: every field but the hash."""
        return self.model_dump(mode="json", exclude={"hash"})


def link(record: dict[str, Any], previous: Sha256) -> AuditRecord:
    """Complete a record's fields with the hash of the record before and its own."""
    body = {**record, "previous": previous}
    return AuditRecord.model_validate({**body, "hash": digest(body)})


class ChainBroken(CountersignError):
    """The chain does not hold; `sequence` is that of the first bad record."""

    code = "AUDIT_BROKEN"

    def __init__(self, sequence: int, message: str) -> None:
        super().__init__(message)
        self.sequence = sequence


class Checkpoint(Value):
    """How long a tenant's chain was, and its head; kept outside the database (G43)."""

    installation: str
    tenant: str
    count: Annotated[int, Field(ge=0)]
    head: Sha256


def verify_chain(
    records: Iterable[AuditRecord], *, tenant: str, origin: str, checkpoint: Checkpoint | None
) -> tuple[int, Sha256]:
    """Recompute every link and compare with the checkpoint; return count and head.

    Raises:
        ChainBroken: naming the first record that was changed, deleted, inserted, swapped or repeated, one of another
            origin or tenant, or the first that is missing behind the checkpoint's count (G42 to G44).
    """
    count, head = 0, GENESIS
    for record in records:
        _verify_link(record, count + 1, head, tenant, origin)
        count, head = record.sequence, record.hash
        if checkpoint is not None and count == checkpoint.count and head != checkpoint.head:
            raise ChainBroken(count, f"audit record {count} is not the one that the checkpoint names")
    if checkpoint is not None and count < checkpoint.count:
        raise ChainBroken(count + 1, f"audit record {count + 1} is missing: the checkpoint counts {checkpoint.count}")
    return count, head


def _verify_link(record: AuditRecord, expected: int, head: Sha256, tenant: str, origin: str) -> None:
    if record.sequence != expected:
        raise ChainBroken(expected, f"audit record {expected} is missing or out of place: found {record.sequence}")
    if (record.tenant, record.origin) != (tenant, origin):
        raise ChainBroken(
            expected, f"audit record {expected} is from {record.origin}/{record.tenant}, not {origin}/{tenant}"
        )
    if record.previous != head:
        raise ChainBroken(expected, f"audit record {expected} does not follow the one before it")
    if record.hash != _hash_of(record):
        raise ChainBroken(expected, f"audit record {expected} was changed: its hash does not fit its content")


def _hash_of(record: AuditRecord) -> Sha256 | None:
    """The hash that the content has now; nothing where it was changed into what has no canonical form."""
    try:
        return digest(record.body())
    except InputRefused:
        return None
