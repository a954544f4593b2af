"""What gateway tests ask for: an installation, a publishing service and the channel to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from countersign.gateway.http_channel import HttpChannel, Limits
from tests.gateway.attempt import Attempt
from tests.gateway.world import World
from tests.support.publisher import Publisher, running_publisher

TOKEN = "press-token-9f8e7d"


@pytest.fixture(scope="session")
def populated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a populated installation on SQLite, to be copied."""
    folder = tmp_path_factory.mktemp("installation")
    created = World(folder)
    created.populate()
    created.close()
    return folder


@pytest.fixture
def world(populated: Path, tmp_path: Path) -> Iterator[World]:
    """A populated installation on SQLite, in the test's own folder."""
    shutil.copytree(populated, tmp_path, dirs_exist_ok=True)
    opened = World(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    """The outside: its state and its faults."""
    return Publisher(tmp_path / "publisher.sqlite", TOKEN)


@pytest.fixture
def address(publisher: Publisher) -> Iterator[str]:
    """Where the outside listens."""
    with running_publisher(publisher) as url:
        yield url


@pytest.fixture
def press(address: str) -> HttpChannel:
    """The channel to it."""
    return HttpChannel("press", address, SecretStr(TOKEN), "external_publication", Limits(total=timedelta(seconds=60)))


@pytest.fixture
def impatient_press(address: str) -> HttpChannel:
    """The same, for what never answers: given up soon."""
    return HttpChannel("press", address, SecretStr(TOKEN), "external_publication", Limits(total=timedelta(seconds=1)))


@pytest.fixture
def attempt(world: World, press: HttpChannel, publisher: Publisher) -> Attempt:
    """A gateway with both channels, and what came of asking it."""
    return Attempt(world, press, publisher)
