"""A claim's value comes from the data: the rule, on the tree of the claim's query.

It stands apart from the guard because a query may be harmless and still state a number of its own. The rule:

    Every SELECT that the value comes through reads `data` or another SELECT of the query, and names a column or counts
    rows. Texts, dates and numbers written into the query choose rows and cells (WHERE, FILTER, CASE WHEN, ORDER BY,
    LIMIT) but are no part of the value; of numbers there are three: 100 times a quotient, 1 or -1 as a factor or beside
    a quotient, and the places of round. The name of a column, as a text by itself, is data too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from decimal import Decimal

from countersign.domain.errors import QueryRefused
from countersign.evidence.guard import AGGREGATES
from countersign.evidence.syntax import Node, arguments, children, is_data, literal_number, without_casts

_COUNTS = frozenset({"count", "count_if", "count_star"})
_STEERED = {
    "date_diff": (0,), "date_part": (0,), "date_sub": (0,), "date_trunc": (0,), "datediff": (0,), "datepart": (0,),
    "datetrunc": (0,), "extract": (0,), "if": (0,), "lag": (1,), "lead": (1,), "nth_value": (1,), "nullif": (1,),
    "quantile": (1,), "quantile_cont": (1,), "quantile_disc": (1,),
}  # fmt: skip
"""Arguments that choose which cell or which part of a date it is; by function, counted from 0."""
_BUILDS_TEXT = frozenset("left regexp_extract reverse right split_part substr substring".split())
"""These make another text of a part of one."""
_JUDGEMENTS = frozenset({"COMPARISON", "CONJUNCTION", "BETWEEN"})
_PASSED_ON = frozenset("abs avg max min sum median round".split())
_FORMAT = re.compile(r"(?:%-?[A-Za-z]|[-/.: 年月日])+")

_NUMBERS = "write 100 only as in 100 * a / b, 1 or -1 only as a factor or as in a / b - 1, digits as in round(x, 2)"


def check_from_data(query: Node, columns: Collection[str]) -> None:
    """Refuse a claim's query whose value is not computed from table data; `columns` are the names of its columns.

    Raises:
        QueryRefused: with what to write instead.
    """
    if not _names_a_column(query, columns):
        _check_source(query)


def _names_a_column(query: Node, columns: Collection[str]) -> bool:
    if query["type"] != "SELECT_NODE" or not is_data(query["from_table"]) or len(query["select_list"]) != 1:
        return False
    literal = query["select_list"][0].get("literal", {})
    return literal.get("kind") == "STRING" and literal["text"] in columns


def _check_source(query: Node) -> None:
    """Look into one SELECT or set operation, and everything that it takes values from."""
    for entry in query["cte_map"].get("map", ()):
        _check_source(entry["value"]["query_node"])
    if query["type"] != "SELECT_NODE":
        for child in query["children"]:
            _check_source(child)
        return
    _check_table(query["from_table"])
    for item in query["select_list"]:
        _check_value(item)
        if not _draws(item, from_rows=query["from_table"]["type"] != "EMPTY"):
            raise QueryRefused("a claim's value is computed from table data; name a column of it, or count(*), in it")


def _check_table(table: Node) -> None:
    if table["type"] == "JOIN":
        _check_table(table["left"])
        _check_table(table["right"])
    elif table["type"] == "SUBQUERY":
        _check_source(table["subquery"]["node"])


def _draws(item: Node, from_rows: bool) -> bool:
    """Whether an expression takes something from the rows it is asked of, or from a SELECT inside it."""
    if item.get("class") == "SUBQUERY":
        return True
    name = str(item.get("function_name", "")).lower()
    if not from_rows and name in AGGREGATES:
        raise QueryRefused(f"{name} needs rows to look at; write FROM data")
    if item.get("class") in ("COLUMN_REF", "STAR") or name in _COUNTS:
        return from_rows
    drawn = [_draws(child, from_rows) for child in children(item)]
    return any(drawn)


def _check_value(node: Node) -> None:
    """Refuse what is written in the query instead of read from the data; conditions are not looked into."""
    kind, name = node.get("class"), str(node.get("function_name", "")).lower()
    if kind == "CONSTANT":
        _check_literal(node)
    elif kind == "SUBQUERY" and node["subquery_type"] == "SCALAR":
        _check_source(node["subquery"]["node"])
    elif kind in (*_JUDGEMENTS, "SUBQUERY") or name.startswith(("~~", "!~~")) or _judges(node):
        raise QueryRefused("a claim's value is no true or false; ask for the number itself, or count(*) with WHERE")
    elif name in _BUILDS_TEXT:
        raise QueryRefused(f"a claim's value is no part of a text, made by {name}; ask for the whole cell of a column")
    elif name in ("*", "+", "-", "/"):
        _check_arithmetic(node, name)
    elif name not in _COUNTS:
        for part in _values(node, name):
            _check_value(part)


def _judges(node: Node) -> bool:
    if node.get("class") == "CAST":
        return str(node["type_expr"]["type_name"]).lower() in ("bool", "boolean")
    return node.get("class") == "OPERATOR" and node["type"] not in ("OPERATOR_COALESCE", "OPERATOR_TRY")


def _check_literal(node: Node) -> None:
    kind = node["literal"]["kind"]
    if kind in ("INTEGER", "NUMERIC"):
        raise QueryRefused(
            f"a claim's value holds no number of the query's own ({node['literal']['text']}); {_NUMBERS}"
        )
    if kind != "NULL_LITERAL":
        raise QueryRefused("a claim's value holds no text, date or truth of the query's own; ask for a column's cell")


def _values(node: Node, name: str) -> Iterator[Node]:
    """The parts of an expression that its value is made of."""
    if node.get("class") == "CASE":
        yield from (check["then_expr"] for check in node["case_checks"])
        yield node["else_expr"]
    elif node.get("class") in ("FUNCTION", "WINDOW"):
        given = arguments(node)
        steered = _STEERED.get(name, ())
        yield from (each for at, each in enumerate(given) if at not in steered and not _steers(name, at, each))
    else:
        yield from (child for child in children(node) if child.get("class") != "TYPE")


def _steers(name: str, at: int, given: Node) -> bool:
    """Whether the argument is the places of round or the form of a date."""
    if at != 1:
        return False
    if name == "round":
        places = literal_number(given)
        return places is not None and places >= 0
    return name == "strftime" and bool(_FORMAT.fullmatch(str(given.get("literal", {}).get("text", ""))))


def _check_arithmetic(node: Node, name: str, numerator: bool = False) -> None:
    """Refuse a literal beside + - * / that is not one of the three; `numerator`: what is multiplied is divided then."""
    given = arguments(node)
    for at, each in enumerate(given):
        others = [*given[:at], *given[at + 1 :]]
        number = literal_number(each)
        if number is None:
            inner = without_casts(each)
            divided = (name == "/" and at == 0) or (numerator and name == "*")
            if divided and inner.get("function_name") == "*":
                _check_arithmetic(inner, "*", numerator=True)
            else:
                _check_value(each)
        elif not others or not _may_stand(number, name, others[0], numerator):
            _check_literal(without_casts(each))


def _may_stand(number: Decimal, name: str, other: Node, numerator: bool) -> bool:
    if literal_number(other) is not None:
        return False
    if name == "*":
        return abs(number) == 1 or (number == 100 and not _holds_hundred(other) and (numerator or _is_share(other)))
    return name in ("+", "-") and abs(number) == 1 and _quotient(other)


def _is_share(node: Node) -> bool:
    """Whether it is a quotient, or sums and differences of nothing but quotients and 1."""
    inner = _passed_on(node)
    if inner.get("function_name") in ("+", "-"):
        parts = [each for each in arguments(inner) if literal_number(each) is None]
        return bool(parts) and all(_is_share(each) for each in parts)
    return _quotient(inner) or (inner.get("function_name") == "*" and any(_is_share(each) for each in arguments(inner)))


def _quotient(node: Node) -> bool:
    return bool(_passed_on(node).get("function_name") == "/")


def _passed_on(node: Node) -> Node:
    """What stands inside casts, rounding and the plain aggregates."""
    inner = without_casts(node)
    while str(inner.get("function_name", "")).lower() in _PASSED_ON and arguments(inner):
        inner = without_casts(arguments(inner)[0])
    return inner


def _holds_hundred(node: Node) -> bool:
    return literal_number(node) == 100 or any(_holds_hundred(child) for child in children(node))
