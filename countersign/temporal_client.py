"""The one way to reach a Temporal server: the standard environment and profile settings, and errors in plain words."""

from __future__ import annotations

import re

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.service import RPCError

from countersign.domain.errors import ConfigurationRefused, Unavailable
from workflows.names import SEARCH_ATTRIBUTES

DEFAULT_ADDRESS = "localhost:7233"


async def connect(runtime: Runtime | None = None) -> Client:
    """Connect as TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_*, TEMPORAL_PROFILE and the
    profile file say; with none of them set, to the dev server's address on this machine.

    Args:
        runtime: what the client and its workers run on, where it is not the SDK's own (`measured`).

    Raises:
        ConfigurationRefused: a profile that is not there, a file that cannot be read.
        Unavailable: no server answers at the address.
    """
    config = _config()
    address = config["target_host"]
    try:
        return await Client.connect(**config, data_converter=pydantic_data_converter, runtime=runtime)
    except (RPCError, RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0][:200]
        raise Unavailable(
            f"no Temporal server answers at {address} ({reason}); start one with: .venv/bin/python starter.py server,"
            " or set TEMPORAL_ADDRESS"
        ) from None


def measured(address: str) -> Runtime | None:
    """What serves this process's metrics in Prometheus' form at `http://ADDRESS/metrics`; None where none is given.

    ConfigurationRefused where nothing can be served there.
    """
    if not address:
        return None
    try:
        return Runtime(telemetry=TelemetryConfig(metrics=PrometheusConfig(bind_address=address)))
    except ValueError as error:
        raise ConfigurationRefused(
            f"setting COUNTERSIGN_METRICS_ADDRESS: metrics cannot be served at {address!r}: {error}; give an address of"
            " this machine in numbers and a free port, such as 127.0.0.1:9464"
        ) from None


def server_address() -> str:
    """The `host:port` that `connect` would connect to; ConfigurationRefused as there."""
    return str(_config()["target_host"])


def _config() -> ClientConnectConfig:
    try:
        config = ClientConfig.load_client_connect_config()
    except (RuntimeError, ValueError, OSError) as error:
        raise ConfigurationRefused(
            f"Temporal settings: {error}; see TEMPORAL_PROFILE and TEMPORAL_CONFIG_FILE"
        ) from None
    config.setdefault("target_host", DEFAULT_ADDRESS)
    return config


def value_type(kind: str) -> str:
    """The API's name of a search attribute type: `INDEXED_VALUE_TYPE_KEYWORD_LIST` of `KeywordList`."""
    return "INDEXED_VALUE_TYPE" + re.sub("(?=[A-Z])", "_", kind).upper()


async def missing_search_attributes(client: Client) -> list[str]:
    """Names of ours that the namespace does not have; a run's upsert of one would fail for ever.

    Raises:
        ConfigurationRefused: one is there with another type, which only its removal by hand can change.
    """
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    known = {name: IndexedValueType.Name(number) for name, number in answer.custom_attributes.items()}
    for name, kind in SEARCH_ATTRIBUTES.items():
        if known.get(name, value_type(kind)) != value_type(kind):
            raise ConfigurationRefused(
                f"search attribute {name} is registered as {known[name]}, not {value_type(kind)}; remove it with:"
                f" .venv/bin/temporal operator search-attribute remove --name {name}, then run:"
                " .venv/bin/python starter.py doctor --fix"
            )
    return [name for name in SEARCH_ATTRIBUTES if name not in known]
