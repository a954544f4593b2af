"""The HTTP channel: posts a document with an `Idempotency-Key` to one fixed address and looks up what became of a key.

What is expected of the outside: it notes a key before it works on it, gives the same key with the same body the stored
answer, and keeps keys for `keys_kept`. An answer that holds an effect is `200` or `201` with a JSON object
`{"key", "reference", "content_hash"}`. `GET <address>/by-key/<key>` gives the same object, or `404`; `GET
<address>/keys` gives `{"keys": [...]}` with all of them, or `404`, `405` or `501` where it lists none.

The key goes out bare, as most systems take it, not quoted as the IETF draft writes it.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from countersign.domain.channel import Takes
from countersign.domain.errors import InputRefused
from countersign.domain.execution import OUTSIDE_CONFLICT, Receipt
from countersign.domain.strict_json import parse
from countersign.domain.values import Sha256
from countersign.gateway.channels import Channel, ChannelFailure, Check, NotSent, OutcomeUnknown, Refused, always
from countersign.gateway.http_calls import Answer, Caller, checked_address

_DOCUMENT, _JSON = "text/markdown; charset=utf-8", "application/json"
"""Media types of what goes out."""
_GRACE = timedelta(seconds=1)
"""What giving up a call may take beyond its time limit."""
_LIST_BYTES = 64 * 1024 * 1024
"""A list of keys may be longer than any other answer."""
_PROBLEM_CODE = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class Limits:
    """How long one call may take, and how long the outside remembers it."""

    connect: timedelta = timedelta(seconds=5)
    total: timedelta = timedelta(seconds=10)
    """From the first packet to the last byte of the answer."""
    keys_kept: timedelta | None = timedelta(hours=24)
    """None: for ever. The default is what the most forgetful of the well-known services promises."""
    lands_within: timedelta = timedelta(minutes=5)
    """How long a request that was given up may wait on its way, or in the service, until it takes effect."""


DEFAULT = Limits()


class _Receipt(BaseModel):
    """An effect as the outside tells it; it may say more than we read."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    key: Annotated[str, Field(max_length=500)]
    reference: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,500}$")]
    content_hash: Sha256


