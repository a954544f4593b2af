"""The house in which operations follow others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.following.house import House
from tests.support.payments import PAYMENTS_TOKEN, Payments


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A house on a SQLite ledger, with the file channels of the shipped installation."""
    made = House(tmp_path)
    yield made
    made.ledger.close()


@pytest.fixture
def paying(tmp_path: Path, payments: Payments, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A house that refunds at that service."""
    monkeypatch.setenv("PAYMENTS_TOKEN", PAYMENTS_TOKEN)
    made = House(tmp_path, payments)
    yield made
    made.ledger.close()
