"""What a cancel of the run must not tear apart, and where it is honoured.

Temporal delivers a cancel once, into whatever is awaited then; a step that ends all the same swallows it. So it is
asked for at the points where the run may still end by it, and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

Result = TypeVar("Result")


async def to_its_end(awaitable: Awaitable[Result]) -> Result:
    """Await something to its end, whatever cancel comes meanwhile; `honour_cancel` is then the caller's to ask."""
    task = asyncio.ensure_future(awaitable)
    while not task.done():
        try:
            await asyncio.shield(task)
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
    return task.result()


def honour_cancel() -> None:
    """End the run by the cancel that came, if one did."""
    if workflow.cancellation_reason() is not None:
        raise asyncio.CancelledError
