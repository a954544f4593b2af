"""What is killed where in which round: the kill matrix, in an order that follows from a round's number alone.

Of ten rounds eight kill a part at a named point, one has the outside do something wrong, with or without a kill beside
it, and one kills at a random instant. Two hundred rounds hold every part at every point, and every fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.chaos.refunds import FAULTS, LEAVES_UNKNOWN, Course
from tests.chaos.world import PARTS, Part

MIX = ("point", "point", "fault", "point", "point", "point", "random", "point", "point", "point")
COURSES: tuple[Course, ...] = ("by_vote", "by_rule", "rejected", "by_votes", "expired", "undecided")
GRANTED: tuple[Course, ...] = ("by_vote", "by_rule", "by_votes")
VOTED: tuple[Course, ...] = ("by_vote", "by_votes", "rejected")
ASKED: tuple[Course, ...] = (*VOTED, "expired", "undecided")
LONGEST_DELAY_SECONDS = 2.0
"""A run that nothing disturbs takes less than a second; one that expires takes three."""


@dataclass(frozen=True)
class Point:
    """A named point, and in which courses a run comes past it."""

    name: str
    courses: tuple[Course, ...] = COURSES
    needs_unknown: bool = False
    """Whether a run comes past it only where an answer was lost."""
    of_message: bool = False
    """Whether it lies on the way of what the customer is told."""


def _around(step: str, courses: tuple[Course, ...] = COURSES, *, needs_unknown: bool = False) -> list[Point]:
    return [Point(f"{side} {step}", courses, needs_unknown) for side in ("before", "after")]


_HEAD = [
    Point("claimed", GRANTED),
    Point("after draft"),
    Point("after execute", GRANTED),
    Point("before execute", GRANTED),
    Point("sent", GRANTED),
    Point("before record_state EXECUTING", GRANTED),
    Point("after decide", VOTED),
    Point("before propose"),
    Point("recorded", GRANTED),
]
"""The most dangerous ones first, so that a few rounds hold them."""
_ALL = [
    *_HEAD,
    *_around("record_state OUTCOME_UNKNOWN", GRANTED, needs_unknown=True),
    *_around("reconcile", GRANTED, needs_unknown=True),
    *(point for step in ("open_run", "gather", "draft", "validate", "grade", "propose") for point in _around(step)),
    *_around("record_state WAITING_APPROVAL", ASKED),
    *_around("decide", VOTED),
    *_around("settle", ("expired",)),
    *_around("record_state EXPIRED", ("expired",)),
    *_around("record_state REJECTED", ("rejected",)),
    *_around("record_state EXECUTING", GRANTED),
    *_around("execute", GRANTED),
    *_around("record_state SUCCEEDED", GRANTED),
    *(Point(step, GRANTED, of_message=True) for step in ("claimed", "sent", "recorded")),
]
POINTS = list(dict.fromkeys(_ALL))
_WITH_FAULT: tuple[tuple[Part | None, Point | None], ...] = (
    (None, None),
    ("gateway", Point("after execute", GRANTED)),
    ("service", None),
    ("gateway", None),
)
"""What is killed beside a fault, and where."""


@dataclass(frozen=True)
class Scenario:
    """One round."""

    number: int
    course: Course
    part: Part | None
    """What is killed, if anything."""
    point: Point | None
    """Where; nothing: at a random instant."""
    fault: str
    """What the outside does wrong once, if anything."""
    delay: float
    """When the kill comes, counted from the start, where it comes at a random instant."""
    goes_on: bool
    """Whether what waits at the point goes on while the killed part is still away."""

    @property
    def where(self) -> str:
        """Point or fault, as the table names it."""
        named = [f"outside: {self.fault}"] if self.fault else []
        if self.point is not None:
            named.append(f"message: {self.point.name}" if self.point.of_message else self.point.name)
        elif self.part is not None:
            named.append("random instant")
        return " + ".join(named)


def scenario(number: int, seed: int) -> Scenario:
    """The round of that number, counted from 1; `seed` is of what is left to chance."""
    rounds_before, place = divmod(number - 1, len(MIX))
    kind = MIX[place]
    index = rounds_before * MIX.count(kind) + MIX[:place].count(kind)
    """Which of its kind it is, counted from 0."""
    chance = Random(f"{seed}-{number}")
    delay, goes_on = chance.uniform(0, LONGEST_DELAY_SECONDS), chance.random() < 0.5
    if kind == "point":
        turn, which = divmod(index, len(POINTS))
        point, part = POINTS[which], PARTS[(which + turn) % len(PARTS)]
        course = point.courses[(which + index) % len(point.courses)]
        return Scenario(number, course, part, point, LEAVES_UNKNOWN if point.needs_unknown else "", 0, goes_on)
    if kind == "fault":
        faults = list(FAULTS)
        turn, which = divmod(index, len(faults))
        killed, where = _WITH_FAULT[turn % len(_WITH_FAULT)]
        return Scenario(number, GRANTED[index % len(GRANTED)], killed, where, faults[which], delay, goes_on)
    return Scenario(number, COURSES[index % len(COURSES)], PARTS[index % len(PARTS)], None, "", delay, goes_on)
