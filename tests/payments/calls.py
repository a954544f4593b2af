"""Calls of the payment service as any client makes them, and what came of them."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.support.payments import PAYMENTS_TOKEN


class Reply(NamedTuple):
    """An answer; `status` is 0 where there was none."""

    status: int
    content: Any

    @property
    def code(self) -> str:
        """A problem's code."""
        return str(self.content["code"])


def call(method: str, url: str, body: bytes = b"", key: str = "", token: str = PAYMENTS_TOKEN) -> Reply:
    """One call on a connection of its own."""
    headers = {"Authorization": f"Bearer {token}", **({"Idempotency-Key": key} if key else {})}
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request(method, urlsplit(url).path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
    except (ConnectionError, http.client.HTTPException):
        return Reply(0, None)
    finally:
        connection.close()
    is_json = answer.headers.get("Content-Type", "").endswith("json")
    return Reply(answer.status, json.loads(content) if is_json else content)


def refund(**fields: Any) -> bytes:
    """The body of a refund: all of payment p-2, unless `fields` say otherwise."""
    body = {"order": "o-1001", "payment": "p-2", "amount": 24900, "currency": "EUR", "account": "acc-ada"}
    return json.dumps({**body, "reason": "duplicate", **fields}).encode()
