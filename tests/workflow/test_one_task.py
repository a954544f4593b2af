"""Signals, updates, cancels, commands and the deadline that a worker comes to in one task: the server's times decide.

Many runs wait side by side, each with an order of its own, so that they wait for their deadlines together; while the
server records what comes to them, no worker runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from temporalio.client import WorkflowHandle

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import eventually

Run = WorkflowHandle[Any, Any]

PAIRS = [
    *combinations(("vote", "take_over", "cancel"), 2),
    ("vote", "withdraw"),
    ("withdraw", "cancel"),
    ("vote", "update"),
]
"""Signals of a decision and of two commands, Temporal's own cancel, and an update that waits for a worker."""
ORDERS = [order for pair in PAIRS for order in permutations((*pair, "deadline"))]
GROUPS = [ORDERS[start::2] for start in range(2)]


class Expected(NamedTuple):
    """What has become of a run, and of the messages to it in the order of their rulings."""

    state: State
    rulings: tuple[tuple[str, Ruling], ...]


def expected(order: Sequence[str]) -> Expected:
    """By the times alone: what was recorded first counts, and an update is recorded when a worker takes it in."""
    recorded = [*(event for event in order if event != "update"), *(event for event in order if event == "update")]
    rulings: list[tuple[str, Ruling]] = []
    state, is_late = State.WAITING_APPROVAL, False
    for event in recorded:
        match event:
            case "deadline":
                is_late = True
                state = State.EXPIRED if state == State.WAITING_APPROVAL else state
            case "cancel":
                state = state if state.terminal else State.CANCELLED
            case "vote" | "update":
                settled = Ruling.LATE if state == State.EXPIRED else Ruling.ALREADY_SETTLED
                is_first = state == State.WAITING_APPROVAL and not is_late
                rulings.append((event, Ruling.ACCEPTED if is_first else settled))
                state = State.EXECUTING if is_first else state
            case command:
                rulings.append((command, Ruling.ENDED if state.terminal else Ruling.ACCEPTED))
                then = State.HUMAN_TAKEOVER if command == "take_over" else State.WITHDRAWN
                state = state if state.terminal else then
    return Expected(State.SUCCEEDED if state == State.EXECUTING else state, tuple(rulings))


class Case:
    """One run, what is sent to it, and what has become of it."""

    def __init__(self, installation: Installation, operation: str, order: tuple[str, ...]) -> None:
        self._installation = installation
        self._operation = operation
        self.order = order
        self.run: Run | None = None
        self.asking: asyncio.Task[Outcome] | None = None

    async def start(self) -> None:
        """Start the run."""
        self.run = await self._installation.start(self._operation)

    @property
    def state(self) -> State:
        """Where the ledger says that the run stands."""
        return self._installation.ledger.operations.get("acme", self._operation).state

    @property
    def deadline(self) -> datetime:
        """The ask's."""
        return self._installation.proposal(self._operation).deadline

    async def send(self, *events: str) -> None:
        """Let the server record them; nobody is there to take them in."""
        for event in events:
            await self._send(event)

    async def _send(self, event: str) -> None:
        made, run = self._installation, self.run
        assert run is not None
        match event:
            case "cancel":
                await run.cancel()
            case "vote":
                await run.signal("decide", made.decision(made.proposal(self._operation), "bob"))
            case "update":
                message = made.decision(made.proposal(self._operation), "carl")
                self.asking = asyncio.create_task(run.execute_update("decide", message, result_type=Outcome))
            case "take_over":
                await run.signal(event, made.command(self._operation, "lea", "take_over"))
            case "withdraw":
                await run.signal(event, made.command(self._operation, "rita", "withdraw"))

    def found(self) -> Expected:
        """What is on record."""
        rulings = []
        for record in self._installation.ledger.audit.records("acme", self._operation):
            if record.type.partition(".")[0] in ("decision", "command"):
                name = record.detail.get("command") or ("vote" if record.subject == "bob" else "update")
                rulings.append((str(name), Ruling(str(record.detail["ruling"]))))
        return Expected(self.state, tuple(rulings))


@pytest.mark.guarantee("G24", "G26", "G47")
@pytest.mark.parametrize("orders", GROUPS, ids=range(len(GROUPS)))
@pytest.mark.long
async def test_whatever_the_server_recorded_first_counts_in_every_order(
    sqlite_installation: Installation, tmp_path: Path, orders: list[tuple[str, ...]]
) -> None:
    installation = sqlite_installation.with_policy(tmp_path, decide_within="25s", ladder={})
    cases = [Case(installation, f"op-{number}", order) for number, order in enumerate(orders)]
    async with installation.workers("agent"):
        for case in cases:
            await case.start()
        await eventually(lambda: all(case.state == State.WAITING_APPROVAL for case in cases))
    for case in cases:
        await case.send(*case.order[: case.order.index("deadline")])
    assert datetime.now(UTC) < min(case.deadline for case in cases), "too slow to send anything before the deadline"
    await installation.after(max(case.deadline for case in cases))
    for case in cases:
        await case.send(*case.order[case.order.index("deadline") + 1 :])
    async with installation.workers():
        with suppress(TimeoutError):
            await eventually(lambda: all(case.found() == expected(case.order) for case in cases), seconds=40)
        assert {case.order: case.found() for case in cases} == {case.order: expected(case.order) for case in cases}
        for case in cases:
            if case.asking is not None:
                assert (await case.asking).ruling == dict(case.found().rulings)["update"]
