"""Registered operations and where their runs stand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, select, update

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Conflict, NotAuthorised
from countersign.domain.escalation import Severity
from countersign.domain.notice import Notice, NoticeKind
from countersign.domain.operation import Operation
from countersign.domain.state import State
from countersign.domain.values import Sha256
from countersign.ledger.authority import set_up_open
from countersign.ledger.escalations import answer
from countersign.ledger.following import NOTHING_TO_FOLLOW, as_operation, check_followed, followers, not_begun
from countersign.ledger.gathered import has_gathered, keep, latest_facts
from countersign.ledger.lines import hand_on, present_run, take_on
from countersign.ledger.question_rows import supersede
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import operations

_BEFORE_PEOPLE = (State.ESCALATED, State.OUTCOME_UNKNOWN)
"""Where an escalation can be open."""


class SqlOperations:
    """ports.Operations on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def register(self, operation: Operation) -> Operation:
        """Insert once (audit `operation.registered`); of two at a time, the second is compared with the first."""
        fields = operation.model_dump(exclude={"tenant"})
        with self._store.writing(operation.tenant) as writing:
            _check_set_up(writing)
            if operation.follows and find_operation(writing.connection, operation.tenant, operation.operation) is None:
                check_followed(writing, operation)
            if writing.insert_once(operations, **fields):
                _record_registration(writing, operation)
                return operation
            stored = stored_operation(writing.connection, operation.tenant, operation.operation)
        _check_same_request(stored, operation)
        return stored

    def get(self, tenant: str, operation: str) -> Operation:
        """The stored one, or NotFound."""
        with self._store.reading(tenant) as connection:
            return stored_operation(connection, tenant, operation)

    def list(self, tenant: str) -> Sequence[Operation]:
        """All of a tenant, newest first; by name where two are of the same instant."""
        query = select(operations).where(operations.c.tenant == tenant)
        with self._store.reading(tenant) as connection:
            found = [as_operation(row) for row in connection.execute(query)]
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
            stored = stored_operation(writing.connection, tenant, operation)
            if (stored.state, stored.reason) == (state, reason):
                return
            if stored.state.terminal:
                raise Conflict(f"operation {operation} has ended as {stored.state.value}; ask anew under another id")
            _move(writing, stored, state, reason, now)
            if state.terminal and state != State.SUCCEEDED:
                for follower in not_begun(writing, operation):
                    sentence = f"{NOTHING_TO_FOLLOW}: operation {operation} has ended as {state.value}"
                    _move(writing, follower, State.CANCELLED, sentence, now)

    def hand_on(self, tenant: str, operation: str, line: str, run_id: str, now: datetime) -> None:
        """Record that this run of a line goes on in a next one; as in ports.Operations."""
        with self._store.writing(tenant) as writing:
            writing.lock_known_operation(operation)
            hand_on(writing, operation, line, run_id, now)

    def take_on(self, tenant: str, operation: str, line: str, run_id: str, now: datetime) -> None:
        """Make this run the present one of a line that was handed on; as in ports.Operations."""
        with self._store.writing(tenant) as writing:
            writing.lock_known_operation(operation)
            take_on(writing, operation, line, run_id, now)

    def present_run(self, tenant: str, operation: str, line: str) -> str:
        """The run that carries the line now; as in ports.Operations."""
        with self._store.reading(tenant) as connection:
            return present_run(connection, tenant, operation, line)

    def followers(self, tenant: str, operation: str) -> Sequence[Operation]:
        """The operations that follow this one, in the order in which they were registered."""
        with self._store.reading(tenant) as connection:
            return followers(connection, tenant, operation)

    def gathered(self, tenant: str, operation: str, sha256: Sha256, now: datetime) -> None:
        """Record the document of facts that the operation rests on from now on; as in ports.Operations."""
        with self._store.writing(tenant) as writing:
            writing.lock_known_operation(operation)
            keep(writing, operation, sha256, now)

    def facts(self, tenant: str, operation: str) -> Sha256:
        """The hash of the facts that were gathered last, or NotFound."""
        with self._store.reading(tenant) as connection:
            found = latest_facts(connection, tenant, operation)
        if found is None:
            raise absent("facts of operation", operation)
        return found

    def has_gathered(self, tenant: str, operation: str, sha256: Sha256) -> bool:
        """Whether these facts were ever gathered for this very operation."""
        with self._store.reading(tenant) as connection:
            return has_gathered(connection, tenant, operation, sha256)


def stored_operation(connection: Connection, tenant: str, operation: str) -> Operation:
    """The operation as it is registered, with where its run stands; or NotFound."""
    found = find_operation(connection, tenant, operation)
    if found is None:
        raise absent("operation", operation)
    return found


def find_operation(connection: Connection, tenant: str, operation: str) -> Operation | None:
    """The same, or nothing."""
    row = connection.execute(select(operations).where(_is(tenant, operation))).first()
    return None if row is None else as_operation(row)


def _move(writing: Writing, stored: Operation, state: State, reason: str, now: datetime) -> None:
    """Write down where the run stands; the caller has locked the operation and looked at where it stood."""
    operation = stored.operation
    changed = update(operations).where(_is(stored.tenant, operation)).values(state=state.value, reason=reason)
    writing.connection.execute(changed)
    writing.record(f"run.{state.value.lower()}", operation, "run", now, reason=reason)
    if state.terminal or (stored.state in _BEFORE_PEOPLE and state not in _BEFORE_PEOPLE):
        answer(writing, operation, "ended" if state.terminal else "went_on", None, now)
    if state.terminal:
        supersede(writing, operation, "run", now)
        writing.notify(_end_told(stored, state, reason, now))


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
        **({"follows": operation.follows} if operation.follows else {}),
    )


def _is(tenant: str, operation: str) -> ColumnElement[bool]:
    return (operations.c.tenant == tenant) & (operations.c.operation == operation)


def _end_told(operation: Operation, state: State, reason: str, now: datetime) -> Notice:
    return Notice(
        kind=NoticeKind.RUN_ENDED,
        tenant=operation.tenant,
        operation=operation.operation,
        persons=(operation.requester,),
        severity=Severity.LOW if state == State.SUCCEEDED else Severity.MEDIUM,
        # Without the sentence behind the reason's code: what is told leaves the house (G46).
        code=":".join(filter(None, [state.value, reason.partition(":")[0]])),
        at=now,
    )


def _check_same_request(stored: Operation, asked: Operation) -> None:
    if (stored.case, stored.request_hash, stored.follows) != (asked.case, asked.request_hash, asked.follows):
        raise Conflict(
            f"operation {asked.operation} stands for another request already: {stored.case} {stored.request_hash}, "
            f"not {asked.case} {asked.request_hash}; choose another operation id"
        )
