"""Amounts of different currencies are never added, compared or mixed: the rule.

It stands apart because it is the one rule about meaning; the guard's list is about what DuckDB may do. The rule:

    Each expression uses money of one currency. A query on a column whose rows name their currency keeps to one by
    `WHERE currency = 'EUR'` in every SELECT on data; or it is one plain SELECT that lists rows, or groups by the
    currency column, and orders by that column first if it orders at all.

What cannot be told is refused. Counting values and asking whether they are blank is no use of money.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from countersign.domain.errors import QueryRefused
from countersign.evidence.answer_units import answer_units
from countersign.evidence.guard import AGGREGATES
from countersign.evidence.syntax import Node, children, descendants, is_data, reads_data, selects, table_of

_NO_USE = frozenset({"OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"})


@dataclass(frozen=True)
class Money:
    """What is known about the units of a dataset's columns; names in lower case."""

    columns: tuple[str, ...]
    units: Mapping[str, str]
    """Columns with one unit: a currency, `%` or another declared unit."""
    fixed: Mapping[str, str]
    """Columns with money of one currency."""
    mixed: Mapping[str, str]
    """Columns with money of several currencies, with the column that names each row's."""


@dataclass(frozen=True)
class Answer:
    """What may be said about the units of a query's result."""

    units: tuple[str | None, ...]
    """Per column: the unit, empty where there is surely none, None where it cannot be told; see `answer_units`."""
    several: bool
    """True when rows of the result may be in different currencies."""


def check_money(query: Node, money: Money) -> Answer:
    """Refuse a query that could mix currencies; else say the units of its answer.

    Raises:
        QueryRefused: with what to write instead.
    """
    uses = _Uses(query, money)
    mixed = {name for name in uses.of(query) if name in money.mixed}
    currency = _kept_currency(query, money, mixed)
    keys = dict(money.fixed) | {name: currency or f"each row's {by}" for name, by in money.mixed.items()}
    for used in _parts(query, uses) if _is_plain(query) else [uses.of(query)]:
        _check_one_currency({keys[name] for name in used})
    if mixed and not currency:
        _check_rows_or_groups(query, {money.mixed[name] for name in mixed})
    units = dict(money.units) | dict.fromkeys(money.mixed, currency or "")
    return Answer(answer_units(query, money.columns, units), bool(mixed) and not currency)


class _Uses:
    """Finds the money columns that a part of one query uses as money."""

    def __init__(self, query: Node, money: Money) -> None:
        self._all = frozenset(money.fixed) | frozenset(money.mixed)
        self._rows = {_alias(node) for node in descendants(query) if is_data(node)}
        self.aliases: dict[str, frozenset[str]] = {}

    def of(self, node: Node) -> frozenset[str]:
        """The money columns used in `node` and below; all of them where whole rows are used."""
        found = self._here(node)
        for child in self._looked_into(node):
            found |= self.of(child)
        return found

    def _here(self, node: Node) -> frozenset[str]:
        kind = node.get("class")
        if kind == "COLUMN_REF":
            names = [str(name).lower() for name in node["column_names"]]
            if len(names) == 1 and names[0] in self._rows:
                return self._all
            return self._all & {names[-1]} | self.aliases.get(names[-1], frozenset())
        if kind == "STAR" or (is_data(node) and node["column_name_alias"]) or node.get("ref_type") == "NATURAL":
            return self._all
        return self._all & {str(name).lower() for name in node.get("using_columns", ())}

    def _looked_into(self, node: Node) -> Iterator[Node]:
        stars = node.get("type") == "SELECT_NODE" and not reads_data(node)
        for child in children(node):
            if stars and child.get("class") == "STAR":
                yield from children(child)
            elif not (_counts(node) and _is_column(child.get("expression", child))):
                yield child


def _counts(node: Node) -> bool:
    """Whether `node` looks only at how many values there are, or whether there is one."""
    return node.get("type") in _NO_USE or str(node.get("function_name", "")).lower() == "count"


def _is_column(node: Node) -> bool:
    return node.get("class") == "COLUMN_REF"


