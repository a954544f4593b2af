"""The ledger that relays work on: on a SQLite file and on a real PostgreSQL, with a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.ledger import SqlLedger
from tests.ledger.builders import opened, person
from tests.ledger.founding import found


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """The folder of checkpoints, outside the database."""
    return tmp_path / "checkpoints"


@pytest.fixture
def ledger(ledger_url: str, checkpoints: Path) -> Iterator[SqlLedger]:
    """An open ledger with the tenant acme, where mia is a manager."""
    ledger = opened(ledger_url, checkpoints)
    found(ledger, more=[person("mia", "manager")])
    yield ledger
    ledger.close()
