"""The ledger under test: one suite, run on a SQLite file and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from countersign.ledger import SqlLedger
from countersign.ledger.engines import make_engine
from tests.ledger.builders import opened


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """The folder of checkpoints, outside the database."""
    return tmp_path / "checkpoints"


@pytest.fixture
def ledger(ledger_url: str, checkpoints: Path) -> Iterator[SqlLedger]:
    """An empty, open ledger."""
    ledger = opened(ledger_url, checkpoints)
    yield ledger
    ledger.close()


@pytest.fixture
def database(ledger: SqlLedger, ledger_url: str) -> Iterator[Engine]:
    """The ledger's database as somebody with direct access to it has it."""
    engine = make_engine(ledger_url)
    yield engine
    engine.dispose()
