"""How the gateway refuses: for good, for good and with an alarm, or because a grant has drifted.

Apart from the checks, so that each of them only says what is wrong, and what follows from it is decided in one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from countersign.domain.errors import CountersignError, Drifted, NotAuthorised, Unavailable


class Ended(NotAuthorised):
    """A refusal for good that an honest run can meet, so nobody is alarmed."""


def line(refusal: NotAuthorised) -> str:
    """Reason code and sentence, as ledger and run keep them."""
    return f"{refusal.reason}: {refusal.message}"


def is_alarming(refusal: NotAuthorised) -> bool:
    """Whether no honest course leads to a refusal: something was forged, or changed behind the ledger's back."""
    return not isinstance(refusal, Ended | Drifted)


@contextmanager
def forged(reason: str, sentence: str) -> Iterator[None]:
    """Turn what is wrong with a fact into a refusal; that a part of our own does not answer is no such fact."""
    try:
        yield
    except Unavailable:
        raise
    except CountersignError as error:
        raise NotAuthorised(reason, f"{sentence}: {error.message}") from None


@contextmanager
def drifted(reason: str, sentence: str, *, expected: str) -> Iterator[None]:
    """The same for a fact that can change in an honest course."""
    try:
        yield
    except Unavailable:
        raise
    except CountersignError as error:
        raise Drifted(reason, f"{sentence}: {error.message}", expected=expected, found=error.message) from None
