"""One course: what happens is done to the real run and to the model, and the two are compared after every step."""

from __future__ import annotations

import asyncio
import secrets
from datetime import datetime, timedelta
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from countersign.domain.decision import Outcome, Ruling
from tests.course.comparison import Comparison
from tests.course.model import Model
from tests.course.record import problems
from tests.course.recorded import Recorded, Stranded
from tests.course.speaker import Speaker
from tests.course.stage import TENANT, Stage
from tests.course.steps import Cancel, Finish, Outage, Pass, Repeat, Restart, Say
from tests.course.steps import Step as CourseStep
from tests.course.terms import TERMS
from tests.course.values import Said

NEAR = timedelta(milliseconds=250)
"""The test server fails a workflow task in which a timer is given up that goes off meanwhile, so none is begun then."""


class Course:
    """One operation, its run and its model."""

    def __init__(self, stage: Stage, policy: str) -> None:
        stage.courses += 1
        self.stage, self.model = stage, Model(TERMS[policy])
        self.operation = f"course-{stage.courses}"
        self.speaker = Speaker(stage, self.operation, self.model)
        self.signals = 0
        self.slow = False
        """Whether the agent is held while it drafts."""
        self.run: WorkflowHandle[Any, Any]
        self.recorded: Recorded
        self.compared: Comparison

    async def play(self, steps: list[CourseStep], *, slow: bool) -> None:
        """Begin, take every step, and look at the record in the end."""
        stage, installation = self.stage, self.stage.installation
        published = len(installation.published())
        self.slow = slow
        if slow:
            stage.agent.let.clear()
            self.model.agent_writes = False
        self.run = await installation.start(self.operation)
        self.recorded = Recorded(self.run)
        self.compared = Comparison(stage, self.run, self.operation, self.model, published)
        try:
            await self._settle()
            for step in steps:
                await self._take(step)
            self._let()
            await self._settle()
            found = problems(stage.ledger.audit.records(TENANT, self.operation), self.model)
            assert not found, found
            await self._leave()
        finally:
            stage.agent.let.set()

    async def _leave(self) -> None:
        """Wait until nothing is under way that was given up, since a clock that waits for it would jump no more."""
        if self.model.ended:
            return
        async for _ in self.recorded.in_time():
            if not await self.stage.under_way(self.run.id):
                break
        else:
            self.stage.spent = True
        await self.run.terminate()

    async def _take(self, step: CourseStep) -> None:
        await self._keep_clear()
        match step:
            case Say():
                await self._say(step)
            case Repeat(back):
                if self.speaker.sent:
                    await self._repeat(back)
            case Pass(milliseconds):
                await self._pass(timedelta(milliseconds=milliseconds))
            case Restart():
                if not self.slow:
                    await self.stage.rest()
                    await self.stage.work()
            case Outage(said):
                await self._outage(said)
            case Cancel():
                await self._cancel()
            case Finish():
                self._let()
        await self._settle()

    async def _keep_clear(self) -> None:
        """Let what is due in a moment happen first."""
        due = self.model.due()
        if due is not None and due - await self.stage.skipping.now() < NEAR:
            await self._until(due)
            await self._settle()

    async def _say(self, say: Say) -> None:
        said, name, args = await self.speaker.worded(say)
        await self._send(said, name, args, say.transport)

    async def _repeat(self, back: int) -> None:
        name, message, said = self.speaker.sent[-min(back, len(self.speaker.sent))]
        await self._send(said._replace(repeated=True), name, (message,), "update")

    async def _send(self, said: Said, name: str, args: tuple[Any, ...], transport: str) -> None:
        """To the run and to the model, at the time that the server recorded."""
        if transport == "signal" or len(args) != 1:
            if await self._signalled(name, args):
                self._heard(said, await self.recorded.signal(self.signals))
            return
        update = secrets.token_hex(8)
        try:
            asked = self.run.execute_update(name, args[0], id=update, result_type=Outcome)
            outcome = await self.recorded.answered(asked)
        except RPCError:
            assert await self._has_ended(), f"the run takes no {name}, and has not ended"
            return
        accepted = self._heard(said, await self.recorded.update(update))
        assert accepted == (outcome.ruling == Ruling.ACCEPTED), f"{said}: {outcome.sentence()}; model: {accepted}"

    def _heard(self, said: Said, at: datetime) -> bool:
        self.model.pass_to(at)
        return self.model.hear(said, at)

    async def _signalled(self, name: str, args: tuple[Any, ...]) -> bool:
        try:
            await self.run.signal(name, args=list(args))
        except RPCError:
            assert await self._has_ended(), f"the run takes no {name}, and has not ended"
            return False
        self.signals += 1
        return True

    async def _has_ended(self) -> bool:
        """Whether it has in the model, which may only now come to know what time it is."""
        self.model.pass_to(await self.stage.skipping.now())
        return self.model.ended

    async def _pass(self, beyond: timedelta) -> None:
        if self.slow or self.model.ended:
            return
        due = self.model.due() or await self.stage.skipping.now() + timedelta(hours=1)
        await self._jump(due + beyond)

    async def _jump(self, moment: datetime) -> None:
        try:
            await self.stage.pass_until(moment)
        except RPCError:
            # The clock jumps over nothing while a step is under way; if none of this run's is, the server has lost it.
            if await self.stage.under_way(self.run.id):
                raise
            raise Stranded from None

    async def _outage(self, said: tuple[Say, ...]) -> None:
        if self.slow or self.model.ended:
            return
        due = self.model.due()
        if due is not None:
            await self._jump(due - timedelta(milliseconds=400))
            await self._settle()
        heard = [await self.speaker.worded(say) for say in said]
        if self.model.ended:
            return
        await self.stage.rest()
        recorded: list[tuple[Said, datetime]] = []
        for number, (one, name, args) in enumerate(heard):
            if due is not None and number == len(heard) // 2:
                await self._until(due)
            if await self._signalled(name, args):
                recorded.append((one, await self.recorded.signal(self.signals)))
        if due is not None:
            await self._until(due + NEAR)
        await self.stage.work()
        lapsed = await self._lapsed(self.model.messages + len(recorded))
        self.compared.untold = 0
        for one, at in recorded:
            untold = self.model.skipped(at)
            self.model.pass_to(at, ticking=False, lapsing=lapsed)
            self.model.hear(one, at)
            self.compared.untold += untold if self.model.pending is None else 0
        await self._settle(loosely=True)

    async def _lapsed(self, messages: int) -> bool:
        """Whether a lease that was over came to an end before the messages after that were ruled on.

        Both orders are right, and which it was is the ledger's word: nobody holds control from then on, or the one who
        takes it over then takes it from somebody whose time was up.
        """
        async for _ in self.recorded.in_time():
            status = await self.compared.status()
            if status is not None and status.messages == messages and not status.waiting:
                break
        history = self.stage.ledger.controls.history(TENANT, self.operation)
        return any(control.version == self.model.version + 1 and control.by == "nobody" for control in history)

    async def _until(self, due: datetime) -> None:
        """Wait for a moment that is near, without workers or a jump of the clock."""
        while timedelta(0) < (left := due - await self.stage.skipping.now()) < timedelta(seconds=2):
            await asyncio.sleep(left.total_seconds())

    async def _cancel(self) -> None:
        try:
            await self.run.cancel()
        except RPCError:
            assert await self._has_ended(), "the run cannot be cancelled, and has not ended"
            return
        if not self.model.ended:
            self.model.pass_to(await self.recorded.cancel())
        if not self.model.ended:
            self.model.cancelled()
            self.compared.overtaken = self.slow
            self._let()

    def _let(self) -> None:
        if self.slow and self.model.ended:
            self.stage.spent = True
        self.slow, self.model.agent_writes = False, True
        self.stage.agent.let.set()

    async def _settle(self, *, loosely: bool = False) -> None:
        """Wait until run and model agree; fails with the difference where they do not in time."""
        found: dict[str, tuple[Any, Any]] = {}
        async for _ in self.recorded.in_time():
            now = await self.stage.skipping.now()
            self.model.pass_to(now)
            self.model.agent_moves(now)
            found = await self.compared.differences(loosely=loosely)
            if not found:
                return
        raise AssertionError(f"run and model disagree: {found}")
