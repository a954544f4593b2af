"""Every recorded run replays to the same commands, so a run that is open in production survives today's code."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from countersign.worker_process import PASSED_THROUGH
from tests.workflow.strict_replay import FOLDER, as_kept, commands_of, facts_of_commands, facts_of_history, load
from tests.workflow.ways import WAYS
from workflows import options
from workflows.governed_action import GovernedAction

MAX_BYTES = 100_000


def test_every_way_to_end_is_recorded() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(WAYS)


@pytest.mark.parametrize("name", WAYS)
async def test_a_recorded_run_gives_the_same_commands_again(name: str) -> None:
    history, recorded = load(name)
    commands = await commands_of(history)
    assert as_kept(commands) == recorded
    assert facts_of_commands(commands) == facts_of_history(history)


@pytest.mark.parametrize("name", WAYS)
async def test_a_recorded_run_replays_in_the_sandbox_as_workers_have_it(name: str) -> None:
    history, _ = load(name)
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    replayer = Replayer(
        workflows=[GovernedAction],
        workflow_runner=SandboxedWorkflowRunner(restrictions=restrictions),
        data_converter=pydantic_data_converter,
    )
    await replayer.replay_workflow(history)


@pytest.mark.parametrize(
    ("step", "limit"),
    [
        (options.MODEL_STEP, "heartbeat_timeout"),
        (options.EFFECT_STEP, "start_to_close_timeout"),
        (options.LEDGER_STEP, "start_to_close_timeout"),
    ],
    ids=["heartbeat of a draft", "limit of an effect", "limit of a local step"],
)
async def test_a_changed_time_limit_which_the_sdk_lets_pass_is_seen(
    monkeypatch: pytest.MonkeyPatch, step: Any, limit: str
) -> None:
    history, recorded = load("approved")
    monkeypatch.setitem(step, limit, timedelta(seconds=7))
    assert as_kept(await commands_of(history)) != recorded


@pytest.mark.guarantee("G46")
@pytest.mark.parametrize("name", WAYS)
def test_a_recording_is_small_and_names_no_place_of_the_machine_that_made_it(name: str) -> None:
    text = (FOLDER / f"{name}.json").read_text()
    assert len(text) < MAX_BYTES
    for place in (str(Path.home()), str(Path.cwd()), "/tmp/", "file:", socket.gethostname(), "@"):
        assert place not in text.replace("report/1@sha256", "").replace("report-rubric/1@sha256", "")
