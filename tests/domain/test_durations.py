"""Elapsed time as policies and directories write it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from countersign.domain.durations import Duration, duration

WRITTEN: TypeAdapter[str] = TypeAdapter(Duration)


@pytest.mark.parametrize(
    ("text", "elapsed"),
    [
        ("1s", timedelta(seconds=1)),
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("72h", timedelta(days=3)),
        ("7d", timedelta(days=7)),
        ("99999d", timedelta(days=99_999)),
    ],
)
def test_a_duration_is_elapsed_time(text: str, elapsed: timedelta) -> None:
    assert duration(WRITTEN.validate_python(text)) == elapsed


@pytest.mark.parametrize(
    "text", ["", "0s", "01h", "h", "1", "1.5h", "-1h", "1w", "1 h", "1H", "100000s", "1h\n", "１h", 90]
)
def test_other_forms_are_refused(text: Any) -> None:
    with pytest.raises(ValidationError):
        WRITTEN.validate_python(text)
