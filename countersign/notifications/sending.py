"""What every way out is to the relay: one call, which ends well or says whether to try again.

An error is a short code of our own: what the other side answered is neither kept nor logged (G46).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from countersign.notifications.message import Message

TIME_LIMIT = timedelta(seconds=15)
"""How long one attempt may take, however slowly the other side answers."""


class NotDelivered(Exception):
    """It did not arrive, or nobody knows."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class TryAgain(NotDelivered):
    """Later it may."""

    def __init__(self, error: str, after: timedelta | None = None) -> None:
        super().__init__(error)
        self.after = after
        """How long the other side asked to wait."""


class Hopeless(NotDelivered):
    """It never will: the other side refuses it, or the address is wrong."""


class Sender(Protocol):
    """One way out."""

    def send(self, message: Message) -> None:
        """Deliver it within TIME_LIMIT, or raise TryAgain or Hopeless."""
        ...
