"""An order that was paid twice, and a clean draft of the refund; each test changes one thing in it."""

from __future__ import annotations

from typing import Any

from countersign.cases.refund.case import arguments
from countersign.cases.refund.checks import check_refund
from countersign.domain.draft import Violation
from countersign.domain.money import amount
from countersign.domain.refund import Order, OrderFacts, Payment, RefundDraft, RefundPayment, RefundRequest

WHY = "{{payment}} repeats {{duplicate_of}}: the same amount, from the same account, for order {{order}}."
MESSAGE = "Your card was charged again by mistake. {{amount}} for order {{order}} went back to it; see {{reference}}."


def payment(**changes: Any) -> Payment:
    """The payment that the order was meant to be paid with."""
    fields: dict[str, Any] = {
        "id": "p-1", "order": "o-1001", "status": "captured", "currency": "EUR", "amount": 12_000, "account": "acc-9",
        "refunded": 0,
    }  # fmt: skip
    return Payment(**(fields | changes))


def facts(*payments: Payment, **order: Any) -> OrderFacts:
    """The order with these payments, by default the one and its repetition."""
    fields: dict[str, Any] = {"id": "o-1001", "status": "paid", "currency": "EUR", "total": 12_000}
    return OrderFacts(order=Order(**(fields | order)), payments=payments or (payment(), payment(id="p-2")))


def request(**changes: Any) -> RefundRequest:
    """The complaint."""
    fields: dict[str, Any] = {
        "order": "o-1001", "complaint": "I paid once and you took the money twice!", "channel": "payments",
        "message_channel": "mail",
    }  # fmt: skip
    return RefundRequest(**(fields | changes))


def draft(**changes: Any) -> RefundDraft:
    """The refund of the repetition."""
    fields: dict[str, Any] = {
        "payment": "p-2", "duplicate_of": "p-1", "amount": amount("120.00 EUR"), "account": "acc-9",
        "justification": WHY, "message": MESSAGE,
    }  # fmt: skip
    return RefundDraft(**(fields | changes))


def refund(**changes: Any) -> RefundPayment:
    """The arguments that the clean draft comes to."""
    return arguments(draft(), request()).model_copy(update=changes)


def findings(
    checked: RefundDraft, known: OrderFacts | None = None, asked: RefundRequest | None = None, *, by_agent: bool = True
) -> tuple[Violation, ...]:
    return check_refund(checked, asked or request(), known or facts(), by_agent=by_agent)


def codes(
    checked: RefundDraft, known: OrderFacts | None = None, asked: RefundRequest | None = None
) -> list[tuple[str, str]]:
    """Code and place of every finding."""
    return [(found.code, found.place) for found in findings(checked, known, asked)]
