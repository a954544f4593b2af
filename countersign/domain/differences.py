"""What differs between two values or two texts, whole and place by place, for people who decide about the difference.

Apart from the screen that shows it, so that "one byte was changed" is a rule with tests wherever it is shown.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from countersign.domain.values import Value


class Difference(Value):
    """One place that differs."""

    place: str
    """Such as `args.title`, `bob.roles.reviewer`, `rules.large.need.approvals`."""
    before: str | None
    """As it was, whole; None where there was nothing."""
    after: str | None
    """As it is to be, whole; None where there is to be nothing."""


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference, ...]:
    """The places, by name, where two sets of facts are not the same."""
    places = sorted(before.keys() | after.keys())
    compared = (Difference(place=place, before=before.get(place), after=after.get(place)) for place in places)
    return tuple(one for one in compared if one.before != one.after)


def facts(value: Any, place: str = "") -> dict[str, str]:
    """JSON data as its single facts by place: texts as they are, everything else as JSON; empty parts are facts too."""
    return dict(_facts(value, place))


def line_differences(before: str, after: str) -> tuple[str, ...]:
    """Two texts line by line, every line of both: `  kept`, `- gone`, `+ new`; nothing where they are the same.

    Lines end at line feeds alone, so that another kind of line end, or a missing last one, is a difference.
    """
    if before == after:
        return ()
    old, new = before.split("\n"), after.split("\n")
    return tuple(_lines(old, new))


def _lines(old: list[str], new: list[str]) -> Iterator[str]:
    # Without the "junk" heuristic, which would compare long documents by their rare lines alone.
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (f"  {line}" for line in old[a:b])
        else:
            yield from (f"- {line}" for line in old[a:b])
            yield from (f"+ {line}" for line in new[c:d])


def _facts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    parts: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        parts = [(str(name), part) for name, part in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(str(number), part) for number, part in enumerate(value, 1)]
    if parts:
        for name, part in parts:
            yield from _facts(part, f"{place}.{name}" if place else name)
    else:
        yield place, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
