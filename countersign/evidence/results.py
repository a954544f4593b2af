"""What reading and querying a dataset yields: exact text everywhere, never a float.

These values stand apart from the reader so that agents and checks can name them without loading DuckDB.
"""

from __future__ import annotations

from typing import Literal

from countersign.domain.values import Value

Kind = Literal["number", "date", "text"]


class ColumnDescription(Value):
    """One column as it was read; `minimum`, `maximum` and `samples` are exact text."""

    name: str
    type: Kind
    unit: str
    """The declared unit or currency, `%` for a per cent column, else empty."""
    currency: str
    """The one currency of the column's values where it is known, else empty."""
    currency_column: str
    """The column that names each row's currency, else empty."""
    blanks: int
    distinct: int | None
    """Number of different values, blanks not counted; None where it is sensitive, like the range."""
    minimum: str | None
    """None where the column has only blanks."""
    maximum: str | None
    samples: tuple[str, ...]
    """Up to five different values in the order of their first rows, long ones cut with `…`; none of a sensitive one."""
    sensitive: bool = False
    """Its values are read only by a query that a person has allowed."""


class DatasetDescription(Value):
    """What a dataset holds, small enough for an agent or a person to read whole."""

    rows: int
    columns: tuple[ColumnDescription, ...]
    notes: tuple[str, ...]
    """What a reader should know: blanks, identifiers kept as text, money of several currencies."""


class QueryResult(Value):
    """The answer to one query: rows of exact text, `None` for NULL."""

    columns: tuple[str, ...]
    units: tuple[str, ...]
    """Per column the unit where it is known for certain, else empty."""
    rows: tuple[tuple[str | None, ...], ...]
    truncated: bool
    """True when the query yielded more than is given here."""


class SingleValue(Value):
    """The one value that a claim's query yields."""

    text: str
    """`-1234.50`, `2026-06-30` or a name, exactly as computed."""
    kind: Kind
    unit: str | None
    """Unit or currency that follows from the declared columns; empty: surely none; None: it cannot be told."""
