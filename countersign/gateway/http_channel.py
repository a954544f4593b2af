"""The HTTP channel: posts a document with an `Idempotency-Key` to one fixed address and looks up what became of a key.

What is expected of the outside: it notes a key before it works on it, gives the same key with the same body the stored
answer, and keeps keys for `keys_kept`. An answer that holds a publication is `200` or `201` with a JSON object
`{"key", "reference", "content_hash"}`. `GET <address>/by-key/<key>` gives the same object, or `404`.

The asynchronous client is used for one reason: only there can a whole call, however slowly its answer drips in, be cut
off at a time limit. The key goes out bare, as most systems take it, not quoted as the IETF draft writes it.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import httpx2
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from countersign.domain.errors import ConfigurationRefused, InputRefused
from countersign.domain.execution import Receipt
from countersign.domain.loopback import is_loopback
from countersign.domain.strict_json import MAX_BYTES, parse
from countersign.domain.values import Sha256
from countersign.gateway.channels import ChannelFailure, NotSent, OutcomeUnknown, Refused

_HOST = re.compile(rb"[a-z0-9.:-]+")
_GRACE = timedelta(seconds=1)
"""What giving up a call may take beyond its time limit."""


@dataclass(frozen=True)
class Limits:
    """How long one call may take, and how long the outside remembers it."""

    connect: timedelta = timedelta(seconds=5)
    total: timedelta = timedelta(seconds=10)
    """From the first packet to the last byte of the answer."""
    keys_kept: timedelta | None = timedelta(hours=24)
    """None: for ever. The default is what the most forgetful of the well-known services promises."""


class _Answer(BaseModel):
    """A publication as the outside tells it; it may say more than we read."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    key: str
    reference: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,500}$")]
    content_hash: Sha256


class HttpChannel:
    """Publishes to one HTTP service."""

    def __init__(self, name: str, url: str, token: SecretStr, side_effect: str, limits: Limits = Limits()) -> None:
        """Documents are posted to `url` with the bearer token and looked up at `url/by-key/<key>`; no other address is
        ever called, since no redirect is followed.

        Raises:
            ConfigurationRefused: the address or the token is not usable.
        """
        _check_address(f"channel {name!r}: url", url)
        if not token.get_secret_value():
            raise ConfigurationRefused(f"channel {name!r}: its token is empty; set it where the gateway runs")
        self.name = name
        self.side_effect = side_effect
        self.keys_kept = limits.keys_kept
        self.time_limit = limits.total + _GRACE
        self._url = url.rstrip("/")
        self._token = token
        self._limits = limits
        self._tls = httpx2.create_ssl_context()
        """The system's authorities, or those of the standard `SSL_CERT_FILE` and `SSL_CERT_DIR`."""

    def send(self, key: str, name: str, document: bytes, content_hash: Sha256) -> Receipt:
        """See `Channel.send`."""
        digest = base64.b64encode(bytes.fromhex(content_hash.removeprefix("sha256:"))).decode()
        headers = {
            "Idempotency-Key": key,
            "Content-Type": "text/markdown; charset=utf-8",
            "Content-Digest": f"sha-256=:{digest}:",
            "Content-Disposition": f'attachment; filename="{name}"',
        }
        status, body = self._call("POST", self._url, headers, document)
        if status in (200, 201):
            return self._receipt(body)
        raise _meaning_of(status)

    def look_up(self, key: str) -> Receipt | None:
        """See `Channel.look_up`."""
        try:
            status, body = self._call("GET", f"{self._url}/by-key/{key}", {}, b"")
        except NotSent as failure:
            raise OutcomeUnknown("lookup_failed", failure.message) from None
        if status == 404:
            return None
        if status != 200:
            raise OutcomeUnknown("lookup_failed", f"the look-up was answered with {status}; try again later")
        return self._receipt(body)

    def _receipt(self, body: bytes) -> Receipt:
        try:
            answer = _Answer.model_validate(parse(body, where="the answer"))
        except (InputRefused, ValidationError):
            raise self._unreadable("it holds no receipt") from None
        # Whoever gets our credential back in an answer must not make us keep it.
        reference = answer.reference.replace(self._token.get_secret_value(), "***")
        return Receipt(channel=self.name, key=answer.key, reference=reference, content_hash=Sha256(answer.content_hash))

    def _call(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> tuple[int, bytes]:
        """One request on a connection of its own: status and body, or NotSent or OutcomeUnknown."""
        try:
            return asyncio.run(self._exchange(method, url, headers, content))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            # No connection, no name, no TLS: not one byte of the request has left.
            raise NotSent("unreachable", f"channel {self.name!r} cannot be reached ({type(error).__name__})") from None
        except (httpx2.HTTPError, TimeoutError) as error:
            # No detail of the error: its text may repeat what the other side sent.
            what = f"channel {self.name!r} gave no whole answer ({type(error).__name__})"
            raise OutcomeUnknown("no_answer", what) from None

    async def _exchange(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> tuple[int, bytes]:
        sent = {"Authorization": f"Bearer {self._token.get_secret_value()}", "Accept-Encoding": "identity", **headers}
        total = self._limits.total.total_seconds()
        limits = httpx2.Timeout(total, connect=self._limits.connect.total_seconds())
        # Nothing from the environment beside the authorities: no proxy that sees the document, no .netrc.
        client = httpx2.AsyncClient(timeout=limits, follow_redirects=False, trust_env=False, verify=self._tls)
        async with (
            asyncio.timeout(total),
            client,
            client.stream(method, url, headers=sent, content=content) as response,
        ):
            return response.status_code, await self._bounded_body(response)

    async def _bounded_body(self, response: httpx2.Response) -> bytes:
        body = b""
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_BYTES:
                raise self._unreadable(f"it exceeds {MAX_BYTES} bytes")
        return body

    def _unreadable(self, why: str) -> OutcomeUnknown:
        return OutcomeUnknown("answer_unreadable", f"the answer of channel {self.name!r} cannot be read: {why}")


def _meaning_of(status: int) -> ChannelFailure:
    """What a status other than success says about the effect.

    Only the answers by which the service itself says that it did nothing count as not sent. `503` is not among them:
    proxies answer with it after they have passed a request on, so it is looked up first, like every other `5xx`.
    """
    if status == 422:
        return Refused(
            "outside_conflict", "the outside holds another document under this key or refuses this one (422)"
        )
    if status == 429:
        return NotSent("rate_limited", "the outside asks to come later (429)")
    if status in (202, 409):
        return OutcomeUnknown("still_running", f"the outside is still working on this key ({status})")
    if 400 <= status < 500 and status != 408:
        return NotSent("not_accepted", f"the outside did not accept the request ({status}); check address and token")
    if 300 <= status < 400:
        return OutcomeUnknown("redirected", f"the outside answered with a redirect ({status}), which is not followed")
    return OutcomeUnknown("outside_error", f"the outside answered with {status}")


def _check_address(place: str, address: str) -> None:
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        raise ConfigurationRefused(f"{place} {address[:80]!r} is no URL") from None
    if not _HOST.fullmatch(url.raw_host) or url.userinfo or url.query or url.fragment:
        raise ConfigurationRefused(f"{place} needs a host, and no user, query or fragment; the token is set on its own")
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
        raise ConfigurationRefused(f"{place} must begin with https:// (http:// only for this machine itself)")
