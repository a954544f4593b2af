"""What an offline report says about any dataset: which figures, from which queries, in which sentences.

It stands apart from the chat model that carries it because it is plain rules: a description in, statements out, the
same every time. A statement whose figure cannot be had (a refused query, no value) is left out, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator

from countersign.agents.offline_wording import WORDING, Language
from countersign.domain.figures.finding import find_numbers
from countersign.domain.figures.scripts import foreign_words

MAX_MEASURES = 4
MAX_BLANK_COLUMNS = 3
MAX_GROUPS = 60
NOT_SUMMED = re.compile(
    r"(?:^|[^a-z])(?:id|year|month|day|code|zip|age|rate|ratio|share|price|score|percent|pct|lat|lon)(?:$|[^a-z])"
    r"|年|月|率|价|编号|代码|得分|评分|占比",
    re.IGNORECASE,
)
"""Names of quantities whose sum says nothing; their range is told instead."""
PLAIN_NAME = re.compile(r"[^\W\d]+(?:[ _/.-][^\W\d]+)*")


class Column(BaseModel):
    """One column as describe_dataset tells it."""

    name: str
    type: Literal["number", "date", "text"]
    unit: str
    currency: str
    currency_column: str
    blanks: int
    distinct: int
    minimum: str | None
    maximum: str | None
    samples: list[str]

    @property
    def has_values(self) -> bool:
        """Whether any cell is not blank."""
        return self.minimum is not None


def _open(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the sensitive ones: rules never ask a person for leave to read them."""
    return [each for each in columns if not each.get("sensitive")]


class Description(BaseModel):
    """A dataset as describe_dataset tells it."""

    rows: int
    columns: Annotated[list[Column], BeforeValidator(_open)]


@dataclass(frozen=True)
class Figure:
    """One claim in the making: the query is run by the agent, the value comes from its answer."""

    id: str
    query: str
    kind: Literal["number", "date", "text"]
    unit: str = ""
    ungrouped: bool = False
    """Shown without thousands separators: the number may be a year or an identifier."""


@dataclass(frozen=True)
class Statement:
    """One sentence with its figures; `words` fills in names that are no figures, `refs` names the references."""

    wording: str
    refs: dict[str, Figure]
    words: dict[str, str]
    names: tuple[Figure, ...] = ()
    """Figures that stand in `words`: column names that cannot be written plainly."""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All claims that the sentence needs."""
        return (*self.names, *self.refs.values())


@dataclass(frozen=True)
class Measure:
    """A number column, or the rows of it that are in one currency."""

    column: Column
    unit: str
    condition: str
    """SQL that selects the rows, empty for all."""
    summed: bool

    def where(self, more: str = "") -> str:
        """A WHERE clause of the condition and `more`, or nothing."""
        conditions = [each for each in (self.condition, more) if each]
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""


@dataclass
class _Pen:
    """Numbers claims and writes column names while a plan is made."""

    language: Language
    count: int = 0
    spoken: dict[str, Figure] = field(default_factory=dict)

    def figure(self, query: str, kind: Literal["number", "date", "text"], unit: str = "", **how: bool) -> Figure:
        self.count += 1
        return Figure(f"c{self.count}", query, kind, unit, **how)

    def statement(self, wording: str, columns: dict[str, Column | Measure], refs: dict[str, Figure]) -> Statement:
        named = {key: self._label(column) for key, column in columns.items()}
        words = {key: word for key, (word, _) in named.items()}
        return Statement(wording, refs, words, tuple(figure for _, figure in named.values() if figure))

    def _label(self, what: Column | Measure) -> tuple[str, Figure | None]:
        if isinstance(what, Column):
            return self._name(what.name)
        name, figure = self._name(what.column.name)
        if what.condition:
            name = WORDING[self.language]["in_currency"].format(name=name, currency=what.unit)
        return name, figure

    def _name(self, name: str) -> tuple[str, Figure | None]:
        """A column's name as text, or as a claim where it would read as a number, as markup or as a foreign word."""
        wording = WORDING[self.language]
        quoted = wording["quoted"].format(name=name)
        if len(name) <= 60 and PLAIN_NAME.fullmatch(name) and not find_numbers(quoted) and not any(foreign_words(name)):
            return quoted, None
        if len(name) > 100 or not name.isprintable() or "{" in name:
            return wording["unnamed"], None
        figure = self.spoken.get(name) or self.figure(f"SELECT {literal(name)} FROM data LIMIT 1", "text")
        self.spoken[name] = figure
        return wording["quoted"].format(name=f"{{{{{figure.id}}}}}"), figure


