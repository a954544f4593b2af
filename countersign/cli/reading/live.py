"""What the Temporal server adds to the ledger's picture of a run: whether it is alive, and what keeps it waiting.

Never needed for an answer: without a server the commands say so and answer from the ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from countersign.cli.rendering import WORKER
from countersign.domain.errors import CountersignError
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation
from countersign.domain.run import RunStatus
from countersign.domain.values import Value
from workflows.names import RUN_QUEUE

if TYPE_CHECKING:
    from temporalio.client import Client, WorkflowExecutionDescription

SOON = 5.0
"""Seconds after which the server counts as not there."""
MOST_EVENTS = 200
"""So many of a run's newest events are looked through for messages that no worker came to."""
NO_ANSWER = f"no worker answers, though one was there a minute ago; start one with: {WORKER}"
CUT_SHORT = frozenset({"TERMINATED", "FAILED", "TIMED_OUT"})
"""Ends of a run that the ledger knows nothing of."""


class Waiting(Value):
    """A step that is being worked on or tried again."""

    step: str
    attempt: int
    last_failure: str


class Live(Value):
    """A run as the server has it; `note` says why something is not known."""

    reachable: bool
    note: str = ""
    execution: str = ""
    """RUNNING, COMPLETED, CANCELED, TERMINATED, FAILED, TIMED_OUT."""
    run_id: str = ""
    steps: Sequence[Waiting] = ()
    messages: int | None = None
    """Signals and updates that came, accepted or not; unknown without a worker."""
    refused: int | None = None
    """How many of them were refused; the same statement once more is not."""


async def look(operation: Operation) -> Live:
    """What the server knows of the run, asked for a few seconds at the most."""
    from temporalio.service import RPCError, RPCStatusCode

    from countersign.temporal_client import connect

    try:
        return await _seen(await asyncio.wait_for(connect(), SOON), operation)
    except CountersignError as error:
        return Live(reachable=False, note=error.message)
    except TimeoutError:
        return Live(reachable=False, note="the Temporal server does not answer; check TEMPORAL_ADDRESS")
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return Live(reachable=True, note=f"the server has no run of this name{_again(operation)}")
        return Live(reachable=False, note=f"the Temporal server does not answer: {error.message[:200]}")


def _again(operation: Operation) -> str:
    # What has ended in the ledger is not taken up again.
    return "" if operation.state.terminal else "; start it again with the same command as the first time"


async def _seen(client: Client, operation: Operation) -> Live:
    from countersign.cli.temporal_run import SOON as RPC_LIMIT
    from countersign.cli.temporal_run import polled, unattended

    run = workflow_id(operation.tenant, operation.operation)
    described = await client.get_workflow_handle(run).describe(rpc_timeout=RPC_LIMIT)
    was_there = await polled(client, RUN_QUEUE)
    status = await _status(client, described.id) if was_there else None
    execution = described.status.name if described.status is not None else ""
    missing = list(await unattended(client))
    if status is None and execution == "RUNNING":
        missing += [NO_ANSWER] if was_there and not missing else []
        missing += await _left(client, run)
    return Live(
        reachable=True,
        note=_note(operation, execution, missing),
        execution=execution,
        run_id=described.run_id,
        steps=_steps(described),
        messages=status.messages if status else None,
        refused=status.refused if status else None,
    )


def _note(operation: Operation, execution: str, missing: Sequence[str]) -> str:
    if execution in CUT_SHORT:
        return f"the run was cut short{_again(operation)}"
    return "; ".join(missing) if execution == "RUNNING" else ""


async def _left(client: Client, run: str) -> list[str]:
    """How many messages lie with the run since a worker last came to it, as a sentence; none where there are none."""
    from temporalio.api.common.v1 import WorkflowExecution
    from temporalio.api.enums.v1 import EventType
    from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest

    from countersign.cli.temporal_run import SOON as RPC_LIMIT

    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=run), maximum_page_size=MOST_EVENTS
    )
    newest = await client.workflow_service.get_workflow_execution_history_reverse(request, timeout=RPC_LIMIT)
    kinds = [event.event_type for event in newest.history.events]
    done = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    since = kinds[: kinds.index(done)] if done in kinds else kinds
    count = since.count(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
    what = "1 message waits" if count == 1 else f"{count} messages wait"
    return [f"{what} to be ruled on by a worker"] if count else []


async def _status(client: Client, run: str) -> RunStatus | None:
    from temporalio.client import WorkflowQueryFailedError
    from temporalio.service import RPCError

    from countersign.cli.temporal_run import SOON as RPC_LIMIT

    try:
        status: RunStatus = await client.get_workflow_handle(run).query(
            "status", result_type=RunStatus, rpc_timeout=RPC_LIMIT
        )
    except (RPCError, WorkflowQueryFailedError):
        return None
    return status


def _steps(described: WorkflowExecutionDescription) -> list[Waiting]:
    return [
        Waiting(
            step=pending.activity_type.name, attempt=pending.attempt, last_failure=pending.last_failure.message[:300]
        )
        for pending in described.raw_description.pending_activities
    ]
