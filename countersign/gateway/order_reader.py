"""Reads orders with their payments at a payment service; nothing here changes anything there.

Apart from the channel that refunds, since reading has no key and no outcome: whoever needs it asks again.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import ValidationError

from countersign.domain.canonical import canonical_bytes
from countersign.domain.errors import InputRefused, NotFound, Unavailable
from countersign.domain.refund import OrderFacts
from countersign.domain.strict_json import parse
from countersign.gateway.channels import ChannelFailure
from countersign.gateway.http_calls import Caller, checked_address

READ_LIMIT = timedelta(seconds=5)
"""The longest that reading an order may take."""


class OrderReader:
    """Reads the orders of one service."""

    def __init__(self, name: str, orders_url: str, caller: Caller, within: timedelta) -> None:
        """`name` is the channel's; orders are read at `orders_url/<order>`, in less than `within` and `READ_LIMIT`.

        Raises:
            ConfigurationRefused: the address is not usable.
        """
        self._name = name
        self._url = checked_address(f"channel {name!r}: orders_url", orders_url)
        self._caller = caller
        self._within = min(READ_LIMIT, within)

    def facts(self, order: str) -> OrderFacts:
        """An order with its payments as they are now; what is not in the form of facts, whole, tells nothing.

        Raises:
            NotFound: there is no such order.
            Unavailable: it cannot be read now.
        """
        try:
            answer = self._caller.get(f"{self._url}/{order}", self._within)
        except ChannelFailure as failure:
            raise Unavailable(f"order {order} cannot be read: {failure.message}") from None
        if answer.status == 404:
            raise NotFound(f"channel {self._name!r} has no order {order}")
        if answer.status != 200:
            raise Unavailable(
                f"order {order} cannot be read: channel {self._name!r} answered with {answer.status}; try again later"
            )
        return self._read(order, answer.body)

    def _read(self, order: str, body: bytes) -> OrderFacts:
        try:
            told = parse(body, where="the answer")
            facts = OrderFacts.model_validate_json(canonical_bytes(told))
        except (InputRefused, ValidationError):
            # No detail of it: that would repeat what the other side sent.
            raise Unavailable(
                f"order {order} cannot be read: channel {self._name!r} tells it in another form"
            ) from None
        ids = [payment.id for payment in facts.payments]
        if facts.order.id != order or len({*ids}) < len(ids) or {one.order for one in facts.payments} - {order}:
            raise Unavailable(f"order {order} cannot be read: channel {self._name!r} tells of another one")
        return facts
