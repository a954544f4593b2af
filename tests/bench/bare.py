"""A bare workflow with the same kinds and number of steps as a run of ours, none of which does anything."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import SearchAttributeKey

from workflows.names import STATE

QUEUE = "bench-bare"
OTHER_QUEUE = "bench-bare-gateway"
LIMIT = timedelta(seconds=60)


@activity.defn
def bare_step(text: str) -> str:
    """Give back what came."""
    return text


@workflow.defn(sandboxed=False)
class Bare:
    """Steps in the order of GovernedAction: local ones stay local, the last normal one is on another queue."""

    def __init__(self) -> None:
        self._decided = False

    @workflow.run
    async def run(self, text: str) -> str:
        """Ten steps around one decision."""
        for local in (True, False, False, False, True, True):
            await self._step(text, local)
        workflow.upsert_search_attributes([SearchAttributeKey.for_keyword(STATE).value_set("WAITING_APPROVAL")])
        await workflow.wait_condition(lambda: self._decided, timeout=timedelta(hours=72))
        await self._step(text, True)
        await self._step(text, True)
        await workflow.execute_activity(bare_step, text, task_queue=OTHER_QUEUE, start_to_close_timeout=LIMIT)
        await self._step(text, True)
        return text

    async def _step(self, text: str, local: bool) -> None:
        if local:
            await workflow.execute_local_activity(bare_step, text, start_to_close_timeout=LIMIT)
        else:
            await workflow.execute_activity(bare_step, text, start_to_close_timeout=LIMIT)

    @workflow.signal
    def decide(self, statement: dict[str, str]) -> None:
        """The decision."""
        self._decided = True
