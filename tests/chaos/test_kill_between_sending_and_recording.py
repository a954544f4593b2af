"""kill -9 between sending and recording: whoever comes next looks up, and the report is published once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.processes import Processes
from tests.support.publisher import Publisher, running_publisher
from tests.support.waiting import eventually
from tests.workflow.press import TOKEN, approved, with_http_channel


@pytest.mark.long
@pytest.mark.guarantee("G36", "G37")
async def test_gateway_killed_while_the_answer_is_on_its_way_publishes_once(
    sqlite_installation: Installation, processes: Processes, tmp_path: Path
) -> None:
    publisher = Publisher(tmp_path / "press.db", TOKEN)
    publisher.fail_next("answer_late")
    with running_publisher(publisher) as url:
        press = with_http_channel(sqlite_installation, tmp_path, url)
        environment = {**press.environment(), "PRESS_TOKEN": TOKEN}
        gateway = [sys.executable, "worker.py", "--role", "gateway"]
        async with press.workers("agent"):
            first = processes.start(gateway, env=environment)
            run = await approved(press, "op-1")
            await eventually(lambda: len(publisher.effects()) == 1)
            first.kill()
            processes.start(gateway, env=environment)
            result = await run.result()
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == 1
    assert len(publisher.calls("POST")) == 1
    assert publisher.calls("GET") == publisher.calls("POST")
    assert press.ledger.audit.verify("acme").count > 0
