"""Who holds control, as the ledger last said, and what of it the run has not acted upon yet.

Every command is ruled on in the ledger; here the run only takes note. Until it has acted on a change of hands it is
`turned`: whatever it was doing for the one in control before is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Decided, Told
    from countersign.domain.command import CommandKind, Ending
    from countersign.domain.control import Control

_WORK: frozenset[CommandKind] = frozenset({"amend", "grade", "propose"})
"""What the person in control has the run do."""


class TurnedAside(Exception):
    """Control changed hands, or people ended the run, while it was doing something else."""


class Holding:
    """Control of one run."""

    def __init__(
        self, control: Control, acted_on: int, ending: Ending | None = None, orders: Iterable[Told] = ()
    ) -> None:
        """
        Args:
            control: who is in control.
            acted_on: the version that the run has acted upon.
            ending: how people ended it.
            orders: what the person in control has asked for.
        """
        self.control = control
        self.acted_on = acted_on
        self.ending = ending
        self.orders = deque(orders)

    @property
    def turned(self) -> bool:
        """Whether there is a change of hands, or an end, that the run has not acted upon."""
        return self.ending is not None or self.control.version != self.acted_on

    @property
    def actor(self) -> str:
        """Who acts in the run: `agent`, or the person."""
        return self.control.person or "agent"

    def heard(self, decided: Decided) -> None:
        """Take note of what a batch of messages did."""
        if decided.control is None:
            return
        if decided.control.version != self.control.version:
            self.orders.clear()
        self.control, self.ending = decided.control, decided.ending
        self.orders.extend(
            told for told in decided.told if told.command in _WORK and told.person == self.control.person
        )

    def act(self) -> Control:
        """Who is in control, which the run acts upon from now on."""
        self.acted_on = self.control.version
        return self.control
