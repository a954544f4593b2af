"""The desk on which the steps are tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.activities.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Steps over a SQLite ledger."""
    made = Desk(tmp_path)
    yield made
    made.ledger.close()
