"""One opened dataset: read strictly into memory, described and queried, never changed.

It stands apart as the only door to the data: what an agent asks and what a claim's rerun asks go through the same
guard. Every opening reads the file's bytes again and compares their hash, so there is no copy that could drift away.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from countersign.domain.errors import QueryRefused, Unavailable
from countersign.domain.report import DatasetSchema
from countersign.evidence.answers import Limits, Row, answer, exact_text, first_line, kind_of
from countersign.evidence.columns import Column, guard
from countersign.evidence.description import describe_table, money_of
from countersign.evidence.formats import identifier, literal
from countersign.evidence.guard import check_allowed
from countersign.evidence.money import Answer, check_money
from countersign.evidence.provenance import check_from_data
from countersign.evidence.reading import read_strictly
from countersign.evidence.results import DatasetDescription, QueryResult, SingleValue
from countersign.evidence.sensitive import sensitive_columns
from countersign.evidence.syntax import parsed

MEMORY = "4GB"
"""What one dataset and its queries may take of memory before DuckDB moves pages to the cache folder."""

DISK = "20GB"
"""What it may take of disk there."""

MAX_TEXTS = 1_000
"""Cells of one column that one search of its texts yields."""

_SEALED = ("threads = 1", "enable_external_access = false", "lock_configuration = true")
"""Set once the data is read. One thread: the same query gives the same value down to the last bit of a float."""


class Dataset:
    """A strict reading of one file; may be used from several threads at once, until it is closed."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, columns: tuple[Column, ...], resources: ExitStack
    ) -> None:
        self._connection = connection
        self._columns = columns
        self._resources = resources
        self._money = money_of(connection, columns)
        self._description: DatasetDescription | None = None
        # An agent asks a query and the checks ask it again: it is looked through once, and run every time.
        self._guarded = lru_cache(maxsize=256)(self._guard)
        self._check_claimed = lru_cache(maxsize=256)(self._check_provenance)
        self._sensitive = lru_cache(maxsize=256)(self._find_sensitive)
        self._matching = lru_cache(maxsize=8)(self._find_texts)

    @classmethod
    def open(
        cls, path: Path, sha256: str, schema: DatasetSchema, *, cache: Path, sensitive: Sequence[str] = ()
    ) -> Dataset:
        """Read the file `path` strictly.

        Args:
            path: where the bytes are.
            sha256: which ones they must be.
            schema: as what they are read.
            cache: a folder for pages of data that is larger than memory.
            sensitive: names of columns that are sensitive beside those that the schema declares so.

        Raises:
            DataRefused: the bytes are not those of `sha256`, or are not a dataset as declared: says row, column, value.
            Unavailable: no memory or disk for it.
        """
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with ExitStack() as resources:
                folder = TemporaryDirectory(prefix="reading-", dir=cache, ignore_cleanup_errors=True)
                scratch = Path(resources.enter_context(folder))
                connection = resources.enter_context(duckdb.connect(config=_config(scratch)))
                columns = guard(read_strictly(connection, path, sha256, schema, scratch), sensitive)
                for setting in _SEALED:
                    connection.execute(f"SET {setting}")
                return cls(connection, columns, resources.pop_all())
        except (OSError, MemoryError, duckdb.OutOfMemoryException, duckdb.IOException) as error:
            raise Unavailable(f"the dataset cannot be opened: {first_line(error)}; free memory or disk") from error

    def describe(self) -> DatasetDescription:
        """Rows, columns, ranges and notes; computed once."""
        if self._description is None:
            self._description = describe_table(self._connection.cursor(), self._columns, self._money)
        return self._description

    def query(self, sql: str, *, max_rows: int = 200, max_seconds: float = 10.0) -> QueryResult:
        """The answer to one SELECT over table `data`, cut after `max_rows` rows.

        Raises:
            QueryRefused: not allowed, mixes currencies, fails, or takes longer than `max_seconds`.
        """
        names, rows, units = self._run(sql, Limits(max_rows, max_seconds))
        texts = tuple(tuple(exact_text(value) for value in row) for row in rows[:max_rows])
        known = tuple(unit or "" for unit in units.units) if len(units.units) == len(names) else ("",) * len(names)
        return QueryResult(columns=names, units=known, rows=texts, truncated=len(rows) > max_rows)

    def single_value(self, sql: str, *, max_seconds: float = 10.0) -> SingleValue:
        """The value of a query that yields exactly one row with one column, computed from table data.

        Raises:
            QueryRefused: as `query`; also for other numbers of rows or columns, NULL, amounts of no one currency, and
                a value that the query itself states.
        """
        self._guarded(sql)
        self._check_claimed(sql)
        names, rows, units = self._run(sql, Limits(1, max_seconds))
        if len(names) != 1 or len(rows) != 1:
            count = "several rows" if len(rows) > 1 else f"{len(rows)} rows"
            raise QueryRefused(f"a claim's query yields one row with one column, not {count} with {len(names)} columns")
        text = exact_text(rows[0][0])
        if text is None:
            raise QueryRefused("the query yields NULL, no value; ask for something the data holds")
        if units.several:
            raise QueryRefused("the value's currency cannot be told; restrict the query to one currency by WHERE")
        return SingleValue(text=text, kind=kind_of(rows[0][0]), unit=units.units[0] if units.units else None)

    def sensitive(self, sql: str) -> tuple[str, ...]:
        """The sensitive columns that a query reads; see `evidence.sensitive`.

        Raises:
            QueryRefused: not allowed, or nested too deeply to be told.
        """
        return self._sensitive(sql)

    def texts(self, *patterns: str, longest: int) -> tuple[tuple[str, str], ...]:
        """Each column with its own name, and then with its cells that match, up to `MAX_TEXTS` for each pattern.

        Patterns are RE2; accents are left aside. Every row of the text columns is looked at, equal cells once. A cell
        of more than `longest` characters is among them whatever it says, cut after one more. Found once: the data
        cannot change.

        Raises:
            Unavailable: no memory for it.
        """
        try:
            return self._matching(patterns, longest)
        except duckdb.OutOfMemoryException as error:
            raise Unavailable(f"the dataset's texts cannot be read: {first_line(error)}; free memory") from error

    def close(self) -> None:
        """Give back memory and disk; closing twice is fine."""
        self._resources.close()

    def _run(self, sql: str, limits: Limits) -> tuple[tuple[str, ...], list[Row], Answer]:
        with self._connection.cursor() as cursor:
            units = self._guarded(sql)
            names, rows = answer(cursor, sql, limits)
        return names, rows, units

    def _find_texts(self, patterns: tuple[str, ...], longest: int) -> tuple[tuple[str, str], ...]:
        tests = [f"length(cell) > {longest}"]
        tests += [f"regexp_matches(strip_accents(cell), {literal(pattern)})" for pattern in patterns]
        searches = " UNION ALL ".join(f"(FROM cells WHERE {test} LIMIT {MAX_TEXTS})" for test in tests)
        found: list[tuple[str, str]] = []
        with self._connection.cursor() as cursor:
            for column in self._columns:
                found.append((column.name, column.name))
                if column.kind == "text":
                    cells = f"SELECT DISTINCT left({identifier(column.name)}, {longest + 1}) AS cell FROM data"
                    rows = cursor.execute(f"WITH cells AS MATERIALIZED ({cells}) {searches}").fetchall()
                    found += [(column.name, cell) for (cell,) in dict.fromkeys(rows)]
        return tuple(found)

    def _guard(self, sql: str) -> Answer:
        """Refuse a query that is not allowed; else say what is known of its units."""
        try:
            with self._connection.cursor() as cursor:
                tree = parsed(cursor, sql)
            check_allowed(tree)
            return check_money(tree, self._money)
        except RecursionError:
            raise QueryRefused("the query is nested too deeply; write it flat") from None

    def _find_sensitive(self, sql: str) -> tuple[str, ...]:
        self._guarded(sql)
        names = [column.name for column in self._columns if column.is_sensitive]
        try:
            with self._connection.cursor() as cursor:
                return sensitive_columns(parsed(cursor, sql), names)
        except RecursionError:
            raise QueryRefused("the query is nested too deeply; write it flat") from None

    def _check_provenance(self, sql: str) -> None:
        """Refuse a claim's query, which the guard has let through, if its value is not from the data."""
        with self._connection.cursor() as cursor:
            check_from_data(parsed(cursor, sql), {column.name for column in self._columns})


def _config(scratch: Path) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "memory_limit": MEMORY,
        "temp_directory": str(scratch / "pages"),
        "max_temp_directory_size": DISK,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
