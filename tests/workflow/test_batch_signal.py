"""One `temporal workflow signal --query` that reaches every run moves at most the one approval it names (G20)."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_messages, until_state

TEMPORAL = Path(sys.executable).with_name("temporal")


@pytest.mark.guarantee("G20")
async def test_a_batch_signal_to_all_runs_settles_one_approval(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    installation = sqlite_installation
    async with installation.workers():
        runs = [await installation.start(f"op-{number}") for number in range(5)]
        for run in runs:
            await until_state(run, State.WAITING_APPROVAL)
        await installation.listed('CountersignState = "WAITING_APPROVAL"', len(runs))
        message = tmp_path / "decision.json"
        message.write_text(json.dumps(installation.decision(installation.proposal("op-3"), "bob")))
        address = installation.client.service_client.config.target_host
        query = 'CountersignState = "WAITING_APPROVAL"'
        command = ["workflow", "signal", "--query", query, "--name", "decide", "--input-file", str(message)]
        sending = await asyncio.create_subprocess_exec(
            TEMPORAL, *command, "--reason", "all at once", "--yes", "--address", address,
            stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert await sending.wait() == 0
        result = await runs[3].result()
        others = [await until_messages(run, 1) for number, run in enumerate(runs) if number != 3]
    assert result.state == State.SUCCEEDED
    assert [(status.state, status.refused) for status in others] == [(State.WAITING_APPROVAL, 1)] * 4
    statuses = [installation.ledger.approvals.current("acme", f"op-{number}") for number in range(5)]
    assert [approval.status for approval in statuses if approval] == [
        ApprovalStatus.PENDING, ApprovalStatus.PENDING, ApprovalStatus.PENDING, ApprovalStatus.CONSUMED,
        ApprovalStatus.PENDING,
    ]  # fmt: skip
