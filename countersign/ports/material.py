"""What an agent works on, and what its draft is checked against: one kind per drafted case.

Apart from the cases, since the agent, which drafts, and the case, which checks, read the same and not each other.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from countersign.domain.refund import OrderFacts, RefundRequest
from countersign.domain.report import ReportRequest
from countersign.ports.outside import DatasetReader


class Material(Protocol):
    """What was asked for and what the answer rests on, open for the length of one step."""

    def close(self) -> None:
        """Give back what is held open; nothing is read of it afterwards."""
        ...


class ReportMaterial(NamedTuple):
    """What a report rests on."""

    request: ReportRequest
    dataset: DatasetReader
    allowed: frozenset[str] = frozenset()
    """The queries on sensitive columns that people allowed in this operation, letter by letter."""

    def close(self) -> None:
        """Give the dataset's reading back."""
        self.dataset.close()


class RefundMaterial(NamedTuple):
    """What a refund rests on."""

    request: RefundRequest
    facts: OrderFacts
    """As they were gathered last; whatever the agent's tools say is read from here."""

    def close(self) -> None:
        """Nothing is held."""
