"""The effect: how an execution stands, and what an outside system answered."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from countersign.domain.values import Instant, Sha256, Value

OUTSIDE_REFUSED = "outside_refused"
"""Reason code of a grant that is void since the outside will not do what it is for, however often it is asked."""
OUTSIDE_CONFLICT = "outside_conflict"
"""Reason code of an unknown outcome: the outside holds something else under our key, so a person must look."""
MAY_STILL_LAND = "may_still_land"
"""Reason code of an effect that waits, since what was sent for another action of its operation may still land."""
SETTLED = "settled"
"""Reason code of an effect that people found not to have been executed."""
LOST_TIME = "lost_time"
"""Reason code of what may have been done in a time of which the ledger, restored from a backup, knows nothing."""
FROZEN = "frozen"
"""Reason code of an effect that was not sent since a freeze holds it."""
FACTS_UNREADABLE = "facts_unreadable"
"""Reason code of what is not done, or not believed, since what the effect rests on cannot be read outside now."""
KEY_FORGOTTEN = "key_forgotten"
"""Reason code of an outcome that stays unknown since the outside may have dropped the key that it is asked for."""


class ExecutionStatus(StrEnum):
    """Where one execution stands; the order in which it is written down is what makes it safe to be killed."""

    INTENDED = "intended"  # recorded before anything is sent; someone may be sending right now
    EXECUTED = "executed"  # the outside system confirmed it; the receipt is stored
    NOT_SENT = "not_sent"  # surely nothing took effect; the same key may be tried again
    UNKNOWN = "unknown"  # something may have taken effect; only a lookup or a person settles it


MAY_BE_THERE = frozenset({ExecutionStatus.INTENDED, ExecutionStatus.UNKNOWN})
"""Where something may have taken effect, and nobody knows it yet."""


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
    may_land_until: Instant | None = None
    """Until when something that was sent under the key may still take effect; nothing: surely nothing ever was sent, or
    nothing of it is left."""

    @property
    def surely_not_sent(self) -> bool:
        """Whether no attempt before this claim, as it was returned, can have sent anything; else it is looked up."""
        is_first = self.status == ExecutionStatus.INTENDED and self.attempt == 1
        if self.status == ExecutionStatus.NOT_SENT and self.reason.partition(":")[0] == SETTLED:
            return True  # people have looked; under the same key what still lands makes no second effect
        return self.may_land_until is None and (is_first or self.status == ExecutionStatus.NOT_SENT)

    def settled_at(self, now: datetime) -> Execution:
        """The same after it was found that nothing is there: what was sent can be forgotten once it cannot land."""
        is_over = self.may_land_until is not None and self.may_land_until <= now
        return self.model_copy(update={"may_land_until": None}) if is_over else self


class EffectResult(Value):
    """What the gateway tells the run."""

    status: ExecutionStatus | None
    """None: refused before anything was sent, and to stay so."""
    voided: bool = False
    """Whether it was refused because something the grant rests on has changed: people can be asked anew."""
    reason: str = ""
    """Reason code and sentence of a refusal, a failure to send, or an unknown outcome."""
    receipt: Receipt | None = None
