"""Running one checked query within bounds of time, rows and text, and its values as exact text.

It stands apart because here a query meets DuckDB: everything before is judgement, everything after is text.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import duckdb

from countersign.domain.errors import QueryRefused
from countersign.evidence.results import Kind

Value = int | float | Decimal | str | bool | date | datetime | None
Row = tuple[Value, ...]

MAX_CELL = 2_000
"""The longest text in one cell of an answer, in characters."""
MAX_ANSWER = 200_000
"""The longest answer as a whole, in characters."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one query."""

    rows: int
    seconds: float


def answer(cursor: duckdb.DuckDBPyConnection, sql: str, limits: Limits) -> tuple[tuple[str, ...], list[Row]]:
    """The column names and at most one row more than `limits.rows` of the allowed query `sql`.

    Raises:
        QueryRefused: DuckDB cannot run it, it takes too long, or its texts are too long.
    """
    try:
        with _time_limit(cursor, limits.seconds):
            cursor.execute(sql)
            names = tuple(str(column[0]) for column in cursor.description or ())
            rows: list[Row] = cursor.fetchmany(limits.rows + 1)
    except duckdb.InterruptException:
        raise QueryRefused(f"the query took longer than {limits.seconds:g} seconds; ask for less") from None
    except duckdb.OutOfMemoryException:
        raise QueryRefused("the query needs more memory than is allowed; ask for less") from None
    except (duckdb.Error, OverflowError, ValueError) as error:
        raise QueryRefused(f"the query fails: {first_line(error)}; correct it") from None
    _check_size(rows)
    return names, rows


@contextmanager
def _time_limit(cursor: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _check_size(rows: list[Row]) -> None:
    sizes = [len(value) for row in rows for value in row if isinstance(value, str)]
    if max(sizes, default=0) > MAX_CELL or sum(sizes) > MAX_ANSWER:
        raise QueryRefused(
            f"the answer's texts are longer than {MAX_CELL} characters in a cell or {MAX_ANSWER} in all; cut them with"
            " left(column, 100) or ask for fewer rows"
        )


def exact_text(value: Value) -> str | None:
    """`value` as text that says exactly this value; None for NULL.

    Raises:
        QueryRefused: it is a list, a structure, an interval or no finite number.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float) and math.isfinite(value):
        return _plain_float(value)
    if isinstance(value, date):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    raise QueryRefused(f"the query yields a {type(value).__name__} without exact text; cast it to varchar or decimal")


def kind_of(value: Value) -> Kind:
    """Whether `value` is a number, a date or a text."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return "number"
    return "date" if isinstance(value, date) and not isinstance(value, datetime) else "text"


def _plain_float(value: float) -> str:
    """The shortest digits that mean this double, without an exponent."""
    text = format(Decimal(repr(value)), "f")
    return text.removesuffix(".0")


def first_line(error: BaseException) -> str:
    """What an exception says, without the lines that only a programmer reads."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
