"""Every number in a draft's text: a claim's, the request's, an enumeration's, or unsupported.

Apart from the claims' own check, because here the question is where a number in the text comes from, not whether it is
right. Four things support a number, and nothing else does:
- a claim: the number stands wholly inside the claim's `shown` (beside it at most the claim's own unit once more);
- the request: its title or period holds the same number, the same date, or the year, month or day of such a date;
- the dataset: its file name, written out in `source`, or a unit declared for a column, in `unit`;
- enumeration: list markers at the start of a line of the body that count up from 1 (`1.`, `2)`, `一、`, `（二）`,
  `First,`, `第一，`). Numbered headings are not enumeration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from countersign.cases.report.fields import Filled, Insertion
from countersign.domain.draft import Violation
from countersign.domain.figures.finding import find_numbers
from countersign.domain.figures.found import FoundNumber
from countersign.domain.figures.shown import read_shown
from countersign.domain.figures.surroundings import FIGURE, altered_by, is_plain_unit
from countersign.domain.figures.units import same_unit
from countersign.domain.report import Draft, ReportRequest

_MARKER = re.compile(
    r"^(?P<indent>[ >]*(?:[-*+] +)*)(?:(?P<digits>[1-9][0-9]?)(?:[.)](?=\s)|、)"
    r"|(?P<open>[（(]?)(?P<characters>[一二三四五六七八九十]{1,3})[）)、．.]|第(?P<nth>[一二三四五六七八九十]{1,3})[，、,]"
    r"|(?P<word>[A-Z][a-z]+),)",
    re.MULTILINE,
)
Key = tuple[Decimal, str] | str
"""What makes two numbers the same: value and unit, a date, or the text of what cannot be read."""


def check_numbers(filled: Filled, request: ReportRequest) -> Iterator[Violation]:
    """Every number of one field that nothing supports, in the order of the text."""
    supported = _keys_of_request(request)
    named = _named_spans(filled, request)
    if filled.field.name == "body":
        named |= _enumeration(filled.text)
    altered = dict(_altered(filled))
    for found in find_numbers(filled.text):
        insertions = filled.touching(found.start, found.end)
        if insertions:
            if not _inside(found, insertions):
                altered = {start: by for start, by in altered.items() if not found.start <= start < found.end}
                yield _beside_a_claim(filled, found)
        elif not (_keys(found) & supported) and not any(s <= found.start and found.end <= e for s, e in named):
            yield _unsupported(filled, found)
    for start, by in altered.items():
        expected = "no sign, currency, scale or unit beside a figure but its claim's own unit"
        yield Violation(code="unsupported_number", place=filled.place(start), expected=expected, found=by)


def _altered(filled: Filled) -> Iterator[tuple[int, str]]:
    """Where a claim's figure stands whose surroundings change it, and what does."""
    figures = [each for each in filled.insertions if read_shown(each.claim.shown, each.claim.unit)]
    masked = list(filled.text)
    for each in figures:
        masked[each.start : each.end] = FIGURE * (each.end - each.start)
    for each in figures:
        before, after = "".join(masked[: each.start]), "".join(masked[each.end :])
        if by := altered_by(before, after, each.claim.unit):
            yield each.start, by


def check_claim_units(draft: Draft, request: ReportRequest) -> Iterator[Violation]:
    """Every claim's unit that the dataset does not declare and that brings a number, sign or scale (`-`, `TEUR`)."""
    declared = _declared_units(request)
    for claim in draft.claims:
        if claim.unit and claim.unit not in declared and (not is_plain_unit(claim.unit) or _scales(claim.unit)):
            place = f"claims.{claim.id}.unit"
            expected = "%, a currency or plain words; sign and scale belong into `shown`"
            yield Violation(code="unsupported_number", place=place, expected=expected, found=claim.unit)


def _scales(unit: str) -> bool:
    """Whether a unit changes the number before it, or brings one of its own."""
    for text in (f"1{unit}", f"1 {unit}"):
        first, *more = find_numbers(text)
        if more or first.value not in (1, None):
            return True
    return False


def _declared_units(request: ReportRequest) -> set[str]:
    return {column.unit for column in request.dataset.schema_.columns.values() if column.unit}


def _inside(found: FoundNumber, insertions: tuple[Insertion, ...]) -> bool:
    """Whether a number is one claim's alone; beside `shown` only the claim's own unit may stand."""
    first = insertions[0]
    if first.start <= found.start and found.end <= first.end:
        return True
    shown = read_shown(first.claim.shown, first.claim.unit)
    same = shown is not None and found.value is not None and (shown.value, shown.scale) == (found.value, found.scale)
    return same and bool(first.claim.unit) and same_unit(found.unit, first.claim.unit)


def _beside_a_claim(filled: Filled, found: FoundNumber) -> Violation:
    expected = "the whole figure inside the `shown` of one claim"
    return Violation(code="unsupported_number", place=filled.place(found.start), expected=expected, found=found.text)


def _unsupported(filled: Filled, found: FoundNumber) -> Violation:
    code = "unsupported_number" if found.readable else "unreadable_number"
    expected = "a reference {{claim_id}}, or a number of the request's period or title"
    return Violation(code=code, place=filled.place(found.start), expected=expected, found=found.text)


def _keys(found: FoundNumber) -> set[Key]:
    if found.value is not None:
        return {(found.value, found.unit)}
    return {found.day or " ".join(found.text.casefold().split())}


def _keys_of_request(request: ReportRequest) -> set[Key]:
    found = [*find_numbers(request.title), *find_numbers(request.period)]
    keys = {key for each in found for key in _keys(each)}
    for day in (each.day for each in found if each.day):
        keys |= _keys_of_date(day)
    return keys


def _keys_of_date(day: str) -> set[Key]:
    year, month, *rest = day.split("-")
    keys: set[Key] = {day, f"{year}-{month}", (Decimal(year), ""), (Decimal(month), "月")}
    return keys | {(Decimal(each), "日") for each in rest}


def _named_spans(filled: Filled, request: ReportRequest) -> set[tuple[int, int]]:
    """Where the file name or a declared unit is written out."""
    declared: dict[str, set[str]] = {
        "source": {request.dataset.name},
        "unit": _declared_units(request),
    }
    spans: set[tuple[int, int]] = set()
    for name in declared.get(filled.field.name, ()):
        spans |= {match.span() for match in written_out(name, filled.text)}
    return spans


def written_out(name: str, text: str) -> Iterator[re.Match[str]]:
    """Every place where a name stands by itself in a text, not as a part of a longer one."""
    return re.finditer(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text)


def _enumeration(text: str) -> set[tuple[int, int]]:
    """The spans of list markers that count up from 1, each style and depth for itself."""
    spans: set[tuple[int, int]] = set()
    counts: dict[tuple[str, str], int] = {}
    for match in _MARKER.finditer(text):
        style = next(name for name in ("digits", "characters", "nth", "word") if match[name])
        numbers = find_numbers(match.group())
        key = (style + (match["open"] or ""), match["indent"])
        if len(numbers) == 1 and numbers[0].value in (1, counts.get(key, 0) + 1):
            counts[key] = int(numbers[0].value)
            spans.add(match.span())
    return spans
