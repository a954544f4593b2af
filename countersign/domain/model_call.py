"""What each call of a model was and cost, and how much a run or a tenant may spend. Pure.

Costs are whole billionths of the price table's currency: prices stand per million tokens with up to three decimals, so
nothing is rounded. What the provider did not say is unknown, and never counted as nothing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from countersign.domain.durations import Duration, duration
from countersign.domain.identity import Name, OperationId, TenantId
from countersign.domain.money import Amount, Currency, WrittenAmount, places_of
from countersign.domain.values import Instant, Value

CallRole = Literal["draft", "grade"]
_PRICE = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?")
_DAY = re.compile(r"-[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""What providers add to a model's name to say of which day it is."""
_NANO = 1_000_000_000
_MOST = 2**53 - 1
"""What a whole number in the ledger can be (RFC 8785), so minor units of an amount and billionths of a cost too."""
MOST_CALLS_ADDED = 1_000_000
MOST_TOKENS_ADDED = 10**12
"""Who adds more than these at once has mistyped it, or means to lift the limit, which is the policy's to do."""
_UNITS = (("m", 60), ("h", 3600), ("d", 86400))
_LONGEST = 99_999
MAX_UNKNOWN = 3
"""So many calls of unknown cost, such as a killed worker leaves, may stand in a budget of tokens, money or time."""


class ModelCall(Value):
    """One call, written down before it is made and again when it has ended."""

    tenant: TenantId
    operation: OperationId
    number: Annotated[int, Field(ge=1)]
    """Counted per operation."""
    case: Name
    role: CallRole
    draft_version: Annotated[int, Field(ge=0)]
    attempt: Annotated[int, Field(ge=1)]
    """Of the step."""
    asked: str
    """The model that was asked for."""
    began_at: Instant
    answered: str = ""
    """The model that the provider says has answered; empty where it did not say, or did not answer."""
    outcome: Literal["open", "answered", "failed"] = "open"
    """`open`: it was made, and nobody knows what became of it, as after a kill."""
    error: str = ""
    """A code, where it failed."""
    cause: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """What was met, where it failed: `HTTP 503`, or the kind of error."""
    input_tokens: Annotated[int, Field(ge=0)] | None = None
    output_tokens: Annotated[int, Field(ge=0)] | None = None
    """Nothing: unknown."""
    milliseconds: Annotated[int, Field(ge=0)] | None = None
    nano: Annotated[int, Field(ge=0)] | None = None
    """The cost in billionths of `currency`; nothing: unknown."""
    currency: Currency | Literal[""] = ""

    @property
    def failure(self) -> str:
        """What went wrong, as people read it: `UNAVAILABLE, HTTP 503`; empty where nothing did."""
        return ", ".join(filter(None, (self.error, self.cause)))


class CallEnd(Value):
    """What became of a call, as whoever made it saw it."""

    answered: str = ""
    error: str = ""
    """A code; empty: it was answered."""
    cause: str = ""
    """What was met, where it failed and that is known: `HTTP 503`, or the kind of error."""
    input_tokens: Annotated[int, Field(ge=0)] | None = None
    output_tokens: Annotated[int, Field(ge=0)] | None = None
    milliseconds: Annotated[int, Field(ge=0)]


def _price(value: Any) -> Any:
    if not isinstance(value, str) or _PRICE.fullmatch(value) is None:
        raise ValueError(f"{str(value)[:20]!r} is no price; write it in quotes, such as '0.25', per million tokens")
    return value


class Price(Value):
    """What a model's tokens cost, per million, in the table's currency."""

    input: Annotated[str, BeforeValidator(_price)]
    output: Annotated[str, BeforeValidator(_price)]


