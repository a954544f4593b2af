"""The refund case's values: what a customer asks, what a payment service says of an order, what the agent writes, and
the arguments of `refund_payment`, version 1.

Apart from the case, since the gateway, which acts, and the agent, which drafts, read the same forms and not each other.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from countersign.domain.canonical import canonical_bytes
from countersign.domain.channel import ChannelName
from countersign.domain.draft import Question, Text
from countersign.domain.execution import Receipt
from countersign.domain.money import Amount, Currency
from countersign.domain.values import Sha256, Value
from countersign.domain.visible import escaped

REFUND = "refund"
"""The case's name."""
TOOL, TOOL_VERSION = "refund_payment", "1"
SCOPE = "one_payment"
DUPLICATE, REQUESTED = "duplicate", "requested_by_customer"
"""The payment service's reason codes that a draft can come to."""
REFERENCE = re.compile(r"\{\{([a-z_]{1,32})\}\}")
"""How a text refers to what stands elsewhere: `{{amount}}`."""
AMOUNT, AFTERWARDS = "amount", "reference"
"""What a message's template leaves open: how much, which people may lower; and what is known only once the payment
service has confirmed the refund, so that a text with it cannot go out before."""

OutsideId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
"""An id of the payment service: of an order, a payment, an account, a refund."""
Minor = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""Minor units of a currency that stands beside it."""


class RefundRequest(Value):
    """What a requester hands in: a customer's complaint about one order."""

    case: Literal["refund"] = "refund"
    order: OutsideId
    complaint: Question
    """The customer's words; data, never an instruction."""
    channel: ChannelName
    """The payment service's name in channels.yaml."""
    message_channel: ChannelName | Literal[""] = ""
    """Where the customer is told, once the refund is confirmed; empty: nobody is told."""
    language: Literal["en", "zh"] = "en"
    """Of what the customer is told."""


class Order(Value):
    """An order as the payment service tells it."""

    id: OutsideId
    status: Literal["open", "paid", "cancelled"]
    currency: Currency
    total: Minor


class Payment(Value):
    """One payment for an order."""

    id: OutsideId
    order: OutsideId
    status: Literal["captured", "pending", "failed", "disputed"]
    currency: Currency
    amount: Minor
    account: OutsideId
    """From which it was paid, and to which alone it can be refunded."""
    refunded: Minor
    """What of it was refunded so far, whoever did it; a refund that was taken back does not count."""

    @property
    def refundable(self) -> int:
        """What can be refunded still, in minor units."""
        return max(0, self.amount - self.refunded) if self.status == "captured" else 0


class OrderFacts(Value):
    """An order with its payments, oldest first: what a refund rests on, pinned by the hash of its canonical form.

    Nothing in it depends on when it was read, so that it is the same bytes as long as the facts are the same.
    """

    order: Order
    payments: Annotated[tuple[Payment, ...], Field(strict=False, max_length=200)]

    def payment(self, id: str) -> Payment | None:
        """The payment of that id, if the order has it."""
        return next((one for one in self.payments if one.id == id), None)

    @property
    def overpaid(self) -> int:
        """What was paid and not refunded beyond the order's total, in minor units of its currency."""
        kept = sum(one.refundable for one in self.payments if one.currency == self.order.currency)
        return max(0, kept - self.order.total)

    def repeats(self, later: Payment) -> Payment | None:
        """The earliest payment that `later` repeats, as far as payments alone can tell: the same amount from the same
        account, captured, nothing of either refunded, and more paid than the order asks for."""
        if later.refundable != later.amount or self.overpaid < later.amount:
            return None
        before = self.payments[: self.payments.index(later)]
        same = (one for one in before if one.refundable == one.amount and _alike(one, later))
        return next(same, None)


def _alike(one: Payment, other: Payment) -> bool:
    facts = ("order", "status", "currency", "amount", "account")
    return one.id != other.id and all(getattr(one, name) == getattr(other, name) for name in facts)


class RefundDraft(Value):
    """What the agent proposes and why. Its texts hold no figure of their own: `{{amount}}`, `{{order}}`, `{{payment}}`,
    `{{duplicate_of}}` and, in the message, `{{reference}}` stand for the draft's and the receipt's."""

    payment: OutsideId | Literal[""]
    """The payment to be refunded; empty where nothing is to be refunded, and the justification says why."""
    duplicate_of: OutsideId | Literal[""]
    """The payment of the same order that it repeats; empty where it is refunded for another reason."""
    amount: Amount
    account: OutsideId | Literal[""]
    justification: Text
    """Why this and no other payment, for whoever decides; what the rubric grades."""
    message: Annotated[str, Field(max_length=4_000)]
    """What the customer is told once the refund is confirmed; empty where nobody is told."""


class RefundPayment(Value):
    """The arguments: money goes back to the account that it came from."""

    channel: ChannelName
    order: OutsideId
    payment: OutsideId
    amount: Annotated[int, Field(ge=1, le=2**53 - 1)]
    """Minor units of `currency`."""
    currency: Currency
    account: OutsideId
    reason: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{2,39}$")]
    """The payment service's reason code, such as `duplicate` or `requested_by_customer`."""
    message: Sha256 | Literal[""] = ""
    """Hash of the template that the customer is told by, so that its words are approved with the refund; empty where
    nobody is told."""

    def document(self) -> bytes:
        """The very bytes that go to the payment service."""
        return canonical_bytes(self.model_dump(mode="json", exclude={"channel", "message"}))

    @property
    def money(self) -> Amount:
        """The amount with its currency."""
        return Amount(currency=self.currency, minor=self.amount)

    @property
    def target(self) -> str:
        """Whose money it becomes: refunds to one account are one target, whichever order they are for, so that a limit
        per target is not passed by splitting (G08)."""
        return f"{self.channel}:{self.account}"


def customer_message(template: bytes, refund: RefundPayment, receipt: Receipt) -> bytes:
    """What the customer is told of a confirmed refund: its template with what was refunded, and what it is called.

    The gateway makes it again from what was approved, and sends nothing else (G40).
    """
    text = template.decode("utf-8", "replace")
    stands_for = {AMOUNT: str(refund.money), AFTERWARDS: escaped(receipt.reference)}
    return REFERENCE.sub(lambda match: stands_for.get(match[1], match[0]), text).encode("utf-8")
