"""Channels as they are configured: who may use which, under what name, and what publishing there means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from countersign.domain.action import Reversibility
from countersign.domain.identity import TenantId
from countersign.domain.values import Value

ChannelName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]


class ChannelConfig(Value):
    """One place where reports can go."""

    kind: Literal["file", "http"]
    tenants: Annotated[tuple[TenantId, ...], Field(strict=False, min_length=1)]
    """Who may publish there. Never left out: whoever can found a tenant would have every other's ways out (G09)."""
    side_effect: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{2,63}$")]
    """What publishing there changes, in the policy's words."""
    reversibility: Reversibility
    url: Annotated[str, Field(max_length=500)] = ""
    """Where an `http` channel posts; the receipt is looked up at `URL/by-key/KEY`."""
    token_env: Annotated[str, Field(pattern=r"^([A-Z][A-Z0-9_]{0,63})?$")] = ""
    """Environment variable of the gateway process that holds the bearer token of an `http` channel."""

    @model_validator(mode="after")
    def _url_for_http(self) -> ChannelConfig:
        if (self.kind == "http") != bool(self.url):
            raise ValueError("an http channel needs 'url', a file channel has none")
        return self


class Channels(Value):
    """The file `channels.yaml`."""

    channels: Annotated[dict[ChannelName, ChannelConfig], Field(min_length=1)]


def not_configured(name: str, tenant: str, allowed: Iterable[str]) -> str:
    """The refusal of a channel that the tenant does not have, whether or not another one does (G09)."""
    own = ", ".join(sorted(allowed)) or "none"
    return f"channel {name!r} is not configured for tenant {tenant}; allowed: {own}"
