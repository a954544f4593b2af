"""Which refusals Temporal may try again, and how little of them lies in history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.failures import refusals
from activities.runs import Runs
from countersign import bootstrap
from countersign.domain.errors import (
    ConfigurationRefused,
    Conflict,
    CountersignError,
    DataRefused,
    NotAuthorised,
    NotFound,
    StatementRefused,
    Unavailable,
)
from countersign.ports import Ledger
from countersign.settings import Settings

SENTENCE = "column amount, row 7: '12.50 of Zanzibar' is no number; declare its format"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = bootstrap.open_ledger(Settings(home=tmp_path, _env_file=None))
    yield opened
    opened.close()


def refused_by(ledger: Ledger, step: str) -> AbstractContextManager[None]:
    return refusals(Runs(ledger, bootstrap.wall_clock), "acme", "op-1", step)


def failure_of(ledger: Ledger, error: CountersignError) -> ApplicationError:
    with pytest.raises(ApplicationError) as failure, refused_by(ledger, "validate"):
        raise error
    return failure.value


@pytest.mark.guarantee("G46", "G47")
@pytest.mark.parametrize(
    "error",
    [
        DataRefused(SENTENCE),
        ConfigurationRefused(SENTENCE),
        Conflict(SENTENCE),
        NotFound(SENTENCE),
        StatementRefused("signature", SENTENCE),
        NotAuthorised("quorum", SENTENCE),
    ],
    ids=lambda error: error.code,
)
def test_a_refusal_is_final_and_its_sentence_lies_in_the_ledger_alone(ledger: Ledger, error: CountersignError) -> None:
    failure = failure_of(ledger, error)
    assert (failure.non_retryable, failure.type) == (True, error.code)
    assert "Zanzibar" not in str(failure) + repr(failure.details)
    assert failure.__cause__ is None
    (record,) = ledger.audit.records("acme", "op-1")
    assert (record.type, record.subject, record.detail["code"]) == ("step.failed", "validate", error.code)
    assert ledger.documents.get("acme", str(record.detail["sentence"])).decode() == SENTENCE


@pytest.mark.parametrize(("asked", "delay"), [(None, None), (7.5, timedelta(seconds=7.5))])
def test_a_lack_is_tried_again_when_the_part_that_lacks_says(
    ledger: Ledger, asked: float | None, delay: timedelta | None
) -> None:
    failure = failure_of(ledger, Unavailable(SENTENCE, retry_after=asked))
    assert (failure.non_retryable, failure.type, failure.next_retry_delay) == (False, "UNAVAILABLE", delay)
    assert "Zanzibar" not in str(failure)
    assert list(ledger.audit.records("acme", "op-1")) == []


@pytest.mark.guarantee("G46")
def test_a_fault_of_our_own_is_tried_again_and_told_by_its_kind_alone(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ApplicationError) as failure, refused_by(ledger, "validate"):
        raise ZeroDivisionError(SENTENCE)
    assert (failure.value.non_retryable, failure.value.type) == (False, "ZeroDivisionError")
    assert "Zanzibar" not in str(failure.value) + caplog.text
    assert "test_failures.py" in caplog.text


def test_a_cancel_passes_as_it_is(ledger: Ledger) -> None:
    with pytest.raises(asyncio.CancelledError), refused_by(ledger, "draft"):
        raise asyncio.CancelledError
