"""What the model of a run is made of: what people say, what they are asked, and drafts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple


class Said(NamedTuple):
    """What a person says to the run, by what they saw."""

    who: str
    kind: str
    """A decision, a command, or `garbage`, which nobody can read."""
    about: int = 0
    """decisions: which ask, counted from 1."""
    version: int = 0
    """commands: of control."""
    draft: int = 0
    to: str = ""
    sound: bool = True
    """amend: whether the new draft passes the checks."""
    repeated: bool = False
    """Whether this very statement was sent before."""


@dataclass
class Ask:
    """One proposal."""

    number: int
    proposed_at: datetime
    draft: int
    authors: frozenset[str]
    votes: list[str] = field(default_factory=list)
    status: str = "pending"
    ticked: int = 0


@dataclass
class Draft:
    """One version."""

    sound: bool
    graded: bool = False
