"""The strict reading of a CSV file into a DuckDB table `data`, exact or refused.

Two ways lead to the same table. The quick one guesses each column from the first records, then reads, tests and stores
every value in one pass. Where any test fails, the careful one reads all texts first, decides over whole columns, and
either stores them or says which row, column and value is at fault. The quick way decides nothing of its own. Beside it,
hash, encoding and records of the file are checked; whatever they find comes before what was read meanwhile.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb

from countersign.domain.errors import DataRefused
from countersign.domain.report import DatasetSchema, NumberFormat
from countersign.evidence import faults
from countersign.evidence.answers import first_line
from countersign.evidence.columns import Column, check_schema, count_facts, decide, too_long
from countersign.evidence.contradictions import check_unique
from countersign.evidence.formats import LIKE_DATE, LIKE_NUMBER, identifier, literal, matches, path_literal
from countersign.evidence.layout import Layout, lay_out
from countersign.evidence.records import MAX_RECORD, broken_record

_SAMPLE = 5_000
_ODD = f"(?:{LIKE_NUMBER})|(?:{LIKE_DATE})"
"""Texts that may make their column something else than text; none of them starts with a lower-case letter."""


def read_strictly(
    connection: duckdb.DuckDBPyConnection, path: Path, sha256: str, schema: DatasetSchema, scratch: Path
) -> tuple[Column, ...]:
    """Fill table `data` of `connection` from the file `path` and return its columns in the header's order.

    Raises:
        DataRefused: at the first fault, with row (data records from 1), line, column and value.
    """
    check_schema(schema)
    with ThreadPoolExecutor(1, "bytes") as beside:
        layout = lay_out(path, sha256, schema, scratch, beside)
        columns = _quickly(connection, layout, schema) or _carefully(connection, layout, schema)
    faults.check_currencies(connection, layout, columns)
    check_unique(connection, layout, columns, schema)
    return columns


def _quickly(connection: duckdb.DuckDBPyConnection, layout: Layout, schema: DatasetSchema) -> tuple[Column, ...] | None:
    """The columns where every value passed the tests of the guess, else None."""
    try:
        connection.execute(f"CREATE TEMP TABLE sample AS FROM {_texts(layout)} LIMIT {_SAMPLE}")
        columns = _decided(connection, "sample", layout, schema)
        connection.execute(f"CREATE TABLE data AS {_typed(columns, _texts(layout))}")
    except (duckdb.Error, DataRefused):
        return None
    if _count(connection) == layout.records and not _misjudged(connection, columns):
        return columns
    connection.execute("DROP TABLE data")
    return None


def _carefully(connection: duckdb.DuckDBPyConnection, layout: Layout, schema: DatasetSchema) -> tuple[Column, ...]:
    records = layout.records  # what is wrong with the bytes is said before what is wrong with a value
    try:
        connection.execute(f"CREATE TABLE texts AS FROM {_texts(layout)}")
    except duckdb.InvalidInputException as error:
        raise _unreadable(layout, first_line(error)) from None
    columns = _decided(connection, "texts", layout, schema)
    faults.check_values(connection, layout, columns)
    connection.execute(f"CREATE TABLE data AS {_typed(columns, 'texts')}")
    connection.execute("DROP TABLE texts")
    if _count(connection) != records:
        raise _unreadable(layout, "records were lost")
    return columns


def _unreadable(layout: Layout, cause: str) -> DataRefused:
    return broken_record(layout.path, layout.delimiter, len(layout.names), cause)


def _decided(
    connection: duckdb.DuckDBPyConnection, table: str, layout: Layout, schema: DatasetSchema
) -> tuple[Column, ...]:
    columns = []
    for name in layout.names:
        declared = schema.columns.get(name)
        form = declared.number if declared else NumberFormat()
        facts = count_facts(connection, table, name, form)
        column = decide(name, declared, facts)
        if too_long(column, facts):
            raise faults.too_long(connection, table, layout, column)
        columns.append(column)
    return tuple(columns)


def _misjudged(connection: duckdb.DuckDBPyConnection, columns: tuple[Column, ...]) -> bool:
    """Whether a column that was guessed to be text looks otherwise as a whole."""
    guessed = [identifier(each.name) for each in columns if each.kind == "text" and each.declared is None]
    return any(_looks_otherwise(connection, text) for text in guessed)


def _looks_otherwise(connection: duckdb.DuckDBPyConnection, text: str) -> bool:
    filled = _count(connection, f"{text} IS NOT NULL")
    unlike = f"({text} < 'a' OR {text} >= '{{')"
    if 2 * _count(connection, unlike) < max(filled, 1):  # DuckDB knows this from its ranges, mostly without a look
        return False
    return 2 * _count(connection, f"{unlike} AND {matches(text, _ODD)}") >= max(filled, 1)


def _count(connection: duckdb.DuckDBPyConnection, condition: str = "true") -> int:
    row = connection.execute(f"SELECT count(*) FROM data WHERE {condition}").fetchone()
    return int(row[0]) if row else 0


def _texts(layout: Layout) -> str:
    """The SQL source of all records as text, blank fields NULL."""
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in layout.names)
    quote = literal('"' if layout.quoted else "")
    blank = ", ".join(literal(text) for text in ("", *layout.blank))
    return (
        f"read_csv({path_literal(layout.path)}, auto_detect=false, header=true, strict_mode=true, nullstr=[{blank}],"
        f" delim={literal(layout.delimiter)}, quote={quote}, escape={quote}, comment='', skip=0,"
        f" max_line_size={MAX_RECORD}, columns={{{columns}}})"
    )


def _typed(columns: tuple[Column, ...], source: str) -> str:
    """The SELECT that reads `source` as `columns`; it fails at any value that does not pass its column's test."""
    texts = [f"{identifier(column.name)} AS t{number}" for number, column in enumerate(columns)]
    values = [f"{column.value(identifier(column.name))} AS v{number}" for number, column in enumerate(columns)]
    results = [_tested(column, f"t{number}", f"v{number}") for number, column in enumerate(columns)]
    return f"SELECT {', '.join(results)} FROM (SELECT {', '.join(texts + values)} FROM {source})"


def _tested(column: Column, text: str, value: str) -> str:
    valid = column.valid(text, value)
    result = value if valid is None else f"CASE WHEN NOT ({valid}) THEN error('fault') ELSE {value} END"
    return f"{result} AS {identifier(column.name)}"
