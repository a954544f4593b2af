"""The payments channel: refunds at a payment service, reads its orders, and has refunds taken back.

Refunds go out as an HTTP channel's documents do, and are taken back at `<address>/reversals` by the same contract. A
refund is for one reading of an order: it is read again right before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from pydantic import SecretStr

from countersign.domain.channel import Takes
from countersign.domain.compensation import reversal_of
from countersign.domain.errors import Drifted, NotFound, Unavailable
from countersign.domain.execution import FACTS_UNREADABLE, KEY_FORGOTTEN, Receipt
from countersign.domain.order_changes import changes
from countersign.domain.refund import OrderFacts
from countersign.domain.values import Sha256
from countersign.gateway.channels import Channel, Check, NotSent, OutcomeUnknown, always
from countersign.gateway.http_calls import Caller
from countersign.gateway.http_channel import DEFAULT, HttpChannel, Limits
from countersign.gateway.order_reader import READ_LIMIT, OrderReader


class PaymentService(Channel, Protocol):
    """A channel that refunds, and tells of the orders that it refunds."""

    def facts(self, order: str) -> OrderFacts:
        """An order with its payments as they are now.

        Raises:
            NotFound: there is no such order.
            Unavailable: it cannot be read now.
        """
        ...


class PaymentsChannel:
    """Refunds at one service; fulfils `PaymentService`."""

    takes: Takes = "refunds"

    def __init__(
        self,
        name: str,
        url: str,
        orders_url: str,
        token: SecretStr,
        side_effect: str,
        limits: Limits = DEFAULT,
    ) -> None:
        """Refunds go out at `url` as an `HttpChannel` sends; orders are read at `orders_url/<order>`."""
        self._refunds = HttpChannel(name, url, token, side_effect, limits, takes="refunds")
        self._orders = OrderReader(name, orders_url, Caller(name, token, limits.connect), limits.total)
        reversals = f"{url.rstrip('/')}/reversals"
        self._reversing = HttpChannel(name, reversals, token, reversal_of(side_effect), limits, takes="reversals")
        self.name = name
        self.side_effect = side_effect
        self.keys_kept = self._refunds.keys_kept
        self.lands_within = self._refunds.lands_within
        self.time_limit = self._refunds.time_limit

    def facts(self, order: str) -> OrderFacts:
        """See `PaymentService.facts`."""
        return self._orders.facts(order)

    def send(self, key: str, name: str, document: bytes, content_hash: Sha256, check: Check = always) -> Receipt:
        """See `Channel.send`."""
        return self._refunds.send(key, name, document, content_hash, check)

    def look_up(self, key: str) -> Receipt | None:
        """See `Channel.look_up`."""
        return self._refunds.look_up(key)

    def held(self) -> Iterable[Receipt] | None:
        """See `Channel.held`."""
        return self._refunds.held()

    def reversing(self) -> Channel | None:
        """See `Channel.reversing`."""
        return self._reversing


class RefundChannel:
    """A payment service for one refund, which rests on one reading of its order; fulfils `channels.Outlet`."""

    def __init__(self, payments: PaymentService, pinned: Callable[[], OrderFacts]) -> None:
        """`pinned` reads what the refund rests on; only sending needs it."""
        self._payments = payments
        self._pinned = pinned
        self.name = payments.name
        self.side_effect = payments.side_effect
        self.keys_kept = payments.keys_kept
        self.lands_within = payments.lands_within
        self.time_limit = payments.time_limit + READ_LIMIT

    def send(self, key: str, name: str, document: bytes, content_hash: Sha256, check: Check = always) -> Receipt:
        """Refund, if the order is what it was.

        Raises:
            Drifted: the order has changed since, and the message says what of it; nothing was sent.
            NotSent: it cannot be read now, or as in `Channel.send`.
            Refused, OutcomeUnknown: as in `Channel.send`.
        """
        self._check_unchanged()
        return self._payments.send(key, name, document, content_hash, check)

    def look_up(self, key: str) -> Receipt | None:
        """See `Channel.look_up`; that nothing is known of the key is believed only while no more has gone back of the
        order than before: it may be this very refund, and the service has lost its key (G35)."""
        receipt = self._payments.look_up(key)
        if receipt is None:
            self._check_none_refunded()
        return receipt

    def _check_none_refunded(self) -> None:
        pinned = self._pinned()
        try:
            live = self._payments.facts(pinned.order.id)
        except (NotFound, Unavailable) as failure:
            raise OutcomeUnknown(FACTS_UNREADABLE, failure.message) from None
        before = {payment.id: payment.refunded for payment in pinned.payments}
        grown = [payment.id for payment in live.payments if payment.refunded > before.get(payment.id, 0)]
        if grown:
            refunded = f"the key is not known, but something of payment {', '.join(grown)} was refunded meanwhile"
            raise OutcomeUnknown(KEY_FORGOTTEN, f"{refunded}; a person must look whether it was this refund")

    def _check_unchanged(self) -> None:
        pinned = self._pinned()
        try:
            live: OrderFacts | None = self._payments.facts(pinned.order.id)
        except NotFound:
            live = None
        except Unavailable as failure:
            raise NotSent(FACTS_UNREADABLE, failure.message) from None
        changed = changes(pinned, live)
        if changed:
            raise Drifted(
                "facts", f"the order is not what it was: {'; '.join(map(str, changed))}",
                expected="; ".join(f"{one.about}: {one.before}" for one in changed),
                found="; ".join(f"{one.about}: {one.now}" for one in changed),
            )  # fmt: skip
