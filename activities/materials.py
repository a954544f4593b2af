"""A case's material for the length of one step, given back whatever comes, a cancel while it is being read included."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from countersign.cases.case import DraftedCase
from countersign.domain.operation import Operation
from countersign.domain.question import Asked
from countersign.domain.values import Value
from countersign.ports import Material

D = TypeVar("D", bound=Value)
M = TypeVar("M", bound=Material)


@asynccontextmanager
async def opened(case: DraftedCase[D, M], operation: Operation, believed: Sequence[Asked]) -> AsyncIterator[M]:
    """Read it in a thread, which no cancel can stop: one that comes meanwhile closes what the thread brings."""
    opening = asyncio.ensure_future(asyncio.to_thread(case.open, operation, believed))
    try:
        material = await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_result)
        raise
    try:
        yield material
    finally:
        material.close()


def _close_result(opening: asyncio.Future[M]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
