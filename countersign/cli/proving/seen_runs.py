"""A tenant's runs as the Temporal server has them, for `reconcile`: by name, whether the ledger knows them or not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from countersign.domain.errors import InputRefused, Unavailable
from countersign.domain.identity import operation_of, workflow_id
from countersign.domain.operation import Operation
from countersign.domain.reconciliation import RUNNING, SeenRun
from workflows.names import STATE, WORKFLOW_TYPE

if TYPE_CHECKING:
    from temporalio.client import Client, WorkflowExecution

SECONDS = 60.0
"""How long the whole look may take."""
_GOES_ON = "CONTINUED_AS_NEW"
"""A run that has handed on to a next one, which is listed too."""


async def seen_runs(tenant: str, operations: Sequence[Operation], operation: str | None) -> tuple[SeenRun, ...]:
    """The tenant's runs, or those of one operation: the open one of each, or the latest.

    Raises:
        Unavailable: the server does not answer.
    """
    from temporalio.service import RPCError

    from countersign.temporal_client import connect

    try:
        async with asyncio.timeout(SECONDS):
            client = await connect()
            listed = await _listed(client, tenant, operation)
            # What is listed lags a moment behind; where it matters the run itself is asked.
            asked = {one.operation: await _asked(client, one) for one in operations if not one.state.terminal}
    except TimeoutError:
        raise Unavailable(f"the server gave no whole answer within {SECONDS:.0f} s") from None
    except RPCError as error:
        raise Unavailable(f"the server does not answer: {error.message[:200]}") from None
    return tuple(run for run in {**listed, **asked}.values() if run is not None)


async def _listed(client: Client, tenant: str, operation: str | None) -> dict[str, SeenRun]:
    where = f'WorkflowId STARTS_WITH "{tenant}:"' if operation is None else f'WorkflowId = "{tenant}:{operation}"'
    found = [one async for one in client.list_workflows(f'WorkflowType = "{WORKFLOW_TYPE}" AND {where}')]
    # The latest of a name last, an open one after all that are closed.
    in_order = sorted(found, key=lambda one: (one.close_time is None, one.close_time or one.start_time))
    runs = [_run(one) for one in in_order]
    return {run.operation: run for run in runs if run is not None and run.status != _GOES_ON}


def _run(execution: WorkflowExecution) -> SeenRun | None:
    """Nothing for a name that is no operation's: no run of ours would do anything under it."""
    from temporalio.common import SearchAttributeKey

    try:
        _, operation = operation_of(execution.id)
    except InputRefused:
        return None
    return SeenRun(
        operation=operation,
        run_id=execution.run_id,
        status=execution.status.name if execution.status is not None else RUNNING,
        state=execution.typed_search_attributes.get(SearchAttributeKey.for_keyword(STATE)) or "",
    )


async def _asked(client: Client, operation: Operation) -> SeenRun | None:
    """The run of the operation's name; nothing where there is none, or a closed one that was for something else."""
    from temporalio.service import RPCError, RPCStatusCode

    from countersign.cli.temporal_run import SOON

    name = workflow_id(operation.tenant, operation.operation)
    try:
        described = await client.get_workflow_handle(name).describe(rpc_timeout=SOON)
        run = _run(described)
        if run is None or await _is_for(client, described, operation):
            return run
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise
    return run.model_copy(update={"foreign": True}) if run.is_open else None


async def _is_for(client: Client, run: WorkflowExecution, operation: Operation) -> bool:
    """Whether it was started to carry out this very request: anyone can start another under the operation's name."""
    from countersign.cli.proving.temporal_history import first_argument

    if run.workflow_type != WORKFLOW_TYPE:
        return False
    events = client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history_events(page_size=1)
    started = (await anext(events)).workflow_execution_started_event_attributes
    order = first_argument(started.input)
    return (order.get("request_hash"), order.get("case")) == (operation.request_hash, operation.case)
