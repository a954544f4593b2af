"""One installation with everything around it, each part a process that can be killed and comes back where it was.

It is kept up from one round to the next; a round brings back only what it has killed.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypeVar

from temporalio.client import Client, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from activities.interfaces import RunOrder
from countersign.cli.demos.dev_server import free_port, server_command
from countersign.domain.identity import workflow_id
from countersign.domain.run import RunResult
from tests.chaos.points import Points
from tests.chaos.refunds import Outside
from tests.support.installation import Installation, new_installation
from tests.support.processes import Processes, RunningProcess
from workflows.carrying import RunInput
from workflows.governed_action import GovernedAction
from workflows.names import RUN_QUEUE

Part = Literal["gateway", "agent", "temporal", "service"]
PARTS: tuple[Part, ...] = ("gateway", "agent", "temporal", "service")

CALL_LIMIT = timedelta(seconds=10)
"""What the server may take for an answer; one that was killed breaks the connection at once."""
TASK_LIMIT = timedelta(seconds=2)
"""What a workflow task may take; a killed worker's task is given to another after it. The default is 10 s."""
PAUSE_SECONDS = 0.1
Answer = TypeVar("Answer")


class World:
    """Temporal server, agent worker, gateway worker and outside service over one SQLite ledger."""

    installation: Installation

    def __init__(self, folder: Path, outside: Outside) -> None:
        folder.mkdir(parents=True)
        self.points = Points(folder)
        self.outside = outside
        self._folder = folder
        self._processes = Processes(folder)
        self._running: dict[Part, RunningProcess] = {}
        self._temporal_port, self._ui_port, self._service_port = free_port(), free_port(), free_port()

    async def open(self) -> None:
        """Start every part."""
        await self.start("temporal")
        address = f"127.0.0.1:{self._temporal_port}"
        client = await Client.connect(address, data_converter=pydantic_data_converter)
        url = f"http://127.0.0.1:{self._service_port}"
        self.installation = self.outside.prepared(new_installation(self._folder / "home", client), self._folder, url)
        for part in ("service", "gateway", "agent"):
            await self.start(part)

    def close(self) -> None:
        """Kill every part."""
        self._processes.close()
        self.installation.ledger.close()

    def kill(self, part: Part) -> None:
        """kill -9."""
        self._running[part].kill()

    async def start(self, part: Part) -> None:
        """Bring a part up where it was, and wait until it is ready."""
        environment = {}
        if part in ("gateway", "agent"):
            environment = self.installation.environment()
        if part in ("gateway", "service"):
            environment |= self.outside.credentials
        started = self._processes.start(self._command(part), name=part, env=environment)
        self._running[part] = started
        if part in ("gateway", "agent"):
            await asyncio.to_thread(started.wait_for_line, "worker ready", 60.0)
        else:
            await _listening(self._temporal_port if part == "temporal" else self._service_port)

    async def mended(self) -> str:
        """Bring back whatever ended by itself; returns what did, with its last words."""
        self.points.clear()
        ended = [part for part in PARTS if not self._running[part].is_running]
        words = [f"{part} ended by itself: {self._running[part].output[-500:]}" for part in ended]
        for part in ended:
            await self.start(part)
        return "; ".join(words)

    def _command(self, part: Part) -> list[str]:
        if part == "temporal":
            database = self._folder / "temporal.db"
            return server_command("127.0.0.1", self._temporal_port, self._ui_port, database)
        if part == "service":
            return self.outside.command(self._service_port)
        return [sys.executable, "-m", "tests.chaos.worker", part, str(self._folder)]

    async def start_run(self, order: RunOrder) -> WorkflowHandle[GovernedAction, RunResult]:
        """Start a registered operation's run, however often the server is away meanwhile."""
        id = workflow_id(order.tenant, order.operation)

        async def start() -> None:
            try:
                await self.installation.client.start_workflow(
                    GovernedAction.run, RunInput(**dict(order)), id=id, task_queue=RUN_QUEUE,
                    task_timeout=TASK_LIMIT, rpc_timeout=CALL_LIMIT,
                )  # fmt: skip
            except WorkflowAlreadyStartedError:
                # The answer to an earlier call was lost.
                return

        await persistently(start)
        return self.installation.client.get_workflow_handle_for(GovernedAction.run, id)


async def persistently(call: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask the server until it answers; whoever calls bounds the time."""
    while True:
        try:
            return await call()
        except RPCError:
            await asyncio.sleep(PAUSE_SECONDS)


async def _listening(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1):
                    return
            except OSError:
                await asyncio.sleep(0.02)
