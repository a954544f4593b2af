"""What runs may spend on models by the policy in force, what people added to it, and what was spent already.

Apart from the calls because a command adds to a budget in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select
from sqlalchemy import case as sql_case

from countersign.domain.command import Command
from countersign.domain.durations import duration
from countersign.domain.escalation import Reason
from countersign.domain.model_call import Budget, ModelCall, Usage, exceeded, raised
from countersign.domain.operation import Operation
from countersign.domain.policy import Policy
from countersign.domain.values import Instant
from countersign.ledger.authority import load_policies
from countersign.ledger.store import Writing
from countersign.ledger.tables import budget_raises, model_calls

Raise = tuple[Instant, Budget]
_HALF = 2**26
"""A call's cost is added up in two parts, above and below this, each of half the digits that it can have."""


class _Purse(NamedTuple):
    """One budget and what falls under it."""

    whose: str
    budget: Budget
    raises: Sequence[Raise]
    calls: ColumnElement[bool]
    """Which ones."""

    def problem(self, connection: Connection) -> str:
        """Which limit leaves no room for one more call, with what was spent of what is allowed; empty if none."""
        allowed = raised(self.budget, (more for _, more in self.raises))
        spent = unseen = spent_on(connection, self.calls)
        if self.raises:
            seen = max(at for at, _ in self.raises)
            unseen = spent_on(connection, self.calls & (model_calls.c.began_at >= seen))
        limit = exceeded(allowed, spent, unseen)
        return f"{self.whose} is used up: {_spent_of(limit, allowed, spent)}" if limit else ""


def check_budgets(connection: Connection, operation: Operation, now: datetime) -> str:
    """Why no further call of a model may be made for an operation now, in a sentence; empty if one may.

    The caller holds the lock of the tenant's calls.
    """
    policy = load_policies(connection, operation.tenant).get(operation.case)
    problem = next(
        filter(None, (purse.problem(connection) for purse in _purses(connection, operation, policy, now))), ""
    )
    if not problem:
        return ""
    route = None if policy is None else policy.escalations.get(Reason.BUDGET_EXCEEDED)
    whom = "the policy names nobody who may raise it" if route is None else f"the role {route.role} may raise it"
    return f"operation {operation.operation}: {problem}; {whom}"


def add(writing: Writing, said: Command, budget: Budget, now: datetime) -> None:
    """Add to a run's budget on a person's word; the caller holds the operation's lock."""
    number = len(load_raises(writing.connection, writing.tenant, said.operation)) + 1
    values = {"number": number, "person": said.person, "statement": said.id, "raised_at": now, "budget": budget}
    writing.insert_once(budget_raises, operation=said.operation, **values)
    added = budget.model_dump(mode="json")
    writing.record("budget.raised", said.operation, said.person, now, number=number, budget=added, by=said.id)


def load_calls(connection: Connection, tenant: str, operation: str) -> list[ModelCall]:
    """All calls of an operation, in their order."""
    of_it = (model_calls.c.tenant == tenant) & (model_calls.c.operation == operation)
    return list(connection.execute(select(model_calls.c.call).where(of_it).order_by(model_calls.c.number)).scalars())


def load_raises(connection: Connection, tenant: str, operation: str) -> list[Raise]:
    """What people added to an operation's budget, oldest first."""
    wanted = select(budget_raises.c.raised_at, budget_raises.c.budget).where(
        budget_raises.c.tenant == tenant, budget_raises.c.operation == operation
    )
    return [(row.raised_at, row.budget) for row in connection.execute(wanted.order_by(budget_raises.c.number))]


def _purses(connection: Connection, operation: Operation, policy: Policy | None, now: datetime) -> list[_Purse]:
    """The budgets that hold for a run: its own, and its case's in the tenant."""
    budgets = None if policy is None else policy.budgets
    if budgets is None:
        return []
    calls = (model_calls.c.tenant == operation.tenant) & (model_calls.c.operation == operation.operation)
    raises = load_raises(connection, operation.tenant, operation.operation)
    own = _Purse("the run's budget", budgets.run, raises, calls)
    # A run that people have given more is theirs to bound: it neither asks for the tenant's budget nor uses it up.
    if budgets.tenant is None or budgets.within is None or raises:
        return [own]
    since, whose = now - duration(budgets.within), f"the tenant's budget of {budgets.within} for {operation.case}"
    of_case = (model_calls.c.tenant == operation.tenant) & (model_calls.c.case == operation.case)
    of_window = of_case & (model_calls.c.began_at > since) & ~_after_a_raise()
    return [own, _Purse(whose, budgets.tenant, (), of_window)]


def _after_a_raise() -> ColumnElement[bool]:
    """Whether a call was begun after people had added to its run's budget."""
    of_run = (budget_raises.c.tenant == model_calls.c.tenant) & (budget_raises.c.operation == model_calls.c.operation)
    return select(1).where(of_run, budget_raises.c.raised_at <= model_calls.c.began_at).correlate(model_calls).exists()


def spent_on(connection: Connection, calls: ColumnElement[bool]) -> Usage:
    """The sum of these calls, as domain.model_call.usage has it; made by the database, since they can be very many."""
    columns = model_calls.c
    parts = (
        func.count(),
        _counted(columns.outcome == "failed"),
        func.coalesce(func.sum(columns.input_tokens), 0),
        func.coalesce(func.sum(columns.output_tokens), 0),
        func.coalesce(func.sum(columns.milliseconds), 0),
        _counted(columns.input_tokens.is_(None) | columns.output_tokens.is_(None)),
        _counted(columns.nano.is_(None)),
        _counted(columns.milliseconds.is_(None)),
    )
    # In two halves: SQLite's sum of whole numbers ends with an error beyond 64 bits.
    nano = (func.sum(columns.nano // _HALF), func.sum(columns.nano % _HALF))
    wanted = select(columns.currency, *nano, *parts).where(calls).group_by(columns.currency)
    sums, costs = [0] * len(parts), {}
    for currency, upper, lower, *found in connection.execute(wanted):
        sums = [before + int(more) for before, more in zip(sums, found, strict=True)]
        if upper is not None:
            costs[currency] = int(upper) * _HALF + int(lower)
    made, failed, input_tokens, output_tokens, milliseconds, *unknown = sums
    return Usage(made, failed, input_tokens, output_tokens, milliseconds, costs, *unknown)


def _counted(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(sql_case((condition, 1), else_=0)), 0)


def _spent_of(limit: str, allowed: Budget, spent: Usage) -> str:
    if limit == "calls":
        return f"{spent.calls} of {allowed.calls} calls"
    if limit == "tokens":
        tokens = spent.input_tokens + spent.output_tokens
        return f"{tokens} of {allowed.tokens} tokens{_unknown(spent.unknown_tokens)}"
    if limit == "money":
        return f"{spent.cost} of {allowed.money}{_unknown(spent.unknown_cost)}"
    return f"{spent.milliseconds // 1000} seconds of {allowed.time}{_unknown(spent.unknown_time)}"


def _unknown(calls: int) -> str:
    return f", and of {calls} calls it is not known" if calls else ""
