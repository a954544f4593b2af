"""The heartbeat of a long step: Temporal learns that a worker is gone, and the step that it is no longer wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity

HEARTBEAT_SECONDS = 5.0


@asynccontextmanager
async def heartbeats() -> AsyncIterator[None]:
    """Heartbeat while the body runs; if heartbeating fails, the body must not go on unseen, so it is cancelled."""
    body = asyncio.current_task()
    assert body is not None

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    def stop_body(beating: asyncio.Task[None]) -> None:
        if not beating.cancelled() and beating.exception() is not None:
            body.cancel()

    beating = asyncio.create_task(beat())
    beating.add_done_callback(stop_body)
    try:
        yield
    finally:
        beating.cancel()
