"""The heartbeat beside a long step: it beats, ends with the step, and never lets the step go on unseen."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities import heartbeats as module
from activities.heartbeats import heartbeats


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.01)


async def test_it_beats_until_the_body_is_done() -> None:
    beats: list[tuple[Any, ...]] = []
    enough = asyncio.Event()

    def on_heartbeat(*details: Any) -> None:
        beats.append(details)
        if len(beats) == 3:
            enough.set()

    async def step() -> str:
        async with heartbeats():
            await enough.wait()
        return "done"

    environment = ActivityEnvironment()
    environment.on_heartbeat = on_heartbeat
    before = asyncio.all_tasks()
    assert await environment.run(step) == "done"
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_body_whose_heartbeat_fails_is_cancelled() -> None:
    ended: list[str] = []

    def on_heartbeat(*_: Any) -> None:
        raise ConnectionError("the server is gone")

    async def step() -> None:
        try:
            async with heartbeats():
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    environment = ActivityEnvironment()
    environment.on_heartbeat = on_heartbeat
    with pytest.raises(asyncio.CancelledError):
        await environment.run(step)
    assert ended == ["cancelled"]


async def test_a_cancelled_step_stops_its_body_and_its_beats() -> None:
    begun = asyncio.Event()

    async def step() -> None:
        async with heartbeats():
            begun.set()
            await asyncio.Event().wait()

    environment = ActivityEnvironment()
    before = asyncio.all_tasks()
    running = asyncio.create_task(environment.run(step))
    await begun.wait()
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_failing_body_fails_as_it_would_alone() -> None:
    async def step() -> None:
        async with heartbeats():
            raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        await ActivityEnvironment().run(step)
