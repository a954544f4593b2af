"""A ledger in which refunds are registered, and the shipped policy; no Temporal server is needed for any of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.refund.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """On a SQLite file."""
    opened = Desk(f"sqlite:///{tmp_path / 'ledger.sqlite'}", tmp_path / "checkpoints")
    yield opened
    opened.close()


@pytest.fixture
def each_desk(ledger_url: str, tmp_path: Path) -> Iterator[Desk]:
    """The same on each kind of ledger."""
    opened = Desk(ledger_url, tmp_path / "checkpoints")
    yield opened
    opened.close()
