"""Attending to messages: each gets its ruling in the order in which they came, and at the time that counts.

A worker that was away comes to a message and to the deadline after it in one workflow task; then the times at which the
server recorded the signals decide. An update has no such gap: nothing of it is recorded before a worker takes it in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Decided, Deciding, Message, MessageBatch, RunOrder, SignalTimes, TimesOrder

from workflows import options
from workflows.cancelling import to_its_end
from workflows.mailbox import Mailbox


class Attending:
    """The rulings of one run."""

    def __init__(
        self,
        run: RunOrder,
        mailbox: Mailbox,
        due: Callable[[], datetime | None],
        heard: Callable[[Decided], None],
        ends: Callable[[], bool],
    ) -> None:
        """
        Args:
            run: whose messages they are.
            mailbox: where they wait.
            due: when something is to be done next unless a message comes before.
            heard: told what every batch has come to.
            ends: whether a cancel is about to end the run, after which whatever came later is ruled on.
        """
        self._run = run
        self._mailbox = mailbox
        self._due = due
        self._heard = heard
        self._ends = ends
        self.refused = 0
        """How many, by the runs before this one too."""
        self.turns = asyncio.Lock()
        """Rulings, and whatever must not come between a message and its ruling, take turns."""

    async def forever(self) -> None:
        """Rule on messages as they come, all through the run."""
        while True:
            await workflow.wait_condition(lambda: self._mailbox.waiting > 0 and not self._ends())
            async with self.turns:
                await self._date_back(self._due())
                # Only now: the SDK hands over what was signalled before it tells of a cancel in the same task.
                if not self._ends():
                    await self._rule()

    async def dated(self) -> None:
        """Give what waits its true times, which another run could not find out."""
        async with self.turns:
            await self._date_back(self._due())

    async def rule_before(self, moment: datetime) -> None:
        """Rule on all that came before `moment`; the caller has the turn."""
        while self._mailbox.waiting:
            await self._date_back(moment)
            if not self._mailbox.waits_since_before(moment):
                return
            await self._rule(moment)

    async def rule_all(self) -> None:
        """Rule on all that has come; the caller has the turn."""
        while self._mailbox.waiting:
            await self._rule()

    async def drained(self) -> None:
        """Wait, whatever cancel comes, until every message has its ruling, and every sender of an update the answer."""
        ruled_on = workflow.wait_condition(lambda: not self._mailbox.waiting and workflow.all_handlers_finished())
        await to_its_end(ruled_on)

    async def answered(self) -> None:
        """Wait until every sender of an update has the answer, or a cancel comes."""
        answered = workflow.wait_condition(lambda: self._ends() or workflow.all_handlers_finished())
        await to_its_end(answered)

    async def times(self, signals: tuple[int, ...] = ()) -> SignalTimes:
        """When the server recorded these signals of this run, and the asking for its cancellation."""
        order = TimesOrder(tenant=self._run.tenant, operation=self._run.operation, signals=signals)
        return await workflow.execute_local_activity_method(Deciding.signal_times, order, **options.LEDGER_STEP)

    async def _rule(self, before: datetime | None = None) -> None:
        """Rule on the oldest messages, or on those of them that came before a moment."""
        await self._date_back(self._due())
        batch = self._mailbox.batch(before)
        if not batch:
            return
        decided = await self._decided(batch)
        self.refused += sum(outcome.refuses for outcome in decided.outcomes)
        self._heard(decided)
        self._mailbox.done(batch, decided.outcomes)

    async def _date_back(self, moment: datetime | None) -> None:
        """Give the signals that were taken in at `moment` or later the times at which the server recorded them."""
        signals = self._mailbox.signals_since(moment) if moment is not None else ()
        if signals:
            recorded = await self.times(tuple(message.signal for message in signals))
            self._mailbox.date_back(signals, recorded.times)

    async def _decided(self, batch: tuple[Message, ...]) -> Decided:
        order = MessageBatch(tenant=self._run.tenant, operation=self._run.operation, messages=batch)
        if self._mailbox.flooded:
            return await workflow.execute_activity_method(Deciding.decide, order, **options.FLOOD_STEP)
        return await workflow.execute_local_activity_method(Deciding.decide, order, **options.LEDGER_STEP)
