"""Dates in digits and month names: `2026-06-30`, `30 June 2026`, `June 2026`, `2026年6月30日`.

Apart from numbers, since a date is one thing to a reader, not three numbers with signs between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from countersign.domain.figures.found import FoundNumber

_YEAR = """
    january february march april may june july august september october november december
"""
_NAMES = _YEAR.split()
_NAMED = "|".join(f"{name}|{name[:3]}" for name in _NAMES)
_MONTH = rf"(?P<name>(?i:{_NAMED}|sept))\.?"
_FORMS = tuple(
    re.compile(rf"(?<![0-9A-Za-z]){form}(?![0-9A-Za-z])")
    for form in (
        r"(?P<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>[0-9]{2}))?(?!-?[0-9])",
        r"(?P<year>[0-9]{4})/(?P<month>[0-9]{1,2})/(?P<day>[0-9]{1,2})",
        r"(?P<year>[0-9]{4})\s?年\s?(?P<month>[0-9]{1,2})\s?月(?:\s?(?P<day>[0-9]{1,2})\s?[日号])?",
        rf"(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?\s{_MONTH},?\s(?P<year>[0-9]{{4}})",
        rf"{_MONTH}\s(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?,?\s(?P<year>[0-9]{{4}})",
        rf"{_MONTH}\s(?P<year>[0-9]{{4}})",
    )
)


def dates(text: str) -> Iterator[FoundNumber]:
    """Every date in a plain text; an impossible one is handed back unread."""
    for form in _FORMS:
        for match in form.finditer(text):
            yield FoundNumber(match.start(), match.end(), match.group(), decimals=None, day=_iso(match.groupdict()))


def read_date(text: str) -> str:
    """The ISO text of a date that fills the whole text; empty if there is none."""
    return next((found.day for found in dates(text) if found.text == text), "")


def _iso(parts: dict[str, str | None]) -> str:
    name = parts.get("name")
    month = _NAMES.index(next(full for full in _NAMES if full[:3] == name[:3].lower())) + 1 if name else 0
    year, month = int(parts["year"] or 0), month or int(parts["month"] or 0)
    try:
        found = date(year, month, int(parts.get("day") or 1)).isoformat()
    except ValueError:
        return ""
    return found if parts.get("day") else found[:7]
