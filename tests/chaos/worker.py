"""`python -m tests.chaos.worker ROLE FOLDER`: the real worker process, which stops at named points and waits less long.

It is `countersign.worker_process` with three things around it, none of which changes what a step does: an interceptor
that passes a point before and after each step, the gateway's own `on_step`, and time limits that are shorter in the
same proportion, so that what a kill costs is seconds. An attempt's limit stays above its claim's.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import temporalio.client
import temporalio.worker
from temporalio import activity
from temporalio.client import Client
from temporalio.runtime import Runtime

from countersign import worker_process
from countersign.temporal_client import connect
from tests.chaos.points import Points, step_name
from workflows.names import GATEWAY_QUEUE

CALL_LIMIT = timedelta(seconds=1)
CLAIM_MARGIN = timedelta(seconds=0.5)
STEP_LIMIT = timedelta(seconds=7)
"""More than a claim is held for: a look-up, a reading and a sending, twice."""
HEARTBEAT_LIMIT = timedelta(seconds=3)


class StopsAtPoints(temporalio.client.Interceptor, temporalio.worker.Interceptor):
    """Given to a client, it is around all that the client's worker does."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def intercept_activity(
        self, next: temporalio.worker.ActivityInboundInterceptor
    ) -> temporalio.worker.ActivityInboundInterceptor:
        """See `temporalio.worker.Interceptor`."""
        return _Step(next, self._points)

    def workflow_interceptor_class(
        self, input: temporalio.worker.WorkflowInterceptorClassInput
    ) -> type[temporalio.worker.WorkflowInboundInterceptor]:
        """See `temporalio.worker.Interceptor`."""
        return _ShortTimes

    async def connected(self, runtime: Runtime | None) -> Client:
        """A client as `connect` makes it, with this around it."""
        config = (await connect(runtime)).config()
        config["interceptors"] = [*config["interceptors"], self]
        return Client(**config)


class _Step(temporalio.worker.ActivityInboundInterceptor):
    def __init__(self, next: temporalio.worker.ActivityInboundInterceptor, points: Points) -> None:
        super().__init__(next)
        self._points = points

    async def execute_activity(self, input: temporalio.worker.ExecuteActivityInput) -> Any:
        info = activity.info()
        name, workflow_id = step_name(info.activity_type, input.args[0]), cast(str, info.workflow_id)
        await self._points.passed(f"before {name}", workflow_id)
        result = await super().execute_activity(input)
        await self._points.passed(f"after {name}", workflow_id)
        return result


class _ShortTimes(temporalio.worker.WorkflowInboundInterceptor):
    def init(self, outbound: temporalio.worker.WorkflowOutboundInterceptor) -> None:
        super().init(_ShortSteps(outbound))


class _ShortSteps(temporalio.worker.WorkflowOutboundInterceptor):
    def start_activity(self, input: temporalio.worker.StartActivityInput) -> Any:
        if input.task_queue == GATEWAY_QUEUE:
            input.start_to_close_timeout = STEP_LIMIT
        if input.heartbeat_timeout is not None:
            input.heartbeat_timeout = HEARTBEAT_LIMIT
        return super().start_activity(input)


def _shorten_and_watch_gateway(points: Points) -> None:
    """Before bootstrap imports them, which it does for this role alone."""
    from countersign.gateway import gateway, http_channel, payments_channel

    def on_step(step: str) -> None:
        points.passed_in_thread(step, cast(str, activity.info().workflow_id))

    limits = http_channel.Limits(connect=CALL_LIMIT, total=CALL_LIMIT)
    vars(http_channel)["HttpChannel"] = partial(http_channel.HttpChannel, limits=limits)
    vars(payments_channel)["PaymentsChannel"] = partial(payments_channel.PaymentsChannel, limits=limits)
    vars(payments_channel)["READ_LIMIT"] = CALL_LIMIT
    vars(gateway)["Gateway"] = partial(gateway.Gateway, on_step=on_step)
    vars(gateway)["CLAIM_MARGIN"] = CLAIM_MARGIN


def main(role: worker_process.Role, folder: Path) -> int:
    """Run until stopped or killed."""
    points = Points(folder)
    if role == "gateway":
        _shorten_and_watch_gateway(points)
    vars(worker_process)["connect"] = StopsAtPoints(points).connected
    return worker_process.main(role)


if __name__ == "__main__":
    worker_process.leave(main(cast(worker_process.Role, sys.argv[1]), Path(sys.argv[2])))
