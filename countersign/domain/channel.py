"""Channels as they are configured: who may use which, under what name, and what publishing there means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from countersign.domain.action import Reversibility
from countersign.domain.errors import ConfigurationRefused, InputRefused
from countersign.domain.identity import TenantId
from countersign.domain.values import Value

ChannelName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
Takes = Literal["documents", "refunds", "reversals"]
"""What can go out by a channel; no tool sends one kind where another is taken."""
KindName = Literal["file", "http", "payments"]


class ChannelKind(NamedTuple):
    """What all channels of one kind have in common, whether or not they can be reached now."""

    takes: Takes
    takes_back: bool
    """Whether what it did can be taken back the same way."""
    has_url: bool
    """Whether it is a service with an address."""
    has_orders: bool = False
    """Whether it has a second address, where orders are read."""


KINDS: Mapping[KindName, ChannelKind] = {
    "file": ChannelKind("documents", takes_back=True, has_url=False),
    # What was published by a call has been read by then.
    "http": ChannelKind("documents", takes_back=False, has_url=True),
    "payments": ChannelKind("refunds", takes_back=True, has_url=True, has_orders=True),
}
"""Every kind that a channel can be configured as."""


class ChannelConfig(Value):
    """One place where effects can go."""

    kind: KindName
    tenants: Annotated[tuple[TenantId, ...], Field(strict=False, min_length=1)]
    """Who may publish there. Never left out: whoever can found a tenant would have every other's ways out (G09)."""
    side_effect: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{2,63}$")]
    """What publishing there changes, in the policy's words."""
    reversibility: Reversibility
    url: Annotated[str, Field(max_length=500)] = ""
    """Where a channel of a kind with a `url` posts; the receipt is looked up at `URL/by-key/KEY`."""
    orders_url: Annotated[str, Field(max_length=500)] = ""
    """Where a kind with orders reads them: `ORDERS_URL/ORDER`."""
    token_env: Annotated[str, Field(pattern=r"^([A-Z][A-Z0-9_]{0,63})?$")] = ""
    """Environment variable of the gateway process that holds the bearer token of a channel with a `url`."""
    optional: bool = False
    """Whether the gateway starts where its token is not set; what is to go there then waits until it is."""

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses that it calls."""
        return tuple(url for url in (self.url, self.orders_url) if url)

    @property
    def takes(self) -> Takes:
        """What can go out by it."""
        return KINDS[self.kind].takes

    @property
    def takes_back(self) -> bool:
        """Whether what it did can be taken back the same way, as far as its kind is concerned."""
        return KINDS[self.kind].takes_back

    @model_validator(mode="after")
    def _places_of_kind(self) -> ChannelConfig:
        kind = KINDS[self.kind]
        for field, given, wanted in (
            ("orders_url", self.orders_url, kind.has_orders),
            ("url", self.url, kind.has_url),
        ):
            if wanted != bool(given):
                raise ValueError(f"a channel of kind {self.kind} {'needs' if wanted else 'has no'} '{field}'")
        if kind.has_orders and len(self.tenants) > 1:
            # One credential reads every order there: nothing outside would keep two tenants' apart.
            raise ValueError(f"a channel of kind {self.kind} has one tenant, whose orders it reads; give each its own")
        if self.optional and not self.token_env:
            raise ValueError("'optional' is for a channel with 'token_env'")
        return self


class Channels(Value):
    """The file `channels.yaml`."""

    channels: Annotated[dict[ChannelName, ChannelConfig], Field(min_length=1)]


def channel_of(name: str, tenant: str, channels: Mapping[str, ChannelConfig]) -> ChannelConfig:
    """The tenant's channel of that name; ConfigurationRefused names those that it has."""
    own = {each: config for each, config in channels.items() if tenant in config.tenants}
    try:
        return own[name]
    except KeyError:
        raise ConfigurationRefused(not_configured(name, tenant, own)) from None


def channel_taking(takes: Takes, name: str, tenant: str, channels: Mapping[str, ChannelConfig]) -> ChannelConfig:
    """The tenant's channel of that name, for what is to go out by it.

    Raises:
        ConfigurationRefused: the tenant has none of that name; as `channel_of`.
        InputRefused: it takes something else; names those that are suitable.
    """
    found = channel_of(name, tenant, channels)
    if found.takes != takes:
        suitable = [each for each, one in channels.items() if tenant in one.tenants and one.takes == takes]
        allowed = ", ".join(sorted(suitable)) or "none"
        raise InputRefused(f"channel {name!r} takes {found.takes}, not {takes}; allowed: {allowed}")
    return found


def not_configured(name: str, tenant: str, allowed: Iterable[str]) -> str:
    """The refusal of a channel that the tenant does not have, whether or not another one does (G09)."""
    own = ", ".join(sorted(allowed)) or "none"
    return f"channel {name!r} is not configured for tenant {tenant}; allowed: {own}"
