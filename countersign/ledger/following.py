"""Operations that follow others: one registers only behind what it can rest on, and none outlives what never happened.

Apart from the operations themselves, since here alone one transaction is about two of them. Locks are taken in the
direction of time, the followed operation before its followers, so that none waits for the other in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from countersign.domain.compensation import COMPENSATION
from countersign.domain.errors import Conflict
from countersign.domain.execution import Execution, ExecutionStatus
from countersign.domain.following import receipt_to_follow
from countersign.domain.operation import Operation
from countersign.domain.state import State
from countersign.ledger.store import Writing
from countersign.ledger.tables import executions, operations

NOTHING_TO_FOLLOW = "nothing_to_follow"
"""Why an operation ended whose followed one came to no effect."""


def as_operation(row: Row[Any]) -> Operation:
    """A row of the table as the operation that it holds."""
    return Operation.model_validate({**row._mapping, "state": State(row.state)})


def as_execution(row: Row[Any]) -> Execution:
    """A row of the table as the execution that it holds."""
    fields = {name: value for name, value in row._mapping.items() if name != "number"}
    return Execution.model_validate({**fields, "status": ExecutionStatus(row.status)})


def followers(connection: Connection, tenant: str, operation: str) -> Sequence[Operation]:
    """The operations that follow this one, in the order in which they were registered."""
    query = select(operations).where(operations.c.tenant == tenant, operations.c.follows == operation)
    found = [as_operation(row) for row in connection.execute(query)]
    # Sorted here: PostgreSQL's order of names depends on how the database was made.
    return sorted(found, key=lambda one: (one.registered_at, one.operation))


def check_followed(writing: Writing, operation: Operation) -> None:
    """Refuse a new operation that has nothing to follow, or not alone; holds what it follows until the transaction's
    end, so that of two at a time the second sees the first.

    Raises:
        NotFound: there is no such operation to follow.
        Conflict: that one ended without an effect, or another one of the same case follows it and may have its effect.
    """
    followed = operation.follows
    writing.lock_known_operation(followed)
    state = writing.state_of(followed)
    if state is not None and state.terminal and not executed(writing.connection, writing.tenant, followed):
        raise Conflict(f"operation {followed} has ended as {state.value}, so there is nothing that could follow it")
    for other in followers(writing.connection, writing.tenant, followed):
        rival = other.case == operation.case and other.operation != operation.operation
        if rival and not _came_to_nothing(other):
            raise Conflict(
                f"operation {followed} is followed by {other.operation} already, of the same case {other.case} and "
                f"{other.state.value}; one effect has one {other.case}"
            )


def taken_back(connection: Connection, tenant: str, operation: str) -> bool:
    """Whether what an operation did was taken back, as the outside confirmed by a receipt of its own."""
    behind = followers(connection, tenant, operation)
    return any(one.case == COMPENSATION and executed(connection, tenant, one.operation) for one in behind)


def executed(connection: Connection, tenant: str, operation: str) -> bool:
    """Whether one of its executions can be followed: its effect is confirmed, whatever its state."""
    is_it = (executions.c.tenant == tenant) & (executions.c.operation == operation)
    rows = connection.execute(select(executions).where(is_it))
    return any(receipt_to_follow(as_execution(row)) is not None for row in rows)


def not_begun(writing: Writing, operation: str) -> Sequence[Operation]:
    """The followers, each locked, whose runs never began."""
    known = followers(writing.connection, writing.tenant, operation)
    return [one for one in known if writing.lock_operation(one.operation) and _waits(writing, one)]


def _waits(writing: Writing, follower: Operation) -> bool:
    return writing.state_of(follower.operation) == State.CREATED


def _came_to_nothing(follower: Operation) -> bool:
    return follower.state.terminal and follower.state != State.SUCCEEDED
