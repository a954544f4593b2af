"""Waiting for a moment or for something to happen, whichever comes first; every moment is an absolute time.

Not wait_condition's own timeout: it rests on asyncio.wait_for, which Python 3.12 rewrote, and a run that waits under
one version could then not be replayed under another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from temporalio import workflow


async def until(moment: datetime | None, happened: Callable[[], bool], what: str) -> None:
    """Wait until `moment` has come or `happened` holds; without a moment, for that alone.

    Args:
        moment: in UTC; one that has passed is not waited for.
        happened: looked at whenever anything changes in the run.
        what: names the timer to operators.
    """
    if moment is None:
        await workflow.wait_condition(happened)
        return
    if happened() or moment <= workflow.now():
        return
    timer = asyncio.create_task(workflow.sleep(moment - workflow.now(), summary=what))
    try:
        await workflow.wait_condition(lambda: happened() or timer.done())
    finally:
        timer.cancel()
