"""Followers: once a run's effect is confirmed, it starts the runs of the operations that wait for that.

Apart from the run's course, which ends here: what they come to is theirs alone, and they outlive the run that began
them. The ledger says who follows, and refuses a follower's run that comes before there is anything to follow.
"""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import RunOrder
    from countersign.domain.identity import workflow_id

from workflows import names
from workflows.cancelling import to_its_end
from workflows.visibility import first_attributes


async def begin(followers: Sequence[RunOrder]) -> None:
    """Start the run of each, whatever cancel comes meanwhile; one that goes on already is left alone."""
    for order in followers:
        await to_its_end(_begun(order))


async def _begun(order: RunOrder) -> None:
    try:
        await workflow.start_child_workflow(
            names.WORKFLOW_TYPE,
            order,
            id=workflow_id(order.tenant, order.operation),
            task_queue=names.RUN_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            parent_close_policy=ParentClosePolicy.ABANDON,
            search_attributes=first_attributes(order.tenant, order.case),
        )
    except WorkflowAlreadyStartedError:
        # Whoever was first asked for the same: one operation has one run.
        return
