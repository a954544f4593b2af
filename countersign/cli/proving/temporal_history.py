"""What came to the runs of an operation, as the histories say that the Temporal server still has.

Apart from what is made of it: here it is only read, and nothing in a history is believed to be well formed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from countersign.cli.proving.history_check import Came, KeptRun
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import StatementRefused
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation

if TYPE_CHECKING:
    from temporalio.api.common.v1 import Payloads
    from temporalio.api.history.v1 import HistoryEvent
    from temporalio.client import Client, WorkflowHandle


async def kept_runs(client: Client, operation: Operation, named: Collection[str]) -> list[KeptRun]:
    """All runs of an operation that the server has.

    Args:
        client: of the server.
        operation: whose runs.
        named: run ids that the audit names: the server's list comes late, and is asked for them one by one.
    """
    name = workflow_id(operation.tenant, operation.operation)
    listed = {run.run_id async for run in client.list_workflows(f'WorkflowId = "{name}"')}
    found = [await _kept(client, operation, name, run_id) for run_id in sorted({*listed, *named})]
    return [run for run in found if run is not None]


async def _kept(client: Client, operation: Operation, name: str, run_id: str) -> KeptRun | None:
    """One run; nothing where the server no longer has it."""
    from temporalio.service import RPCError, RPCStatusCode

    handle = client.get_workflow_handle(name, run_id=run_id)
    try:
        described = await handle.describe()
        events = await _events(handle)
    except RPCError as error:
        # Also for what is no run id at all: whoever can speak to a step can have anything recorded as one.
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            return None
        raise
    started = events[0].workflow_execution_started_event_attributes
    return KeptRun(
        operation=operation.operation,
        run_id=run_id,
        type=started.workflow_type.name,
        status=described.status.name if described.status is not None else "",
        carried=_carried(started.input),
        came=tuple(_came(events)),
    )


async def _events(handle: WorkflowHandle[Any, Any]) -> list[HistoryEvent]:
    return [event async for event in handle.fetch_history_events()]


def _came(events: Sequence[HistoryEvent]) -> list[Came]:
    """The messages in order, each with the runs from which a reset copied it."""
    from temporalio.api.enums.v1 import EventType

    admitted: dict[str, Payloads] = {}
    came: list[Came] = []
    for event in events:
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
                signal = event.workflow_execution_signaled_event_attributes
                came.append(Came(transport="signal", statement_hash=_statement(signal.input)))
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
                request = event.workflow_execution_update_admitted_event_attributes.request
                admitted[request.meta.update_id] = request.input.args
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
                update = event.workflow_execution_update_accepted_event_attributes
                # What a reset brings along stands in the event before, and is left out here.
                args = admitted.get(update.protocol_instance_id, update.accepted_request.input.args)
                came.append(Came(transport="update", statement_hash=_statement(args)))
            case EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                base = _reset_from(event)
                if base:
                    came = [one.model_copy(update={"before": (*one.before, base)}) for one in came]
    return came


def _reset_from(event: HistoryEvent) -> str:
    """The run up to which the history before this event is a copy; empty where it is no reset."""
    from temporalio.api.enums.v1 import WorkflowTaskFailedCause

    failed = event.workflow_task_failed_event_attributes
    reset = failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
    return failed.base_run_id if reset else ""


def _carried(args: Payloads) -> int:
    """How many messages a run takes over from those that it carries on."""
    carried = first_argument(args).get("carried")
    received = carried.get("received") if isinstance(carried, dict) else 0
    return received if isinstance(received, int) else 0


def _statement(args: Payloads) -> str:
    """The hash by which the ledger knows the statement in a message; empty where there is none."""
    from countersign.signing.unsigned import UNSIGNED, unsigned_text

    message = first_argument(args)
    token = message.get("statement")
    try:
        if UNSIGNED in message and not token:
            token = unsigned_text(message[UNSIGNED])
        return sha256_hex(token.encode()) if isinstance(token, str) and token else ""
    except (StatementRefused, ValueError):
        return ""


def first_argument(args: Payloads) -> dict[str, Any]:
    """The first of what a run or a message was given, as an object; empty where it is none."""
    try:
        value = json.loads(args.payloads[0].data)
    except (ValueError, IndexError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
