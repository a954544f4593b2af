"""What is wrong with a dataset, said with row, line, column and value.

It stands apart because it runs only when something is wrong: here clarity counts, in the reading speed does.
"""

from __future__ import annotations

import duckdb

from countersign.domain.errors import DataRefused
from countersign.evidence.columns import Column
from countersign.evidence.formats import MAX_DIGITS, advice, identifier, matches, number_pattern, plain_text
from countersign.evidence.layout import Layout
from countersign.evidence.records import records_of

_ORDERS = {
    "iso": "year-month-day such as 2026-06-30",
    "dmy": "day, month and four-digit year such as 30/06/2026",
    "mdy": "month, day and four-digit year such as 06/30/2026",
}


def check_values(connection: duckdb.DuckDBPyConnection, layout: Layout, columns: tuple[Column, ...]) -> None:
    """Refuse the first value in table `texts` that its column may not hold.

    Raises:
        DataRefused: naming it.
    """
    found = []
    for position, column in enumerate(columns):
        text = identifier(column.name)
        row = connection.execute(f"SELECT min(rowid) FROM texts WHERE {column.faulty(text)}").fetchone()
        if row is not None and row[0] is not None:
            found.append((row[0], position, column))
    if found:
        rowid, _, column = min(found, key=lambda each: each[:2])
        value = _value(connection, "texts", column.name, rowid)
        raise DataRefused(f"{_place(layout, rowid, column.name)}: {value[:80]!r} {_complaint(column, value)}")


def too_long(connection: duckdb.DuckDBPyConnection, table: str, layout: Layout, column: Column) -> DataRefused:
    """The refusal of numbers with more digits than are kept exactly; names the longest."""
    text = identifier(column.name)
    numbers = f"FROM {table} WHERE {matches(text, number_pattern(column.form))}"
    digits = f"length({plain_text(text, column.form)})"
    row = connection.execute(f"SELECT rowid, {text} {numbers} ORDER BY {digits} DESC, rowid LIMIT 1").fetchone()
    assert row is not None
    return DataRefused(
        f"{_place(layout, row[0], column.name)}: {row[1]!r} and the column's other numbers need more than {MAX_DIGITS}"
        " digits before and after the decimal point; shorten them or declare type: text"
    )


def check_currencies(connection: duckdb.DuckDBPyConnection, layout: Layout, columns: tuple[Column, ...]) -> None:
    """Refuse money whose row names no currency, and a currency column that is not there or not text.

    Raises:
        DataRefused: naming the first such value.
    """
    kinds = {column.name: column.kind for column in columns}
    for column in columns:
        money = column.declared.currency_column if column.declared else ""
        if not money:
            continue
        if kinds.get(money) != "text":
            state = "not in the header" if money not in kinds else f"of type {kinds[money]}"
            fault = f"currency_column {money!r} is {state}; name a text column"
            raise DataRefused(f"schema of column {column.name!r}: {fault}")
        blank = f"{identifier(money)} IS NULL AND {identifier(column.name)} IS NOT NULL"
        row = connection.execute(f"SELECT min(rowid) FROM data WHERE {blank}").fetchone()
        if row is not None and row[0] is not None:
            value = _value(connection, "data", column.name, row[0])
            place = _place(layout, row[0], column.name)
            raise DataRefused(f"{place}: {value} has no currency, column {money!r} is blank there; fill it in")


def place_of(layout: Layout, rowid: int) -> str:
    """Where the record with that row id stands: `row 2 (line 3)`, both counted from 1."""
    row = rowid + 1
    line = (
        next((line for number, line, _ in records_of(layout.path, layout.delimiter) if number == row), None)
        if layout.quoted
        else row + 1
    )
    return f"row {row} (line {line})"


def _place(layout: Layout, rowid: int, name: str) -> str:
    return f"{place_of(layout, rowid)}, column {name!r}"


def _value(connection: duckdb.DuckDBPyConnection, table: str, name: str, rowid: int) -> str:
    row = connection.execute(f"SELECT {identifier(name)} FROM {table} WHERE rowid = ?", [rowid]).fetchone()
    assert row is not None
    return str(row[0])


def _complaint(column: Column, value: str) -> str:
    help_ = advice(column.name, value)
    if column.kind == "date":
        return f"is not a date; expected {_ORDERS[column.order]}: {help_}"
    if column.declared is None:
        return f"is not a plain number such as -1234.50, though the column looks like numbers; {help_}"
    declared = column.declared.number.model_dump(exclude_defaults=True)
    allowed = ", ".join(f"{key}: {mark!r}" for key, mark in declared.items()) or "plain digits with a decimal point"
    return f"is not a number as declared ({allowed}); {help_}"
