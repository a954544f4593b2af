"""A run as the Temporal server has it: starting, messages, and who is there to work on it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from countersign.cli.rendering import STARTER, WORKER
from countersign.cli.session import now
from countersign.cli.signed_message import Message
from countersign.domain.decision import Outcome
from countersign.domain.errors import Unavailable
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation
from workflows import names

if TYPE_CHECKING:
    from temporalio.client import Client, WorkflowHandle

SOON = timedelta(seconds=5)
"""How long a small question to the server may take."""
POLL = timedelta(seconds=70)
"""A living worker asks again after a minute at the latest; the server names those that do not for minutes more."""
UPDATE_TRIES = 3
ANSWER_WITHIN = timedelta(seconds=15)
"""How long an update may wait for the run's answer before it is sent as a signal."""


async def start_run(client: Client, operation: Operation) -> bool:
    """Start the operation's run; whether it was started, or was running already.

    A running one is not started twice (workflow id = operation). Whether an ended operation may be taken up is the
    ledger's word; a run that was terminated has not ended there, and is started again.

    Raises:
        Unavailable: the namespace lacks our search attributes, with which the run could not go on.
    """
    from temporalio.common import WorkflowIDReusePolicy
    from temporalio.exceptions import WorkflowAlreadyStartedError

    from activities.interfaces import RunOrder
    from workflows.visibility import first_attributes

    await require_search_attributes(client)
    order = RunOrder(
        tenant=operation.tenant, operation=operation.operation, case=operation.case, request_hash=operation.request_hash
    )
    try:
        await client.start_workflow(
            names.WORKFLOW_TYPE,
            order,
            id=workflow_id(operation.tenant, operation.operation),
            task_queue=names.RUN_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            search_attributes=first_attributes(operation.tenant, operation.case),
            rpc_timeout=ANSWER_WITHIN,
        )
    except WorkflowAlreadyStartedError:
        return False
    return True


async def require_search_attributes(client: Client) -> None:
    """Unavailable if the namespace lacks any of ours, naming the command that registers them."""
    from countersign.temporal_client import missing_search_attributes

    absent = await missing_search_attributes(client)
    if absent:
        raise Unavailable(
            f"search attributes are not registered in namespace {client.namespace}: {', '.join(absent)};"
            f" run: {STARTER} doctor --fix"
        )


async def unattended(client: Client) -> Sequence[str]:
    """One sentence for each of our task queues that no worker polls."""
    roles = {names.RUN_QUEUE: "agent", names.GATEWAY_QUEUE: "gateway"}
    return [
        f"no worker polls the task queue {queue}; start one with: {WORKER} (or --role {role})"
        for queue, role in roles.items()
        if not await polled(client, queue)
    ]


async def polled(client: Client, queue: str) -> bool:
    """Whether a worker asks this queue for work, be it for workflows or activities."""
    age = await last_poll(client, queue)
    return age is not None and age < POLL


async def last_poll(client: Client, queue: str) -> timedelta | None:
    """How long ago a worker last asked this queue for work; nothing if the server remembers none."""
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

    seen: list[datetime] = []
    for kind in (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY):
        request = DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        )
        described = await client.workflow_service.describe_task_queue(request, timeout=SOON)
        seen += [poller.last_access_time.ToDatetime(tzinfo=UTC) for poller in described.pollers]
    return max(now() - max(seen), timedelta(0)) if seen else None


async def send_message(client: Client, message: Message) -> Outcome | None:
    """Send a signed message and return the run's answer; nothing if it was left with the run as a signal.

    An update needs a worker, a signal does not. One that timed out may still be ruled on, so the same statement goes
    out again as a signal: whichever comes second is a repeat without effect, and no refusal (G17).
    """
    handle = client.get_workflow_handle(workflow_id(message.tenant, message.operation))
    if await polled(client, names.RUN_QUEUE):
        outcome = await _updated(handle, message)
        if outcome is not None:
            return outcome
    await handle.signal(message.name, message.body, rpc_timeout=ANSWER_WITHIN)
    return None


async def _updated(handle: WorkflowHandle[object, object], message: Message) -> Outcome | None:
    from temporalio.client import WorkflowUpdateRPCTimeoutOrCancelledError
    from temporalio.service import RPCError, RPCStatusCode

    for _ in range(UPDATE_TRIES):
        try:
            outcome: Outcome = await handle.execute_update(
                message.name, message.body, id=message.id, result_type=Outcome, rpc_timeout=ANSWER_WITHIN
            )
            return outcome
        except WorkflowUpdateRPCTimeoutOrCancelledError:
            return None
        except RPCError as lost:
            # Messages that meet a run's very end make the server redo that task and drop the updates in it.
            if lost.status != RPCStatusCode.FAILED_PRECONDITION:
                raise
    return None
