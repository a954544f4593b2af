"""What calls of models came to, in words and as JSON; what nobody knows stands beside it as unknown.

Apart from `cost`, because whoever raises a budget is shown it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from countersign.cli.session import Session
from countersign.cli.situation import RunNow
from countersign.domain.escalation import Reason
from countersign.domain.model_call import Budget, Budgets, ModelCall, Usage, raised, usage
from countersign.domain.policy import Policy


class Spent(NamedTuple):
    """The sum of calls."""

    usage: Usage
    unpriced: tuple[str, ...] = ()
    """The models that were asked and have no price, by name."""

    def tokens(self, known: int) -> str:
        """Tokens in or out, with how many calls are not in it."""
        return _sum(str(known), self.usage.unknown_tokens)

    @property
    def milliseconds(self) -> str:
        """How long was waited for models."""
        return _sum(str(self.usage.milliseconds), self.usage.unknown_time)

    @property
    def cost(self) -> str:
        """`0.001250000 USD + 2 unknown`."""
        return _sum(self.usage.cost, self.usage.unknown_cost)

    @property
    def no_price(self) -> str:
        """Why the cost is unknown though the tokens are known; empty where each model has its price."""
        names = ", ".join(self.unpriced)
        return f"for model {names} in policies/prices.yaml, so what its calls cost is unknown" if names else ""


def spent(calls: Sequence[ModelCall]) -> Spent:
    """What these calls came to."""
    told = [call for call in calls if call.input_tokens is not None and call.output_tokens is not None]
    return Spent(usage(calls), tuple(sorted({call.asked for call in told if call.nano is None})))


def spent_json(one: Spent) -> dict[str, Any]:
    """The same as JSON."""
    total = one.usage
    return {
        "calls": total.calls, "failed": total.failed, "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens, "milliseconds": total.milliseconds,
        "cost": [{"currency": currency, "nano": nano} for currency, nano in sorted(total.nano.items())],
        "unknown_tokens": total.unknown_tokens, "unknown_cost": total.unknown_cost,
        "unknown_milliseconds": total.unknown_time,
    }  # fmt: skip


def budgets_of(run: RunNow) -> Budgets | None:
    """What the policy in force lets it spend; nothing: it is not limited."""
    return run.policy.budgets if run.policy is not None else None


def run_budget(session: Session, run: RunNow) -> Budget | None:
    """The run's own budget with what people added to it."""
    budgets = budgets_of(run)
    raises = session.ledger.model_calls.raises(run.operation.tenant, run.operation.operation)
    return raised(budgets.run, [more for _, more in raises]) if budgets is not None else None


def budget_text(budget: Budget | None) -> str:
    """The budget, or that there is none."""
    return "not limited" if budget is None else str(budget)


def budget_lines(policy: Policy) -> list[tuple[str, str]]:
    """What a policy lets its runs spend, and who may raise it, as lines."""
    budgets, route = policy.budgets, policy.escalations.get(Reason.BUDGET_EXCEEDED)
    if budgets is None:
        return [("budgets", "not limited")]
    shared = f"{budget_text(budgets.tenant)} within {budgets.within}" if budgets.tenant is not None else ""
    raising = f"role {route.role} is asked, until {route.within} later" if route is not None and route.within else ""
    role = raising or (f"role {route.role} is asked" if route is not None else "nobody is asked: the run fails")
    return [("budget of a run", budget_text(budgets.run)), ("of the tenant", shared), ("when used up", role)]


def _sum(known: str, unknown: int) -> str:
    if not unknown:
        return known
    # A nought before it would read as something that is known.
    return f"{unknown} unknown" if known == "0" else f"{known} + {unknown} unknown"