def identifier(name: str) -> str:
    """A column name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def plan(description: Description, language: Language) -> list[Statement]:
    """Every statement that can be made, in the order of the text."""
    pen = _Pen(language)
    # What somebody declared a unit or currency for is what the data is about; the rest follows in the file's order.
    measures = sorted(_measures(description), key=lambda measure: not measure.unit)[:MAX_MEASURES]
    day = next((column for column in description.columns if column.type == "date" and column.has_values), None)
    statements = [_rows(pen)]
    statements += [_period(pen, day)] if day else []
    statements += [_total(pen, measure) if measure.summed else _range(pen, measure) for measure in measures]
    summed = next((measure for measure in measures if measure.summed), None)
    group = _group_column(description)
    statements += [_largest_group(pen, group, summed)] if group else []
    statements += [_largest_change(pen, day, summed)] if day and summed and day.distinct > 1 else []
    blank = [column for column in description.columns if column.blanks]
    statements += [_blanks(pen, column) for column in blank[:MAX_BLANK_COLUMNS]]
    return statements if blank else [*statements, Statement("no_blanks", {}, {})]


def limitations(description: Description, language: Language) -> list[str]:
    """What the report cannot say."""
    keys = ["limit_rules", "limit_source"]
    if any(column.blanks for column in description.columns):
        keys.append("limit_blanks")
    if len(list(_measures(description))) > MAX_MEASURES:
        keys.append("limit_columns")
    if any(_hidden_currencies(description, column) for column in description.columns):
        keys.append("limit_currencies")
    return [WORDING[language][key] for key in keys]


def _measures(description: Description) -> Iterator[Measure]:
    for column in description.columns:
        if column.type != "number" or not column.has_values:
            continue
        summed = column.unit != "%" and not NOT_SUMMED.search(column.name)
        if column.currency_column and not column.currency:
            for currency in _currencies(description, column):
                condition = f"{identifier(column.currency_column)} = {literal(currency)}"
                yield Measure(column, currency, condition, summed)
        else:
            yield Measure(column, column.currency or column.unit, "", summed)


def _currencies(description: Description, column: Column) -> Sequence[str]:
    named = next((each for each in description.columns if each.name == column.currency_column), None)
    return [each for each in named.samples if re.fullmatch("[A-Z]{3}", each)] if named else []


def _hidden_currencies(description: Description, column: Column) -> bool:
    named = next((each for each in description.columns if each.name == column.currency_column), None)
    return named is not None and named.distinct > len(_currencies(description, column))


def _group_column(description: Description) -> Column | None:
    currencies = {column.currency_column for column in description.columns}
    for column in description.columns:
        repeats = 1 < column.distinct <= MAX_GROUPS and column.distinct < description.rows
        if column.type == "text" and column.name not in currencies and repeats:
            return column
    return None


def _rows(pen: _Pen) -> Statement:
    rows = pen.figure("SELECT count(*) FROM data", "number", WORDING[pen.language]["rows_unit"])
    return pen.statement("rows", {}, {"rows": rows})


def _period(pen: _Pen, day: Column) -> Statement:
    start = pen.figure(f"SELECT min({identifier(day.name)}) FROM data", "date")
    end = pen.figure(f"SELECT max({identifier(day.name)}) FROM data", "date")
    return pen.statement("period", {"column": day}, {"start": start, "end": end})


def _total(pen: _Pen, measure: Measure) -> Statement:
    query = f"SELECT sum({identifier(measure.column.name)}) FROM data{measure.where()}"
    total = pen.figure(query, "number", measure.unit)
    return pen.statement("total", {"column": measure}, {"total": total})


def _range(pen: _Pen, measure: Measure) -> Statement:
    name = identifier(measure.column.name)
    low, high = (
        pen.figure(f"SELECT {end}({name}) FROM data{measure.where()}", "number", measure.unit, ungrouped=True)
        for end in ("min", "max")
    )
    return pen.statement("range", {"column": measure}, {"low": low, "high": high})


def _largest_group(pen: _Pen, group: Column, measure: Measure | None) -> Statement:
    """The group with the largest total, or with most rows; none where several share the first place."""
    by = identifier(group.name)
    filled = f"{by} IS NOT NULL"
    if measure is None:
        size, unit, where = "count(*)", WORDING[pen.language]["rows_unit"], f" WHERE {filled}"
    else:
        size, unit, where = f"sum({identifier(measure.column.name)})", measure.unit, measure.where(filled)
    groups = f"SELECT {by} AS name, {size} AS size, max({size}) OVER () AS largest FROM data{where} GROUP BY {by}"
    refs = {
        "name": pen.figure(f"SELECT min(name) FROM ({groups}) WHERE size = largest HAVING count(*) = 1", "text"),
        "amount": pen.figure(
            f"SELECT max(size) FROM (SELECT {size} AS size FROM data{where} GROUP BY {by})", "number", unit
        ),
    }
    if measure is None:
        return pen.statement("top_rows", {"group": group}, refs)
    return pen.statement("top_amount", {"group": group, "column": measure}, refs)


def _largest_change(pen: _Pen, day: Column, measure: Measure) -> Statement:
    """The change of the largest size from each period that has data to the next; none where several share it."""
    monthly = (day.minimum or "")[:7] != (day.maximum or "")[:7] and _days(day) > 31
    at = identifier(day.name)
    period = f"strftime({at}, '{'%Y-%m' if monthly else '%Y-%m-%d'}')"
    changes = (
        f"WITH totals AS (SELECT {period} AS period, sum({identifier(measure.column.name)}) AS total "
        f"FROM data{measure.where(f'{at} IS NOT NULL')} GROUP BY {period}), changes AS (SELECT period, "
        "total - lag(total) OVER (ORDER BY period) AS change FROM totals)"
    )
    largest = "FROM changes WHERE abs(change) = (SELECT max(abs(change)) FROM changes) HAVING count(*) = 1"
    refs = {
        "change": pen.figure(f"{changes} SELECT min(change) {largest}", "number", measure.unit),
        "when": pen.figure(f"{changes} SELECT min(period) {largest}", "text"),
    }
    return pen.statement("change_month" if monthly else "change_day", {"column": measure}, refs)


def _days(day: Column) -> int:
    return (date.fromisoformat(day.maximum or "") - date.fromisoformat(day.minimum or "")).days


def _blanks(pen: _Pen, column: Column) -> Statement:
    query = f"SELECT count(*) FROM data WHERE {identifier(column.name)} IS NULL"
    count = pen.figure(query, "number", WORDING[pen.language]["rows_unit"])
    return pen.statement("blanks", {"column": column}, {"count": count})
