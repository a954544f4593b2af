"""The audit chain: what a record holds, how each binds the one before, and how a break is found. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, JsonValue

from countersign.domain.canonical import digest
from countersign.domain.errors import CountersignError, InputRefused
from countersign.domain.identity import PersonId, TenantId
from countersign.domain.values import Instant, Sha256, Value, Why

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


RESTORED = "ledger.restored"
"""The type of the record that says from where on an earlier chain was lost."""


class Restore(Value):
    """A time of which a ledger knows nothing, since it was restored from a backup."""

    since: Instant
    """When the last record was written that the backup had."""
    until: Instant
    """When an operator said that it was restored."""


def lost_until(restores: Iterable[Restore], registered_at: datetime) -> datetime | None:
    """Until when something can have been done for an operation that its ledger does not know; None: surely nothing."""
    return max((one.until for one in restores if one.until > registered_at), default=None)


class Loss(Value):
    """What a chain lacks behind its last record, by the checkpoint kept outside."""

    kept: Annotated[int, Field(ge=1)]
    """How many records there are."""
    kept_head: Sha256
    counted: Annotated[int, Field(ge=1)]
    """How many the checkpoint counts, which are more."""
    counted_head: Sha256
    since: str
    """When the last one was written that is there, as its record says."""


class RestoreOrder(Value):
    """What an operator signs to have a chain go on behind a loss; bound by the signature, `typ: restore+jwt`.

    It names both ends of what is lost, so that it is good for no other loss.
    """

    installation: str
    person: PersonId
    key_id: str
    tenant: TenantId
    kept: Annotated[int, Field(ge=1)]
    kept_head: Sha256
    counted: Annotated[int, Field(ge=1)]
    counted_head: Sha256
    reason: Why
    issued_at: Instant
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16,64}$")]

    def names(self, loss: Loss) -> bool:
        """Whether this is the loss that it was signed for."""
        mine = (self.kept, self.kept_head, self.counted, self.counted_head)
        return mine == (loss.kept, loss.kept_head, loss.counted, loss.counted_head)


def cut_off(count: int, checkpoint: Checkpoint) -> ChainBroken:
    """The chain is shorter than its checkpoint says; whoever meets that learns what there is to do."""
    return ChainBroken(
        count + 1,
        f"audit record {count + 1} is missing: the checkpoint counts {checkpoint.count}, and nothing is written until"
        " they are back; was an older backup restored, and is there no newer one: .venv/bin/python starter.py audit"
        f" accept-restored --tenant {checkpoint.tenant} --as OPERATOR --reason TEXT",
    )


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
        raise cut_off(count, checkpoint)
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
