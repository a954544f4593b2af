"""The webhook: posts a notice as Slack-compatible JSON, signed, to one fixed address.

A connection of its own for each, no redirect, nothing from the environment beside the authorities; the answer's body is
not read. As in the HTTP channel, the asynchronous client is used because a whole call can be cut off at a time limit.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
from pydantic import SecretStr

from countersign.domain.errors import ConfigurationRefused
from countersign.domain.loopback import is_loopback
from countersign.notifications.message import Message, plain
from countersign.notifications.sending import TIME_LIMIT, Hopeless, TryAgain
from countersign.notifications.signature import DELIVERY, signed_headers

_HOST = re.compile(rb"[a-z0-9.:-]+")
_SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)
SHORTEST_SECRET = 16
"""Anyone who gets a message can try secrets at leisure; use a random one."""


class WebhookSender:
    """Posts to one address."""

    def __init__(
        self, name: str, url: str, secret: SecretStr, clock: Callable[[], datetime], limit: timedelta = TIME_LIMIT
    ) -> None:
        """ConfigurationRefused where the address or the secret is not usable; neither is quoted."""
        _check_url(f"address {name}: its url", url)
        if len(secret.get_secret_value()) < SHORTEST_SECRET:
            raise ConfigurationRefused(f"address {name}: its secret needs at least {SHORTEST_SECRET} characters")
        self._url = url
        self._secret = secret
        self._clock = clock
        self._limit = limit.total_seconds()
        self._tls = httpx2.create_ssl_context()

    def send(self, message: Message) -> None:
        """See `Sender.send`."""
        body = body_of(message)
        headers = {"Content-Type": "application/json; charset=utf-8", DELIVERY: message.id}
        headers |= signed_headers(self._secret.get_secret_value(), body, self._clock())
        try:
            status, retry_after = asyncio.run(self._post(headers, body))
        except (httpx2.HTTPError, TimeoutError) as error:
            # No detail of the error: its text may hold the address, which can be a secret.
            raise TryAgain(f"no answer ({type(error).__name__})") from None
        self._judge(status, retry_after)

    async def _post(self, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        client = httpx2.AsyncClient(timeout=self._limit, follow_redirects=False, trust_env=False, verify=self._tls)
        async with (
            asyncio.timeout(self._limit),
            client,
            client.stream("POST", self._url, headers=headers, content=body) as response,
        ):
            return response.status_code, response.headers.get("Retry-After", "")

    def _judge(self, status: int, retry_after: str) -> None:
        if 200 <= status < 300:
            return
        if status == 429 or status >= 500:
            raise TryAgain(f"answered with {status}", _wait(retry_after, self._clock()))
        what = "redirected" if 300 <= status < 400 else "refused"
        raise Hopeless(f"{what} with {status}")


def body_of(message: Message) -> bytes:
    """The message as JSON: `text` and `blocks` for chat, and everything under `countersign` for programs."""
    notice = message.notice
    blocks = [_block(message.sentence), _block(message.command)]
    fields: dict[str, Any] = {
        "id": message.id,
        "kind": notice.kind.value,
        "tenant": plain(notice.tenant),
        "operation": plain(notice.operation),
        "code": plain(notice.code),
        "severity": notice.severity.value,
        "deadline": _time(notice.deadline),
        "at": _time(notice.at),
        "command": message.command,
    }
    text = slack_escaped(f"{message.sentence} {message.command}")
    return json.dumps({"text": text, "blocks": blocks, "countersign": fields}, sort_keys=True).encode()


def slack_escaped(text: str) -> str:
    """`text` without Slack's three control characters, which make links and mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _block(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "plain_text", "text": slack_escaped(text), "emoji": False}}


def _time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment is not None else None


def _wait(retry_after: str, now: datetime) -> timedelta | None:
    """What `Retry-After` asks for, in seconds or as a date; nothing where it cannot be read."""
    if _SECONDS.fullmatch(retry_after):
        return timedelta(seconds=int(retry_after))
    try:
        return max(parsedate_to_datetime(retry_after).astimezone(UTC) - now, timedelta())
    except (ValueError, OverflowError):
        return None


def _check_url(place: str, address: str) -> None:
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        raise ConfigurationRefused(f"{place} is no URL") from None
    if not _HOST.fullmatch(url.raw_host) or url.userinfo or url.fragment:
        raise ConfigurationRefused(f"{place} needs a host, and no user or fragment")
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
        raise ConfigurationRefused(f"{place} must begin with https:// (http:// only for this machine itself)")