class Prices(Value):
    """policies/prices.yaml."""

    currency: Currency
    models: dict[str, Price]

    def priced(self, asked: str, answered: str) -> str:
        """The model whose price holds: the one that answered, and the one asked for where that is the same of some day,
        or where nobody says who answered."""
        is_same = answered.startswith(asked) and _DAY.fullmatch(answered, len(asked)) is not None
        return asked if not answered or (is_same and answered not in self.models) else answered

    def nano(self, model: str, input_tokens: int | None, output_tokens: int | None) -> int | None:
        """What a call cost, in billionths; nothing where the model has no price, the tokens are unknown, or it would be
        more than the ledger can write down."""
        price = self.models.get(model)
        if price is None or input_tokens is None or output_tokens is None:
            return None
        # Per million tokens, in billionths: a thousand times the price for each token.
        nano = int(Decimal(price.input) * 1000) * input_tokens + int(Decimal(price.output) * 1000) * output_tokens
        return nano if nano <= _MOST else None


class Budget(Value):
    """How much may be spent; what is left out is not limited."""

    calls: Annotated[int, Field(ge=1)] | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None
    money: WrittenAmount | None = None
    """In the price table's currency."""
    time: Duration | None = None
    """Spent waiting for models."""

    @model_validator(mode="after")
    def _something(self) -> Budget:
        if self.calls is None and self.tokens is None and self.money is None and self.time is None:
            raise ValueError("a budget limits calls, tokens, money or time; give one of them")
        return self

    def __str__(self) -> str:
        """`60 calls, 100000 tokens, 5.00 USD, 30m of waiting for models`."""
        parts = [
            f"{self.calls} calls" if self.calls is not None else "",
            f"{self.tokens} tokens" if self.tokens is not None else "",
            str(self.money) if self.money is not None else "",
            f"{self.time} of waiting for models" if self.time is not None else "",
        ]
        return ", ".join(filter(None, parts))


class Budgets(Value):
    """What a policy lets its runs spend on models. Who may raise a budget is whom a run out of it is brought before."""

    run: Budget
    tenant: Annotated[Budget | None, Field(exclude_if=operator.not_)] = None
    """For all runs of the case in the tenant together, within `within`."""
    within: Annotated[Duration | None, Field(exclude_if=operator.not_)] = None

    @model_validator(mode="after")
    def _window(self) -> Budgets:
        if (self.tenant is None) != (self.within is None):
            raise ValueError("give 'tenant' and 'within' together, or neither")
        return self

    def unpriced(self, prices: Prices) -> Mapping[str, Amount]:
        """Money in another currency than models are paid in, by the field that has it: nothing ever uses it up."""
        money = {"run": self.run.money, "tenant": self.tenant.money if self.tenant is not None else None}
        return {name: one for name, one in money.items() if one is not None and one.currency != prices.currency}


class Usage(NamedTuple):
    """What calls came to; unknown parts are counted beside, never guessed."""

    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    milliseconds: int
    nano: Mapping[str, int]
    """By currency."""
    unknown_tokens: int
    """Calls whose tokens are not known."""
    unknown_cost: int
    """Calls whose cost is not known."""
    unknown_time: int
    """Calls of which it is not known how long they took."""

    @property
    def cost(self) -> str:
        """What is known of it as people read it, by currency: `0.001250000 USD`; `0` for nothing."""
        # Beside calls of unknown cost, free ones would read as if all of it had cost nothing.
        sums = sorted((currency, nano) for currency, nano in self.nano.items() if nano or not self.unknown_cost)
        return " + ".join(cost_text(nano, currency) for currency, nano in sums) or "0"


def usage(calls: Iterable[ModelCall]) -> Usage:
    """The sum of these calls."""
    every = tuple(calls)
    nano: dict[str, int] = {}
    for call in every:
        if call.nano is not None:
            nano[call.currency] = nano.get(call.currency, 0) + call.nano
    return Usage(
        calls=len(every),
        failed=sum(call.outcome == "failed" for call in every),
        input_tokens=sum(call.input_tokens or 0 for call in every),
        output_tokens=sum(call.output_tokens or 0 for call in every),
        milliseconds=sum(call.milliseconds or 0 for call in every),
        nano=nano,
        unknown_tokens=sum(call.input_tokens is None or call.output_tokens is None for call in every),
        unknown_cost=sum(call.nano is None for call in every),
        unknown_time=sum(call.milliseconds is None for call in every),
    )


