"""Column types: the one door through which values go into the database and come back.

Apart from the tables because SQLite and PostgreSQL refuse different texts and keep times differently; what is not the
same on both is refused or fixed here, before any SQL is sent.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import BigInteger, Dialect, Text
from sqlalchemy.types import TypeDecorator

from countersign.domain.errors import InputRefused
from countersign.domain.strict_json import check_text

LARGEST_COUNT = 2**53 - 1
T = TypeVar("T")


def moment_text(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds: fixed width, so that text order is time order; InputRefused without offset."""
    if moment.tzinfo is None:
        raise InputRefused(f"time {moment.isoformat()} has no offset; give it in UTC")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class PlainText(TypeDecorator[str]):
    """Text without NUL and lone surrogates, which PostgreSQL cannot hold and SQLite would."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        """Refuse what is not the same on both engines."""
        check_text(value, "ledger")
        # str() because the drivers would write an enumeration's name instead of its word.
        return None if value is None else str(value)


class Count(TypeDecorator[int]):
    """A whole number from 0 to 2^53 - 1; beyond that the engines and JSON disagree."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | None, _dialect: Dialect) -> int | None:
        """Refuse what one of the engines would refuse."""
        if value is not None and not 0 <= value <= LARGEST_COUNT:
            raise InputRefused(f"number {value} is not allowed in the ledger; use 0 to {LARGEST_COUNT}")
        return value


class Moment(TypeDecorator[datetime]):
    """A point in time, as `moment_text`."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> str | None:
        """Write fixed-width UTC."""
        return None if value is None else moment_text(value)

    def process_result_value(self, value: str | None, _dialect: Dialect) -> datetime | None:
        """Read it back with its offset."""
        return None if value is None else datetime.fromisoformat(value)


class Frozen(TypeDecorator[T], Generic[T]):
    """A whole value as JSON text; what comes back is validated again as strictly as what came in."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind
        self._adapter: TypeAdapter[T] = TypeAdapter(kind)

    def process_bind_param(self, value: T | None, _dialect: Dialect) -> str | None:
        """Write JSON after the text check: escapes would carry NUL past PostgreSQL."""
        if value is None:
            return None
        check_text(self._adapter.dump_python(value), "ledger")
        return self._adapter.dump_json(value).decode()

    def process_result_value(self, value: str | None, _dialect: Dialect) -> T | None:
        """Read and validate."""
        return None if value is None else self._adapter.validate_json(value)
