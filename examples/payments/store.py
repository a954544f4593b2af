"""What the payment service keeps, in one SQLite file, and what it refuses to do.

Each effect, and the answer that is stored under its key, are one transaction: a service that is killed at any instant
has done the whole of it or nothing.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

RESOURCES = ("refunds", "reversals", "messages")
"""What is done under keys; each resource has keys of its own."""

_TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, status TEXT, currency TEXT, total INTEGER);
CREATE TABLE IF NOT EXISTS payments (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, "order" TEXT REFERENCES orders, status TEXT, currency TEXT,
    amount INTEGER, account TEXT
);
CREATE TABLE IF NOT EXISTS refunds (
    number INTEGER PRIMARY KEY, key TEXT, payment TEXT REFERENCES payments (id), amount INTEGER, reason TEXT
);
CREATE TABLE IF NOT EXISTS reversals (
    number INTEGER PRIMARY KEY, key TEXT, refund INTEGER UNIQUE REFERENCES refunds
);
CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY, key TEXT, body BLOB);
CREATE TABLE IF NOT EXISTS answers (resource TEXT, key TEXT, reference TEXT, content_hash TEXT,
    PRIMARY KEY (resource, key));
CREATE TABLE IF NOT EXISTS calls (number INTEGER PRIMARY KEY, kind TEXT, method TEXT, key TEXT);
CREATE TABLE IF NOT EXISTS faults (number INTEGER PRIMARY KEY, kind TEXT, name TEXT, calls INTEGER, seconds REAL);
"""
_REFUNDED = """(SELECT COALESCE(SUM(amount), 0) FROM refunds WHERE refunds.payment = payments.id
    AND number NOT IN (SELECT refund FROM reversals))"""
_REFUND_FIELDS = {"order": str, "payment": str, "amount": int, "currency": str, "account": str, "reason": str}
_REVERSAL_FIELDS = {"key": str, "reference": str}


class Malformed(Exception):
    """A request that is not in the form of what it asks for."""


