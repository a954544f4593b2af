"""Whether the parts of an installation are reached on this machine alone, which the `dev` profile demands. Pure.

Apart because it guards unsigned decisions: a place that cannot be read surely counts as elsewhere.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs, urlsplit

from countersign.domain.channel import ChannelConfig
from countersign.domain.errors import ConfigurationRefused

_LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
_HOST_PARAMETERS = ("host", "hostaddr")
"""Parameters of a PostgreSQL address that name a host beside, or instead of, the one in its usual place."""


def require_loopback(temporal: str, ledger_url: str, channels: Mapping[str, ChannelConfig]) -> None:
    """Refuse unsigned decisions wherever something could be reached from, or could reach, another machine.

    Args:
        temporal: the Temporal server's `host:port`.
        ledger_url: the ledger's address.
        channels: the configured channels by name.

    Raises:
        ConfigurationRefused: names each part that is not on a loopback address.
    """
    hosts: dict[str, list[str]] = {"TEMPORAL_ADDRESS": [_host(f"//{temporal}")]}
    if not ledger_url.startswith("sqlite:"):
        hosts["DATABASE_URL"] = list(_database_hosts(ledger_url))
    hosts |= {f"channel {name}": [_host(url) for url in config.urls] for name, config in channels.items()}
    elsewhere = [f"{part} ({', '.join(found)})" for part, found in hosts.items() if not all(map(is_loopback, found))]
    if elsewhere:
        raise ConfigurationRefused(
            f"COUNTERSIGN_PROFILE=dev: {'; '.join(elsewhere)}: decisions that nobody signed are taken on loopback "
            "addresses only: 127.0.0.0/8, ::1 or localhost; use those, or COUNTERSIGN_PROFILE=signed"
        )


def is_loopback(host: str) -> bool:
    """Whether a host is `localhost`, in 127.0.0.0/8 or ::1; other names are not looked up, and mapped forms refused."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in _LOOPBACK)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "no host"
    except ValueError:
        return "no host"


def _database_hosts(url: str) -> Iterator[str]:
    """Every host that PostgreSQL's driver may try: several can stand in the address, and more in its parameters."""
    parts = urlsplit(url)
    for server in parts.netloc.rpartition("@")[2].split(","):
        yield _host(f"//{server}")
    parameters = parse_qs(parts.query)
    for name in _HOST_PARAMETERS:
        for value in parameters.get(name, []):
            yield from value.split(",")
    if "service" in parameters:
        yield f"service {parameters['service'][0]}"
