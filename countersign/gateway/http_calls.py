"""One HTTP call with a credential: bounded in time and size, and clear about whether anything can have happened.

Apart from the channels, which say what a call means. The asynchronous client is used for one reason: only there can a
whole call, however slowly its answer drips in, be cut off at a time limit.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import httpx2
from pydantic import SecretStr

from countersign.domain.errors import ConfigurationRefused
from countersign.domain.loopback import is_loopback
from countersign.domain.strict_json import MAX_BYTES
from countersign.gateway.channels import Check, NotSent, OutcomeUnknown, always

_HOST = re.compile(rb"[a-z0-9.:-]+")


class Answer(NamedTuple):
    """What a call was answered with, whole."""

    status: int
    body: bytes


class Caller:
    """Calls one service; no redirect is followed, so no other address is ever called."""

    def __init__(self, name: str, token: SecretStr, connect: timedelta) -> None:
        """`name` is the channel's, for messages; ConfigurationRefused where the token is not usable."""
        if not token.get_secret_value():
            raise ConfigurationRefused(f"channel {name!r}: its token is empty; set it where the gateway runs")
        self._name = name
        self._token = token
        self._connect = connect.total_seconds()
        self._tls = httpx2.create_ssl_context()
        """The system's authorities, or those of the standard `SSL_CERT_FILE` and `SSL_CERT_DIR`."""

    def post(
        self, url: str, headers: Mapping[str, str], content: bytes, within: timedelta, check: Check = always
    ) -> Answer:
        """Post `content` on a connection of its own; `check` is called when it stands, before the first byte.

        Raises:
            NotSent: not one byte of the request has left.
            OutcomeUnknown: there was no whole answer in time.
        """
        return self._call("POST", url, headers, content, within, MAX_BYTES, check)

    def get(self, url: str, within: timedelta, *, max_bytes: int = MAX_BYTES) -> Answer:
        """Read on a connection of its own; fails as `post` does."""
        return self._call("GET", url, {}, b"", within, max_bytes)

    def masked(self, text: str) -> str:
        """A text of the outside without our credential: whoever gets it back in an answer must not make us keep it."""
        return text.replace(self._token.get_secret_value(), "***")

    def unreadable(self, why: str) -> OutcomeUnknown:
        """What to raise where an answer says nothing that can be relied on."""
        return OutcomeUnknown("answer_unreadable", f"the answer of channel {self._name!r} cannot be read: {why}")

    def _call(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes, within: timedelta, max_bytes: int,
        check: Check = always,
    ) -> Answer:  # fmt: skip
        exchange = self._exchange(method, url, headers, content, within.total_seconds(), max_bytes, check)
        try:
            return asyncio.run(exchange)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            # No connection, no name, no TLS: not one byte of the request has left.
            raise NotSent("unreachable", f"channel {self._name!r} cannot be reached ({type(error).__name__})") from None
        except (httpx2.HTTPError, TimeoutError) as error:
            # No detail of the error: its text may repeat what the other side sent.
            what = f"channel {self._name!r} gave no whole answer ({type(error).__name__})"
            raise OutcomeUnknown("no_answer", what) from None

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes, total: float, max_bytes: int,
        check: Check,
    ) -> Answer:  # fmt: skip
        sent = {"Authorization": f"Bearer {self._token.get_secret_value()}", "Accept-Encoding": "identity", **headers}
        limits = httpx2.Timeout(total, connect=self._connect)
        # Nothing from the environment beside the authorities: no proxy that sees the document, no .netrc.
        client = httpx2.AsyncClient(timeout=limits, follow_redirects=False, trust_env=False, verify=self._tls)
        async with (
            asyncio.timeout(total),
            client,
            client.stream(method, url, headers=sent, content=content, extensions=_before_it_leaves(check)) as response,
        ):
            return Answer(response.status_code, await self._bounded_body(response, max_bytes))

    async def _bounded_body(self, response: httpx2.Response, max_bytes: int) -> bytes:
        body = b""
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > max_bytes:
                raise self.unreadable(f"it exceeds {max_bytes} bytes")
        return body


def _before_it_leaves(check: Check) -> dict[str, Any]:
    """Have the client call `check` once a connection stands, right before the first byte of the request leaves."""

    async def trace(event: str, _: Any) -> None:
        if event.endswith("send_request_headers.started"):
            check()

    return {"trace": trace}


def checked_address(place: str, address: str) -> str:
    """A configured address without a slash at its end; ConfigurationRefused where it is not plainly one place."""
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        raise ConfigurationRefused(f"{place} {address[:80]!r} is no URL") from None
    if not _HOST.fullmatch(url.raw_host) or url.userinfo or url.query or url.fragment:
        raise ConfigurationRefused(f"{place} needs a host, and no user, query or fragment; the token is set on its own")
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
        raise ConfigurationRefused(f"{place} must begin with https:// (http:// only for this machine itself)")
    return address.rstrip("/")
