"""What tests of runs over days, or over many runs, can ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from temporalio.worker import Worker

from tests.support.installation import Installation
from tests.support.skipping import Skipping, skipping_installation
from tests.workflow.going_on import going_on_after


@pytest.fixture
async def skipping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Skipping]:
    """An installation whose time is the test's, and whose workers keep no runs in memory.

    The test server never takes back a task that lies in the own queue of a worker that is gone, as a real one does; so
    its workers have none. Each task replays its run from the beginning then.
    """
    monkeypatch.setattr("countersign.worker_process.Worker", partial(Worker, max_cached_workflows=0))
    async with skipping_installation(tmp_path / "home") as made:
        yield made


@pytest.fixture
async def restless(tmp_path: Path) -> AsyncIterator[Installation]:
    """Every wait of its runs goes on in a next run after a message or two."""
    async with going_on_after(10, tmp_path / "home") as made:
        yield made
