"""Lines of runs: a run whose history has grown long goes on in a next one, and no other run passes for that (G23)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select, update

from countersign.domain.errors import Conflict
from countersign.ledger.store import Writing
from countersign.ledger.tables import lines

_BETWEEN = ""
"""In place of a run: nobody carries the line, since it was handed on and not yet taken on."""


def present_run(connection: Connection, tenant: str, operation: str, line: str) -> str:
    """The run that carries the line now; as in ports.Operations."""
    row = _row(connection, tenant, operation, line)
    if row is None:
        return line
    # Until the next one has taken it on: the server can refuse the end of a run, which then goes on itself.
    return str(row.handed_on_by if row.run_id == _BETWEEN else row.run_id)


def hand_on(writing: Writing, operation: str, line: str, run_id: str, now: datetime) -> None:
    """Record that a line goes on in a next run; the caller holds the operation's lock."""
    row = _row(writing.connection, writing.tenant, operation, line)
    if row is not None and (row.run_id, row.handed_on_by) == (_BETWEEN, run_id):
        return
    present = line if row is None else row.run_id
    if present != run_id:
        raise _not_present(operation, line, run_id, present)
    values = {"run_id": _BETWEEN, "handed_on_by": run_id}
    if row is None:
        writing.insert_once(lines, operation=operation, line=line, **values)
    else:
        writing.connection.execute(update(lines).where(_is(writing.tenant, operation, line)).values(**values))
    writing.record("run.handed_on", operation, "run", now, line=line, run_id=run_id)


def take_on(writing: Writing, operation: str, line: str, run_id: str, now: datetime) -> None:
    """Make a run the present one of a line that was handed on; the caller holds the operation's lock."""
    row = _row(writing.connection, writing.tenant, operation, line)
    if row is not None and row.run_id == run_id:
        return
    if row is None or row.run_id != _BETWEEN:
        raise _not_present(operation, line, run_id, line if row is None else row.run_id)
    taken = update(lines).where(_is(writing.tenant, operation, line)).values(run_id=run_id)
    writing.connection.execute(taken)
    writing.record("run.taken_on", operation, "run", now, line=line, run_id=run_id)


def _not_present(operation: str, line: str, run_id: str, present: str) -> Conflict:
    carrier = f"is carried by run {present}" if present else "was handed on, and is carried by no run yet"
    return Conflict(f"line {line} of operation {operation} {carrier}; run {run_id} does nothing")


def _is(tenant: str, operation: str, line: str) -> ColumnElement[bool]:
    return (lines.c.tenant == tenant) & (lines.c.operation == operation) & (lines.c.line == line)


def _row(connection: Connection, tenant: str, operation: str, line: str) -> Row[Any] | None:
    return connection.execute(select(lines).where(_is(tenant, operation, line))).first()
