"""What people read of a refund before they decide: its facts and texts, and the template of the customer's message.

Apart from the checks since these are the bytes that are shown, graded and approved. A text's references are filled from
the refund itself; what the payment service has yet to confirm stays open, so that nothing can be said before it is so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from countersign.domain.money import Amount
from countersign.domain.refund import (
    AFTERWARDS,
    AMOUNT,
    REFERENCE,
    OrderFacts,
    Payment,
    RefundDraft,
    RefundRequest,
)

LATER = "[what the payment service will call the refund]"
"""Stands in a message for what nobody knows yet."""


def summary(draft: RefundDraft) -> str:
    """The draft in one line."""
    if not draft.payment:
        return "refund nothing"
    repeats = f", which repeats {draft.duplicate_of}" if draft.duplicate_of else ""
    return f"refund {draft.amount} of payment {draft.payment}{repeats}, to account {draft.account}"


def fact_lines(facts: OrderFacts) -> Iterator[str]:
    """The order and each of its payments, a line each."""
    order = facts.order
    yield f"order {order.id}: {order.status}, total {_money(order.currency, order.total)}"
    for one in facts.payments:
        yield f"payment {one.id}: {_payment(one)}"


def words(draft: RefundDraft, request: RefundRequest) -> tuple[tuple[str, str], ...]:
    """The texts that people read before they decide, each with its heading."""
    known = _known(draft, request.order)
    why = ("why", filled(draft.justification, known))
    if not draft.message:
        return (why,)
    return why, ("message to the customer, once it is confirmed", filled(draft.message, {**known, AFTERWARDS: LATER}))


def graded_text(draft: RefundDraft, request: RefundRequest, facts: OrderFacts) -> str:
    """All that the grader judges: each text quoted, so that none can pose as another or as a fact."""
    blocks = [f"# {summary(draft)}"]
    for heading, text in words(draft, request):
        blocks += [f"## {heading}", "\n".join(f"> {line}" for line in text.splitlines())]
    blocks += ["## facts, as the payment service tells them", "\n".join(f"- {line}" for line in fact_lines(facts))]
    return "\n\n".join(blocks) + "\n"


def message_template(draft: RefundDraft, order: str) -> bytes:
    """The message to the customer as it is approved with the refund; empty where nobody is told.

    It leaves open what an edit can lower and what is known afterwards alone; see `domain.refund.customer_message`.
    """
    kept = {name: f"{{{{{name}}}}}" for name in (AMOUNT, AFTERWARDS)}
    text = filled(draft.message, {**_known(draft, order), **kept}).strip("\n")
    return f"{text}\n".encode() if text else b""


def filled(text: str, known: Mapping[str, str]) -> str:
    """A checked text with what its references stand for."""
    return REFERENCE.sub(lambda match: known[match[1]], text)


def _known(draft: RefundDraft, order: str) -> dict[str, str]:
    return {
        AMOUNT: str(draft.amount), "order": order, "payment": draft.payment, "duplicate_of": draft.duplicate_of,
    }  # fmt: skip


def _payment(one: Payment) -> str:
    paid, back, left = (_money(one.currency, minor) for minor in (one.amount, one.refunded, one.refundable))
    return f"{one.status}, {paid} from account {one.account}, of which {back} was refunded and {left} can be"


def _money(currency: str, minor: int) -> Amount:
    return Amount(currency=currency, minor=minor)
