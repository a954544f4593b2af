"""What can happen in a course, one small value each, so that a failing course shrinks to the few that matter."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from tests.course.terms import LEADS, PEOPLE, REVIEWERS


class Say(NamedTuple):
    """Somebody says something to the run."""

    kind: str
    who: str
    """A person, or HOLDER."""
    transport: str = "update"
    stale: int = 0
    """1: they looked before ask or control had the version that it has; 2: before the draft had."""
    to: str = "leo"
    sound: bool = True


class Repeat(NamedTuple):
    """Somebody sends again what was sent before."""

    back: int


class Pass(NamedTuple):
    """Time passes, until so much before or after whatever is due next; where nothing is, that and an hour."""

    milliseconds: int


class Restart(NamedTuple):
    """The workers stop, and start again knowing nothing."""


class Outage(NamedTuple):
    """The workers are away while this comes in, the second half of it when what is due next is over."""

    said: tuple[Say, ...]


class Cancel(NamedTuple):
    """Temporal's own cancel."""


class Finish(NamedTuple):
    """The agent, who is slow in this course, is let go on."""


Step = Say | Repeat | Pass | Restart | Outage | Cancel | Finish

HOLDER = "whoever is in control"
MOST = 16
"""Steps of a course before some of them are left out."""
_WORK = ("amend", "grade", "propose", "release", "hand_over")
_SAYINGS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("approve", "approve", "edit", "reject"), (*REVIEWERS, *PEOPLE)),
    (("approve",), REVIEWERS),
    (("take_over",), LEADS),
    (("take_over",), (*LEADS, *PEOPLE)),
    (_WORK, (HOLDER, HOLDER, *LEADS, *PEOPLE)),
    (("amend", "grade", "propose", "propose"), (HOLDER,)),
    (_WORK, (HOLDER,)),
    (("withdraw", "supersede", "cancel"), PEOPLE),
    (("garbage",), PEOPLE[:1]),
)
"""What is said, and by whom, right persons and wrong ones."""


def _say(chance: Random) -> Say:
    kinds, people = chance.choice(_SAYINGS)
    return Say(
        chance.choice(kinds), chance.choice(people), chance.choice(("update", "update", "signal")),
        chance.choice((0, 0, 0, 0, 0, 1, 1, 2)), chance.choice((*LEADS, *PEOPLE)), chance.random() < 0.8,
    )  # fmt: skip


def _step(chance: Random) -> Step:
    drawn = chance.random()
    if drawn < 0.5:
        return _say(chance)
    if drawn < 0.75:
        return Pass(chance.choice((-1000, 0, 0, 100)))
    if drawn < 0.88:
        return Outage(tuple(_say(chance) for _ in range(chance.randint(1, 4))))
    if drawn < 0.94:
        return Repeat(chance.randint(1, 3))
    return chance.choice((Restart(), Restart(), Finish(), Finish(), Cancel()))


def _made(seed: int, kept: list[bool]) -> list[Step]:
    chance = Random(seed)
    return [step for step, keep in zip([_step(chance) for _ in kept], kept, strict=True) if keep]


STEPS = st.builds(
    _made, st.integers(0, 2**32 - 1), st.lists(st.sampled_from([False, True, True]), min_size=MOST, max_size=MOST)
)
"""Courses from one number each; a failing one shrinks by leaving steps out."""
