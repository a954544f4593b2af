"""When the server recorded what was sent to a run: its history says so, and that time is the one that counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime
from typing import Any, TypeVar

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle, WorkflowUpdateRPCTimeoutOrCancelledError

Answer = TypeVar("Answer")

SETTLES_IN = 8.0
"""Seconds after which a run that is not where the model is counts as being elsewhere."""
_TASKS = (
    EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
)


class Stranded(Exception):
    """The test server has lost the run's workflow task, so that nothing can come of the run any more.

    It refuses what a worker made of a task if a timer or a step that is given up in it has come to its end meanwhile,
    and gives the task to nobody again, or in vain (temporalio/sdk-java#3088); a real server does neither. The course is
    played once more, and where that ends so too, another one in its place.
    """


class Recorded:
    """The history of one run."""

    def __init__(self, run: WorkflowHandle[Any, Any]) -> None:
        self._run = run

    async def signal(self, number: int) -> datetime:
        """When the run's signal of that number, counted from 1, was recorded."""
        return await self._event(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, number)

    async def cancel(self) -> datetime:
        """When it was asked that the run be cancelled."""
        return await self._event(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED, 1)

    async def update(self, update: str) -> datetime:
        """When the workflow task that took an update in began, which is the time that the run has for it."""
        began: datetime | None = None
        async for event in self._run.fetch_history_events():
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED:
                began = event.event_time.ToDatetime(UTC)
            accepted = event.workflow_execution_update_accepted_event_attributes
            if accepted.protocol_instance_id == update and began is not None:
                return began
        raise AssertionError(f"update {update} was answered, and is not in the history")

    async def _event(self, kind: Any, number: int) -> datetime:
        """The server shows it only once a workflow task that is under way has ended."""
        async for _ in self.in_time():
            events = [event async for event in self._run.fetch_history_events() if event.event_type == kind]
            if len(events) >= number:
                return events[number - 1].event_time.ToDatetime(UTC)
        raise AssertionError(f"the server took number {number} of {kind}, and shows it nowhere")

    async def in_time(self) -> AsyncIterator[None]:
        """Again and again, until it is too late; Stranded if it always will be."""
        give_up_at = asyncio.get_running_loop().time() + SETTLES_IN
        while asyncio.get_running_loop().time() < give_up_at:
            yield
            await asyncio.sleep(0.02)
        await self.check_stranded()

    async def answered(self, answer: Awaitable[Answer]) -> Answer:
        """What is waited for, unless the run has no time left for it; Stranded as in `in_time`."""
        try:
            async with asyncio.timeout(SETTLES_IN):
                return await answer
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
            await self.check_stranded()
            raise AssertionError("the run does not answer") from None

    async def check_stranded(self) -> None:
        """Raise Stranded if a workflow task is not at its end, long after it should be."""
        tasks = [event.event_type async for event in self._run.fetch_history_events() if event.event_type in _TASKS]
        if tasks[-1:] != [EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]:
            raise Stranded
