"""A retention by Temporal: as the documentation has it scheduled, it deletes what ended, and nothing that is open."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client, ScheduleActionExecutionStartWorkflow, WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError

from countersign.agents.threads import threads_at
from countersign.domain.state import State
from countersign.settings import ROOT
from tests.support.installation import Installation
from tests.support.temporal import installed_program
from tests.support.waiting import until_state
from workflows.names import RUN_QUEUE

OPERATIONS = ROOT / "docs" / "operations.md"


def documented() -> list[str]:
    """The command that schedules it, as it stands in the documentation."""
    (line,) = re.findall(r"^ *\.venv/bin/temporal (schedule create .*)$", OPERATIONS.read_text("utf-8"), re.MULTILINE)
    return shlex.split(str(line))


def temporal(client: Client, *arguments: str) -> None:
    """Carry out a command of the plain `temporal` CLI."""
    address = client.service_client.config.target_host
    command = [str(installed_program("temporal")), *arguments, "--address", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def triggered(client: Client, schedule: str) -> str:
    """The workflow that a schedule has started."""
    handle = client.get_schedule_handle(schedule)
    await handle.trigger()
    async with asyncio.timeout(30):
        while not (begun := (await handle.describe()).info.recent_actions):
            await asyncio.sleep(0.02)
    action = begun[0].action
    assert isinstance(action, ScheduleActionExecutionStartWorkflow)
    return action.workflow_id


def with_threads(installation: Installation) -> set[str]:
    """The operations whose agents have threads."""
    return set(threads_at(installation.settings.threads_url).of_tenant(installation.tenant))


async def test_scheduled_as_documented_it_deletes_what_ended_and_keeps_what_is_open(
    sqlite_installation: Installation,
) -> None:
    ahead = [timedelta()]
    installation = replace(sqlite_installation, clock=lambda: sqlite_installation.clock() + ahead[0])
    client = installation.client
    async with installation.workers():
        ended = await installation.start("ended", channel="internal")
        waiting = await installation.start("waiting")
        assert (await ended.result()).state == State.SUCCEEDED
        await until_state(waiting, State.WAITING_APPROVAL)
        temporal(client, *documented())
        early = client.get_workflow_handle(await triggered(client, "countersign-retention"))
        assert await early.result() == {"operations": 0, "threads": 0}
        assert with_threads(installation) == {"ended", "waiting"}

        ahead[0] = timedelta(days=31)
        forgotten = await client.execute_workflow("Retention", {"keep": "30d"}, id="by-hand", task_queue=RUN_QUEUE)

    assert forgotten == {"operations": 1, "threads": 1}
    assert with_threads(installation) == {"waiting"}
    (record,) = [each for each in installation.ledger.audit.records("acme") if each.type == "threads.deleted"]
    assert (record.subject, record.detail) == ("clock", {"operations": 1, "threads": 1, "keep": "30d"})
    installation.ledger.audit.verify("acme")


WRONG: list[tuple[list[Any], str, str]] = [
    ([], "INPUT_REFUSED", 'give {"keep": "30d"}'),
    ([{"keep": "a month"}], "INPUT_REFUSED", "keep: "),
    ([{"keep": "30d", "tenants": "acme"}], "INPUT_REFUSED", "tenants: "),
    ([{"keep": "30d", "tenant": "acne"}], "NOT_FOUND", "no such tenant"),
]


async def test_what_it_cannot_do_fails_at_once_and_says_why(sqlite_installation: Installation) -> None:
    async with sqlite_installation.workers("agent"):
        for given, code, words in WRONG:
            with pytest.raises(WorkflowFailureError) as failed:
                await sqlite_installation.client.execute_workflow(
                    "Retention", args=given, id="wrong", task_queue=RUN_QUEUE
                )
            cause = failed.value.cause
            refused = cause.cause if isinstance(cause, ActivityError) else cause
            assert isinstance(refused, ApplicationError)
            assert refused.type == code
            assert words in refused.message
