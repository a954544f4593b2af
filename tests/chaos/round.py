"""One round: an operation's run from its start to its end, with one kill or fault on the way, and what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from temporalio.client import WorkflowFailureError, WorkflowHandle

from countersign.domain.errors import CountersignError
from countersign.domain.execution import ExecutionStatus
from countersign.domain.identity import workflow_id
from countersign.domain.proposal import StatementKind
from countersign.domain.run import RunResult, RunStatus
from countersign.domain.state import State
from tests.chaos.refunds import FORGETS, Course, Effects, message_of
from tests.chaos.scenario import GRANTED, Scenario
from tests.chaos.world import CALL_LIMIT, PAUSE_SECONDS, World, persistently
from workflows.governed_action import GovernedAction

BOUND_SECONDS = 90.0
"""A run that has not come to its end by then is lost."""
ENDS: dict[Course, State] = {
    "by_vote": State.SUCCEEDED,
    "by_votes": State.SUCCEEDED,
    "by_rule": State.SUCCEEDED,
    "rejected": State.REJECTED,
    "expired": State.EXPIRED,
    "undecided": State.WAITING_APPROVAL,
}
MESSAGES = {
    State.SUCCEEDED: State.SUCCEEDED,
    State.REJECTED: State.CANCELLED,
    State.EXPIRED: State.CANCELLED,
}
"""What comes of the customer's message, by what came of the refund."""
UNCONFIRMED = State.WAITING_RETRY
"""Where a message stays while people alone say that there was a refund."""
DECIDERS: dict[Course, tuple[str, ...]] = {
    "by_vote": ("finn",),
    "by_votes": ("finn", "flora"),
    "rejected": ("finn",),
}
SETTLERS = ("lea", "leo")
EVIDENCE = b"It stands in the payment service's books."
Handle = WorkflowHandle[GovernedAction, RunResult]


@dataclass(frozen=True)
class Played:
    """What came of a round."""

    scenario: Scenario
    operation: str
    struck: bool
    """Whether the kill came, where one was to come: a run may end before a random instant."""
    effects: Effects
    keys: int
    """Under how many keys anything was asked for outside."""
    end: str
    seconds: float
    audit_fault: str
    """What is wrong with the audit; empty if nothing is."""
    died: str
    """Which parts ended without being killed, with their last words; empty if none did."""

    @property
    def allowed(self) -> Effects:
        """What the course allows; what only people say of a refund is not told to a customer."""
        granted = int(self.scenario.course in GRANTED)
        return Effects(granted, 0 if self.scenario.fault == FORGETS else granted)

    @property
    def is_double(self) -> bool:
        """Whether more happened outside than was approved, or was tried under another key."""
        more = any(effect > allowed for effect, allowed in zip(self.effects, self.allowed, strict=True))
        return more or self.keys > 2 * self.allowed.refunds

    @property
    def is_lost(self) -> bool:
        """Whether the run did not come to the end that is the truth, or what was approved never happened."""
        return self.end != ENDS[self.scenario.course] or any(
            effect < allowed for effect, allowed in zip(self.effects, self.allowed, strict=True)
        )

    @property
    def line(self) -> str:
        """The round in a line."""
        one = self.scenario
        killed = f"{one.part} killed{'' if self.struck else ' (the run was faster)'}, " if one.part else ""
        happened = f"refunds {self.effects.refunds}, messages {self.effects.messages}, keys {self.keys}"
        return f"round {one.number}: {one.course}, {killed}{one.where}: {self.end}, {happened}, {self.seconds:.1f} s"

    @property
    def is_well(self) -> bool:
        """Whether all was as it has to be."""
        return not (self.is_double or self.is_lost or self.audit_fault)


async def play(world: World, scenario: Scenario) -> Played:
    """Play one round; the world is whole again afterwards."""
    began, keys = time.monotonic(), world.outside.keys()
    one = _Round(world, scenario)
    striking = asyncio.create_task(one.strike())
    try:
        async with asyncio.timeout(BOUND_SECONDS):
            end = await one.end(striking)
    except TimeoutError:
        end = f"{one.recorded} and its message {one.message} for ever"
    except WorkflowFailureError:
        end = f"{one.recorded}, its workflow failed"
    finally:
        if not one.struck:
            striking.cancel()
        await asyncio.wait([striking])
    if one.struck:
        striking.result()
    died = await world.mended()
    world.outside.heal()
    effects = world.outside.effects(one.operation)
    # In a thread: the chain grows, and other worlds go on meanwhile.
    chain_fault = await asyncio.to_thread(chain_fault_of, world)
    return Played(
        scenario=scenario,
        operation=one.operation,
        struck=one.struck,
        effects=effects,
        keys=len(world.outside.keys() - keys),
        end=end,
        seconds=time.monotonic() - began,
        audit_fault=chain_fault or record_fault_of(world, one.operation, effects),
        died=died,
    )


def chain_fault_of(world: World) -> str:
    """What is wrong with the tenant's audit; empty if nothing is."""
    try:
        world.installation.ledger.audit.verify(world.installation.tenant)
    except CountersignError as fault:
        return fault.message
    return ""


