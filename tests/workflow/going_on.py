"""Runs that go on in a next one after a few events, instead of thousands: a server for that, and what was handed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from countersign.domain.run import RunStatus
from countersign.domain.state import State
from tests.support.installation import Installation, new_installation
from tests.support.temporal import GOES_ON_AFTER, running_dev_server
from tests.workflow.acting import Run, records
from workflows.carrying import Carried, RunInput


@asynccontextmanager
async def going_on_after(events: int, home: Path) -> AsyncIterator[Installation]:
    """An installation on a server that suggests to go on in a next run after so many events."""
    server = running_dev_server({GOES_ON_AFTER: events})
    address = await asyncio.to_thread(server.__enter__)
    try:
        client = await Client.connect(address, data_converter=pydantic_data_converter)
        made = new_installation(home, client)
        yield made
        made.ledger.close()
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


async def gone_on(run: Run) -> int:
    """Send what means nothing until the run has gone on in a next one, which has taken it on; how much that was."""
    before, sent = (await run.describe()).run_id, 0
    while (await run.describe()).run_id == before:
        await run.signal("noise")
        sent += 1
        await run.query("status")
    async with asyncio.timeout(30):
        while (await run.query("status", result_type=RunStatus)).state == State.CREATED:
            await asyncio.sleep(0.05)
    return sent


async def inputs(installation: Installation, run: Run) -> list[Carried]:
    """What each run was handed, oldest first; the one that began was handed nothing."""
    found = []
    async for one in installation.client.list_workflows(f"WorkflowId = '{run.id}'"):
        handle = installation.client.get_workflow_handle(run.id, run_id=one.run_id)
        async for event in handle.fetch_history_events():
            payloads = event.workflow_execution_started_event_attributes.input.payloads
            (given,) = await installation.client.data_converter.decode(payloads, [RunInput])
            found.append((one.start_time, given.carried))
            break
    return [carried for _, carried in sorted(found, key=lambda pair: pair[0]) if carried is not None]


async def until_handed_on_in(installation: Installation, run: Run, state: State) -> Carried:
    """What a run handed on in that state."""
    async with asyncio.timeout(30):
        while True:
            found = [carried for carried in await inputs(installation, run) if carried.state == state]
            if found:
                return found[-1]
            await asyncio.sleep(0.1)


def assert_handed_on_and_taken_on(installation: Installation, at_least: int) -> None:
    """Each run but the last handed on once, to one that took it on."""
    handed, taken = (records(installation, f"run.{what}_on") for what in ("handed", "taken"))
    assert len(handed) == len(taken) >= at_least
    assert len({one["line"] for one in (*handed, *taken)}) == 1
