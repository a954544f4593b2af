"""What the closing tests share: an installation without Temporal, a publishing service, and the way to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from countersign.gateway.http_channel import HttpChannel, Limits
from tests.gateway.world import World
from tests.support.publisher import Publisher, running_publisher
from tests.workflow.press import TOKEN


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A populated installation in the test's own folder; programs that are killed open it too."""
    opened = World(tmp_path)
    opened.populate()
    yield opened
    opened.close()


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    """A publishing service's database: what was done, and what is to go wrong next."""
    return Publisher(tmp_path / "publisher.sqlite", TOKEN)


@pytest.fixture
def address(publisher: Publisher) -> Iterator[str]:
    """Where it is served."""
    with running_publisher(publisher) as url:
        yield url


@pytest.fixture
def press(address: str) -> HttpChannel:
    """The way to it."""
    limits = Limits(total=timedelta(seconds=20), keys_kept=None)
    return HttpChannel("press", address, SecretStr(TOKEN), "external_publication", limits)