def problem_with_raise(budget: Budget | None, more: Budget) -> str:
    """Why so much cannot be added to a run's budget, in a sentence; empty if it can.

    Args:
        budget: with what was added to it before; nothing: the run is not limited.
        more: what is added. The sentence begins with the part of it that is wrong: `calls: ...`.
    """
    added = [name for name in Budget.model_fields if getattr(more, name) is not None]
    for name in added:
        if getattr(budget, name, None) is None:
            return f"{name}: not limited, so adding some changes nothing; the run has {budget or 'no budget'}"
    if more.calls is not None and more.calls > MOST_CALLS_ADDED:
        return f"calls: {more.calls} calls are more than can be added at once; add at most {MOST_CALLS_ADDED}"
    if more.tokens is not None and more.tokens > MOST_TOKENS_ADDED:
        return f"tokens: {more.tokens} tokens are more than can be added at once; add at most {MOST_TOKENS_ADDED}"
    if budget is None or budget.money is None or more.money is None:
        return ""
    return _problem_with_money(budget.money, more.money)


def _problem_with_money(limit: Amount, more: Amount) -> str:
    if more.currency != limit.currency:
        return f"money: the budget is in {limit.currency}; add to it in that currency"
    if limit.minor + more.minor <= _MOST:
        return ""
    room = Amount(currency=limit.currency, minor=_MOST - limit.minor)
    return f"money: with {more} more the budget is larger than an amount of money can be; add at most {room}"


def raised(budget: Budget, raises: Iterable[Budget]) -> Budget:
    """A budget with what people added to it, at the most what an amount can be; what it does not limit stays so."""
    total = budget
    for more in raises:
        money = total.money
        if money is not None and more.money is not None and money.currency == more.money.currency:
            money = Amount(currency=money.currency, minor=min(money.minor + more.money.minor, _MOST))
        total = Budget(
            calls=None if total.calls is None else total.calls + (more.calls or 0),
            tokens=None if total.tokens is None else total.tokens + (more.tokens or 0),
            money=money,
            time=_longer(total.time, more.time),
        )
    return total


def exceeded(budget: Budget, spent: Usage, unseen: Usage) -> str:
    """Which limit leaves no room for one more call: `calls`, `tokens`, `money` or `time`; empty if none.

    Args:
        budget: with what people added to it.
        spent: what all calls under it came to.
        unseen: those of them that were begun since people last added to it. More than MAX_UNKNOWN of unknown tokens,
            cost or time among them use a limit on tokens, money or time up: in doubt it is not allowed.
    """
    tokens = spent.input_tokens + spent.output_tokens
    if budget.calls is not None and spent.calls >= budget.calls:
        return "calls"
    if budget.tokens is not None and (tokens >= budget.tokens or unseen.unknown_tokens > MAX_UNKNOWN):
        return "tokens"
    if budget.money is not None and (_is_spent(budget.money, spent) or unseen.unknown_cost > MAX_UNKNOWN):
        return "money"
    if budget.time is not None and (
        spent.milliseconds >= duration(budget.time).total_seconds() * 1000 or unseen.unknown_time > MAX_UNKNOWN
    ):
        return "time"
    return ""


def _is_spent(money: Amount, spent: Usage) -> bool:
    limit = money.minor * _NANO // 10 ** places_of(money.currency)
    return spent.nano.get(money.currency, 0) >= limit or any(other != money.currency for other in spent.nano)


def _longer(time: str | None, more: str | None) -> str | None:
    if time is None or more is None:
        return time
    seconds = int((duration(time) + duration(more)).total_seconds())
    # The smallest unit, rounded up, in which it can be written as a duration.
    counts = ((-(-seconds // size), unit) for unit, size in _UNITS)
    return next((f"{count}{unit}" for count, unit in counts if count <= _LONGEST), f"{_LONGEST}d")


def cost_text(nano: int | None, currency: str) -> str:
    """A cost as people read it: `0.001250000 USD`, or `unknown`."""
    return "unknown" if nano is None else f"{nano // _NANO}.{nano % _NANO:09d} {currency}"
