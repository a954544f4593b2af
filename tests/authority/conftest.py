"""One installation per database for all rows: each row has a tenant of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.authority.house import House


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """On a SQLite file."""
    folder = tmp_path_factory.mktemp("house")
    opened = House(f"sqlite:///{folder / 'ledger.sqlite'}", folder)
    yield opened
    opened.ledger.close()


@pytest.fixture(scope="session")
def postgres_house(tmp_path_factory: pytest.TempPathFactory, postgres_url: Callable[[], str]) -> Iterator[House]:
    """On PostgreSQL."""
    folder: Path = tmp_path_factory.mktemp("postgres-house")
    opened = House(postgres_url(), folder)
    yield opened
    opened.ledger.close()
