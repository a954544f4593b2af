"""From what goes wrong in a step to Temporal's failures: what is tried again, and how little of it goes into history.

An error's sentence can quote data, and an unexpected exception anything at all, so history gets a code alone. The
sentence of a refusal goes to the ledger, where `starter.py timeline` finds it; of a fault, the log says where (G46).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from temporalio.exceptions import ApplicationError, is_cancelled_exception

from activities.runs import Runs
from countersign.domain.errors import CountersignError, Unavailable

log = logging.getLogger(__name__)


@contextmanager
def refusals(runs: Runs, tenant: str, operation: str, step: str) -> Iterator[None]:
    """Around a step that may be refused for good: a refusal inside is recorded and not tried again."""
    with faults(step):
        try:
            yield
        except Unavailable:
            raise
        except CountersignError as refusal:
            sentence = runs.ledger.documents.put(tenant, refusal.message.encode("utf-8", "backslashreplace"))
            detail = {"code": refusal.code, "sentence": sentence}
            runs.ledger.audit.append(tenant, "step.failed", operation, step, {**detail}, runs.now())
            raise ApplicationError(
                f"{step}: {refusal.code}; see the operation's timeline", type=refusal.code, non_retryable=True
            ) from None


@contextmanager
def faults(step: str) -> Iterator[None]:
    """Around a step that the run cannot do without: whatever goes wrong inside is tried again."""
    try:
        yield
    except ApplicationError:
        raise
    except CountersignError as lack:
        retry_after = getattr(lack, "retry_after", None)
        delay = timedelta(seconds=retry_after) if retry_after is not None else None
        raise ApplicationError(f"{step}: {lack.code}", type=lack.code, next_retry_delay=delay) from None
    except Exception as fault:
        if is_cancelled_exception(fault):
            raise
        log.error("%s failed by %s at %s; it is tried again", step, type(fault).__name__, _place(fault))
        raise ApplicationError(f"{step}: {type(fault).__name__}", type=type(fault).__name__) from None


def _place(fault: BaseException) -> str:
    """Where it was raised; its text is left out."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else "an unknown place"