def _parts(query: Node, uses: _Uses) -> Iterator[frozenset[str]]:
    """What each expression of a plain SELECT uses; a later one may use an earlier one by its alias."""
    for item in query["select_list"]:
        if item["class"] == "STAR":
            yield from (uses.of(child) for child in children(item))
            continue
        yield (used := uses.of(item))
        if item["alias"]:
            uses.aliases[str(item["alias"]).lower()] = used
    rest = {name: value for name, value in query.items() if name != "select_list"}
    yield from (uses.of(expression) for expression in _expressions(rest))


def _expressions(node: Node) -> Iterator[Node]:
    """The outermost expressions in `node`."""
    for child in children(node):
        if "class" in child:
            yield child
        else:
            yield from _expressions(child)


def _check_one_currency(keys: set[str]) -> None:
    if len(keys) > 1:
        names = " and ".join(sorted(keys))
        raise QueryRefused(f"one expression may not mix amounts in {names}; ask for each currency by itself")


def _is_plain(query: Node) -> bool:
    return query["type"] == "SELECT_NODE" and len(selects(query)) == 1 and table_of(query) is not None


def _kept_currency(query: Node, money: Money, mixed: set[str]) -> str | None:
    """The one currency that every SELECT on data restricts itself to, if there is one."""
    naming = {money.mixed[name] for name in mixed}
    if len(naming) != 1:
        return None
    kept = {_restricted_to(select, naming.copy().pop()) for select in selects(query) if reads_data(select)}
    return kept.pop() if len(kept) == 1 else None


def _restricted_to(select: Node, by: str) -> str | None:
    table, where = table_of(select), select["where_clause"]
    if table is None or where is None:
        return None
    conjunction = where["type"] == "CONJUNCTION_AND"
    for condition in where["children"] if conjunction else [where]:
        if condition["type"] != "COMPARE_EQUAL":
            continue
        for column, constant in permutations((condition["left"], condition["right"])):
            if _names_column(column, by, table) and constant.get("literal", {}).get("kind") == "STRING":
                return str(constant["literal"]["text"])
    return None


def _names_column(node: Node, name: str, table: Node) -> bool:
    """Whether `node` is that column of that very table; an outer query's column of the same name is not."""
    if not _is_column(node):
        return False
    *qualifier, column = (str(part).lower() for part in node["column_names"])
    return column == name and qualifier in ([], [_alias(table)])


def _alias(table: Node) -> str:
    return str(table["alias"] or table["table_name"]).lower()


def _check_rows_or_groups(query: Node, naming: set[str]) -> None:
    by = min(naming)
    advice = f"restrict each SELECT on data by WHERE {by} = '...' or group one plain SELECT by {by}"
    if len(naming) > 1 or not _is_plain(query):
        raise QueryRefused(f"the amounts are in several currencies; {advice}")
    gathers = any(str(each.get("function_name", "")).lower() in AGGREGATES for each in descendants(query))
    gathers = gathers or bool(query["group_expressions"]) or query["aggregate_handling"] != "STANDARD_HANDLING"
    if any(each.get("class") == "WINDOW" or each.get("distinct_on_targets") for each in descendants(query)):
        raise QueryRefused(f"a window over amounts in several currencies would mix them; {advice}")
    if gathers and not _grouped_by(query, by):
        raise QueryRefused(f"this would put together amounts in several currencies; {advice}")
    if not _ordered_by(query, by):
        raise QueryRefused(f"ordering would compare amounts in several currencies; order by {by} first, or {advice}")


def _grouped_by(query: Node, by: str) -> bool:
    table = query["from_table"]
    places = [at for at, group in enumerate(query["group_expressions"]) if _names_column(group, by, table)]
    return bool(places) and len(query["group_sets"]) == 1 and places[0] in query["group_sets"][0]


def _ordered_by(query: Node, by: str) -> bool:
    table = query["from_table"]
    orders = [order for each in query["modifiers"] for order in each.get("orders", ())]
    renamed = any(str(i["alias"]).lower() == by and not _names_column(i, by, table) for i in query["select_list"])
    return not orders or (not renamed and _names_column(orders[0]["expression"], by, table))