def record_fault_of(world: World, operation: str, effects: Effects) -> str:
    """Where the audit says otherwise of an operation's effects than the outside does; empty where it does not."""
    audit, tenant = world.installation.ledger.audit, world.installation.tenant
    types = [[record.type for record in audit.records(tenant, one)] for one in (operation, message_of(operation))]
    recorded = Effects(*(each.count("effect.executed") for each in types))
    return "" if recorded == effects else f"the audit has {recorded}, the outside {effects}"


class _Round:
    """The parts of a round that go on beside each other: the run, the people, the kill."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.operation = f"round-{scenario.number:04d}"
        self.struck = False
        self._world = world
        self._scenario = scenario
        self._tenant = world.installation.tenant

    async def strike(self) -> None:
        """Kill what is to be killed, when it is to be, and bring it back."""
        scenario, world = self._scenario, self._world
        if scenario.part is None:
            return
        if scenario.point is not None:
            while not world.points.is_reached:
                await asyncio.sleep(0.01)
        else:
            await asyncio.sleep(scenario.delay)
        self.struck = True
        world.kill(scenario.part)
        if scenario.goes_on:
            world.points.clear()
        await world.start(scenario.part)
        world.points.clear()

    @property
    def recorded(self) -> State:
        """Where the ledger says that the run stands."""
        return self._world.installation.ledger.operations.get(self._tenant, self.operation).state

    @property
    def message(self) -> State:
        """The same of the customer's message."""
        return self._world.installation.ledger.operations.get(self._tenant, message_of(self.operation)).state

    async def end(self, striking: asyncio.Task[None]) -> str:
        """Carry the operation to its end; returns where its run stands then."""
        scenario, world = self._scenario, self._world
        if scenario.point is not None:
            operation = message_of(self.operation) if scenario.point.of_message else self.operation
            world.points.set(scenario.point.name, workflow_id(self._tenant, operation))
        if scenario.fault:
            world.outside.fail_next(scenario.fault)
        order = world.outside.register(world.installation, self.operation, scenario.course)
        run = await world.start_run(order)
        if scenario.course == "undecided":
            await asyncio.shield(striking)
            return await self._waiting(run)
        if scenario.course in DECIDERS:
            await self._decide(run, DECIDERS[scenario.course])
        if scenario.fault == FORGETS:
            await self._settle(run)
        result = await persistently(lambda: run.result(rpc_timeout=CALL_LIMIT))
        if result.state != self.recorded:
            return f"{result.state}, which the ledger has as {self.recorded}"
        wanted = UNCONFIRMED if scenario.fault == FORGETS else MESSAGES.get(result.state)
        while not (self.message.terminal or self.message == wanted):
            await asyncio.sleep(PAUSE_SECONDS)
        return result.state if self.message == wanted else f"{result.state}, its message {self.message}"

    async def _waiting(self, run: Handle) -> State:
        """Where a run that nobody decides about stands once it waits."""
        while True:
            status: RunStatus = await persistently(
                lambda: run.query("status", result_type=RunStatus, rpc_timeout=CALL_LIMIT)
            )
            if status.state not in (State.CREATED, State.RUNNING):
                return status.state
            await asyncio.sleep(PAUSE_SECONDS)

    async def _decide(self, run: Handle, deciders: Sequence[str]) -> None:
        """Have people decide once the proposal is in the ledger, by signals that the server has taken."""
        installation = self._world.installation
        while installation.ledger.approvals.current(self._tenant, self.operation) is None:
            await asyncio.sleep(PAUSE_SECONDS)
        decision: StatementKind = "reject" if self._scenario.course == "rejected" else "approve"
        for person in deciders:
            statement = installation.decision(installation.proposal(self.operation), person, decision)
            await persistently(partial(self._tell, run, "decide", statement))

    async def _settle(self, run: Handle) -> None:
        """Have people say what became of a refund that the service did under a key that it has forgotten."""
        installation = self._world.installation
        executions = installation.ledger.executions
        evidence = installation.ledger.documents.put(self._tenant, EVIDENCE)
        while not self.recorded.terminal:
            await asyncio.sleep(PAUSE_SECONDS)
            execution = executions.get(self._tenant, self.operation)
            if (
                execution is None
                or execution.status != ExecutionStatus.UNKNOWN
                or "key_forgotten" not in execution.reason
            ):
                continue
            for person in SETTLERS:
                command = installation.command(
                    self.operation, person, "settle", key=execution.key, finding="executed",
                    reference=self._world.outside.reference(self.operation), comment_hash=evidence,
                )  # fmt: skip
                await persistently(partial(self._tell, run, "settle", command))
            await asyncio.sleep(1)

    async def _tell(self, run: Handle, name: str, statement: Mapping[str, str]) -> None:
        # A server that was killed may have taken the signal without saying so, and the run may be over by now.
        if not self.recorded.terminal:
            await run.signal(name, statement, rpc_timeout=CALL_LIMIT)
