"""The base of all frozen values that cross a boundary: strict types, no unknown fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, NewType

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError


class Value(BaseModel):
    """An immutable value; an unknown field or a wrong type is an error, never dropped or coerced."""

    # Built when first used: a command starts with hundreds of forms in sight and uses few.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time needs an offset, for example 2026-11-30T09:00:00Z")
    return value.astimezone(UTC)


Instant = Annotated[datetime, AfterValidator(_utc)]
"""A point in time in UTC; a value without an offset is refused."""

Sha256 = NewType("Sha256", Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")])
"""`sha256:` and 64 lower-case hex digits; a model refuses any other text."""

MAX_WHY = 500
Why = Annotated[str, Field(min_length=1, max_length=MAX_WHY)]
"""Why somebody wants what they sign: for a single act, such as a freeze, that has nothing else to speak for it."""


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong with a value, as `place: what`; never the value, which may be secret or huge."""
    detail = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in detail["loc"])[:120]
    return f"{place}: {detail['msg']}" if place else detail["msg"]
