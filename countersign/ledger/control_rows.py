"""Rows of control: who is in control of a run, and that only they go on with it.

Apart from the commands that change it because drafts, proposals and executions look at it inside transactions of their
own, under the lock of their operation (G29).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select, update

from countersign.domain.control import Control, first_control
from countersign.domain.errors import ControlChanged
from countersign.ledger.store import Writing, absent
from countersign.ledger.tables import controls, operations


def control_history(connection: Connection, tenant: str, operation: str) -> list[Control]:
    """Everyone who was in control, oldest first; NotFound where there is no such operation."""
    is_it = (operations.c.tenant == tenant) & (operations.c.operation == operation)
    registered_at: datetime | None = connection.execute(select(operations.c.registered_at).where(is_it)).scalar()
    if registered_at is None:
        raise absent("operation", operation)
    later = select(controls.c.control).where(controls.c.tenant == tenant, controls.c.operation == operation)
    return [first_control(registered_at), *connection.execute(later.order_by(controls.c.version)).scalars()]


def control_of(connection: Connection, tenant: str, operation: str) -> Control:
    """Who is in control now."""
    return control_history(connection, tenant, operation)[-1]


def check_control(writing: Writing, operation: str, version: int) -> None:
    """ControlChanged where another version of control is in force than that under which something was begun."""
    control = control_of(writing.connection, writing.tenant, operation)
    if control.version != version:
        raise ControlChanged(
            f"control of operation {operation} is with {control.holder()}, version {control.version}; what was begun "
            f"under version {version} is discarded"
        )


def add_control(writing: Writing, operation: str, control: Control) -> None:
    """Write down who is in control from now on; the caller holds the operation's lock."""
    values = {"operation": operation, "version": control.version, "control": control}
    writing.connection.execute(controls.insert().values(tenant=writing.tenant, **values))


def renew_lease(writing: Writing, operation: str, control: Control, until: datetime | None) -> None:
    """Have the lease of whoever is in control end then; nothing: it has no end."""
    is_it = (controls.c.tenant == writing.tenant) & (controls.c.operation == operation)
    renewed = control.model_copy(update={"lease_until": until})
    changed = update(controls).where(is_it, controls.c.version == control.version)
    writing.connection.execute(changed.values(control=renewed))
