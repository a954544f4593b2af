"""Control: who may act in a run, the agent or one named person, with a version that rises at every change.

The version is a fencing token (G29): whatever was begun under an older one is discarded, by the ledger when it is
written and by the gateway before anything is sent.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, model_validator

from countersign.domain.directory import Role
from countersign.domain.durations import Duration
from countersign.domain.identity import PersonId
from countersign.domain.values import Instant, Value

FIRST_VERSION = 1
"""The version under which every run begins, with the agent in control."""
OPERATOR: Role = "operator"
"""The role that may end any run and freeze effects, whatever a policy says of takeovers."""


class Takeover(Value):
    """What a policy says of taking runs over."""

    role: Role
    """Who may."""
    lease: Duration | None = None
    """How long after their last command control lasts, resting while others decide; nothing: until they give it up."""


class Control(Value):
    """Who may act in a run."""

    by: Literal["agent", "person", "nobody"]
    """`nobody`: a person's lease is over; it never goes back to the agent by itself."""
    person: PersonId | None = None
    version: Annotated[int, Field(ge=FIRST_VERSION)]
    since: Instant
    lease_until: Instant | None = None
    """From this instant on it is over; nothing: it has no end."""

    @model_validator(mode="after")
    def _person_if_by_person(self) -> Control:
        if (self.person is not None) != (self.by == "person"):
            raise ValueError("a person is named exactly where a person is in control")
        if self.lease_until is not None and self.person is None:
            raise ValueError("only a person's control has an end")
        return self

    def holder(self) -> str:
        """Who it is, for people to read."""
        return self.person or {"agent": "the agent", "nobody": "nobody"}[self.by]

    def held_by(self, person: PersonId, now: datetime) -> bool:
        """Whether it is `person`'s at `now`; at the end of a lease it no longer is."""
        return self.person == person and not self.lapsed(now)

    def lapsed(self, now: datetime) -> bool:
        """Whether a lease is over at `now`."""
        return self.lease_until is not None and now >= self.lease_until


def first_control(since: datetime) -> Control:
    """How every run begins."""
    return Control(by="agent", version=FIRST_VERSION, since=since)
