"""The whole run against a bare workflow with as many steps, on one server, in one process, in one go: ratios only."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributeKey
from temporalio.contrib.pydantic import pydantic_data_converter

from countersign.domain.state import State
from countersign.worker_process import worker
from tests.bench import figure
from tests.bench.bare import OTHER_QUEUE, QUEUE, Bare, bare_step
from tests.support.installation import Installation, new_installation
from tests.support.temporal import running_dev_server
from workflows.names import STATE

PAIRS = int(os.environ.get("PAIRS", "15"))
MANY = int(os.environ.get("MANY", "40"))
AT_ONCE = 8

Timed = tuple[float, float]
"""Seconds in all, and from the decision to the end."""


async def measure(installation: Installation) -> None:
    """Print the figures."""
    await one_of_ours(installation, "warm-0"), await one_bare(installation.client, "warm-0")
    ours, bare = [], []
    for number in range(PAIRS):
        ours.append(await one_of_ours(installation, f"pair-{number}"))
        bare.append(await one_bare(installation.client, f"pair-{number}"))
    figure("run_wall_time_to_bare", _ratio(ours, bare, 0), 1.3)
    figure("decision_to_published_to_bare", _ratio(ours, bare, 1), 1.5)
    mine = await rate(lambda name: one_of_ours(installation, name))
    theirs = await rate(lambda name: one_bare(installation.client, name))
    figure("runs_per_second_to_bare", mine / theirs, 0.7)
    history = await installation.client.get_workflow_handle("acme:pair-0").fetch_history()
    figure("history_events", len(history.events), 45)
    figure("history_kilobytes", sum(event.ByteSize() for event in history.events) / 1000, 40)


async def one_of_ours(installation: Installation, name: str) -> Timed:
    """A run of the report case, decided by a signal as soon as it waits."""
    order = installation.register(name)
    start = time.perf_counter()
    run = await installation.start_unchecked(order)

    await _until_it_waits(run)
    message = installation.decision(installation.proposal(name), "bob")
    decided = time.perf_counter()
    await run.signal("decide", message)
    result = await run.result()
    assert result.state == State.SUCCEEDED, result
    return time.perf_counter() - start, time.perf_counter() - decided


async def one_bare(client: Client, name: str) -> Timed:
    """The same with nothing in it."""
    start = time.perf_counter()
    run = await client.start_workflow(Bare.run, "x" * 100, id=f"bare:{name}", task_queue=QUEUE)
    await _until_it_waits(run)
    decided = time.perf_counter()
    await run.signal(Bare.decide, {"statement": "x" * 600})
    await run.result()
    return time.perf_counter() - start, time.perf_counter() - decided


async def rate(one: Callable[[str], Awaitable[Timed]]) -> float:
    """Runs per second with some at once."""
    places = asyncio.Semaphore(AT_ONCE)

    async def in_its_place(number: int) -> None:
        async with places:
            await one(f"many-{number}")

    start = time.perf_counter()
    await asyncio.gather(*(in_its_place(number) for number in range(MANY)))
    return MANY / (time.perf_counter() - start)


async def _until_it_waits(run: WorkflowHandle[Any, Any]) -> None:
    """Asks the server, not the workflow: a query in the middle of a task would cost tasks of its own."""
    state = SearchAttributeKey.for_keyword(STATE)
    while (await run.describe()).typed_search_attributes.get(state) != State.WAITING_APPROVAL:
        await asyncio.sleep(0.005)


def _ratio(ours: list[Timed], bare: list[Timed], part: int) -> float:
    return median(mine[part] for mine in ours) / median(theirs[part] for theirs in bare)


@asynccontextmanager
async def _everything() -> AsyncIterator[Installation]:
    server = running_dev_server()
    address = await asyncio.to_thread(server.__enter__)
    try:
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(16) as threads:
            client = await Client.connect(address, data_converter=pydantic_data_converter)
            installation = new_installation(Path(folder), client)
            async with (
                installation.workers(),
                worker(client, QUEUE, [bare_step], threads, workflows=[Bare]),
                worker(client, OTHER_QUEUE, [bare_step], threads),
            ):
                yield installation
            installation.ledger.close()
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


async def _main() -> None:
    async with _everything() as installation:
        await measure(installation)


def main() -> None:
    """Measure and print."""
    asyncio.run(_main())
