"""Channels as they are configured: the names a request may use, and what publishing there means."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from countersign.domain.action import Reversibility
from countersign.domain.values import Value

ChannelName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]


class ChannelConfig(Value):
    """One place where reports can go."""

    kind: Literal["file", "http"]
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
