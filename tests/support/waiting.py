"""Waiting for something to become so, by asking; never by sleeping for luck."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from temporalio.client import WorkflowHandle

from countersign.domain.run import RunStatus
from countersign.domain.state import State


async def until_state(run: WorkflowHandle[Any, Any], state: State, *, seconds: float = 60) -> RunStatus:
    """The run's status once it is in `state`; fails when it ended elsewhere or time is up."""
    async with asyncio.timeout(seconds):
        while True:
            status: RunStatus = await run.query("status", result_type=RunStatus)
            if status.state == state:
                return status
            assert not status.state.terminal, f"the run ended in {status.state} ({status.reason}), not {state}"
            await asyncio.sleep(0.05)


async def until_messages(run: WorkflowHandle[Any, Any], count: int, *, seconds: float = 120) -> RunStatus:
    """The run's status once it has ruled on `count` messages."""
    async with asyncio.timeout(seconds):
        while True:
            status: RunStatus = await run.query("status", result_type=RunStatus)
            if status.messages >= count and status.waiting == 0:
                return status
            await asyncio.sleep(0.05)


async def eventually(holds: Callable[[], bool], *, seconds: float = 60) -> None:
    """Return once `holds`; fails when time is up."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(holds):
            await asyncio.sleep(0.02)
