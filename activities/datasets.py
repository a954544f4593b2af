"""A dataset for the length of one step, given back whatever comes, a cancel while it is being read included."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from countersign.domain.draft import DatasetRef
from countersign.ports import DatasetReader, Evidence


@asynccontextmanager
async def opened(evidence: Evidence, tenant: str, dataset: DatasetRef) -> AsyncIterator[DatasetReader]:
    """Read it in a thread, which no cancel can stop: one that comes meanwhile closes what the thread brings."""
    opening = asyncio.ensure_future(asyncio.to_thread(evidence.open, tenant, dataset))
    try:
        reader = await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_result)
        raise
    try:
        yield reader
    finally:
        reader.close()


def _close_result(opening: asyncio.Future[DatasetReader]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
