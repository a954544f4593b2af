"""What lies outside under a tenant's keys, read with the gateway's credentials; nothing here sends anything.

Apart from the gateway's flow, which acts on one approval: here every action that was ever proposed is looked up, and
whatever the outside lists beside those. A channel that cannot be asked is a gap, with the reason, and never an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, cast

from countersign.domain.action import Action
from countersign.domain.compensation import REVERSE
from countersign.domain.errors import NotAuthorised, NotFound, Unavailable
from countersign.domain.execution import FACTS_UNREADABLE, KEY_FORGOTTEN, Execution, Receipt
from countersign.domain.reconciliation import Effect, Gap, Look
from countersign.domain.refund import OrderFacts
from countersign.gateway.channels import Channel, ChannelFailure, Outlet
from countersign.gateway.inactive_channel import InactiveChannel
from countersign.gateway.payments_channel import PaymentService
from countersign.gateway.tools import Tools, changes_authority
from countersign.ports import Ledger

_NOT_CONFIGURED = "it is not configured for this tenant any more"
_NO_LIST = "it cannot list its keys, so what lies there under others than ours is not known"
_TAKING_BACK = ", taking back"
_DOUBTS = frozenset({KEY_FORGOTTEN, FACTS_UNREADABLE})
"""Reasons that are about one key: it is not there, and that may not be believed. Any other is the place's silence."""


class Way(NamedTuple):
    """One of a tenant's channels, or why it cannot be asked."""

    channel: Channel | None
    why: str
    keys: Callable[[], Collection[str]]
    """Every key that lies there by right, of all tenants that use it: what is another's is nobody's stray."""


class _Place(NamedTuple):
    """A channel that is listed, as it is named to people."""

    name: str
    channel: Channel


class Outside:
    """One look at everything that a tenant has outside; for another look make another one."""

    def __init__(self, ways: Mapping[str, Way], tools: Tools) -> None:
        """`ways` by channel name; `tools` reach those that can be asked, and say where an action's effect lies."""
        self._ways = ways
        self._tools = tools
        self._used: set[str] = set()
        """Channels that actions name which were looked at; the rest of the tenant's may be in no use here."""
        self._silent: dict[str, str] = {}
        """Places that did not answer, and why: they are not asked for every further key."""

    def look(self, action: Action, execution: Execution | None) -> Effect:
        """What the outside holds under the action's key, beside what the ledger says of it."""
        self._used.add(action.channel)
        name, key = _place_name(action), action.idempotency_key()
        look, kept = self._looked_up(action, name, key)
        return Effect(operation=action.operation, channel=name, key=key, execution=execution, look=look, keys_kept=kept)

    def strays(self) -> tuple[Sequence[Receipt], Sequence[Gap]]:
        """What lies in the tenant's channels under keys that no action has, and which of them could not be listed.

        After `look` at all that was proposed, which says what is in use.
        """
        found: list[Receipt] = []
        unlisted = [Gap(part=name, why=way.why) for name, way in self._ways.items() if way.channel is None]
        for way, place in self._places():
            listed = self._list(place)
            if listed is None:
                unlisted.append(Gap(part=place.name, why=self._silent.get(place.name, _NO_LIST)))
            elif listed:
                by_right = way.keys()
                found += [receipt for receipt in listed if receipt.key not in by_right]
        return found, unlisted

    def order(self, channel: str, order: str) -> OrderFacts | str:
        """An order as the payment service of that name tells it now, or why it does not."""
        way = self._ways.get(channel)
        if way is None or way.channel is None:
            return way.why if way is not None else _NOT_CONFIGURED
        if way.channel.takes != "refunds":
            return "it cannot say what was refunded of a payment"
        try:
            # Whatever takes refunds tells of their orders, too.
            return cast("PaymentService", way.channel).facts(order)
        except (NotFound, Unavailable) as failure:
            return failure.message

    def _looked_up(self, action: Action, name: str, key: str) -> tuple[Look, timedelta | None]:
        """What is said of the key where the gateway would look it up too, and how long keys are kept there."""
        way = self._ways.get(action.channel)
        if way is not None and way.channel is None:
            return Look(untold=way.why), None
        try:
            outlet = self._tools.channel(action)
            return self._look(name, outlet, key), outlet.keys_kept
        except NotAuthorised as refusal:
            return Look(untold=refusal.message), None

    def _places(self) -> Iterator[tuple[Way, _Place]]:
        for name, way in self._ways.items():
            if isinstance(way.channel, InactiveChannel):
                # One that nothing was ever proposed for is not in use here: nothing of ours lies there.
                if name in self._used:
                    yield way, _Place(name, way.channel)
            elif way.channel is not None:
                yield way, _Place(name, way.channel)
                reversals = _reversals(name, way.channel)
                if reversals is not None:
                    yield way, reversals

    def _look(self, name: str, outlet: Outlet, key: str) -> Look:
        if name in self._silent:
            return Look(untold=self._silent[name])
        try:
            return Look(receipt=outlet.look_up(key))
        except ChannelFailure as failure:
            if failure.reason in _DOUBTS:
                return Look(doubt=failure.line())
            self._silent[name] = failure.line()
            return Look(untold=failure.line())

    def _list(self, place: _Place) -> Sequence[Receipt] | None:
        """Everything that the place holds; nothing where it did not say."""
        if place.name in self._silent:
            return None
        try:
            held = place.channel.held()
            return None if held is None else list(held)
        except ChannelFailure as failure:
            self._silent[place.name] = failure.line()
            return None


def _reversals(name: str, channel: Channel) -> _Place | None:
    """Where what was taken back lies."""
    reversing = channel.reversing()
    return None if reversing is None else _Place(f"{name}{_TAKING_BACK}", reversing)


def _place_name(action: Action) -> str:
    """What people call the place where the action's effect lies."""
    if changes_authority(action):
        return "the directory"
    return f"{action.channel}{_TAKING_BACK if action.tool == REVERSE else ''}"


def keys_by_right(ledger: Ledger, tenants: Collection[str]) -> Collection[str]:
    """The key of every action that was ever proposed for these tenants."""
    return {
        approval.proposal.action.idempotency_key()
        for tenant in tenants
        for operation in ledger.operations.list(tenant)
        for approval in ledger.approvals.of_operation(tenant, operation.operation)
    }
