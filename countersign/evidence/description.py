"""What a dataset holds, for an agent or a person to read before asking.

It stands apart because it summarises a table that is already read; nothing here decides what a column is.
"""

from __future__ import annotations

from typing import Any

import duckdb

from countersign.evidence.answers import exact_text
from countersign.evidence.columns import Column
from countersign.evidence.formats import LEADING_ZERO, identifier, matches
from countersign.evidence.money import Money
from countersign.evidence.results import ColumnDescription, DatasetDescription

_SAMPLES = 5
_SAMPLED_ROWS = 10_000
_LONGEST = 100


def describe_table(
    connection: duckdb.DuckDBPyConnection, columns: tuple[Column, ...], money: Money
) -> DatasetDescription:
    """The description of table `data` with those columns."""
    rows = _row(connection, "SELECT count(*) FROM data")[0]
    described = tuple(_describe_column(connection, column, money, rows) for column in columns)
    return DatasetDescription(rows=rows, columns=described, notes=tuple(_notes(connection, columns, described, money)))


def money_of(connection: duckdb.DuckDBPyConnection, columns: tuple[Column, ...]) -> Money:
    """The units of the columns; a column whose rows all name one currency counts as money of that one."""
    units, fixed, mixed = {}, {}, {}
    for column in columns:
        declared, name = column.declared, column.name.lower()
        if declared is None or column.kind != "number":
            continue
        currency = declared.currency or declared.number.currency
        if declared.currency_column:
            by, amount = identifier(declared.currency_column), identifier(column.name)
            low, high = _row(connection, f"SELECT min({by}), max({by}) FROM data WHERE {amount} IS NOT NULL")
            currency = low if low == high and low else ""
            if not currency:
                mixed[name] = declared.currency_column.lower()
        if currency:
            fixed[name] = currency
        units[name] = currency or declared.unit or ("%" if declared.number.percent else "")
    return Money(tuple(column.name.lower() for column in columns), units, fixed, mixed)


def _describe_column(
    connection: duckdb.DuckDBPyConnection, column: Column, money: Money, rows: int
) -> ColumnDescription:
    at = identifier(column.name)
    name, hidden = column.name.lower(), column.is_sensitive
    facts = "NULL, NULL, NULL" if hidden else f"count(DISTINCT {at}), min({at}), max({at})"
    filled, distinct, low, high = _row(connection, f"SELECT count({at}), {facts} FROM data")
    return ColumnDescription(
        name=column.name,
        type=column.kind,
        unit=money.units.get(name, ""),
        currency=money.fixed.get(name, ""),
        currency_column=column.declared.currency_column if column.declared else "",
        blanks=rows - filled,
        distinct=distinct,
        minimum=_shown(low),
        maximum=_shown(high),
        samples=() if hidden else _samples(connection, at),
        sensitive=hidden,
    )


def _samples(connection: duckdb.DuckDBPyConnection, at: str) -> tuple[str, ...]:
    found = connection.execute(f"SELECT {at} FROM data WHERE {at} IS NOT NULL LIMIT {_SAMPLED_ROWS}").fetchall()
    different = dict.fromkeys(value for (value,) in found)
    return tuple(text for value in list(different)[:_SAMPLES] if (text := _shown(value)) is not None)


def _notes(
    connection: duckdb.DuckDBPyConnection,
    columns: tuple[Column, ...],
    described: tuple[ColumnDescription, ...],
    money: Money,
) -> list[str]:
    notes = [f"{each.name}: {each.blanks} of its values are blank." for each in described if each.blanks]
    notes += [
        f"{each.name}: sensitive; a query that reads it waits for a person." for each in described if each.sensitive
    ]
    for column in columns:
        name, text = column.name.lower(), identifier(column.name)
        if name in money.mixed:
            by = money.mixed[name]
            notes.append(f"{column.name}: amounts of several currencies; filter by {by} or group by it.")
        elif column.kind == "text" and column.declared is None:
            found = _row(connection, f"SELECT count(*) FROM data WHERE {matches(text, LEADING_ZERO)}")[0]
            if found:
                notes.append(f"{column.name}: read as text, since {found} of its values start with a zero.")
    return notes


def _shown(value: Any) -> str | None:
    text = exact_text(value)
    return text if text is None or len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _row(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return tuple(row)
