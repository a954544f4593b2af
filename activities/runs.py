"""Whose step it is, and when: what a step is told of both is compared with what Temporal and the clock say.

Apart from the steps, since anyone with access to the namespace can have a workflow of their own ask for any of them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from temporalio import activity

from countersign.domain.errors import Conflict, Unavailable
from countersign.domain.identity import workflow_id

AHEAD = timedelta(seconds=60)
"""How far the server's clock may be ahead of this worker's."""


def check_run(tenant: str, operation: str, run_id: str | None = None) -> None:
    """Refuse a step for another workflow than the operation's own run.

    Temporal keeps names single, so one operation has one run; anyone can start another under a name of their own.

    Raises:
        Conflict: it is another workflow, or another run of it than `run_id` where that is given.
    """
    info = activity.info()
    if info.workflow_id != workflow_id(tenant, operation):
        raise Conflict(
            f"operation {operation}: a run named {str(info.workflow_id)[:140]!r} is not the one that may carry it out"
        )
    if run_id is not None and info.workflow_run_id != run_id:
        raise Conflict(f"operation {operation}: run {str(info.workflow_run_id)[:80]} spoke for run {run_id[:80]}")


def check_now(moment: datetime) -> None:
    """Refuse a time that has not come: a deadline would be over, or lie ahead, by somebody's word.

    Raises:
        Unavailable: this worker's clock is behind, or the time was made up; the step is tried again.
    """
    now = datetime.now(UTC)
    if moment > now + AHEAD:
        raise Unavailable(
            f"the run says it is {moment.isoformat()}, here it is {now.isoformat()}; set the clocks right"
        )
