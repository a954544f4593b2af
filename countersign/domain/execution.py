"""The effect: how an execution stands, and what an outside system answered."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from countersign.domain.values import Instant, Sha256, Value


class ExecutionStatus(StrEnum):
    """Where one execution stands; the order in which it is written down is what makes it safe to be killed."""

    INTENDED = "intended"  # recorded before anything is sent; someone may be sending right now
    EXECUTED = "executed"  # the outside system confirmed it; the receipt is stored
    NOT_SENT = "not_sent"  # surely nothing took effect; the same key may be tried again
    UNKNOWN = "unknown"  # something may have taken effect; only a lookup or a person settles it


class Receipt(Value):
    """What the outside system answered for an idempotency key."""

    channel: str
    key: str
    reference: str
    """Where the effect lies: a path, a URL or the outside system's id."""
    content_hash: Sha256
    """Hash of the bytes the outside system holds under the key."""
    detail: Annotated[str, Field(max_length=2_000)] = ""


class Execution(Value):
    """One action's execution as the ledger has it."""

    tenant: str
    operation: str
    approval_id: str
    action_hash: Sha256
    key: str
    status: ExecutionStatus
    attempt: int
    """Which claim to send is the current one; an older one may record nothing any more (a fencing token)."""
    claimed_until: Instant
    """Until then nobody else may send or look up; the holder's whole call is shorter than this."""
    receipt: Receipt | None = None
    reason: str = ""


class EffectResult(Value):
    """What the gateway tells the run."""

    status: ExecutionStatus | None
    """None: refused before anything was sent, and to stay so."""
    voided: bool = False
    """Whether it was refused because something the grant rests on has changed: people can be asked anew."""
    reason: str = ""
    """Reason code and sentence of a refusal, a failure to send, or an unknown outcome."""
    receipt: Receipt | None = None
