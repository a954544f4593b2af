"""What a cancel of the run must not tear apart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from temporalio.exceptions import is_cancelled_exception

Result = TypeVar("Result")


async def to_its_end(awaitable: Awaitable[Result]) -> tuple[Result, bool]:
    """Await something to its end; also tell whether a cancel came meanwhile, which is then the caller's to honour."""
    task = asyncio.ensure_future(awaitable)
    cancel_came = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except BaseException as error:
            if not is_cancelled_exception(error) or task.done():
                raise
            cancel_came = True
    return task.result(), cancel_came
