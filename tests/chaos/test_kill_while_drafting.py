"""Workers killed or stopped while a model is being asked: another goes on, no finished call is made again, one report.

Each run's model call is held at the server, so that the kill surely meets it in flight.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHandle

from countersign.domain.run import RunResult
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import ModelServer, running_model_server
from tests.support.processes import Processes
from tests.workflow.scripted_model import ScriptedModel, is_grading, model_environment

CALLS = 3
"""Model calls of one draft; a grading makes one more."""


def worker_command(role: str) -> list[str]:
    return [sys.executable, "worker.py", "--role", role]


async def started_and_held(
    installation: Installation, server: ModelServer, operation: str, calls: int
) -> WorkflowHandle[Any, RunResult]:
    """A run whose model call is held: the last of `calls` that the server has then been asked for in all."""
    run = await installation.start(operation, channel="internal")
    await asyncio.to_thread(server.wait_for_calls, calls, 60.0)
    return run


def assert_published_once(installation: Installation, *operations: str) -> None:
    """One report per operation outside, one execution in the audit, and the audit whole."""
    assert [path.name for path in installation.published("internal")] == [f"{each}.md" for each in operations]
    for operation in operations:
        types = [record.type for record in installation.ledger.audit.records("acme", operation)]
        assert (types.count("effect.executed"), types.count("draft.written")) == (1, 1)
    assert installation.ledger.audit.verify("acme").count > 0


@pytest.mark.guarantee("G37")
@pytest.mark.long
async def test_killed_in_a_model_call_another_worker_repeats_that_call_alone(
    sqlite_installation: Installation, processes: Processes
) -> None:
    """One kill meets three runs at their first, second and third call, and one more that is then cancelled."""
    held = (1, 3, 6, 7)
    with running_model_server(ScriptedModel(held=held)) as server:
        environment = sqlite_installation.environment() | model_environment(server)
        first = processes.start(worker_command("agent"), env=environment)
        runs = [
            await started_and_held(sqlite_installation, server, f"op-{number}", calls)
            for number, calls in enumerate(held, start=1)
        ]
        first.kill()
        await runs[3].cancel()
        processes.start(worker_command("agent"), env=environment)
        async with sqlite_installation.workers("gateway"):
            results = [await run.result() for run in runs[:3]]
            with pytest.raises(WorkflowFailureError):
                await runs[3].result()
    assert [result.state for result in results] == [State.SUCCEEDED] * 3
    assert_published_once(sqlite_installation, "op-1", "op-2", "op-3")
    gradings = sum(map(is_grading, server.requests))
    assert (gradings, server.calls - gradings) == (3, 3 * CALLS + 3 + 1)
    assert sqlite_installation.ledger.operations.get("acme", "op-4").state == State.CANCELLED


@contextmanager
def pair_of_workers(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """`worker.py` with both roles below it; its output ends when none of the three is left."""
    parent = subprocess.Popen(
        worker_command("all"),
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield parent
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0)])
@pytest.mark.long
async def test_the_parent_gone_nothing_is_left_running_and_a_new_one_finishes(
    sqlite_installation: Installation, number: signal.Signals, code: int
) -> None:
    with running_model_server(ScriptedModel(held=[2])) as server:
        environment = sqlite_installation.environment() | model_environment(server)
        with pair_of_workers(environment) as parent:
            run = await started_and_held(sqlite_installation, server, "op-1", 2)
            parent.send_signal(number)
            output, _ = await asyncio.to_thread(parent.communicate, timeout=60)
        assert (parent.returncode, b"Traceback" in output) == (code, False), output.decode()
        with pair_of_workers(environment):
            result = await run.result()
    assert result.state == State.SUCCEEDED
    assert_published_once(sqlite_installation, "op-1")
    assert server.calls == CALLS + 1 + 1
