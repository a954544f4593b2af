"""Two rows that stand for the same thing, in data whose schema says which columns identify a row.

It stands apart from the faults of single values: each row is fine by itself, and only a declaration (`unique`) makes
the two a contradiction. Nothing is guessed: without the declaration a file may hold the same row as often as it likes.
"""

from __future__ import annotations

import duckdb

from countersign.domain.errors import DataRefused, EvidenceContradictsItself
from countersign.domain.report import DatasetSchema
from countersign.evidence.answers import Row, Value, exact_text
from countersign.evidence.columns import Column
from countersign.evidence.faults import place_of
from countersign.evidence.formats import identifier
from countersign.evidence.layout import Layout

_SHOWN = 3


def check_unique(
    connection: duckdb.DuckDBPyConnection, layout: Layout, columns: tuple[Column, ...], schema: DatasetSchema
) -> None:
    """Refuse the first row that has the identity of an earlier one; a blank counts as a value like any other.

    A row that repeats an earlier one in every column is refused too: the declaration says that there is none, and sums
    would count it twice.

    Raises:
        DataRefused: the declaration names a column that is not there.
        EvidenceContradictsItself: with row and line of both, and the values in which they differ.
    """
    if not schema.unique:
        return
    names = [column.name for column in columns]
    if missing := [name for name in schema.unique if name not in names]:
        raise DataRefused(f"the schema's unique names column {missing[0]!r}, which is not in the header; correct it")
    if pair := _pair(connection, schema.unique):
        first, second = pair
        raise EvidenceContradictsItself(_sentence(layout, names, schema.unique, first, second))


def _pair(connection: duckdb.DuckDBPyConnection, unique: tuple[str, ...]) -> list[Row]:
    """The earliest row that repeats an identity, after the first row that has it; each with its row id before it."""
    keys = ", ".join(identifier(name) for name in unique)
    same = " AND ".join(f"data.{identifier(name)} IS NOT DISTINCT FROM twice.{identifier(name)}" for name in unique)
    return connection.execute(
        f"WITH twice AS (SELECT {keys} FROM data GROUP BY {keys} HAVING count(*) > 1),"
        f" pairs AS (SELECT min(data.rowid, 2) AS pair FROM data SEMI JOIN twice ON {same} GROUP BY {keys}),"
        " earliest AS (FROM pairs ORDER BY pair[2] LIMIT 1)"
        " SELECT data.rowid, data.* FROM data, earliest WHERE list_contains(pair, data.rowid) ORDER BY data.rowid"
    ).fetchall()


def _sentence(layout: Layout, names: list[str], unique: tuple[str, ...], first: Row, second: Row) -> str:
    values = dict(zip(names, zip(first[1:], second[1:], strict=True), strict=True))
    same = ", ".join(f"{name!r} {_shown(values[name][0])}" for name in unique)
    differing = [
        f"{name!r} is {_shown(one)} and {_shown(other)}" for name, (one, other) in values.items() if one != other
    ]
    more = f" and {len(differing) - _SHOWN} more columns differ" if len(differing) > _SHOWN else ""
    said = "; ".join(differing[:_SHOWN]) + more if differing else "they are the same row twice"
    places = f"{_row(layout, first)} and {_row(layout, second)}"
    return f"{places} both stand for {same}: {said}; correct the file, or what is declared unique"


def _row(layout: Layout, row: Row) -> str:
    rowid = row[0]
    assert isinstance(rowid, int)
    return place_of(layout, rowid)


def _shown(value: Value) -> str:
    text = exact_text(value)
    return "blank" if text is None else repr(text[:80])
