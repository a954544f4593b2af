"""What the rounds are about: refunds of charges that came twice, at the payment service of the examples.

An operation's course follows from how much money it is about; its effects are counted in the service's own database.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from activities.interfaces import RunOrder
from countersign.domain.compensation import MessageRequest
from countersign.domain.directory import Limit
from countersign.domain.money import Amount
from examples.payments.service import TOKEN
from examples.payments.store import Store
from tests.support.installation import Installation
from tests.support.payments import PAYMENTS_TOKEN

Course = Literal["by_rule", "by_vote", "by_votes", "rejected", "expired", "undecided"]
"""How an operation is to go: allowed by the policy alone, by one person or by two; refused; left undecided till its
deadline, or left undecided with days to go."""
SHORT_WINDOW = "3s"
CHANNEL, MESSAGES = "chaos", "chaos-messages"
LIMITS = tuple(
    Limit(each=Amount(currency=currency, minor=10_000_000), total=None, within=None)
    for currency in ("EUR", "USD", "GBP")
)
"""What one person may approve."""


class Fault(NamedTuple):
    """What the service does wrong, once for each call."""

    on: str
    name: str
    calls: int = 1
    seconds: float = 0


class Effects(NamedTuple):
    """How often something happened outside for one operation."""

    refunds: int
    messages: int


FAULTS: Mapping[str, Sequence[Fault]] = {
    "slow": [Fault("refunds", "slow", seconds=2)],
    "answer lost": [Fault("refunds", "answer_lost")],
    "socket closed": [Fault("refunds", "closed")],
    "500 after doing it": [Fault("refunds", "error_after")],
    "409": [Fault("refunds", "busy")],
    "503, then 201": [Fault("refunds", "unavailable")],
    "garbage": [Fault("refunds", "garbage")],
    "redirect": [Fault("refunds", "redirect")],
    "answer lost, look-up down": [Fault("refunds", "answer_lost"), Fault("lookups", "unavailable", calls=3)],
    "key forgotten": [Fault("refunds", "key_forgotten")],
    "orders down": [Fault("orders", "unavailable", calls=2)],
}
"""By the name that the table has for them."""
FORGETS = "key forgotten"
"""The one after which only people can say what became of it."""
LEAVES_UNKNOWN = "answer lost"
"""The one after which a run has to find out what became of its effect."""

_PAID: Mapping[Course, Amount] = {
    "by_rule": Amount(currency="EUR", minor=24_900),
    "by_vote": Amount(currency="EUR", minor=480_000),
    "by_votes": Amount(currency="USD", minor=1_250_000),
    "rejected": Amount(currency="EUR", minor=480_000),
    "expired": Amount(currency="GBP", minor=480_000),
    "undecided": Amount(currency="EUR", minor=480_000),
}
_HURRIED = "gbp-needs-one"


class Outside:
    """A payment service, whose process the world starts and kills."""

    credentials: Mapping[str, str] = {TOKEN: PAYMENTS_TOKEN}
    """What gateway and service are given in their environment."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._database = folder / "payments.db"
        self._store = Store(self._database)

    def command(self, port: int) -> list[str]:
        """The service's program, with all that it kept."""
        database = str(self._database)
        return [sys.executable, "-m", "examples.payments", "--port", str(port), "--database", database]

    def prepared(self, installation: Installation, folder: Path, url: str) -> Installation:
        """The installation with finance people, this service at `url`, and a short window for refunds in GBP."""
        for person in ("finn", "flora"):
            installation.enrol(person, "finance", limits=LIMITS)
        changed = installation.with_policy(folder)
        _add_channels(changed.settings.policies / "channels.yaml", url)
        _shorten_window(changed.settings.policies / "refund.yaml")
        return changed

    def register(self, installation: Installation, operation: str, course: Course) -> RunOrder:
        """A registered refund that will go that course, of a charge that came twice, and what the customer is told."""
        order, paid = f"o-{operation}", _PAID[course]
        money = {"currency": paid.currency, "amount": paid.minor}
        payments = [
            {"id": f"p-{operation}-{number}", "status": "captured", "account": f"acc-{operation}", **money}
            for number in (1, 2)
        ]
        told = {"id": order, "status": "paid", "currency": paid.currency, "total": paid.minor, "payments": payments}
        self._store.seed({"orders": [told]})
        run = installation.register_refund(operation, order=order, channel=CHANNEL, message_channel=MESSAGES)
        message = MessageRequest(follows=operation, channel=MESSAGES)
        installation.register_following(message_of(operation), message)
        return run

    def fail_next(self, fault: str) -> None:
        """Have the service do this wrong once."""
        for each in FAULTS[fault]:
            self._store.fail(*each)

    def reference(self, operation: str) -> str:
        """What the service calls the operation's refund, as a person finds it there."""
        return f"re-{self._asked('refunds.number', operation)[0]:06d}"

    def heal(self) -> None:
        """Have nothing go wrong any more."""
        self._store.clear_faults()

    def effects(self, operation: str) -> Effects:
        """What really happened for the operation."""
        told = sum(f"o-{operation}" in body.decode() for body in self._store.messages())
        return Effects(len(self._asked("key", operation)), told)

    def keys(self) -> set[str]:
        """The keys under which anything was ever asked for: the service's own rules let no payment go back twice, so
        another key would show an attempt that they alone have stopped."""
        return {*self._store.calls("refunds"), *self._store.calls("messages")}

    def _asked(self, field: str, operation: str) -> list[Any]:
        """A field of each refund that was made for the operation."""
        sql = f'SELECT {field} FROM refunds JOIN payments ON payment = id WHERE "order" = ?'
        with closing(sqlite3.connect(self._database, timeout=30)) as connection:
            return [value for (value,) in connection.execute(sql, (f"o-{operation}",))]


def message_of(operation: str) -> str:
    """The operation that tells the customer of a refund."""
    return f"{operation}.message"


def _add_channels(path: Path, url: str) -> None:
    channels: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    channels["channels"][CHANNEL] = {
        "kind": "payments", "tenants": ["acme"], "url": f"{url}/refunds", "orders_url": f"{url}/orders",
        "token_env": TOKEN, "side_effect": "refund", "reversibility": "correctable",
    }  # fmt: skip
    channels["channels"][MESSAGES] = {
        "kind": "http", "tenants": ["acme"], "url": f"{url}/messages", "token_env": TOKEN,
        "side_effect": "customer_message", "reversibility": "irreversible",
    }  # fmt: skip
    path.write_text(json.dumps(channels), encoding="utf-8")


def _shorten_window(path: Path) -> None:
    policy: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    rule = next(rule for rule in policy["rules"] if rule["id"] == _HURRIED)
    rule["need"] |= {"decide_within": SHORT_WINDOW, "ladder": {}}
    path.write_text(json.dumps(policy), encoding="utf-8")
