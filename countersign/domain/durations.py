"""Elapsed time as people write it in policies and directories: `90s`, `15m`, `72h`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_WRITTEN = re.compile(r"[1-9][0-9]{0,4}[smhd]")


def _written(value: Any) -> Any:
    if not isinstance(value, str) or _WRITTEN.fullmatch(value) is None:
        raise ValueError(f"{str(value)[:20]!r} is no time; write a number and s, m, h or d, such as 90s, 24h or 7d")
    return value


Duration = Annotated[str, BeforeValidator(_written)]
"""Elapsed time, the same across changes of the clock: a day is 24 hours."""


def duration(text: str) -> timedelta:
    """The elapsed time that a `Duration` stands for."""
    return timedelta(seconds=int(text[:-1]) * _SECONDS[text[-1]])
