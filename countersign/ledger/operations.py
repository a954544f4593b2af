"""Registered operations and where their runs stand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select, update

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Conflict, NotAuthorised
from countersign.domain.operation import Operation
from countersign.domain.state import State
from countersign.ledger.authority import set_up_open
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import operations


class SqlOperations:
    """ports.Operations on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def register(self, operation: Operation) -> Operation:
        """Insert once (audit `operation.registered`); of two at a time, the second is compared with the first."""
        fields = operation.model_dump(exclude={"tenant"})
        with self._store.writing(operation.tenant) as writing:
            _check_set_up(writing)
            if writing.insert_once(operations, **fields):
                _record_registration(writing, operation)
                return operation
            stored = _stored(writing.connection, operation.tenant, operation.operation)
        _check_same_request(stored, operation)
        return stored

    def get(self, tenant: str, operation: str) -> Operation:
        """The stored one, or NotFound."""
        with self._store.reading(tenant) as connection:
            return _stored(connection, tenant, operation)

    def list(self, tenant: str) -> Sequence[Operation]:
        """All of a tenant, newest first; by name where two are of the same instant."""
        query = select(operations).where(operations.c.tenant == tenant)
        with self._store.reading(tenant) as connection:
            found = [_operation(row) for row in connection.execute(query)]
        # Sorted here: PostgreSQL's order of names depends on how the database was made.
        by_name = sorted(found, key=lambda one: one.operation)
        return sorted(by_name, key=lambda one: one.registered_at, reverse=True)

    def move(self, tenant: str, operation: str, state: State, reason: str, now: datetime) -> None:
        """Record where the run stands; as in ports.Operations.

        Raises:
            Conflict: the operation has ended; a run that was reset or started anew cannot take it up again.
        """
        with self._store.writing(tenant) as writing:
            writing.lock_known_operation(operation)
            stored = _stored(writing.connection, tenant, operation)
            if (stored.state, stored.reason) == (state, reason):
                return
            if stored.state.terminal:
                raise Conflict(f"operation {operation} has ended as {stored.state.value}; ask anew under another id")
            changed = update(operations).where(_is(tenant, operation)).values(state=state.value, reason=reason)
            writing.connection.execute(changed)
            writing.record(f"run.{state.value.lower()}", operation, "run", now, reason=reason)


def _check_set_up(writing: Writing) -> None:
    if set_up_open(writing.connection, writing.tenant):
        raise NotAuthorised(
            "set_up_open",
            f"tenant {writing.tenant}: its first set-up is open, so nobody can say yet who may decide; close it first",
        )


def _record_registration(writing: Writing, operation: Operation) -> None:
    writing.record(
        "operation.registered",
        operation.operation,
        operation.requester,
        operation.registered_at,
        case=operation.case,
        request_hash=operation.request_hash,
        statement_hash=sha256_hex(operation.statement.encode()),
    )


def _is(tenant: str, operation: str) -> ColumnElement[bool]:
    return (operations.c.tenant == tenant) & (operations.c.operation == operation)


def _stored(connection: Connection, tenant: str, operation: str) -> Operation:
    row = connection.execute(select(operations).where(_is(tenant, operation))).first()
    if row is None:
        raise absent("operation", operation)
    return _operation(row)


def _operation(row: Row[Any]) -> Operation:
    return Operation.model_validate({**row._mapping, "state": State(row.state)})


def _check_same_request(stored: Operation, asked: Operation) -> None:
    if (stored.case, stored.request_hash) != (asked.case, asked.request_hash):
        raise Conflict(
            f"operation {asked.operation} stands for another request already: {stored.case} {stored.request_hash}, "
            f"not {asked.case} {asked.request_hash}; choose another operation id"
        )