class _Receipts(BaseModel):
    """All of them."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    keys: list[_Receipt]


class HttpChannel:
    """Publishes to one HTTP service."""

    def __init__(
        self,
        name: str,
        url: str,
        token: SecretStr,
        side_effect: str,
        limits: Limits = DEFAULT,
        *,
        takes: Takes = "documents",
    ) -> None:
        """What it `takes` is posted to `url` with the bearer token, looked up at `url/by-key/<key>`, and listed at
        `url/keys`; no other address is ever called, since no redirect is followed.

        Raises:
            ConfigurationRefused: the address or the token is not usable.
        """
        self._url = checked_address(f"channel {name!r}: url", url)
        self._caller = Caller(name, token, limits.connect)
        self.name = name
        self.side_effect = side_effect
        self.takes = takes
        self.keys_kept = limits.keys_kept
        self.lands_within = limits.lands_within
        self.time_limit = limits.total + _GRACE
        self._limits = limits
        self._media_type = _DOCUMENT if takes == "documents" else _JSON

    def send(self, key: str, name: str, document: bytes, content_hash: Sha256, check: Check = always) -> Receipt:
        """See `Channel.send`; without a `name` where what goes out is no document."""
        digest = base64.b64encode(bytes.fromhex(content_hash.removeprefix("sha256:"))).decode()
        headers = {
            "Idempotency-Key": key,
            "Content-Type": self._media_type,
            "Content-Digest": f"sha-256=:{digest}:",
            **({"Content-Disposition": f'attachment; filename="{name}"'} if name else {}),
        }
        ends = time.monotonic() + self._limits.total.total_seconds()
        answer = self._caller.post(self._url, headers, document, self._limits.total, check)
        if answer.status in (200, 201):
            return self._receipt(answer.body)
        if answer.status == 422:
            return self._held_or_refused(key, content_hash, answer, timedelta(seconds=ends - time.monotonic()))
        raise _meaning_of(answer.status)

    def look_up(self, key: str) -> Receipt | None:
        """See `Channel.look_up`."""
        return self._looked_up(key, self._limits.total)

    def held(self) -> Sequence[Receipt] | None:
        """See `Channel.held`."""
        answer = self._asked(f"{self._url}/keys", self._limits.total, max_bytes=_LIST_BYTES)
        if answer.status in (404, 405, 501):
            return None
        if answer.status != 200:
            raise OutcomeUnknown("lookup_failed", f"the list of keys was answered with {answer.status}")
        try:
            listed = _Receipts.model_validate(parse(answer.body, where="the answer", max_bytes=_LIST_BYTES))
        except (InputRefused, ValidationError):
            raise self._caller.unreadable("it holds no list of receipts") from None
        return [self._told(receipt) for receipt in listed.keys]

    def reversing(self) -> Channel | None:
        """See `Channel.reversing`; what was published by a call has been read by then."""
        return None

    def _held_or_refused(self, key: str, content_hash: Sha256, answer: Answer, within: timedelta) -> Receipt:
        """What a `422` means: the service says so of a key with another body, and of what its own rules forbid."""
        held = self._looked_up(key, within)
        if held is None:
            code = _problem_code(answer.body)
            raise Refused("outside_refused", f"the outside refuses this document (422{f', {code}' if code else ''})")
        if (held.key, held.content_hash) != (key, content_hash):
            raise OutcomeUnknown(
                OUTSIDE_CONFLICT, "the outside holds another document under this key (422); a person must look"
            )
        return held

    def _looked_up(self, key: str, within: timedelta) -> Receipt | None:
        answer = self._asked(f"{self._url}/by-key/{key}", within)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise OutcomeUnknown("lookup_failed", f"the look-up was answered with {answer.status}; try again later")
        return self._receipt(answer.body)

    def _asked(self, url: str, within: timedelta, **bounds: int) -> Answer:
        try:
            return self._caller.get(url, within, **bounds)
        except NotSent as failure:
            raise OutcomeUnknown("lookup_failed", failure.message) from None

    def _receipt(self, body: bytes) -> Receipt:
        try:
            return self._told(_Receipt.model_validate(parse(body, where="the answer")))
        except (InputRefused, ValidationError):
            raise self._caller.unreadable("it holds no receipt") from None

    def _told(self, told: _Receipt) -> Receipt:
        reference = self._caller.masked(told.reference)
        return Receipt(channel=self.name, key=told.key, reference=reference, content_hash=Sha256(told.content_hash))


def _meaning_of(status: int) -> ChannelFailure:
    """What a status other than success says about the effect.

    Only the answers by which the service itself says that it did nothing count as not sent. `503` is not among them:
    proxies answer with it after they have passed a request on, so it is looked up first, like every other `5xx`.
    """
    if status == 429:
        return NotSent("rate_limited", "the outside asks to come later (429)")
    if status in (202, 409):
        return OutcomeUnknown("still_running", f"the outside is still working on this key ({status})")
    if 400 <= status < 500 and status != 408:
        return NotSent("not_accepted", f"the outside did not accept the request ({status}); check address and token")
    if 300 <= status < 400:
        return OutcomeUnknown("redirected", f"the outside answered with a redirect ({status}), which is not followed")
    return OutcomeUnknown("outside_error", f"the outside answered with {status}")


def _problem_code(body: bytes) -> str:
    """The `code` of a problem, where it is plainly one: the outside's words are data, and no more of them is kept."""
    try:
        code = parse(body, where="the answer")["code"]
    except (InputRefused, KeyError, TypeError, IndexError):
        return ""
    return code if isinstance(code, str) and _PROBLEM_CODE.fullmatch(code) else ""
