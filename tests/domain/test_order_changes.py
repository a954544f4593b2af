"""What changed in an order, in the words of those who are asked again."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.domain.order_changes import changes
from countersign.domain.refund import Order, OrderFacts, Payment


def order(**changed: Any) -> Order:
    return Order(**{"id": "o-1", "status": "paid", "currency": "EUR", "total": 5000, **changed})


def payment(id: str = "p-1", **changed: Any) -> Payment:
    fields = {"order": "o-1", "status": "captured", "currency": "EUR", "amount": 5000, "account": "a-1", "refunded": 0}
    return Payment(**{"id": id, **fields, **changed})


BEFORE = OrderFacts(order=order(), payments=(payment(), payment("p-2")))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (BEFORE, []),
        (None, ["order o-1: paid, total 50.00 EUR, now not there"]),
        (
            OrderFacts(order=order(), payments=(payment(), payment("p-2", refunded=5000))),
            ["payment p-2: refunded 0.00 EUR, now 50.00 EUR"],
        ),
        (
            OrderFacts(order=order(status="cancelled"), payments=(payment(status="disputed"), payment("p-2"))),
            ["order o-1: status paid, now cancelled", "payment p-1: status captured, now disputed"],
        ),
        (
            OrderFacts(order=order(), payments=(payment(), payment("p-3", amount=1))),
            ["payment p-2: captured, amount 50.00 EUR, now not there",
             "payment p-3: not there, now captured, amount 0.01 EUR"],
        ),
        (
            OrderFacts(order=order(), payments=(payment(account="a-2"), payment("p-2", currency="JPY"))),
            ["payment p-1: account a-1, now a-2", "payment p-2: currency EUR, now JPY",
             "payment p-2: amount 50.00 EUR, now 5000 JPY", "payment p-2: refunded 0.00 EUR, now 0 JPY"],
        ),
        (
            OrderFacts(order=order(), payments=(payment("p-2"), payment())),
            ["payments: told as p-1, p-2, now as p-2, p-1"],
        ),
    ],
)  # fmt: skip
def test_each_change_is_said_in_one_line(now: OrderFacts | None, said: list[str]) -> None:
    assert [str(change) for change in changes(BEFORE, now)] == said
