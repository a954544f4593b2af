"""What waits for people: its reminders and further lines of people, until they decide or answer, or its time is up.

A timer's end is one more event beside a decision, and the ledger's one transaction per event says which came first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Proposed, QuestionAsked


class Window(ABC):
    """What waits, and how far its ladder has come; how it stands, each kind knows."""

    def __init__(self, waits: Proposed | QuestionAsked, ticked: int) -> None:
        """
        Args:
            waits: as it stands.
            ticked: how many of its ticks have been dealt with.
        """
        self._waits = waits
        self.ticked = ticked
        self.roles: tuple[str, ...] = waits.roles
        """The roles that are asked now; none where the policy grants by rule."""

    @property
    @abstractmethod
    def pending(self) -> bool:
        """Whether people can still decide or answer."""

    @property
    def deadline(self) -> datetime:
        """From this instant on it is expired."""
        return self._waits.deadline

    @property
    def freezes(self) -> bool:
        """Whether the run is held, rather than ended, where nobody comes."""
        return self._waits.freezes

    @property
    def due(self) -> datetime | None:
        """When something is to be done next unless people come before: at a tick, or at the deadline."""
        if not self.pending:
            return None
        ticks = self._waits.ticks
        return ticks[self.ticked] if self.ticked < len(ticks) else self.deadline

    async def pass_due(self) -> bool:
        """Do what is due: remind, ask further people, or expire; whether further people are asked from now on."""
        if self.due == self.deadline:
            await self.expire()
            return False
        escalated = await self._mark()
        self.ticked += 1
        return escalated and self.pending

    @abstractmethod
    async def expire(self) -> None:
        """Close it at its deadline, unless people were faster."""

    @abstractmethod
    async def _mark(self) -> bool:
        """Have the next tick written down and told; whether further people are asked by it."""
