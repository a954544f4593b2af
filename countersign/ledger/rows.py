"""Rows as they lie in the tables: plain values, none of them believed, for whoever compares them with the records.

Apart from the parts that read them as values, since a row that somebody changed may have no such form any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Column, ColumnElement, Connection, Select, Table, Text, select, type_coerce

from countersign.ledger import tables
from countersign.ledger.columns import Frozen, Moment

_OF_OPERATION = (
    tables.operations, tables.drafts, tables.draft_checks, tables.draft_grades, tables.approvals, tables.executions,
    tables.facts, tables.lines, tables.controls, tables.endings, tables.escalations, tables.messages,
    tables.questions, tables.question_ticks, tables.budget_raises,
)  # fmt: skip
_OF_APPROVAL = (tables.votes, tables.holds, tables.ticks)
_OF_TENANT = (tables.freezes, tables.restores)

Rows = Mapping[str, Sequence[Mapping[str, JsonValue]]]
"""By table, in the order of its key; what is kept as JSON is read as such, and is its text where it is none."""


def rows_of(connection: Connection, tenant: str, operation: str) -> Rows:
    """All that the tables hold of an operation, and the tenant's freezes and restores, which concern each."""
    its_approvals = select(tables.approvals.c.approval_id).where(_its(tables.approvals, tenant, operation))
    its_keys = select(tables.executions.c.key).where(_its(tables.executions, tenant, operation))
    wanted = {
        **{table: _its(table, tenant, operation) for table in _OF_OPERATION},
        **{table: table.c.approval_id.in_(its_approvals) for table in _OF_APPROVAL},
        tables.settlements: tables.settlements.c.key.in_(its_keys),
        **{table: table.c.tenant == tenant for table in _OF_TENANT},
    }
    return {table.name: _read(connection, table, table.c.tenant == tenant, where) for table, where in wanted.items()}


def _its(table: Table, tenant: str, operation: str) -> ColumnElement[bool]:
    return (table.c.tenant == tenant) & (table.c.operation == operation)


def _read(connection: Connection, table: Table, *where: ColumnElement[bool]) -> list[Mapping[str, JsonValue]]:
    query: Select[Any] = select(*(_as_text(column) for column in table.columns if column.name != "tenant"))
    found = connection.execute(query.where(*where).order_by(*table.primary_key.columns))
    whole = {column.name for column in table.columns if isinstance(column.type, Frozen)}
    return [
        {name: _parsed(value) if name in whole else value for name, value in row._mapping.items()} for row in found
    ]  # fmt: skip


def _as_text(column: Column[Any]) -> ColumnElement[Any]:
    """A column whose values are no plain ones, as the text that is stored."""
    return type_coerce(column, Text).label(column.name) if isinstance(column.type, Frozen | Moment) else column


def _parsed(text: str | None) -> JsonValue:
    if text is None:
        return None
    try:
        found: JsonValue = json.loads(text)
    except ValueError:
        return text
    return found
