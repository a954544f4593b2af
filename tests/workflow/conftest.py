"""What tests of runs can ask for: time that is the test's, runs that go on in others, and the outside systems."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from temporalio.worker import Worker

from examples.payments.service import TOKEN as PAYMENTS_TOKEN_NAME
from tests.support.installation import Installation
from tests.support.payments import PAYMENTS_TOKEN, Payments
from tests.support.publisher import Publisher, running_publisher
from tests.support.skipping import Skipping, skipping_installation
from tests.workflow.asking import Models, stand_ins
from tests.workflow.going_on import going_on_after
from tests.workflow.press import TOKEN, press_installation


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


@pytest.fixture
def models() -> Iterator[Models]:
    """Stand-ins for every model of the workers in this process; the agent asks one question."""
    with stand_ins() as made:
        yield made


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    """A press's database: what was published, and what is to go wrong next; a test serves it where it needs it."""
    return Publisher(tmp_path / "press.db", TOKEN)


@pytest.fixture
def press(
    sqlite_installation: Installation, tmp_path: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Installation]:
    """An installation that publishes there."""
    with running_publisher(publisher) as url:
        yield press_installation(sqlite_installation, tmp_path, url, monkeypatch)


@pytest.fixture
def payments(payments: Payments, monkeypatch: pytest.MonkeyPatch) -> Payments:
    """The payment service, with its token in the gateway's environment."""
    monkeypatch.setenv(PAYMENTS_TOKEN_NAME, PAYMENTS_TOKEN)
    return payments
