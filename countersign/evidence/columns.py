"""What each column of a dataset is: as declared, or decided over all of its values at once, never row by row.

It stands apart because it is judgement over counted facts; reading the file and storing the values is not its business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import duckdb

from countersign.domain.errors import DataRefused
from countersign.domain.lookalikes import bare_name
from countersign.domain.report import ColumnSchema, DatasetSchema, NumberFormat
from countersign.evidence.formats import (
    ISO_DATE,
    LEADING_ZERO,
    LIKE_DATE,
    LIKE_NUMBER,
    MAX_DIGITS,
    NEGATIVE_ZERO,
    PLAIN_NUMBER,
    date_pattern,
    identifier,
    iso_text,
    matches,
    number_pattern,
    plain_text,
)
from countersign.evidence.results import Kind

_PLAIN = NumberFormat()
_CURRENCY_SIGN = re.compile(r"[^\W\d_.]+\.?|[^\w\s().,'+%-]|[^\W\d_]{0,3}[^\w\s().,'+%-]")


@dataclass(frozen=True)
class Column:
    """One column with the SQL that turns its text into its value."""

    name: str
    kind: Kind
    declared: ColumnSchema | None
    sql_type: str = "VARCHAR"
    canonical: bool = False
    """True where every value should be spelt as DuckDB prints it, which is the quickest test of a value."""
    scale: int = 0
    guarded: bool = False
    """Whether the policy names it sensitive, declared or not."""

    @property
    def form(self) -> NumberFormat:
        """How its numbers are written."""
        return self.declared.number if self.declared else _PLAIN

    @property
    def order(self) -> str:
        """How its dates are written."""
        return self.declared.date_order if self.declared else "iso"

    @property
    def is_sensitive(self) -> bool:
        """Whether an agent may read it only where a person allowed the very query."""
        return self.guarded or (self.declared is not None and self.declared.sensitive)

    def value(self, text: str) -> str:
        """The SQL that reads `text` (SQL), known to be valid, as this column's value."""
        if self.kind == "text":
            return text
        plain = iso_text(text, self.order) if self.kind == "date" else plain_text(text, self.form)
        return f"CAST({plain} AS {self.sql_type})"

    def valid(self, text: str, value: str) -> str | None:
        """The SQL that tests `text` against `value`, read from it; None where any text will do."""
        if self.kind == "text":
            return None
        if self.canonical:
            return f"CAST({value} AS VARCHAR) = {text}"
        if self.kind == "date":
            return matches(text, date_pattern(self.order))
        return matches(text, number_pattern(self.form, self.scale))

    def faulty(self, text: str) -> str:
        """The SQL that finds values of `text` (SQL) which this column may not hold."""
        if self.kind == "date":
            day = f"TRY_CAST({iso_text(text, self.order)} AS DATE)"
            wrong = f"{day} IS NULL OR CAST({day} AS VARCHAR) <> {iso_text(text, self.order)}"
            return f"{text} IS NOT NULL AND (NOT {matches(text, date_pattern(self.order))} OR {wrong})"
        if self.kind == "number":
            return f"NOT {matches(text, number_pattern(self.form))}"
        return "false"


@dataclass(frozen=True)
class Counted:
    """The facts about one column's texts in some rows."""

    filled: int
    plain: int
    leading_zeros: int
    negative_zeros: int
    iso: int
    like_number: int
    like_date: int
    whole_digits: int
    least_scale: int
    scale: int


def count_facts(connection: duckdb.DuckDBPyConnection, table: str, name: str, form: NumberFormat) -> Counted:
    """The facts about column `name` of the table of texts `table`.

    Patterns cost more than grouping, and most columns repeat their values: each different one is looked at once.
    """
    text = "value"
    plain = plain_text(text, form)
    numeric = f"FILTER ({matches(text, number_pattern(form))})"
    tests = [PLAIN_NUMBER, LEADING_ZERO, NEGATIVE_ZERO, ISO_DATE, LIKE_NUMBER, LIKE_DATE]
    counts = ", ".join(f"coalesce(sum(times) FILTER ({matches(text, pattern)}), 0)::BIGINT" for pattern in tests)
    row = connection.execute(
        f"SELECT coalesce(sum(times) FILTER (value IS NOT NULL), 0)::BIGINT, {counts},"
        f" coalesce(max(length(ltrim(split_part({plain}, '.', 1), '-'))) {numeric}, 0),"
        f" coalesce(min(length(split_part({plain}, '.', 2))) {numeric}, 0),"
        f" coalesce(max(length(split_part({plain}, '.', 2))) {numeric}, 0)"
        f" FROM (SELECT {identifier(name)} AS value, count(*) AS times FROM {table} GROUP BY ALL)"
    ).fetchone()
    assert row is not None
    return Counted(*row)


