"""Which sensitive columns a query reads: the rule, on the query's tree.

It stands apart from the guard because such a query is allowed once a person has allowed it; here it is only told. In
doubt a column counts as read: a person is then asked in vain, and nothing is read without one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from countersign.evidence.syntax import Node, children, descendants, is_data, reads_data


def sensitive_columns(query: Node, sensitive: Collection[str]) -> tuple[str, ...]:
    """Those of the columns `sensitive` that `query`, which the guard has let through, reads, in their given order.

    Whatever names a column reads it, wherever it stands: in what is selected, in a condition, an order, a join or a
    WITH query. All of them are read by what takes whole rows (`*`, the name of a table as a value), by what gives the
    columns of `data` other names (`data AS t(a, b)`), and by NATURAL joins. `count(*)` reads none.
    """
    names = {_folded(name) for name in sensitive}
    read = {name for name in _named(query) if name is None or name in names}
    read |= {name for star in _stars(query, within=False) for name in names - _left_out(star)}
    return tuple(name for name in sensitive if None in read or _folded(name) in read)


def _named(query: Node) -> Iterator[str | None]:
    """The names of columns in the tree, None for all of them."""
    nodes = list(descendants(query))
    tables = _tables(nodes)
    for node in nodes:
        if node.get("class") == "COLUMN_REF":
            parts = [_folded(part) for part in node["column_names"]]
            yield from parts
            if parts[-1] in tables:
                yield None
        elif node.get("type") == "JOIN":
            yield from (_folded(name) for name in node["using_columns"])
            if node["ref_type"] == "NATURAL":
                yield None
        elif is_data(node) and node["column_name_alias"]:
            yield None


def _tables(nodes: Iterable[Node]) -> frozenset[str]:
    """Every name by which a query's tables, subqueries and WITH queries go; as a value it is a whole row."""
    names = [node.get(key) for node in nodes for key in ("table_name", "alias") if _is_table(node)]
    return frozenset(_folded(name) for name in names if name)


def _is_table(node: Node) -> bool:
    return node.get("type") == "BASE_TABLE" or (node.get("type") == "SUBQUERY" and "class" not in node)


def _stars(node: Node, within: bool) -> Iterator[Node]:
    """The stars that stand for columns of `data`: in a SELECT that reads it itself, or with a table's name."""
    if node.get("type") == "SELECT_NODE":
        within = reads_data(node)
    if node.get("class") == "STAR" and (within or node["relation_name"]):
        yield node
    for child in children(node):
        yield from _stars(child, within)


def _left_out(star: Node) -> frozenset[str]:
    """What EXCLUDE takes out of a star; a name with its table's takes out that table's alone, so it counts as none."""
    return frozenset(_folded(name) for name in star["exclude_list"])


def _folded(name: object) -> str:
    return str(name).casefold()
