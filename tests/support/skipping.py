"""An installation on the time-skipping server: days of waiting pass in milliseconds, for the run and for its steps.

Apart from the installation, since here a test moves the clock: it stands still but for `pass_time`, and for a run that
is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from google.protobuf.empty_pb2 import Empty
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from tests.support.installation import Installation, new_installation
from tests.support.temporal import time_skipping_environment


class ServersClock:
    """The server's time, for steps wherever they run: asked over a connection and a loop of its own."""

    def __init__(self, address: str) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._client = self._runner.run(Client.connect(address))
        self._asking = ThreadPoolExecutor(1)

    def __call__(self) -> datetime:
        """Now, there."""
        return self._asking.submit(self._ask).result(10)

    def close(self) -> None:
        """Give the connection back."""
        self._asking.shutdown()
        self._runner.close()

    def _ask(self) -> datetime:
        answer = self._runner.run(self._client.test_service.get_current_time(Empty()))
        return answer.time.ToDatetime().replace(tzinfo=UTC)


class Skipping:
    """The installation with its server."""

    def __init__(self, installation: Installation, environment: WorkflowEnvironment) -> None:
        self.installation = installation
        self.environment = environment

    async def pass_time(self, time: timedelta) -> None:
        """Let that much time pass for everything that waits."""
        await self.environment.sleep(time)

    async def now(self) -> datetime:
        """The server's time."""
        return await self.environment.get_current_time()


@asynccontextmanager
async def skipping_installation(home: Path, **settings: Any) -> AsyncIterator[Skipping]:
    """An installation with a time-skipping server of its own."""
    async with time_skipping_environment() as environment:
        made = new_installation(home, environment.client, **settings)
        clock = await asyncio.to_thread(ServersClock, environment.client.service_client.config.target_host)
        yield Skipping(replace(made, clock=clock), environment)
        await asyncio.to_thread(clock.close)
        made.ledger.close()
