"""Named points of a run at which a worker stops, so that a kill meets it exactly there.

Apart from worker and harness, since they share nothing but a folder: the harness sets a point, the first process that
passes it says so and waits, and the harness kills what it likes and lets it go on. A file's renaming is what makes one
process alone the one that has reached it.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.01
LONGEST_HOLD_SECONDS = 30.0
"""A process that nobody lets go on goes on by itself, so that a harness that died leaves nothing hanging."""


class Points:
    """One point at a time of one workflow, in a folder that harness and workers share."""

    def __init__(self, folder: Path) -> None:
        self._set = folder / "point-set"
        self._reached = folder / "point-reached"

    def set(self, point: str, workflow_id: str) -> None:
        """Have the next process stop that passes this point of this workflow."""
        beside = self._set.with_suffix(".new")
        beside.write_text(json.dumps([point, workflow_id]))
        beside.replace(self._set)

    def clear(self) -> None:
        """Let whoever waits go on, and have nobody else stop."""
        self._set.unlink(missing_ok=True)
        self._reached.unlink(missing_ok=True)

    @property
    def is_reached(self) -> bool:
        """Whether a process waits, or died waiting, at the point that was set."""
        return self._reached.exists()

    def stops(self, point: str, workflow_id: str) -> bool:
        """Whether the calling process is the one that stops at this point."""
        try:
            if json.loads(self._set.read_text()) != [point, workflow_id]:
                return False
            self._set.rename(self._reached)
        except FileNotFoundError:
            return False
        return True

    async def passed(self, point: str, workflow_id: str) -> None:
        """Wait here if this is the point that was set."""
        if self.stops(point, workflow_id):
            over = time.monotonic() + LONGEST_HOLD_SECONDS
            while self.is_reached and time.monotonic() < over:
                await asyncio.sleep(POLL_SECONDS)

    def passed_in_thread(self, point: str, workflow_id: str) -> None:
        """The same for a step that runs in a thread."""
        if self.stops(point, workflow_id):
            over = time.monotonic() + LONGEST_HOLD_SECONDS
            while self.is_reached and time.monotonic() < over:
                time.sleep(POLL_SECONDS)


def step_name(activity: str, order: Any) -> str:
    """A step as points name it: its type, and the state where it is the one that writes a state down."""
    state = getattr(order, "state", "")
    return f"{activity} {state}".rstrip()
