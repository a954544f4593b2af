"""Long life: thousands of messages, a minute that ends in the middle of them, and killed workers and servers."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.client import Client, RPCError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCStatusCode

from countersign.cli.demos.dev_server import free_port, server_command
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.state import State
from tests.support.installation import Installation, new_installation
from tests.support.processes import Processes
from tests.support.waiting import until_messages, until_state
from tests.workflow.acting import Run, approval, records, vote
from tests.workflow.going_on import assert_handed_on_and_taken_on, going_on_after

pytestmark = pytest.mark.long


@pytest.mark.guarantee("G24", "G47")
@pytest.mark.timeout(180)
async def test_a_60_s_expiry_with_1000_messages_and_a_continue_as_new_just_before_it(tmp_path: Path) -> None:
    count, seconds = 1_000, 58
    async with going_on_after(300, tmp_path / "home") as made:
        installation = made.with_policy(tmp_path, decide_within="60s", ladder={})
        async with installation.workers("agent"):
            run = await installation.start("op-1")
            await until_state(run, State.WAITING_APPROVAL)
            proposal = installation.proposal("op-1")
            for number in range(count):
                await installation.after(proposal.proposed_at + timedelta(seconds=seconds * number / count))
                await run.signal("decide", installation.decision(proposal, "bob", approval_version=2))
            assert datetime.now(UTC) < proposal.deadline, "too slow to send everything before the deadline"
            result = await run.result()
            last = await run.describe()
    assert (result.state, result.reason) == (State.EXPIRED, "undecided_at_deadline")
    assert timedelta(0) < proposal.deadline - last.start_time < timedelta(seconds=20)
    assert last.close_time is not None
    assert timedelta(0) <= last.close_time - proposal.deadline < timedelta(seconds=10)
    ruled = records(installation, "decision.refused")
    assert len({one["statement_id"] for one in ruled}) == len(ruled) == count
    assert {one["ruling"] for one in ruled} == {Ruling.NOT_THIS_VERSION}
    (expired,) = records(installation, "approval.expired")
    assert expired["subject"] == "clock"
    assert approval(installation).votes == ()


async def until_answered(installation: Installation, run: Run, message: dict[str, str]) -> Outcome:
    """Ask as a client does that knows no run ids: the same statement again, until the run that is there answers."""
    while True:
        try:
            outcome: Outcome = await run.execute_update("decide", message, result_type=Outcome)
            return outcome
        except (WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError):
            continue
        except RPCError as gone:
            if gone.status not in (RPCStatusCode.NOT_FOUND, RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.ABORTED):
                raise


@pytest.mark.guarantee("G17", "G47")
@pytest.mark.timeout(180)
async def test_of_two_thousand_messages_that_race_runs_going_on_each_is_recorded_once(tmp_path: Path) -> None:
    signals, updates = 1_800, 200
    async with going_on_after(150, tmp_path / "home") as installation, installation.workers("agent"):
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        proposal = installation.proposal("op-1")
        made = [installation.decision(proposal, "bob", approval_version=2) for _ in range(signals + updates)]
        waiting = iter(made[:updates])
        rest = iter(made[updates:])

        async def ask() -> list[Outcome]:
            return [await until_answered(installation, run, message) for message in waiting]

        async def tell() -> None:
            for message in rest:
                await run.signal("decide", message)

        telling = asyncio.gather(*(tell() for _ in range(8)))
        answers = await asyncio.gather(*(ask() for _ in range(4)))
        await telling
        status = await until_messages(run, len(made))
    given = [outcome.ruling for several in answers for outcome in several]
    assert len(given) == updates
    assert set(given) <= {Ruling.NOT_THIS_VERSION, Ruling.REPLAY}
    refused, repeated = (records(installation, f"decision.{kind}") for kind in ("refused", "repeated"))
    assert len({one["statement_id"] for one in refused}) == len(refused) == len(made)
    # What a task that came to nothing had ruled on, since its run went on, reaches the next run anew: as a repeat.
    assert status.messages - status.refused == len(repeated)
    assert_handed_on_and_taken_on(installation, at_least=5)


class Server:
    """A server that keeps its runs in a file, and can be killed and started anew at the same address."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        self._processes = processes
        port, web = free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        self._command = server_command("127.0.0.1", port, web, folder / "temporal.db")
        self._process = processes.start(self._command, name="server")

    async def client(self) -> Client:
        """A client, once the server answers."""
        async with asyncio.timeout(60):
            while True:
                with suppress(RuntimeError, RPCError):
                    client = await Client.connect(self.address, data_converter=pydantic_data_converter)
                    await client.count_workflows()
                    return client
                await asyncio.sleep(0.1)

    def killed_and_started_anew(self) -> None:
        """Without a chance to clean up."""
        self._process.kill()
        self._process = self._processes.start(self._command, name="server")


@pytest.mark.guarantee("G27", "G37")
async def test_workers_and_server_are_killed_and_begun_anew_while_people_are_asked(
    tmp_path: Path, processes: Processes
) -> None:
    ladder = {"remind": ["1s"], "tiers": [{"after": "2s", "role": "lead", "decisions": ["approve", "reject"]}]}
    server = Server(processes, tmp_path)
    made = new_installation(tmp_path / "home", await server.client())
    installation = made.with_policy(tmp_path, approvals=2, ladder=ladder)
    command = [sys.executable, "worker.py", "--role", "agent"]
    worker = processes.start(command, env=installation.environment())
    run = await installation.start("op-1")
    await until_state(run, State.ESCALATED)
    assert (await vote(installation, run, "bob")).ruling == Ruling.ACCEPTED
    worker.kill()
    await run.signal("decide", installation.decision(installation.proposal("op-1"), "leo"))
    server.killed_and_started_anew()
    await server.client()
    processes.start(command, env=installation.environment())
    async with installation.workers("gateway"):
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert [one.person for one in installation.votes("op-1")] == ["bob", "leo"]
    assert [len(records(installation, f"approval.{what}")) for what in ("reminded", "escalated")] == [1, 1]
    assert len(installation.published()) == 1
    installation.ledger.close()
