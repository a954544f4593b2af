"""A query as DuckDB's own syntax tree, and the few ways of walking through it that the guards need.

It stands apart so that the guards state rules and do not repeat how DuckDB spells a tree as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb

from countersign.domain.errors import QueryRefused

Node = dict[str, Any]

MAX_QUERY = 10_000
"""The longest query, in characters."""


def parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> Node:
    """The query node of `sql`, which is exactly one SELECT.

    Raises:
        QueryRefused: it is anything else, or too long or too deeply nested to be looked at.
    """
    if len(sql) > MAX_QUERY or "\0" in sql:
        raise QueryRefused(f"a query is at most {MAX_QUERY} characters long and holds no NUL; ask for less at once")
    try:
        row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
        tree: Node = json.loads(row[0]) if row else {}
    except (duckdb.Error, UnicodeError, RecursionError):
        raise QueryRefused("the query cannot be parsed; write one plain SELECT over table data") from None
    if tree.get("error", True):
        raise QueryRefused(_parse_fault(tree))
    if len(tree["statements"]) != 1:
        raise QueryRefused("a query is exactly one SELECT statement; send each question by itself")
    node: Node = tree["statements"][0]["node"]
    return node


def children(node: Node) -> list[Node]:
    """The nearest dictionaries below `node`, in their order."""
    found: list[Node] = []
    _gather(list(node.values()), found)
    return found


def descendants(node: Node) -> Iterator[Node]:
    """`node` and all dictionaries below it."""
    yield node
    for child in children(node):
        yield from descendants(child)


def selects(node: Node) -> list[Node]:
    """All SELECTs in the tree, subqueries and common table expressions included."""
    return [each for each in descendants(node) if each.get("type") == "SELECT_NODE"]


def arguments(node: Node) -> list[Node]:
    """The argument expressions of a function."""
    return [argument["expression"] for argument in node.get("arguments", ())]


def without_casts(node: Node) -> Node:
    """The expression inside any casts."""
    while node.get("class") == "CAST":
        node = node["child"]
    return node


def literal_number(node: Node) -> Decimal | None:
    """The number that stands in the query itself, cast or not; None for every other expression."""
    literal = without_casts(node).get("literal", {})
    return Decimal(literal["text"]) if literal.get("kind") in ("INTEGER", "NUMERIC") else None


def table_of(node: Node) -> Node | None:
    """The table reference of a SELECT that reads `data` alone, by no other column names; else None."""
    table: Node = node["from_table"]
    return table if is_data(table) and not table["column_name_alias"] else None


def is_data(node: Node) -> bool:
    """Whether `node` is a reference to table `data`."""
    return node.get("type") == "BASE_TABLE" and str(node["table_name"]).lower() == "data"


def reads_data(node: Node) -> bool:
    """Whether this SELECT itself, not one inside it, has `data` among its tables."""
    return _mentions_data(node["from_table"])


def _mentions_data(table: Node) -> bool:
    if table["type"] == "JOIN":
        return _mentions_data(table["left"]) or _mentions_data(table["right"])
    return is_data(table)


def _gather(values: list[Any], found: list[Node]) -> None:
    for value in values:
        if isinstance(value, dict):
            found.append(value)
        elif isinstance(value, list):
            _gather(value, found)


def _parse_fault(tree: Node) -> str:
    if tree.get("error_type") == "not implemented":
        return "only one SELECT (or WITH ... SELECT) over table data is allowed; nothing else is carried out"
    fault = str(tree.get("error_message", "")).splitlines() or ["unreadable"]
    return f"the query cannot be parsed: {fault[0][:300]}; write one plain SELECT over table data"
