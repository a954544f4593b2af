"""Rows of executions: how one is found, claimed and written, for whoever holds its operation's lock.

Apart from the executions themselves, since what is found late is written like what was claimed, by other rules.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, func, select, update

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Conflict
from countersign.domain.execution import Execution, ExecutionStatus, Receipt
from countersign.domain.proposal import Approval
from countersign.ledger.columns import moment_text
from countersign.ledger.following import as_execution
from countersign.ledger.store import Writing
from countersign.ledger.tables import executions


def find_execution(connection: Connection, tenant: str, key: str) -> Execution | None:
    """The execution of that key."""
    is_it = (executions.c.tenant == tenant) & (executions.c.key == key)
    row = connection.execute(select(executions).where(is_it)).first()
    return None if row is None else as_execution(row)


def claimed_of(approval: Approval, key: str, before: Execution | None, until: datetime) -> Execution:
    """What a new claim on the key is; in all else it says how the attempt before ended."""
    proposal = approval.proposal
    return Execution(
        tenant=proposal.tenant,
        operation=proposal.operation,
        approval_id=proposal.approval_id,
        action_hash=proposal.action_hash,
        key=key,
        status=ExecutionStatus.INTENDED if before is None else before.status,
        attempt=1 if before is None else before.attempt + 1,
        claimed_until=until,
        reason="" if before is None else before.reason,
        may_land_until=None if before is None else before.may_land_until,
    )


def write(writing: Writing, execution: Execution) -> None:
    """Replace the row by what the execution is now."""
    _write(writing, execution)


def write_latest(writing: Writing, execution: Execution, *, first: bool) -> None:
    """The same, and make it its operation's latest; Conflict where the `first` of an action has another key already."""
    of_operation = (executions.c.tenant == execution.tenant) & (executions.c.operation == execution.operation)
    latest = writing.connection.execute(select(func.max(executions.c.number)).where(of_operation)).scalar() or 0
    if not first:
        _write(writing, execution, number=latest + 1)
    elif not writing.insert_once(executions, **_columns(execution), number=latest + 1):
        raise Conflict(f"action {execution.action_hash} of operation {execution.operation} has another key already")


def names_of(execution: Execution) -> dict[str, JsonValue]:
    """What every audit record of an execution names."""
    return {
        "key": execution.key,
        "attempt": execution.attempt,
        "approval_id": execution.approval_id,
        "action_hash": execution.action_hash,
    }


def landing_of(execution: Execution) -> dict[str, JsonValue]:
    """The same of until when something of it may still land, where anything may."""
    until = execution.may_land_until
    return {} if until is None else {"may_land_until": moment_text(until)}


def receipt_of(receipt: Receipt) -> dict[str, JsonValue]:
    """The same of what the outside has confirmed; our words about it, which can be long, by their hash."""
    words = sha256_hex(receipt.detail.encode())
    return {**receipt.model_dump(mode="json", exclude={"detail"}), "detail_hash": words}


def _write(writing: Writing, execution: Execution, **more: int) -> None:
    is_it = (executions.c.tenant == execution.tenant) & (executions.c.key == execution.key)
    writing.connection.execute(update(executions).where(is_it).values(**_columns(execution), **more))


def _columns(execution: Execution) -> dict[str, Any]:
    columns = {name: getattr(execution, name) for name in Execution.model_fields if name != "tenant"}
    return {**columns, "status": execution.status.value}
