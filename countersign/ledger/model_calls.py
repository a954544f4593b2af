"""Calls of models: each written down before it is made, and again when it has ended; none where a budget is used up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select, update

from countersign.domain.errors import BudgetExceeded
from countersign.domain.model_call import Budget, CallEnd, ModelCall
from countersign.domain.values import Instant
from countersign.ledger.budgets import check_budgets, load_calls, load_raises
from countersign.ledger.operations import stored_operation
from countersign.ledger.store import Store, absent
from countersign.ledger.tables import model_calls


class SqlModelCalls:
    """ports.ModelCalls on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, call: ModelCall) -> ModelCall:
        """Write down a call before it is made; as in ports.ModelCalls."""
        tenant, name = call.tenant, call.operation
        with self._store.writing(tenant) as writing:
            writing.lock_model_calls()
            operation = stored_operation(writing.connection, tenant, name)
            problem = check_budgets(writing.connection, operation, call.began_at)
            if problem:
                raise BudgetExceeded(problem)
            number = _next_number(writing.connection, tenant, name)
            begun = call.model_copy(update={"number": number, "case": operation.case})
            where = {"operation": name, "number": number, "began_at": begun.began_at}
            writing.insert_once(model_calls, **where, **_columns(begun))
        return begun

    def end(self, tenant: str, operation: str, number: int, end: CallEnd, nano: int | None, currency: str) -> None:
        """What became of it; a repeat changes nothing. NotFound where no such call was begun."""
        is_it = (model_calls.c.tenant == tenant) & (model_calls.c.operation == operation)
        is_it &= model_calls.c.number == number
        with self._store.writing(tenant) as writing:
            writing.lock_model_calls()
            call: ModelCall | None = writing.connection.execute(select(model_calls.c.call).where(is_it)).scalar()
            if call is None:
                raise absent("model call", f"{operation} {number}")
            if call.outcome == "open":
                ended = _ended(call, end, nano, currency)
                writing.connection.execute(update(model_calls).where(is_it).values(**_columns(ended)))

    def of_operation(self, tenant: str, operation: str) -> Sequence[ModelCall]:
        """All of an operation, in their order."""
        with self._store.reading(tenant) as connection:
            return load_calls(connection, tenant, operation)

    def of_tenant(self, tenant: str, since: datetime | None = None) -> Sequence[ModelCall]:
        """All of a tenant, or those that began since then, in the order in which they began."""
        with self._store.reading(tenant) as connection:
            found = _of_tenant(connection, tenant, since)
        # Sorted here: PostgreSQL's order of names depends on how the database was made.
        return sorted(found, key=lambda one: (one.began_at, one.operation, one.number))

    def raises(self, tenant: str, operation: str) -> Sequence[tuple[Instant, Budget]]:
        """What people added to the run's budget, oldest first."""
        with self._store.reading(tenant) as connection:
            return load_raises(connection, tenant, operation)


def _next_number(connection: Connection, tenant: str, operation: str) -> int:
    newest = select(func.max(model_calls.c.number)).where(
        model_calls.c.tenant == tenant, model_calls.c.operation == operation
    )
    return (connection.execute(newest).scalar() or 0) + 1


def _columns(call: ModelCall) -> dict[str, Any]:
    """The call, and beside it what budgets add up."""
    summed = ("case", "outcome", "input_tokens", "output_tokens", "milliseconds", "nano", "currency")
    return {"call": call, **{name: getattr(call, name) for name in summed}}


def _of_tenant(connection: Connection, tenant: str, since: datetime | None) -> list[ModelCall]:
    wanted = select(model_calls.c.call).where(model_calls.c.tenant == tenant)
    if since is not None:
        wanted = wanted.where(model_calls.c.began_at >= since)
    return list(connection.execute(wanted).scalars())


def _ended(call: ModelCall, end: CallEnd, nano: int | None, currency: str) -> ModelCall:
    outcome = "failed" if end.error else "answered"
    changed = {**end.model_dump(), "outcome": outcome, "nano": nano, "currency": currency}
    return ModelCall.model_validate({**call.model_dump(), **changed})
