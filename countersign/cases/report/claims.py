"""Each claim against the evidence: its value, unit and shown form compared with the recomputed result.

Apart from the checks of the text, since here the evidence decides, and every difference has a code of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from countersign.domain.draft import Violation
from countersign.domain.errors import CountersignError, Unavailable
from countersign.domain.figures.dates import read_date
from countersign.domain.figures.shown import agrees, read_shown
from countersign.domain.figures.units import currencies_named, is_currency, same_unit
from countersign.domain.report import Claim, Draft
from countersign.ports import Cell

_NUMBER = re.compile(r"-?(?=[0-9.]{1,100}(?![0-9.]))[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?")
"""A number of the evidence: plain digits, 100 at most. NaN, infinity and larger powers are none."""

_ALLOWED = "a query that a person has allowed, letter by letter (query_dataset asks for it), or no claim on that column"

_PER_CENT = re.compile(r"[%％‰]|per\s?cent|百分|basis points?|\bbps?\b|\bpp\b|基点", re.IGNORECASE)
"""What a unit says that counts in hundredths."""


WHOLE_ROWS = "FROM data"
"""The query that reads every column."""


class Reading(NamedTuple):
    """How the pinned evidence is read; each function takes one query, or raises a refusal."""

    recompute: Callable[[str], Cell]
    """What the query yields."""
    sensitive: Callable[[str], Sequence[str]]
    """Which sensitive columns it reads."""
    allowed: Collection[str] = ()
    """The queries on those that people have allowed."""


def check_claims(draft: Draft, reading: Reading) -> Iterator[Violation]:
    """Every finding about the claims themselves, in their order."""
    for claim_id, count in Counter(claim.id for claim in draft.claims).items():
        if count > 1:
            yield Violation(
                code="duplicate_claim_id", place=f"claims.{claim_id}", expected="one claim", found=f"{count} claims"
            )
    for claim in draft.claims:
        yield from _check_claim(claim, reading)


def _check_claim(claim: Claim, reading: Reading) -> Iterator[Violation]:
    """A claim that reads what nobody allowed is not computed: a finding would tell its value."""
    try:
        columns = () if claim.query in reading.allowed else reading.sensitive(claim.query)
        if columns:
            found = f"the query reads {', '.join(columns)}, declared sensitive"
            yield _violation("sensitive_column", claim, "query", _ALLOWED, found)
            return
        result = reading.recompute(claim.query)
    except Unavailable:
        raise
    except CountersignError as refusal:
        expected = "a query that yields one value from the dataset"
        yield _violation("query_refused", claim, "query", expected, refusal.message)
        return
    if not _same_value(claim.value, result):
        yield _violation("value_mismatch", claim, "value", result.text, claim.value)
    if result.kind == "number":
        yield from _check_number(claim, result)
    else:
        yield from _check_name(claim, result)


def _check_number(claim: Claim, result: Cell) -> Iterator[Violation]:
    if expected := _other_unit(claim.unit, result.unit):
        yield _violation("unit_mismatch", claim, "unit", expected, claim.unit or "no unit")
    if not _NUMBER.fullmatch(result.text):
        yield _violation("query_refused", claim, "query", "a finite number of 100 digits at most", result.text)
        return
    shown = read_shown(claim.shown, claim.unit)
    if shown is None:
        yield _violation("unreadable_number", claim, "shown", "one figure with at most the claim's unit", claim.shown)
    elif wrong := agrees(shown, Decimal(result.text), claim.unit):
        yield _violation(wrong.code, claim, "shown", wrong.expected, f"{claim.shown} (read as {wrong.found})")


def _other_unit(stated: str, known: str | None) -> str:
    """What a claim's unit should be where it is not what follows from the columns; else nothing.

    A plain word such as orders is free where no unit is known; a currency or per cent has to be known.
    """
    if known:
        points = known == "%" and same_unit(stated, "pp")
        return "" if points or same_unit(stated, known) else known
    if not (is_currency(stated) or currencies_named(stated) or _PER_CENT.search(stated)):
        return ""
    if known is None:
        return (
            "no currency or % where the query does not show it: compute from columns declared in that currency, and "
            "per cent as 100 * a / b"
        )
    return "no currency or %, since the query yields a count or a plain quotient; per cent is 100 * a / b"


def _check_name(claim: Claim, result: Cell) -> Iterator[Violation]:
    if claim.unit:
        yield _violation("unit_mismatch", claim, "unit", "no unit for a name or a date", claim.unit)
    day = read_date(claim.shown) if result.kind == "date" else ""
    if result.text not in (claim.shown, day):
        yield _violation("shown_mismatch", claim, "shown", result.text, claim.shown)


def _same_value(stated: str, result: Cell) -> bool:
    if result.kind == "number" and _NUMBER.fullmatch(stated) and _NUMBER.fullmatch(result.text):
        return Decimal(stated) == Decimal(result.text)
    return stated == result.text


def _violation(code: str, claim: Claim, part: str, expected: str, found: str) -> Violation:
    return Violation(code=code, place=f"claims.{claim.id}.{part}", expected=expected, found=found)