class Refused(Exception):
    """A request that the service does not fulfil, with the code of why; nothing was done, and the key is not used."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class Answer(NamedTuple):
    """What is stored under a key."""

    key: str
    reference: str
    content_hash: str
    """SHA-256 of the body as it was received."""


class Fault(NamedTuple):
    """How a call is to go wrong."""

    name: str
    seconds: float


class Store:
    """The service's state; several processes may open it."""

    def __init__(self, database: Path) -> None:
        self._database = database
        with closing(sqlite3.connect(database, timeout=30)) as connection:
            connection.executescript(_TABLES)

    def seed(self, seed: Any) -> None:
        """Add orders with their payments, as in orders.json; what is there already stays as it is."""
        try:
            with self._connected() as connection:
                for order in seed["orders"]:
                    values = (order["id"], order["status"], order["currency"], order["total"])
                    connection.execute("INSERT OR IGNORE INTO orders VALUES (?, ?, ?, ?)", values)
                    for one in order["payments"]:
                        paid = (one["id"], order["id"], one["status"], one["currency"], one["amount"], one["account"])
                        connection.execute("INSERT OR IGNORE INTO payments VALUES (NULL, ?, ?, ?, ?, ?, ?)", paid)
        except (KeyError, TypeError) as error:
            raise Malformed(f"no orders in the form of a seed: {error}") from None

    def set_status(self, order: str, status: str) -> None:
        """Move an order."""
        with self._connected() as connection:
            connection.execute("UPDATE orders SET status = ? WHERE id = ?", (status, order))

    def order(self, id: str) -> dict[str, Any] | None:
        """An order with its payments, oldest first, and what of each was refunded; nothing where there is no such."""
        with self._connected() as connection:
            order = _row(connection, "SELECT id, status, currency, total FROM orders WHERE id = ?", id)
            if order is None:
                return None
            sql = f'SELECT id, "order", status, currency, amount, account, {_REFUNDED} AS refunded FROM payments'
            payments = connection.execute(f'{sql} WHERE "order" = ? ORDER BY number', (id,)).fetchall()
        return {"order": order, "payments": [dict(payment) for payment in payments]}

    def do(self, resource: str, key: str, body: bytes) -> Answer:
        """Do what the body asks for, once for each key: the same body again is given the stored answer.

        Raises:
            Malformed: the body is not of the resource's form.
            Refused: it is not done; `key_reused` where the key was used for another body.
        """
        content_hash = "sha256:" + hashlib.sha256(body).hexdigest()
        with self._connected() as connection:
            stored = _answer(connection, resource, key)
            if stored is not None and stored.content_hash != content_hash:
                raise Refused("key_reused", "the key was used for another body")
            if stored is not None:
                return stored
            reference = _DOING[resource](connection, key, body)
            answer = Answer(key, reference, content_hash)
            connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", (resource, *answer))
            return answer

    def find(self, resource: str, key: str) -> Answer | None:
        """What is stored under a key."""
        with self._connected() as connection:
            return _answer(connection, resource, key)

    def answers(self, resource: str) -> list[Answer]:
        """All that is stored."""
        with self._connected() as connection:
            sql = "SELECT key, reference, content_hash FROM answers WHERE resource = ? ORDER BY rowid"
            return [Answer(*row) for row in connection.execute(sql, (resource,))]

    def forget(self, resource: str, key: str) -> None:
        """Lose a key, as services do that keep keys for a while only; what was done under it stays."""
        with self._connected() as connection:
            connection.execute("DELETE FROM answers WHERE resource = ? AND key = ?", (resource, key))

    def effects(self, resource: str) -> list[str]:
        """The keys under which something really happened, one for each time, whatever is still remembered of them."""
        if resource not in RESOURCES:
            raise ValueError(f"no resource is called {resource!r}; there are: {', '.join(RESOURCES)}")
        with self._connected() as connection:
            return [key for (key,) in connection.execute(f"SELECT key FROM {resource} ORDER BY number")]

    def messages(self) -> list[bytes]:
        """What customers were told."""
        with self._connected() as connection:
            return [body for (body,) in connection.execute("SELECT body FROM messages ORDER BY number")]

    def calls(self, kind: str) -> list[str]:
        """The keys of all calls of a kind, in order: of a resource, `lookups`, `lists`, `orders`."""
        with self._connected() as connection:
            return [key for (key,) in connection.execute("SELECT key FROM calls WHERE kind = ?", (kind,))]

    def fail(self, kind: str, name: str, calls: int = 1, seconds: float = 0) -> None:
        """Have the next calls of a kind go wrong, after those that are to do so already."""
        with self._connected() as connection:
            connection.execute("INSERT INTO faults VALUES (NULL, ?, ?, ?, ?)", (kind, name, calls, seconds))

    def clear_faults(self) -> None:
        """Have nothing go wrong any more."""
        with self._connected() as connection:
            connection.execute("DELETE FROM faults")

    def arrive(self, kind: str, method: str, key: str) -> Fault | None:
        """Write down that a call arrived; returns how it is to go wrong. Whoever sees the call sees the fault taken."""
        with self._connected() as connection:
            connection.execute("INSERT INTO calls VALUES (NULL, ?, ?, ?)", (kind, method, key))
            sql = "SELECT number, name, seconds FROM faults WHERE kind = ? AND calls > 0 ORDER BY number LIMIT 1"
            row = connection.execute(sql, (kind,)).fetchone()
            if row is None:
                return None
            connection.execute("UPDATE faults SET calls = calls - 1 WHERE number = ?", (row["number"],))
            return Fault(row["name"], row["seconds"])

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """One transaction that nobody else can come between; nothing of it stays where anything is raised."""
        with closing(sqlite3.connect(self._database, timeout=30, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")


def _row(connection: sqlite3.Connection, sql: str, *values: object) -> dict[str, Any] | None:
    row = connection.execute(sql, values).fetchone()
    return None if row is None else dict(row)


def _answer(connection: sqlite3.Connection, resource: str, key: str) -> Answer | None:
    sql = "SELECT key, reference, content_hash FROM answers WHERE resource = ? AND key = ?"
    row = connection.execute(sql, (resource, key)).fetchone()
    return None if row is None else Answer(*row)


def _asked(body: bytes, fields: Mapping[str, type]) -> dict[str, Any]:
    try:
        asked = json.loads(body)
    except ValueError:
        raise Malformed("the body is no JSON") from None
    if not isinstance(asked, dict) or {name: type(value) for name, value in asked.items()} != fields:
        raise Malformed(f"the body is not an object with exactly {', '.join(fields)}")
    return asked


def _refund(connection: sqlite3.Connection, key: str, body: bytes) -> str:
    asked = _asked(body, _REFUND_FIELDS)
    order = _row(connection, "SELECT status, currency FROM orders WHERE id = ?", asked["order"])
    payment = _row(connection, f"SELECT *, {_REFUNDED} AS refunded FROM payments WHERE id = ?", asked["payment"])
    if order is None:
        raise Refused("order_unknown", "there is no such order")
    if payment is None or payment["order"] != asked["order"]:
        raise Refused("payment_unknown", "the order has no such payment")
    for code, holds in (
        ("order_not_paid", order["status"] == "paid"),
        ("payment_not_captured", payment["status"] == "captured"),
        ("other_currency", payment["currency"] == asked["currency"]),
        ("other_account", payment["account"] == asked["account"]),
        ("amount_not_allowed", asked["amount"] > 0),
        ("over_refundable", asked["amount"] <= payment["amount"] - payment["refunded"]),
    ):
        if not holds:
            raise Refused(code, f"refund of payment {payment['id']} refused")
    sql = "INSERT INTO refunds VALUES (NULL, ?, ?, ?, ?)"
    made = connection.execute(sql, (key, asked["payment"], asked["amount"], asked["reason"]))
    return f"re-{made.lastrowid:06d}"


def _reverse(connection: sqlite3.Connection, key: str, body: bytes) -> str:
    asked = _asked(body, _REVERSAL_FIELDS)
    refund = _row(connection, "SELECT number FROM refunds WHERE key = ?", asked["key"])
    if refund is None or asked["reference"] != f"re-{refund['number']:06d}":
        raise Refused("refund_unknown", "there is no such refund")
    if _row(connection, "SELECT 1 FROM reversals WHERE refund = ?", refund["number"]):
        raise Refused("reversed_already", "the refund was taken back before")
    made = connection.execute("INSERT INTO reversals VALUES (NULL, ?, ?)", (key, refund["number"]))
    return f"rv-{made.lastrowid:06d}"


def _tell(connection: sqlite3.Connection, key: str, body: bytes) -> str:
    if not body:
        raise Malformed("the message is empty")
    made = connection.execute("INSERT INTO messages VALUES (NULL, ?, ?)", (key, body))
    return f"msg-{made.lastrowid:06d}"


_DOING = {"refunds": _refund, "reversals": _reverse, "messages": _tell}
