"""What differs between two readings of one order, in words for those who agreed to something by the first. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from countersign.domain.money import Amount
from countersign.domain.refund import Order, OrderFacts, Payment

_ABSENT = "not there"


class Change(NamedTuple):
    """One thing that is otherwise now."""

    about: str
    """Such as `payment p-2`."""
    before: str
    """Such as `refunded 0.00 EUR`."""
    now: str

    def __str__(self) -> str:
        return f"{self.about}: {self.before}, now {self.now.removeprefix(self._what())}"

    def _what(self) -> str:
        """The words that both say, which are not said twice."""
        what = self.before.partition(" ")[0] + " "
        return what if self.now.startswith(what) else ""


def changes(before: OrderFacts, now: OrderFacts | None) -> tuple[Change, ...]:
    """Everything that differs, the order first; `now` is None where the outside has no such order any more."""
    order = before.order
    if now is None:
        return (Change(f"order {order.id}", _order(order), _ABSENT),)
    return (*_of(f"order {order.id}", order, now.order), *_of_payments(before, now))


def _of_payments(before: OrderFacts, now: OrderFacts) -> Iterator[Change]:
    for payment in before.payments:
        yield from _of(f"payment {payment.id}", payment, now.payment(payment.id))
    for payment in now.payments:
        if before.payment(payment.id) is None:
            yield Change(f"payment {payment.id}", _ABSENT, _payment(payment))
    order, order_now = [one.id for one in before.payments], [one.id for one in now.payments]
    if order != order_now and sorted(order) == sorted(order_now):
        yield Change("payments", f"told as {', '.join(order)}", f"told as {', '.join(order_now)}")


def _of(about: str, before: Order | Payment, now: Order | Payment | None) -> Iterator[Change]:
    if now is None:
        yield Change(about, _order(before) if isinstance(before, Order) else _payment(before), _ABSENT)
        return
    for name in type(before).model_fields:
        was, is_now = _field(before, name), _field(now, name)
        if was != is_now:
            yield Change(about, was, is_now)


def _field(value: Order | Payment, name: str) -> str:
    """One field as people read it; amounts with their currency."""
    told = getattr(value, name)
    return f"{name} {Amount(currency=value.currency, minor=told) if isinstance(told, int) else told}"


def _order(order: Order) -> str:
    return f"{order.status}, {_field(order, 'total')}"


def _payment(payment: Payment) -> str:
    return f"{payment.status}, {_field(payment, 'amount')}"
