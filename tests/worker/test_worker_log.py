"""What a worker's log says of a step that failed: one line where that was foreseen, the place where it was not."""

from __future__ import annotations

import logging
import sys

import pytest
from temporalio.exceptions import ApplicationError

from activities.failures import faults
from countersign.domain.errors import Unavailable
from countersign.worker_process import plainly


def logged(error: Exception) -> str:
    """What is logged of an activity that ends by `error`, as the SDK has it logged."""
    try:
        with faults("draft"):
            raise error
    except ApplicationError:
        record = logging.LogRecord(
            "temporalio.activity", logging.WARNING, __file__, 1, "Completing activity as failed", None, sys.exc_info()
        )
    record.temporal_activity = {"workflow_id": "acme:op-1", "attempt": 2}
    assert plainly(record)
    return logging.Formatter().format(record)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (Unavailable("model writer does not answer"), "acme:op-1, attempt 2: draft: UNAVAILABLE; tried again"),
        (
            ApplicationError("draft: BUDGET_EXCEEDED", type="BUDGET_EXCEEDED", non_retryable=True),
            "acme:op-1, attempt 2: draft: BUDGET_EXCEEDED; not tried again",
        ),
    ],
    ids=["tried again", "for good"],
)
def test_a_failure_that_was_foreseen_is_one_line(error: Exception, line: str) -> None:
    assert logged(error) == line


def test_a_failure_that_nobody_foresaw_keeps_its_traceback() -> None:
    text = logged(ZeroDivisionError("of Zanzibar"))

    assert text.startswith("Completing activity as failed\nTraceback")
    assert "in faults" in text
    assert "Zanzibar" not in text


def test_what_is_no_failure_is_left_alone() -> None:
    record = logging.LogRecord("temporalio.activity", logging.WARNING, __file__, 1, "late", None, None)

    assert plainly(record)
    assert record.getMessage() == "late"
