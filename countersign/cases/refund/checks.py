"""The deterministic checks of a refund: what must hold of the money before anyone grades, proposes or executes it.

Apart from its texts. Pure: the facts are what the gateway read at the payment service, and no model takes part. How
much may be refunded to one account over time is the policy's to say, by its windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from countersign.cases.refund.texts import INJECTION, SENSITIVE, check_suspicion, check_texts
from countersign.domain.draft import Violation
from countersign.domain.money import Amount
from countersign.domain.refund import Order, OrderFacts, Payment, RefundDraft, RefundRequest
from countersign.domain.suspicion.orders import excerpt

NOTHING = "nothing_to_refund"
NOT_PAID = "order_not_paid"
STOPS: Mapping[str, str] = {
    INJECTION: "ended without a refund: a text gives orders to whoever reads it",
    SENSITIVE: "ended without a refund: a text holds what looks like a secret",
    NOTHING: "ended without a refund: by the order's payments nothing is to be refunded",
    NOT_PAID: "ended without a refund: the order is not paid",
}
"""Codes of findings that no further draft mends, since people have to look first or there is nothing to be done; and
what an end by each means."""


def check_refund(
    draft: RefundDraft, request: RefundRequest, facts: OrderFacts, *, by_agent: bool
) -> tuple[Violation, ...]:
    """Every finding about a draft, those that must stop a run first; none means that it may be graded."""
    stops = (*check_suspicion(draft, request, by_agent=by_agent), *_check_order(request, facts.order))
    return (*stops, *check_money(draft, facts), *check_texts(draft, request))


def check_money(draft: RefundDraft, facts: OrderFacts) -> tuple[Violation, ...]:
    """Every finding about payment, amount, currency and account."""
    if not draft.payment:
        return tuple(_check_nothing(draft, facts))
    payment = facts.payment(draft.payment)
    if payment is None:
        known = ", ".join(one.id for one in facts.payments) or "none: the order has no payments"
        return (_finding("unknown_payment", "payment", f"a payment of the order: {known}", draft.payment),)
    return (
        *_check_payment(payment, facts.order),
        *_check_amount(draft, payment, facts.order),
        *_check_account(draft, payment),
        *(_check_duplicate(draft, payment, facts) if draft.duplicate_of else ()),
    )


def _check_order(request: RefundRequest, order: Order) -> Iterator[Violation]:
    if order.id != request.order:
        yield _finding("other_order", "order", f"order {request.order}, which was asked about", order.id)
    if order.status != "paid":
        yield _finding(NOT_PAID, "order", f"order {order.id} to be paid", order.status)


def _check_nothing(draft: RefundDraft, facts: OrderFacts) -> Iterator[Violation]:
    """A draft that would refund nothing: the end of it, unless the payments themselves say otherwise."""
    for later in facts.payments:
        if earlier := facts.repeats(later):
            expected = f"payment {later.id}, which repeats {earlier.id}, or a payment of another reason"
            yield _finding("overlooked_duplicate", "payment", expected, "nothing to refund")
            return
    yield _finding(NOTHING, "payment", "a payment to refund", f"none: {excerpt(draft.justification, 300)}")


def _check_payment(payment: Payment, order: Order) -> Iterator[Violation]:
    if payment.order != order.id:
        yield _finding("other_order", "payment", f"a payment of order {order.id}", f"one of order {payment.order}")
    if payment.status != "captured":
        yield _finding("not_captured", "payment", "a payment that was captured", payment.status)
    elif payment.refundable == 0:
        yield _finding("already_refunded", "payment", "a payment of which something is left", "all of it is refunded")


def _check_amount(draft: RefundDraft, payment: Payment, order: Order) -> Iterator[Violation]:
    amount, left = draft.amount, Amount(currency=payment.currency, minor=payment.refundable)
    if amount.minor == 0:
        yield _finding("no_amount", "amount", "more than nothing", str(amount))
    if amount.currency != payment.currency:
        yield _finding("currency_mismatch", "amount", f"{payment.currency}, as it was paid", amount.currency)
    elif amount.minor > left.minor:
        yield _finding("above_refundable", "amount", f"at most {left}, what is left of {payment.id}", str(amount))
    if payment.currency != order.currency:
        expected = f"a payment in the order's {order.currency}"
        yield _finding("currency_mismatch", "payment", expected, payment.currency)


def _check_account(draft: RefundDraft, payment: Payment) -> Iterator[Violation]:
    if draft.account != payment.account:
        expected = f"{payment.account}, from which {payment.id} was paid"
        yield _finding("account_mismatch", "account", expected, draft.account or "none")


def _check_duplicate(draft: RefundDraft, payment: Payment, facts: OrderFacts) -> Iterator[Violation]:
    """Whether it repeats the named payment, and both together are more than the order asks for."""
    named, place = facts.payment(draft.duplicate_of), "duplicate_of"
    if named is None:
        yield _finding("unknown_payment", place, "another payment of the order", draft.duplicate_of)
        return
    yield from (_finding("not_a_duplicate", place, *told) for told in _differences(payment, named))
    for one in (named, payment):
        if one.refunded:
            back = Amount(currency=one.currency, minor=one.refunded)
            yield _finding("already_refunded", place, f"nothing of {one.id} to be refunded before", str(back))
    if facts.overpaid < draft.amount.minor and draft.amount.currency == facts.order.currency:
        over = Amount(currency=facts.order.currency, minor=facts.overpaid)
        expected = f"at most {over}, what was paid beyond the order's total"
        yield _finding("not_overpaid", "amount", expected, str(draft.amount))


def _differences(payment: Payment, named: Payment) -> Iterator[tuple[str, str]]:
    """How the named payment is not the same once more: what was expected of it, and found."""
    if named.id == payment.id:
        yield "another payment than the one to be refunded", named.id
    for name in ("order", "status", "currency", "amount", "account"):
        wanted, found = getattr(payment, name), getattr(named, name)
        if wanted != found:
            yield f"{name} {wanted} as in {payment.id}", f"{name} {found} in {named.id}"


def _finding(code: str, place: str, expected: str, found: str) -> Violation:
    return Violation(code=code, place=place, expected=expected, found=found)
