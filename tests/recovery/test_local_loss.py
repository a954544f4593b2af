"""What is lost here is not done again out there: ledger from a backup, Temporal's store gone, a run that was reset.

Each runs a report to a press over HTTP, loses something, asks `reconcile` what it makes of it, brings the operation
back as an operator does, and counts at the press.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from countersign import bootstrap
from countersign.cli.app import run as starter
from countersign.cli.proving.reconcile import compare
from countersign.cli.session import Session
from countersign.domain.administration import UnfreezeChange
from countersign.domain.audit import RestoreOrder
from countersign.domain.decision import Ruling
from countersign.domain.execution import ExecutionStatus
from countersign.domain.identity import workflow_id
from countersign.domain.reconciliation import Disagreement, DisagreementKind
from countersign.domain.state import State
from countersign.signing.statements import sign_restore
from tests.ledger import founding
from tests.support.installation import Installation
from tests.support.publisher import Publisher, running_publisher
from tests.support.temporal import running_dev_server
from tests.support.waiting import until_state
from tests.workflow.acting import Run, proposed, vote
from tests.workflow.press import approved, press_installation

OPERATION, AT_ACME = "op-1", ("--tenant", "acme")


@dataclass
class Office:
    """An installation whose operators use the commands."""

    installation: Installation
    monkeypatch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        for name, value in self.installation.environment().items():
            self.monkeypatch.setenv(name, value)
        self.monkeypatch.setattr("countersign.cli.proving.reconcile.AGAIN_SECONDS", 0.0)

    async def disagreements(self) -> set[DisagreementKind]:
        """What `reconcile` finds about the operation."""
        found = await asyncio.to_thread(self._compared)
        assert {one.operation for one in found} <= {OPERATION}
        return {one.kind for one in found}

    def _compared(self) -> tuple[Disagreement, ...]:
        session = Session(self.installation.settings, self.installation.ledger)
        return tuple(compare(session, "acme").found)

    async def resume(self) -> Run:
        """Have the operation's run started again by the command."""
        assert await asyncio.to_thread(starter, ["resume", OPERATION, *AT_ACME]) == 0
        return self.run()

    def run(self) -> Run:
        """The operation's present run."""
        return self.installation.client.get_workflow_handle(workflow_id("acme", OPERATION))

    async def ended(self) -> None:
        """Its run has ended, and the ledger says the same."""
        result = await self.run().result()
        stored = self.installation.ledger.operations.get("acme", OPERATION)
        assert State.SUCCEEDED == stored.state == State(result["state"])

    def accept_restored(self) -> None:
        """Have the operator sign that the ledger goes on without what it lost."""
        audit, now = self.installation.ledger.audit, datetime.now(UTC)
        loss = audit.lost("acme")
        assert loss is not None
        order = RestoreOrder(
            installation=self.installation.settings.installation, person="lea", key_id="lea-1", tenant="acme",
            **loss.model_dump(exclude={"since"}), reason="the disk broke", issued_at=now, id=secrets.token_urlsafe(16),
        )  # fmt: skip
        audit.restored("acme", sign_restore(order, self.installation.keys["lea"]), now)

    def let_effects_go_on(self) -> None:
        """Lift the freeze that came with it, as two administrators decide once they have compared."""
        (freeze,) = self.installation.ledger.freezes.of_tenant("acme")
        change = UnfreezeChange(freeze=freeze.number)
        founding.apply(self.installation.ledger, change, "thaw", now=datetime.now(UTC))  # type: ignore[arg-type]


@pytest.fixture
def office(
    sqlite_installation: Installation, tmp_path: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Office]:
    with running_publisher(publisher) as url:
        yield Office(press_installation(sqlite_installation, tmp_path, url, monkeypatch), monkeypatch)


def ledger_file(office: Office) -> Path:
    return Path(office.installation.settings.ledger_url.removeprefix("sqlite:///"))


def saved(office: Office) -> Path:
    """A backup of the ledger as it is now."""
    file = ledger_file(office).with_suffix(".backup")
    with closing(sqlite3.connect(ledger_file(office))) as now, closing(sqlite3.connect(file)) as then:
        now.backup(then)
    return file


def brought_back(office: Office, backup: Path) -> Office:
    """The installation on that backup."""
    office.installation.ledger.close()
    for leftover in ("-wal", "-shm"):
        ledger_file(office).with_name(ledger_file(office).name + leftover).unlink(missing_ok=True)
    backup.replace(ledger_file(office))
    ledger = bootstrap.open_ledger(office.installation.settings)
    return Office(replace(office.installation, ledger=ledger), office.monkeypatch)


async def approve(office: Office, run: Run) -> None:
    assert (await vote(office.installation, run, "bob")).ruling == Ruling.ACCEPTED


