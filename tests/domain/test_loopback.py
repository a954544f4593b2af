"""Where unsigned decisions may be taken: on this machine's loopback addresses, however another place is spelled."""

from __future__ import annotations

import pytest

from countersign.domain.channel import ChannelConfig
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.loopback import is_loopback, require_loopback

pytestmark = pytest.mark.guarantee("G04")

SQLITE = "sqlite:///var/ledger.db"
FILE = ChannelConfig(kind="file", tenants=("acme",), side_effect="internal_publication", reversibility="reversible")


def press(url: str) -> ChannelConfig:
    return ChannelConfig(
        kind="http", tenants=("acme",), url=url, side_effect="external_publication", reversibility="irreversible"
    )  # fmt: skip


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "127.255.255.254", "::1"])
def test_loopback_addresses(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "126.255.255.255", "::2", "::ffff:127.0.0.1", "localhost.",
     "Localhost", "localhost.example.com", "127.0.0.1.example.com", "127.1", "0177.0.0.1", "2130706433",
     "lоcalhost", "no host"],
)  # fmt: skip
def test_everything_else_is_elsewhere(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("temporal", ["localhost:7233", "127.0.0.1:1", "[::1]:7233"])
@pytest.mark.parametrize(
    "ledger",
    [SQLITE, "postgresql://u:p@127.0.0.1:5432/d", "postgresql://u@localhost/d", "postgresql://u@[::1]:5432/d",
     "postgresql://u@localhost,127.0.0.1:5433/d", "postgresql://u@localhost/d?host=127.0.0.1&connect_timeout=3"],
)  # fmt: skip
def test_one_machine_passes(temporal: str, ledger: str) -> None:
    require_loopback(temporal, ledger, {"internal": FILE, "press": press("http://127.0.0.1:8080/posts")})


@pytest.mark.parametrize(
    ("temporal", "ledger", "channel", "named"),
    [
        ("temporal.example.com:7233", SQLITE, "http://localhost/", "TEMPORAL_ADDRESS (temporal.example.com)"),
        ("0.0.0.0:7233", SQLITE, "http://localhost/", "TEMPORAL_ADDRESS (0.0.0.0)"),
        ("", SQLITE, "http://localhost/", "TEMPORAL_ADDRESS (no host)"),
        ("[::1", SQLITE, "http://localhost/", "TEMPORAL_ADDRESS (no host)"),
        ("localhost:1", "postgresql://u:p@db:5432/d", "http://localhost/", "DATABASE_URL (db)"),
        ("localhost:1", "postgresql:///d", "http://localhost/", "DATABASE_URL (no host)"),
        ("localhost:1", "postgresql://u@localhost,db/d", "http://localhost/", "DATABASE_URL (localhost, db)"),
        ("localhost:1", "postgresql://localhost@db/d", "http://localhost/", "DATABASE_URL (db)"),
        ("localhost:1", "postgresql://u@localhost/d?host=db", "http://localhost/", "DATABASE_URL (localhost, db)"),
        ("localhost:1", "postgresql://u@localhost/d?hostaddr=10.0.0.1", "http://localhost/", "10.0.0.1"),
        ("localhost:1", "postgresql://u@localhost/d?service=prod", "http://localhost/", "service prod"),
        ("localhost:1", SQLITE, "https://press.example.com/", "channel press (press.example.com)"),
        ("localhost:1", SQLITE, "http://localhost@press.example.com/", "channel press (press.example.com)"),
        ("localhost:1", SQLITE, "http:///posts", "channel press (no host)"),
    ],
)
def test_what_is_elsewhere_is_named(temporal: str, ledger: str, channel: str, named: str) -> None:
    with pytest.raises(ConfigurationRefused) as refused:
        require_loopback(temporal, ledger, {"press": press(channel)})

    assert named in refused.value.message
    assert "127.0.0.0/8, ::1 or localhost" in refused.value.message
    assert "u:p" not in refused.value.message


def test_every_part_that_is_elsewhere_is_named_at_once() -> None:
    with pytest.raises(ConfigurationRefused) as refused:
        require_loopback("a:1", "postgresql://b/d", {"press": press("http://c/"), "internal": FILE})

    assert "TEMPORAL_ADDRESS (a); DATABASE_URL (b); channel press (c):" in refused.value.message


@pytest.mark.parametrize("elsewhere", ["url", "orders_url"])
def test_a_payment_service_is_on_this_machine_with_both_its_addresses(elsewhere: str) -> None:
    here = {"url": "http://127.0.0.1:8090/refunds", "orders_url": "http://127.0.0.1:8090/orders"}
    fields = {"kind": "payments", "tenants": ["acme"], "side_effect": "refund", "reversibility": "correctable"}
    config = ChannelConfig.model_validate({**fields, **here})
    require_loopback("localhost:1", SQLITE, {"payments": config})
    away = config.model_copy(update={elsewhere: "https://shop.example.com/"})
    with pytest.raises(ConfigurationRefused, match=r"channel payments \(.*shop\.example\.com"):
        require_loopback("localhost:1", SQLITE, {"payments": away})
