"""The unit of each column of a query's answer, carried through its expressions, subqueries and WITH queries.

It stands apart from the rule about currencies, which decides what may be asked: here nothing is refused. A unit is
known (`USD`, `%`, `orders`), surely none (a count, a quotient of equal units), or cannot be told (None).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from countersign.domain.figures.units import is_currency
from countersign.evidence.syntax import Node, arguments, is_data, literal_number, without_casts


class _None(Enum):
    """The ways of surely having no unit."""

    COUNT = 1
    RATIO = 2
    """A quotient of equal units; a hundred times it is per cent."""
    LITERAL = 3


Unit = str | _None | None
Relation = tuple[tuple[str, Unit], ...] | None
"""Columns in order with their units; None where they cannot be told."""

_KEEPS = frozenset(
    "abs arg_max arg_min avg ceil ceiling first first_value floor lag last last_value lead mad max max_by mean median"
    " min min_by mode nth_value nullif quantile quantile_cont quantile_disc round stddev stddev_pop stddev_samp sum"
    " trunc".split()
)
"""The result has the unit of the first argument."""
_COUNTS = frozenset(
    "count count_if count_star day dayofmonth dayofweek dayofyear dense_rank isodow isoyear length month ntile quarter"
    " rank row_number sign week weekofyear year".split()
)


@dataclass(frozen=True)
class _Scope:
    """What the names in one SELECT mean."""

    tables: Mapping[str, Relation]
    """Table data and the WITH queries."""
    outer: _Scope | None = None
    sources: list[tuple[str, Relation]] = field(default_factory=list)
    aliases: dict[str, Unit] = field(default_factory=dict)

    def column(self, *path: str) -> Unit:
        """The unit of a column by its name, or by its table's and its own."""
        *table, name = path
        sources = [columns for alias, columns in self.sources if not table or table[-1] == alias]
        if None in sources:
            return None
        found = {unit for columns in sources for each, unit in columns or () if each == name}
        if found:
            return found.pop() if len(found) == 1 else None
        if any(not each for columns in sources for each, _ in columns or ()):
            return None
        if not table and name in self.aliases:
            return self.aliases[name]
        return self.outer.column(*path) if self.outer else None


def answer_units(query: Node, columns: Iterable[str], units: Mapping[str, str]) -> tuple[str | None, ...]:
    """Per column of the answer its unit, empty where there is surely none, None where it cannot be told.

    `columns` are those of table data, `units` the ones that have a unit. Nothing at all where even the number of
    columns cannot be told.
    """
    data = tuple((name, units.get(name) or None) for name in columns)
    relation = _relation(query, _Scope({"data": data}))
    return tuple("" if isinstance(unit, _None) else unit for _, unit in relation or ())


def _relation(query: Node, outer: _Scope) -> Relation:
    tables = dict(outer.tables)
    for entry in query["cte_map"].get("map", ()):
        inner = _relation(entry["value"]["query_node"], _Scope(tables, outer))
        tables[str(entry["key"]).lower()] = _renamed(inner, entry["value"].get("aliases", ()))
    scope = _Scope(tables, outer)
    if query["type"] == "SELECT_NODE":
        scope.sources.extend(_sources(query["from_table"], scope))
        return _selected(query["select_list"], scope)
    if query["type"] == "SET_OPERATION_NODE" and query["setop_type"] != "UNION_BY_NAME":
        return _united([_relation(child, scope) for child in query["children"]])
    return None


def _united(relations: list[Relation]) -> Relation:
    first = relations[0]
    if first is None or any(each is None or len(each) != len(first) for each in relations):
        return None
    together = zip(*(each or () for each in relations), strict=True)
    return tuple((column[0][0], _equal(unit for _, unit in column)) for column in together)


def _renamed(relation: Relation, names: Iterable[str]) -> Relation:
    new = [str(name).lower() for name in names]
    if relation is None or len(new) > len(relation):
        return None
    old = [name for name, _ in relation]
    return tuple((name, unit) for name, (_, unit) in zip(new + old[len(new) :], relation, strict=True))


def _sources(table: Node, scope: _Scope) -> Iterator[tuple[str, Relation]]:
    if table["type"] == "JOIN":
        yield from _sources(table["left"], scope)
        yield from _sources(table["right"], scope)
    elif table["type"] == "BASE_TABLE":
        name = str(table["table_name"]).lower()
        known = scope.tables.get("data" if is_data(table) else name)
        yield str(table["alias"] or name).lower(), _renamed(known, table["column_name_alias"])
    elif table["type"] == "SUBQUERY":
        inner = _relation(table["subquery"]["node"], scope)
        yield str(table["alias"]).lower(), _renamed(inner, table["column_name_alias"])


