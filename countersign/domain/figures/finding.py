"""Finding every number in a text: all readers, in both views of the text, and a net under them.

Apart from the readers, since completeness is decided here: whatever a reader overlooks, no character that Unicode calls
a number is passed by, and where two readings overlap without agreeing, the whole is unreadable.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from countersign.domain.figures.chinese import chinese
from countersign.domain.figures.dates import dates
from countersign.domain.figures.english import english
from countersign.domain.figures.found import FoundNumber
from countersign.domain.figures.numerals import numerals
from countersign.domain.figures.veiled import is_picture, veiled
from countersign.domain.figures.view import Seen, as_rendered, as_written

_READERS = (dates, numerals, english, chinese, veiled)
"""In this order: of two readings of the very same characters the earlier is kept."""
_AREA_UNIT = re.compile(r"(?<![A-Za-z])(?:[kcm]?m|ft)[²³]")
"""`m²` and `km³` are units; their raised digit is no figure."""


def find_numbers(text: str) -> tuple[FoundNumber, ...]:
    """All numbers in a text in the order of their place, none overlapping.

    Places are offsets in the text as given. A number has a value or, being a date, a day; one with neither looks like
    a number and cannot be read, and the caller must report it.
    """
    written, rendered = as_written(text), as_rendered(text)
    candidates = list(_candidates(text, written))
    if rendered.text != written.text:
        candidates.extend(_candidates(text, rendered))
    return _netted(text, _apart(text, candidates))


def _candidates(text: str, seen: Seen) -> Iterator[FoundNumber]:
    for reader in _READERS:
        for found in reader(seen.text):
            start, end = seen.span(found.start, found.end)
            placed = found.moved(start, end, text[start:end])
            yield placed if seen.honest(found.start, found.end) else placed.unread()


def _apart(text: str, candidates: list[FoundNumber]) -> tuple[FoundNumber, ...]:
    """The longest reading at each place; readings that overlap without one holding the other become one unread."""
    kept: list[FoundNumber] = []
    for found in sorted(candidates, key=lambda each: (each.start, -each.end)):
        last = kept[-1] if kept else None
        if last is None or found.start >= last.end:
            kept.append(found)
        elif found.end > last.end:
            kept[-1] = FoundNumber(last.start, found.end, text[last.start : found.end])
    return tuple(kept)


def _netted(text: str, found: tuple[FoundNumber, ...]) -> tuple[FoundNumber, ...]:
    """The finds and every numeric character outside them; what touches an unreadable find is unreadable with it."""
    covered = {at for each in found for at in range(each.start, each.end)}
    covered |= {at for match in _AREA_UNIT.finditer(text) for at in range(*match.span())}
    loose = [FoundNumber(at, at + 1, text[at]) for at, letter in enumerate(text) if _loose(letter, at, covered)]
    kept: list[FoundNumber] = []
    for each in sorted([*found, *loose], key=lambda one: one.start):
        last = kept[-1] if kept else None
        if last and last.end == each.start and not (last.readable and each.readable):
            kept[-1] = FoundNumber(last.start, each.end, text[last.start : each.end])
        else:
            kept.append(each)
    return tuple(kept)


def _loose(letter: str, at: int, covered: set[int]) -> bool:
    return at not in covered and (unicodedata.category(letter)[0] == "N" or is_picture(letter))
