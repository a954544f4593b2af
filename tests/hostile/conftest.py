"""The house in which all hostile texts are tried."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hostile.house import House, new_house
from tests.support.model_server import Turn, running_model_server


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One for all tests of this folder: every text is an operation of its own."""
    turns: list[Turn] = []
    ended = Turn(status=500, error="script_ended")

    def next_turn(number: int, request: dict[str, Any]) -> Turn:
        return turns.pop(0) if turns else ended

    with running_model_server(next_turn) as server, asyncio.Runner() as runner:
        made = new_house(tmp_path_factory.mktemp("house"), server, turns, runner)
        yield made
        made.installation.ledger.close()
