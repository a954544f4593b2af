"""What an agent or a grader does, as the step around it hears of it: each model call is allowed and written down before
it is made, and each event is told to whoever watches.

Apart from drafting and grading, since both are watched in the same way. What is told to watchers is never the audit: no
failure of it ends a draft.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from temporalio import activity

from activities.interfaces import StepOrder
from activities.runs import Runs
from countersign.domain.model_call import CallEnd, CallRole, ModelCall, Prices
from countersign.domain.progress import ProgressKind
from countersign.ports import Ledger

log = logging.getLogger(__name__)

MAX_TOLD = 200
"""Characters of a name or detail that a watcher is told."""


class StepWatched:
    """ports.Watching for one attempt of one step; made, and told, inside that activity."""

    def __init__(
        self,
        ledger: Ledger,
        runs: Runs,
        prices: Prices,
        order: StepOrder,
        case: str,
        role: CallRole,
        check: Callable[[StepOrder], object],
    ) -> None:
        """
        Args:
            ledger: where calls and events are kept.
            runs: what the time is.
            prices: what calls cost.
            order: the step's.
            case: the operation's.
            role: what the model is asked for.
            check: raises where the step may not go on, as since control has changed hands.
        """
        self._ledger = ledger
        self._runs = runs
        self._prices = prices
        self._order = order
        self._case = case
        self._role = role
        self._check = check
        self._asked: dict[int, str] = {}
        self._measures = _Measures(role)

    async def calling(self, model: str) -> int:
        """See ports.Watching."""
        await self._may_go_on("model")
        call = ModelCall(
            tenant=self._order.tenant,
            operation=self._order.operation,
            number=1,  # the ledger counts them
            case=self._case,
            role=self._role,
            draft_version=self._order.draft_version,
            attempt=activity.info().attempt,
            asked=model,
            began_at=self._runs.now(),
        )
        begun = await asyncio.to_thread(self._ledger.model_calls.begin, call)
        self._asked[begun.number] = model
        await self.tell(ProgressKind.MODEL_CALLED, model, f"call {begun.number}")
        return begun.number

    async def called(self, number: int, end: CallEnd) -> None:
        """See ports.Watching."""
        asked = self._asked[number]
        nano = self._prices.nano(self._prices.priced(asked, end.answered), end.input_tokens, end.output_tokens)
        currency = self._prices.currency if nano is not None else ""
        version = (self._order.tenant, self._order.operation)
        await asyncio.to_thread(self._ledger.model_calls.end, *version, number, end, nano, currency)
        self._measures.add(asked, end)
        if end.error:
            await self.tell(ProgressKind.MODEL_FAILED, asked, end.error)
        else:
            await self.tell(ProgressKind.MODEL_ANSWERED, asked, f"{end.milliseconds} ms")

    async def happened(self, kind: ProgressKind, name: str = "", detail: str = "") -> None:
        """See ports.Watching."""
        await self._may_go_on(kind.value)
        await self.tell(kind, name, detail)

    async def tell(self, kind: ProgressKind, name: str = "", detail: str = "") -> None:
        """Tell whoever watches, and nobody else: nothing is checked, and nothing that goes wrong matters."""
        order = self._order
        version = (order.tenant, order.operation, kind, order.draft_version)
        try:
            await asyncio.to_thread(
                self._ledger.progress.add, *version, name[:MAX_TOLD], detail[:MAX_TOLD], self._runs.now()
            )
        except Exception as fault:
            log.warning("nobody was told that %s: %s", kind.value, type(fault).__name__)

    async def _may_go_on(self, doing: str) -> None:
        """Before each call of the agent; a cancel reaches it with the next heartbeat only, and calls may not wait."""
        activity.heartbeat(doing)
        await asyncio.to_thread(self._check, self._order)


class _Measures:
    """What a worker's metrics say of model calls: which model was asked for what, and no word of any tenant (G46)."""

    def __init__(self, role: CallRole) -> None:
        meter = activity.metric_meter()
        self._role = role
        self._calls = meter.create_counter("countersign_model_calls", "Calls of models that have ended")
        self._time = meter.create_histogram("countersign_model_call_time", "How long they took", "ms")
        self._tokens = meter.create_counter("countersign_model_tokens", "Tokens of them, as far as they are known")

    def add(self, model: str, end: CallEnd) -> None:
        """Count a call."""
        about = {"role": self._role, "model": model}
        self._calls.add(1, {**about, "outcome": "failed" if end.error else "answered"})
        self._time.record(end.milliseconds, about)
        for direction, tokens in (("input", end.input_tokens), ("output", end.output_tokens)):
            if tokens is not None:
                self._tokens.add(tokens, {**about, "direction": direction})
