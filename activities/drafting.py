"""The agent's step: one whole deep agent loop, with a heartbeat beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from temporalio import activity

from activities.failures import refusals
from activities.interfaces import Drafting, DraftWritten, StepOrder
from activities.requests import stored_request
from countersign.domain.draft import ReportRequest
from countersign.ports import DatasetReader, Drafter, Evidence, Ledger, Written

HEARTBEAT_SECONDS = 5.0


class DraftingSteps(Drafting):
    """Gives the agent its pinned data and the feedback on the version before, and stores what it wrote."""

    def __init__(self, ledger: Ledger, evidence: Evidence, drafter: Drafter) -> None:
        self._ledger = ledger
        self._evidence = evidence
        self._drafter = drafter

    @activity.defn
    async def draft(self, order: StepOrder) -> DraftWritten:
        """See Drafting."""
        with refusals(self._ledger, order.tenant, order.operation, "draft"):
            async with heartbeats():
                return await self._written(order)

    async def _written(self, order: StepOrder) -> DraftWritten:
        request = await asyncio.to_thread(stored_request, self._ledger, order.tenant, order.operation)
        dataset = await asyncio.to_thread(self._evidence.open, order.tenant, request.dataset)
        try:
            written = await self._ask(order, request, dataset)
        finally:
            dataset.close()
        content = await asyncio.to_thread(
            self._ledger.drafts.save,
            order.tenant,
            order.operation,
            order.draft_version,
            written.draft,
            written.model,
            datetime.now(UTC),
        )
        return DraftWritten(content=content, model=written.model)

    async def _ask(self, order: StepOrder, request: ReportRequest, dataset: DatasetReader) -> Written:
        before = order.draft_version - 1
        earlier = feedback = None
        if before:
            earlier = await asyncio.to_thread(self._ledger.drafts.get, order.tenant, order.operation, before)
            feedback = await asyncio.to_thread(self._ledger.drafts.feedback, order.tenant, order.operation, before)
        return await self._drafter.draft(
            thread=f"{order.tenant}:{order.operation}:{order.run_id}:v{order.draft_version}",
            attempt=activity.info().attempt,
            request=request,
            dataset=dataset,
            earlier=earlier,
            feedback=feedback or (),
            on_progress=activity.heartbeat,
        )


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
