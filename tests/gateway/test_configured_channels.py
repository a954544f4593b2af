"""Channels as they are wired from channels.yaml: an optional one waits for its token, any other one stops the start."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree
from typing import get_args

import pytest

from countersign import bootstrap
from countersign.domain.channel import KINDS, ChannelConfig, ChannelKind, KindName
from countersign.domain.errors import ConfigurationRefused
from countersign.gateway.channels import Channel
from countersign.gateway.inactive_channel import InactiveChannel, InactivePayments
from countersign.gateway.payments_channel import PaymentsChannel
from countersign.settings import ROOT, Settings
from tests.gateway.world import World

PLACES = {"url": "http://127.0.0.1:8090/refunds", "orders_url": "http://127.0.0.1:8090/orders"}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("PAYMENTS_TOKEN", raising=False)
    monkeypatch.delenv("PRESS_TOKEN", raising=False)
    copytree(ROOT / "policies", tmp_path / "policies")
    return Settings(home=tmp_path / "home", policies=tmp_path / "policies")


def wired(settings: Settings, config: ChannelConfig) -> Channel:
    return bootstrap._channel(settings, "acme", "payments", config)


def shipped(settings: Settings) -> ChannelConfig:
    return bootstrap.load_channels(settings)["payments"]


def test_as_shipped_the_gateway_starts_without_a_token_and_refunds_wait(settings: Settings, world: World) -> None:
    bootstrap.gateway(settings, world.ledger)
    channel = wired(settings, shipped(settings))
    assert isinstance(channel, InactivePayments)
    assert (channel.name, channel.side_effect) == ("payments", "refund")


def test_with_its_token_it_is_a_channel_to_the_service(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAYMENTS_TOKEN", "a-token")
    channel = wired(settings, shipped(settings))
    assert isinstance(channel, PaymentsChannel)
    back = channel.reversing()
    assert back is not None
    assert back.side_effect == "refund_reversal"


@pytest.mark.parametrize("kind", ["http", "payments"])
def test_a_channel_that_is_not_optional_stops_the_start_without_its_token(settings: Settings, kind: str) -> None:
    places = PLACES if kind == "payments" else {"url": PLACES["url"]}
    fields = {"tenants": ["acme"], "token_env": "PRESS_TOKEN", "side_effect": "refund", "reversibility": "correctable"}
    config = ChannelConfig.model_validate({"kind": kind, **places, **fields})
    with pytest.raises(ConfigurationRefused, match="PRESS_TOKEN is not set"):
        wired(settings, config)
    assert isinstance(wired(settings, config.model_copy(update={"optional": True})), InactiveChannel)


def test_each_kind_is_wired_as_what_it_is_said_to_take_and_to_take_back(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests, cases and policies are judged by what is said of the kind, before there is any channel."""
    assert set(get_args(KindName)) == KINDS.keys()
    for name, kind in KINDS.items():
        places = {"url": PLACES["url"] if kind.has_url else "", "orders_url": PLACES["orders_url"] * kind.has_orders}
        fields = {"tenants": ["acme"], "token_env": "PRESS_TOKEN", "side_effect": "deed", "reversibility": "reversible"}
        config = ChannelConfig.model_validate({"kind": name, "optional": True, **places, **fields})
        for token in ("", "a-token"):
            monkeypatch.setenv("PRESS_TOKEN", token)
            _check_kind(kind, wired(settings, config))


def _check_kind(kind: ChannelKind, channel: Channel) -> None:
    back = channel.reversing()
    assert (channel.takes, back is not None) == (kind.takes, kind.takes_back)
    assert back is None or (back.takes, back.side_effect, back.reversing()) == ("reversals", "deed_reversal", None)
    assert hasattr(channel, "facts") == (kind.takes == "refunds")


@pytest.mark.guarantee("G39")
def test_its_token_is_among_the_secrets_that_no_drafting_process_may_hold(settings: Settings) -> None:
    assert "PAYMENTS_TOKEN" in bootstrap.secret_variables(settings)
