"""From our errors to Temporal's: which may be tried again, and how little of them goes into history.

An error's sentence can quote data, so history gets the code alone; the sentence goes to the ledger, where `starter.py
timeline` finds it (G46).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from temporalio.exceptions import ApplicationError

from countersign.domain.errors import CountersignError, Unavailable
from countersign.ports import Ledger


@contextmanager
def refusals(ledger: Ledger, tenant: str, operation: str, step: str) -> Iterator[None]:
    """Turn a refusal inside into a failure that is not tried again, and a lack into one that is."""
    try:
        yield
    except Unavailable as lack:
        raise ApplicationError(f"{step}: {lack.code}", type=lack.code, next_retry_delay=_delay(lack)) from None
    except CountersignError as refusal:
        sentence = ledger.documents.put(tenant, refusal.message.encode("utf-8", "backslashreplace"))
        ledger.audit.append(
            tenant, "step.failed", operation, step, {"code": refusal.code, "sentence": sentence}, datetime.now(UTC)
        )
        raise ApplicationError(
            f"{step}: {refusal.code}; see the operation's timeline", type=refusal.code, non_retryable=True
        ) from None


def _delay(lack: Unavailable) -> timedelta | None:
    return timedelta(seconds=lack.retry_after) if lack.retry_after is not None else None