def decide(name: str, declared: ColumnSchema | None, facts: Counted) -> Column:
    """The column as declared; undeclared, what all of its filled values are taken together.

    A column of which half or more look like numbers or dates, but not all are plain ones, becomes what it looks like:
    its first odd value is then refused by `Column.faulty`.
    """
    kind = declared.type if declared else _kind(facts)
    if kind == "number":
        return _number(name, declared, facts)
    if kind == "date":
        canonical = declared is None or declared.date_order == "iso"
        return Column(name, "date", declared, "DATE", canonical)
    return Column(name, "text", declared)


def _kind(facts: Counted) -> Kind:
    if not facts.filled:
        return "text"
    if facts.plain == facts.filled:
        return "text" if facts.leading_zeros else "number"
    if 2 * facts.like_date >= facts.filled:
        return "date"
    return "number" if 2 * facts.like_number >= facts.filled else "text"


def _number(name: str, declared: ColumnSchema | None, facts: Counted) -> Column:
    plain = declared is None or declared.number == _PLAIN
    uniform = facts.least_scale == facts.scale and not facts.leading_zeros and not facts.negative_zeros
    digits = facts.whole_digits + facts.scale
    if facts.scale == 0:
        sql_type = "BIGINT" if digits <= 18 else "HUGEINT"
    else:
        sql_type = f"DECIMAL({18 if digits <= 18 else MAX_DIGITS},{min(facts.scale, MAX_DIGITS)})"
    return Column(name, "number", declared, sql_type, plain and uniform, facts.scale)


def too_long(column: Column, facts: Counted) -> bool:
    """Whether the column's numbers do not fit DuckDB's exact decimals."""
    return column.kind == "number" and facts.whole_digits + facts.scale > MAX_DIGITS


def guard(columns: tuple[Column, ...], sensitive: Iterable[str]) -> tuple[Column, ...]:
    """The columns, with those marked that look like one of the names that are sensitive by the policy.

    Raises:
        DataRefused: one of them names the currency of amounts.
    """
    names = {bare_name(name) for name in sensitive}
    marked = tuple(replace(column, guarded=bare_name(column.name) in names) for column in columns)
    hidden = {column.name for column in marked if column.guarded}
    for column in marked:
        if column.declared is not None and column.declared.currency_column in hidden:
            raise DataRefused(
                f"schema of column {column.name!r}: currency_column {column.declared.currency_column!r} is sensitive "
                "by the policy, but the unit of every amount tells it; declare its currency, or none"
            )
    return marked


def check_schema(schema: DatasetSchema) -> None:
    """Refuse declarations that contradict themselves, since data could be read in two ways under them.

    Raises:
        DataRefused: naming the column and the field.
    """
    for name, column in schema.columns.items():
        if fault := _contradiction(column, schema):
            raise DataRefused(f"schema of column {name!r}: {fault}")


def _contradiction(column: ColumnSchema, schema: DatasetSchema) -> str | None:
    form, money = column.number, column.currency_column
    if form.thousands == form.decimal:
        return f"thousands and decimal are both {form.decimal!r}; declare two different marks"
    if form.currency and not _CURRENCY_SIGN.fullmatch(form.currency):
        return f"currency {form.currency!r} is no sign or code; use for example $ or EUR"
    if column.type != "number" and (money or column.currency or form != _PLAIN):
        return f"number formats and currencies belong to type number, not {column.type}"
    if money and (column.currency or form.currency):
        return "currency and currency_column exclude each other; keep the one that is true"
    if money and (money in schema.columns and schema.columns[money].type != "text"):
        return f"currency_column {money!r} is declared as {schema.columns[money].type}; it must be text"
    if money and (money in schema.columns and schema.columns[money].sensitive):
        return f"currency_column {money!r} is declared sensitive, but the unit of every amount tells it; declare one"
    return None
