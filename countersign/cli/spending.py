"""What calls of models came to, in words and as JSON; what nobody knows stands beside it as unknown.

Apart from `cost`, because whoever raises a budget is shown it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from countersign.cli.session import Session
from countersign.cli.situation import RunNow
from countersign.domain.model_call import Budget, Budgets, ModelCall, Usage, cost_text, raised, usage


class Spent(NamedTuple):
    """The sum of calls."""

    usage: Usage

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
        known = " + ".join(cost_text(nano, currency) for currency, nano in sorted(self.usage.nano.items()))
        return _sum(known or "0", self.usage.unknown_cost)


def spent(calls: Sequence[ModelCall]) -> Spent:
    """What these calls came to."""
    return Spent(usage(calls))


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
    """`60 calls, 100000 tokens, 5.00 USD, 30m of waiting for models`; `not limited` for none."""
    if budget is None:
        return "not limited"
    parts = [
        f"{budget.calls} calls" if budget.calls is not None else "",
        f"{budget.tokens} tokens" if budget.tokens is not None else "",
        str(budget.money) if budget.money is not None else "",
        f"{budget.time} of waiting for models" if budget.time is not None else "",
    ]
    return ", ".join(filter(None, parts))


def _sum(known: str, unknown: int) -> str:
    if not unknown:
        return known
    # A nought before it would read as something that is known.
    return f"{unknown} unknown" if known == "0" else f"{known} + {unknown} unknown"
