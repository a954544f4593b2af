"""Refunds by their sums: what a payment's own word is held against, and what is left open while an outcome is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from countersign.domain.balances import Refunded, balances, by_order
from countersign.domain.execution import Execution, ExecutionStatus
from countersign.domain.reconciliation import DisagreementKind, Survey, disagreements, lasting
from countersign.domain.refund import Order, OrderFacts, Payment, RefundPayment
from countersign.domain.values import Sha256

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HASH = Sha256("sha256:" + "1" * 64)
EXECUTED, UNKNOWN, NOT_SENT = ExecutionStatus.EXECUTED, ExecutionStatus.UNKNOWN, ExecutionStatus.NOT_SENT


def order(**refunded: int) -> OrderFacts:
    """An order with two payments of 100.00, and what of them was refunded."""
    payments = [
        Payment(id=f"p-{number}", order="o-1", status="captured", currency="EUR", amount=10000, account="acc-ada",
                refunded=refunded.get(f"p{number}", 0))
        for number in (1, 2)
    ]  # fmt: skip
    return OrderFacts(order=Order(id="o-1", status="paid", currency="EUR", total=10000), payments=tuple(payments))


def execution(status: ExecutionStatus, **changes: Any) -> Execution:
    fields = {
        "tenant": "acme", "operation": "r-1", "approval_id": "apr-1", "action_hash": HASH, "key": "a" * 64,
        "status": status, "attempt": 1, "claimed_until": NOW,
    }  # fmt: skip
    return Execution(**{**fields, **changes})


def refund(status: ExecutionStatus = EXECUTED, amount: int = 6000, *taken_back: ExecutionStatus, **at: Any) -> Refunded:
    args = RefundPayment(
        channel="payments", order="o-1", payment="p-2", amount=amount, currency="EUR", account="acc-ada",
        reason="duplicate", message="",
    )  # fmt: skip
    reversals = tuple(execution(one) for one in taken_back)
    return Refunded(operation="r-1", args=args, execution=execution(status, **at), evidence=HASH, taken_back=reversals)


def differ(live: OrderFacts, *refunds: Refunded, before: OrderFacts | None = None) -> list[str]:
    """The payments about which both sides disagree."""
    return [one.payment for one in balances(refunds, before or order(), live) if not one.agrees]


@pytest.mark.parametrize(
    ("refunds", "told"),
    [
        ([refund()], 6000),
        ([refund(), refund(amount=4000)], 10000),
        ([refund(EXECUTED, 6000, EXECUTED)], 0),
        ([refund(EXECUTED, 6000, NOT_SENT)], 6000),
        ([refund(), refund(UNKNOWN, 4000)], 6000),
        ([refund(), refund(UNKNOWN, 4000)], 10000),
        ([refund(EXECUTED, 6000, UNKNOWN)], 0),
        ([refund(EXECUTED, 6000, UNKNOWN)], 6000),
    ],
    ids=str,
)
def test_what_the_payment_says_is_what_the_receipts_come_to(refunds: list[Refunded], told: int) -> None:
    assert differ(order(p2=told), *refunds) == []


@pytest.mark.guarantee("G36")
@pytest.mark.parametrize(
    ("live", "payment"),
    [(order(), "p-2"), (order(p2=9000), "p-2"), (order(p2=5999), "p-2"), (order(p1=100, p2=6000), "p-1")],
    ids=["taken back past us", "refunded past us", "a cent", "of another payment"],
)
def test_what_was_done_past_us_is_found_by_the_sum(live: OrderFacts, payment: str) -> None:
    assert differ(live, refund()) == [payment]


def test_what_was_refunded_before_we_did_anything_is_none_of_ours() -> None:
    assert differ(order(p1=300, p2=6000), refund(), before=order(p1=300)) == []


def test_an_order_is_compared_once_something_of_it_was_surely_refunded() -> None:
    assert by_order([refund(UNKNOWN)]) == {}
    first, second = refund(amount=1), refund(amount=2, claimed_until=NOW - timedelta(hours=1))
    assert by_order([first, second, refund(UNKNOWN)])["payments", "o-1"][:2] == [second, first]


def test_a_disagreement_says_both_sums_and_counts_only_while_it_stays_the_same() -> None:
    def found(told: int) -> Any:
        seen = tuple(balances([refund()], order(), order(p2=told)))
        return disagreements(Survey(operations=(), balances=seen), NOW)

    (one,) = found(0)
    assert (one.kind, one.operation) == (DisagreementKind.REFUNDED_DIFFERS, "r-1")
    assert one.says == (
        "payments says that 0.00 EUR of payment p-2 (order o-1) was refunded, and by the ledger's receipts it is"
        " 60.00 EUR"
    )
    assert lasting(found(0), found(0)) == found(0)
    assert lasting(found(0), found(100)) == ()