@asynccontextmanager
async def ledger_restored(office: Office) -> AsyncIterator[Office]:
    """From a backup that was taken while people were asked: the effect came after it."""
    async with office.installation.workers():
        run = await proposed(office.installation)
        backup = saved(office)
        await approve(office, run)
        await run.result()
    restored = brought_back(office, backup)
    assert await restored.disagreements() == {DisagreementKind.EFFECT_UNRECORDED, DisagreementKind.RUN_CLOSED}
    restored.accept_restored()
    restored.let_effects_go_on()
    async with restored.installation.workers():
        await restored.resume()
        await restored.ended()
    yield restored
    restored.installation.ledger.close()


@asynccontextmanager
async def temporal_lost(office: Office) -> AsyncIterator[Office]:
    """Its store is gone after the effect was made and before the run heard of it."""
    async with office.installation.workers("agent"):
        await until_state(await approved(office.installation, OPERATION), State.EXECUTING)
    gateway = bootstrap.gateway(office.installation.settings, office.installation.ledger)
    approval_id = office.installation.proposal(OPERATION).approval_id
    made = await asyncio.to_thread(gateway.execute, "acme", approval_id)
    assert made.status == ExecutionStatus.EXECUTED
    server = running_dev_server()
    address = await asyncio.to_thread(server.__enter__)
    try:
        client = await Client.connect(address, data_converter=pydantic_data_converter)
        anew = Office(replace(office.installation, client=client), office.monkeypatch)
        assert await anew.disagreements() == {DisagreementKind.EXECUTED_NOT_ENDED}
        async with anew.installation.workers():
            await anew.resume()
            await anew.ended()
        yield anew
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


@asynccontextmanager
async def run_reset(office: Office, choose: Callable[[list[int]], int]) -> AsyncIterator[Office]:
    """A run that came to its end is taken back to one of its tasks before the effect."""
    async with office.installation.workers():
        run = await approved(office.installation, OPERATION)
        await run.result()
    await reset(office, run, choose(await tasks_before_the_effect(run)))
    assert await office.disagreements() == {DisagreementKind.RUN_GOES_ON}
    async with office.installation.workers():
        await office.ended()
    yield office


async def tasks_before_the_effect(run: Run) -> list[int]:
    tasks: list[int] = []
    async for event in run.fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            tasks.append(event.event_id)
        if event.activity_task_scheduled_event_attributes.activity_type.name == "execute":
            return tasks
    raise AssertionError("the run made no effect")


async def reset(office: Office, run: Run, task: int) -> None:
    client = office.installation.client
    order = ResetWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=run.id, run_id=run.first_execution_run_id or ""),
        reason="tried again",
        workflow_task_finish_event_id=task,
        request_id="reset-1",
    )
    await client.workflow_service.reset_workflow_execution(order)


def reset_to_its_beginning(office: Office) -> AbstractAsyncContextManager[Office]:
    return run_reset(office, lambda tasks: tasks[0])


def reset_to_before_the_effect(office: Office) -> AbstractAsyncContextManager[Office]:
    return run_reset(office, lambda tasks: tasks[-1])


@asynccontextmanager
async def ledger_restored_and_nothing_sent(office: Office) -> AsyncIterator[Office]:
    """From a backup that was taken while people were asked: what they granted after it never went out."""
    async with office.installation.workers("agent"):
        run = await proposed(office.installation)
        backup = saved(office)
        await approve(office, run)
        await until_state(run, State.EXECUTING)
        await run.terminate("the disk broke")
    restored = brought_back(office, backup)
    restored.accept_restored()
    restored.let_effects_go_on()
    async with restored.installation.workers():
        again = await restored.resume()
        await until_state(again, State.WAITING_APPROVAL)
        proposal = restored.installation.proposal(OPERATION)
        assert (proposal.approval_version, proposal.asked_again) == (1, "")
        await approve(restored, again)
        await restored.ended()
    yield restored
    restored.installation.ledger.close()


@pytest.mark.guarantee("G23", "G33", "G37")
@pytest.mark.parametrize(
    "lost",
    [
        ledger_restored,
        ledger_restored_and_nothing_sent,
        temporal_lost,
        reset_to_its_beginning,
        reset_to_before_the_effect,
    ],
)
async def test_reconciled_after_local_loss(
    office: Office, publisher: Publisher, lost: Callable[[Office], AbstractAsyncContextManager[Office]]
) -> None:
    async with lost(office) as mended:
        assert await mended.disagreements() == set()
        mended.installation.ledger.audit.verify("acme")
        execution = mended.installation.ledger.executions.get("acme", OPERATION)
    assert execution is not None
    assert [key for key, _ in publisher.effects()] == publisher.calls("POST") == [execution.key]
