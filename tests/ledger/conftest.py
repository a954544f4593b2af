"""The ledger under test: one suite, run on a SQLite file and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from countersign.ledger import SqlLedger
from countersign.ledger.engines import make_engine
from tests.ledger.builders import opened
from tests.ledger.founding import found
from tests.support.postgres import as_superuser


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """The folder of checkpoints, outside the database."""
    return tmp_path / "checkpoints"


@pytest.fixture
def empty_ledger(ledger_url: str, checkpoints: Path) -> Iterator[SqlLedger]:
    """An open ledger that knows no tenant."""
    ledger = opened(ledger_url, checkpoints)
    yield ledger
    ledger.close()


@pytest.fixture
def ledger(empty_ledger: SqlLedger) -> SqlLedger:
    """The same with the tenant acme, its first set-up closed."""
    found(empty_ledger)
    return empty_ledger


@pytest.fixture
def database(empty_ledger: SqlLedger, ledger_url: str) -> Iterator[Engine]:
    """The ledger's database as somebody with direct access to all of it has it."""
    engine = make_engine(as_superuser(ledger_url))
    yield engine
    engine.dispose()
