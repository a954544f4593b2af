"""The agent's step: one whole deep agent loop, with a heartbeat beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from temporalio import activity

from activities.failures import refusals
from activities.heartbeats import heartbeats
from activities.interfaces import Drafting, DraftWritten, StepOrder
from activities.materials import opened
from activities.runs import Runs
from countersign.cases.case import Case, drafted_case
from countersign.ports import Drafter, Ledger, Material, Written


class DraftingSteps(Drafting):
    """Gives the case's agent its material and the feedback on the version before, and stores what it wrote."""

    def __init__(
        self, ledger: Ledger, runs: Runs, cases: Mapping[str, Case], drafters: Mapping[str, Drafter[Any]]
    ) -> None:
        """
        Args:
            ledger: where drafts are kept.
            runs: whose step it is, and when.
            cases: the kinds of work that there are, by name.
            drafters: the agent of each case that is drafted, by the case's name.
        """
        self._ledger = ledger
        self._runs = runs
        self._cases = cases
        self._drafters = drafters

    @activity.defn
    async def draft(self, order: StepOrder) -> DraftWritten:
        """See Drafting."""
        with refusals(self._runs, order.tenant, order.operation, "draft"):
            await asyncio.to_thread(self._runs.check_run, order.tenant, order.operation, order.line)
            async with heartbeats():
                return await self._written(order)

    async def _written(self, order: StepOrder) -> DraftWritten:
        """Store what the agent writes; a version that is there, by a person or before a reset, is not written again."""
        version = (order.tenant, order.operation, order.draft_version)
        written = await asyncio.to_thread(self._ledger.drafts.written, *version) or await self._drafted(order)
        content = await asyncio.to_thread(
            self._ledger.drafts.save, *version, written.draft, written.model, order.control_version, self._runs.now()
        )
        return DraftWritten(content=content, model=written.model)

    async def _drafted(self, order: StepOrder) -> Written:
        operation = await asyncio.to_thread(self._ledger.operations.get, order.tenant, order.operation)
        case = drafted_case(self._cases, operation)
        async with opened(case, operation) as material:
            return await self._ask(order, self._drafters[case.name], material)

    async def _ask(self, order: StepOrder, drafter: Drafter[Any], material: Material) -> Written:
        before = order.draft_version - 1
        earlier = feedback = None
        if before:
            earlier = await asyncio.to_thread(self._ledger.drafts.get, order.tenant, order.operation, before)
            feedback = await asyncio.to_thread(self._ledger.drafts.feedback, order.tenant, order.operation, before)
        return await drafter.draft(
            # With the control version: whoever releases a run has its agent begin the version anew.
            thread=f"{order.tenant}:{order.operation}:{order.line}:{order.control_version}:v{order.draft_version}",
            attempt=activity.info().attempt,
            material=material,
            earlier=earlier,
            feedback=feedback or (),
            on_progress=lambda words: self._may_go_on(order, words),
        )

    async def _may_go_on(self, order: StepOrder, words: str) -> None:
        """Before each call of the agent; a cancel reaches it with the next heartbeat only, and calls may not wait."""
        activity.heartbeat(words)
        await asyncio.to_thread(self._runs.check_agent, order)
