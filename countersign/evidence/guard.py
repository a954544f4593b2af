"""Which queries may be run: one SELECT over table `data`, made of known parts that always give the same answer.

It stands apart as a list of what is allowed. Whatever DuckDB can do and this list does not name is refused: reading
files, settings and catalogues, anything random or tied to the clock, and what makes texts or rows grow without bound.
"""

from __future__ import annotations

from countersign.domain.errors import QueryRefused
from countersign.evidence.syntax import Node, children

AGGREGATES = frozenset(
    (
        "arg_max arg_min avg bool_and bool_or corr count count_if count_star covar_pop covar_samp first "
        "kurtosis last mad max max_by mean median min min_by mode product quantile quantile_cont "
        "quantile_disc regr_slope skewness stddev stddev_pop stddev_samp sum var_pop var_samp variance"
    ).split()
)
"""The functions that put several rows together."""
_WINDOWS = frozenset(
    ("cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number").split()
)
_SCALARS = frozenset(
    (
        "!~~ !~~* % * ** + - / // ^ abs ceil ceiling contains date_diff date_part date_sub "
        "date_trunc datediff datepart datetrunc day dayname dayofmonth dayofweek dayofyear ends_with exp "
        "extract floor greatest if ifnull instr isodow isoyear last_day least left length ln log log10 log2 "
        "lower ltrim make_date mod month monthname nullif position pow power prefix quarter regexp_extract "
        "regexp_full_match regexp_matches reverse right round rtrim sign split_part sqrt starts_with "
        "strftime strlen strpos substr substring suffix to_days to_months to_years trim trunc upper week "
        "weekofyear year ~~ ~~*"
    ).split()
)
FUNCTIONS = AGGREGATES | _WINDOWS | _SCALARS
"""Every function a query may call; all are pure.

None yields a longer text than it is given: texts that are put together twice in each of thirty steps fill the memory,
and neither DuckDB's limit nor an interrupt stops `replace` and `concat_ws` in one long cell.
"""

_TYPES = frozenset(
    (
        "bigint bool boolean date decimal double float float8 hugeint int int4 int64 int8 integer numeric "
        "real smallint string text timestamp tinyint varchar"
    ).split()
)
_LITERALS = frozenset({"INTEGER", "NUMERIC", "STRING", "BOOLEAN", "NULL_LITERAL"})
_CLOCK = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
_EXPRESSIONS = frozenset(
    "BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR STAR SUBQUERY TYPE WINDOW".split()
)
_OPERATORS = frozenset(
    "COMPARE_IN COMPARE_NOT_IN OPERATOR_COALESCE OPERATOR_IS_NOT_NULL OPERATOR_IS_NULL OPERATOR_NOT OPERATOR_NULLIF"
    " OPERATOR_TRY".split()
)
_PARTS = frozenset(
    "BASE_TABLE DISTINCT_MODIFIER EMPTY JOIN LIMIT_MODIFIER ASCENDING ORDER_DEFAULT DESCENDING"
    " ORDER_MODIFIER SELECT_NODE SET_OPERATION_NODE SUBQUERY".split()
)
_JOINS = frozenset({"REGULAR", "NATURAL", "CROSS"})


def check_allowed(query: Node, tables: frozenset[str] = frozenset({"data"})) -> None:
    """Refuse the tree `query` if any part of it is not on the lists; `tables` are the names that it may read.

    Raises:
        QueryRefused: naming the part.
    """
    if "cte_map" in query:
        tables = _check_common_tables(query["cte_map"]["map"], tables)
    if "class" in query:
        _check_expression(query)
    elif "type" in query:
        _check_part(query, tables)
    for child in children({name: value for name, value in query.items() if name != "cte_map"}):
        check_allowed(child, tables)


def _check_common_tables(entries: list[Node], tables: frozenset[str]) -> frozenset[str]:
    """Each WITH query sees the names before it only, so that none can reach DuckDB's own tables by its own name."""
    for entry in entries:
        name = str(entry["key"]).lower()
        if name == "data":
            raise QueryRefused("a WITH query may not be named data; that name is the dataset: choose another")
        check_allowed(entry["value"]["query_node"], tables)
        tables |= {name}
    return tables


def _check_part(node: Node, tables: frozenset[str]) -> None:
    kind = str(node["type"])
    if kind not in _PARTS:
        raise QueryRefused(f"{_readable(kind)} is not allowed in a query; write one plain SELECT over table data")
    if node.get("sample"):
        raise QueryRefused("sampling is not allowed, since it gives another answer each time; leave it out")
    if kind == "JOIN" and node["ref_type"] not in _JOINS:
        raise QueryRefused(f"a {_readable(node['ref_type'])} join is not allowed; use JOIN ... ON")
    if kind == "BASE_TABLE":
        known = node["table_name"].lower() in tables
        if not known or node["schema_name"] or node["catalog_name"] or node["at_clause"]:
            raise QueryRefused(f"table {node['table_name'][:80]!r} is not there; the only table is data")


def _check_expression(node: Node) -> None:
    kind = str(node["class"])
    if kind not in _EXPRESSIONS or (kind == "OPERATOR" and node["type"] not in _OPERATORS):
        raise QueryRefused(f"{_readable(node['type'])} is not allowed in a query; use plain expressions")
    if kind in ("FUNCTION", "WINDOW"):
        _check_function(node)
    elif kind == "CONSTANT" and node["literal"]["kind"] not in _LITERALS:
        raise QueryRefused("constants are numbers, texts, true, false and null; write this one so")
    elif kind == "TYPE" and str(node["type_name"]).lower() not in _TYPES:
        raise QueryRefused(f"type {node['type_name'][:80]!r} is not allowed; cast to decimal, bigint, varchar or date")
    elif kind == "COLUMN_REF" and str(node["column_names"][-1]).lower() in _CLOCK:
        raise QueryRefused(f"{node['column_names'][-1]} depends on the clock; write the date itself")
    elif kind == "STAR" and (node["columns"] or node["expr"]):
        raise QueryRefused("COLUMNS(...) is not allowed; name the columns")


def _check_function(node: Node) -> None:
    name = str(node["function_name"]).lower()
    if name not in FUNCTIONS or node.get("schema") or node.get("catalog"):
        raise QueryRefused(f"function {name[:80]!r} is not allowed; use pure ones such as sum, count, round")


def _readable(kind: str) -> str:
    return str(kind).lower().replace("_", " ")