def _selected(items: list[Node], scope: _Scope) -> Relation:
    found: list[tuple[str, Unit]] = []
    for item in items:
        if item["class"] != "STAR":
            unit = _unit(item, scope)
            name = str(item["alias"] or item.get("column_names", [""])[-1]).lower()
            found.append((name, unit))
            scope.aliases.setdefault(name, unit)
        elif len(scope.sources) == 1 and not any(item[key] for key in ("exclude_list", "replace_list", "rename_list")):
            columns = scope.sources[0][1]
            if columns is None:
                return None
            found += columns
        else:
            return None
    return tuple(found)


def _unit(node: Node, scope: _Scope) -> Unit:
    kind, name = node["class"], str(node.get("function_name", "")).lower()
    if kind == "COLUMN_REF":
        return scope.column(*(str(part).lower() for part in node["column_names"]))
    if kind == "CONSTANT":
        return _None.LITERAL if literal_number(node) is not None else None
    if kind == "CAST":
        return _unit(node["child"], scope)
    if kind == "SUBQUERY":
        inner = _relation(node["subquery"]["node"], scope) if node["subquery_type"] == "SCALAR" else None
        return inner[0][1] if inner and len(inner) == 1 else None
    if name in ("*", "/"):
        return _of_product(node, scope)
    if name in _COUNTS:
        return _None.COUNT
    if name in _KEEPS and arguments(node):
        return _unit(arguments(node)[0], scope)
    return _equal(_unit(each, scope) for each in _alternatives(node, name) if not _is_null(each))


def _alternatives(node: Node, name: str) -> list[Node]:
    """The expressions of which the result is one, or a sum or difference."""
    if node["class"] == "CASE":
        return [*(check["then_expr"] for check in node["case_checks"]), node["else_expr"]]
    if node["type"] == "OPERATOR_COALESCE":
        return list(node["children"])
    if name in ("+", "-", "greatest", "least", "ifnull"):
        return arguments(node)
    return arguments(node)[1:] if name == "if" else []


def _is_null(node: Node) -> bool:
    return bool(without_casts(node).get("literal", {}).get("kind") == "NULL_LITERAL")


def _equal(units: Iterable[Unit]) -> Unit:
    """The unit that all have; a number of the query's own has none."""
    found = set(units)
    if len(found) > 1 and found <= set(_None):
        return _None.RATIO if _None.COUNT not in found else _None.COUNT
    return found.pop() if len(found) == 1 else None


def _of_product(node: Node, scope: _Scope) -> Unit:
    """The unit of factors above and below a fraction line, equal ones cancelled."""
    above, below = _factors(node)
    hundreds = sum(literal_number(each) == 100 for each in above)
    if any(literal_number(each) == 100 for each in below):
        return None
    top, bottom = [_unit(each, scope) for each in above], [_unit(each, scope) for each in below]
    unit = _cancelled(top, bottom)
    if not hundreds:
        return unit
    return "%" if unit is _None.RATIO and hundreds == 1 else None


def _factors(node: Node) -> tuple[list[Node], list[Node]]:
    inner = without_casts(node)
    if inner.get("function_name") not in ("*", "/"):
        return [node], []
    (above, below), (more, less) = (_factors(each) for each in arguments(inner))
    if inner["function_name"] == "*":
        return above + more, below + less
    return above + less, below + more


def _cancelled(top: list[Unit], bottom: list[Unit]) -> Unit:
    rest, under = [each for each in top if not isinstance(each, _None)], []
    for each in (each for each in bottom if not isinstance(each, _None)):
        if each in rest:
            rest.remove(each)
        else:
            under.append(each)
    if not rest and not under:
        counted = any(each is not _None.LITERAL for each in bottom)
        return _None.RATIO if counted or _None.RATIO in top else _equal(top)
    if len(rest) == 1 and not under and (rest[0] != "%" or set(top) <= {"%", _None.LITERAL}):
        return rest[0]
    # A price times or over a quantity is money still; a quantity has no currency, whatever else it is counted in.
    money = [each for each in rest if each and is_currency(str(each))]
    others = [each for each in rest if each not in money] + under
    quantities = not any(each == "%" or (each and is_currency(str(each))) for each in others)
    return money[0] if len(money) == 1 and quantities else None
