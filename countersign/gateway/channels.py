"""What a channel to an outside system is, and the three ways in which a call to it can fail.

Apart from the channels themselves, so that the gateway decides by the kind of failure alone and a new channel is one
file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Protocol

from countersign.domain.channel import Takes
from countersign.domain.errors import CountersignError
from countersign.domain.execution import Receipt
from countersign.domain.values import Sha256

Check = Callable[[], None]
"""Raises NotSent where the right to send has ended."""


def always() -> None:
    """The check of a call that may go out at any time."""


class Outlet(Protocol):
    """By what one call goes out, and is looked up. Every call is bounded in time, and one key has at most one effect,
    however often it is sent."""

    @property
    def name(self) -> str:
        """What an action's `channel` argument calls it."""
        ...

    @property
    def side_effect(self) -> str:
        """What sending through it changes, in the policy's words: `internal_publication`, `external_publication`."""
        ...

    @property
    def time_limit(self) -> timedelta:
        """The longest that one call may take; the gateway's claim is held for longer than a look-up and a send."""
        ...

    @property
    def keys_kept(self) -> timedelta | None:
        """How long the outside remembers a key; None: for ever (G35)."""
        ...

    @property
    def lands_within(self) -> timedelta:
        """How long after a call what it sent may still take effect outside, however it was answered or given up."""
        ...

    def send(self, key: str, name: str, document: bytes, content_hash: Sha256, check: Check = always) -> Receipt:
        """Publish `document` as `name` under the idempotency key, or return the receipt of the same key's publication.

        `check` is called right before anything can take effect; what it raises ends the call, with nothing sent.

        Raises:
            NotSent, Refused, OutcomeUnknown: see there; nothing else leaves a channel.
        """
        ...

    def look_up(self, key: str) -> Receipt | None:
        """What the outside holds under the key; None only where it surely holds nothing; OutcomeUnknown otherwise.

        What was taken back since is held still: the key was used.
        """
        ...


class Channel(Outlet, Protocol):
    """A way out that a tenant is given, for whatever goes out by it."""

    @property
    def takes(self) -> Takes:
        """What can go out by it; the gateway sends nothing else there."""
        ...

    def held(self) -> Iterable[Receipt] | None:
        """All that the outside holds under keys of ours; None where it cannot be listed; OutcomeUnknown otherwise."""
        ...

    def reversing(self) -> Channel | None:
        """The way by which its effects are taken back, a channel of the same name with keys of its own; None where they
        cannot be. Its documents are those of `compensation.reversal_document`."""
        ...


class ChannelFailure(CountersignError):
    """A call had no receipt; `reason` is the stable code of why."""

    code = "CHANNEL_FAILURE"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def line(self) -> str:
        """Reason code and sentence, as ledger and run keep them."""
        return f"{self.reason}: {self.message}"


class NotSent(ChannelFailure):
    """Surely nothing took effect, and the same call may succeed later."""

    code = "NOT_SENT"


class Refused(ChannelFailure):
    """Surely nothing took effect, and repeating the call cannot help: a person has to look."""

    code = "OUTSIDE_REFUSED"


class OutcomeUnknown(ChannelFailure):
    """Something may have taken effect; only a look-up by the same key or a person settles it (G36)."""

    code = "OUTCOME_UNKNOWN"
