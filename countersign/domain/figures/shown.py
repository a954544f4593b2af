"""How a figure is shown to a reader, and whether that agrees with the exact result.

Apart from finding numbers, because here the unit of the claim is known and one rounding mode is laid down: half away
from zero (2.5 is shown as 3, -2.5 as -3), at the last digit that is shown. It is what readers learn at school, what
spreadsheets do, and what DuckDB's `round` does on decimals, so a query that rounds and a writer who rounds agree.
Whole numbers are exact to the unit: `1,200` does not stand for 1,234, but `1.2k` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from countersign.domain.figures.finding import find_numbers
from countersign.domain.figures.found import EXACT, FoundNumber
from countersign.domain.figures.units import canonical_unit, is_currency, same_unit

Mismatch = Literal["unit_mismatch", "sign_mismatch", "scale_mismatch", "shown_mismatch"]
_CLASSIFIERS = "个家笔条名项次件人位份台"
_FRACTION_DECIMALS = 4
"""An exact result with this many decimals or more can stand for a fraction: 0.3333 for a third."""


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """A figure as it is shown."""

    value: Decimal
    """Sign and scale applied: 35200000 for `$35.2M`."""
    decimals: int | None
    """Digits after the point, before the scale; None for a fraction, which is stated exactly."""
    scale: int
    """Power of ten of the scale word."""
    unit: str
    """Canonical unit as shown; empty if the figure states none."""
    signed: bool
    """A plus or minus sign (or accounting parentheses) is shown."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Why a shown figure does not stand for the exact one."""

    code: Mismatch
    expected: str
    found: str


def read_shown(text: str, unit: str) -> ShownFigure | None:
    """The one figure that fills the whole text, beside at most the claim's own unit; None if it is anything else.

    An ordinal (`42nd`, `第四十二`) says which one, not how many, and is none.
    `(1,234)` is negative here, where the whole text is one figure; in running prose parentheses are only parentheses.
    """
    bare, stated = _without_unit(text.strip(), unit)
    for candidate, known in ((bare, unit if stated else ""), (text.strip(), "")):
        negative = candidate[:1] in "(（" and candidate[-1:] in ")）" and len(candidate) > 2
        found = _only_number(candidate[1:-1] if negative else candidate)
        if found is None or found.value is None or found.ordinal or (negative and found.signed):
            continue
        value = found.value.copy_negate() if negative else found.value
        shown_unit = canonical_unit(known) or found.unit
        if known and found.unit and not same_unit(known, found.unit):
            continue
        return ShownFigure(value, found.decimals, found.scale, shown_unit, found.signed or negative)
    return None


def _without_unit(text: str, unit: str) -> tuple[str, bool]:
    if unit and text.endswith(unit):
        return text.removesuffix(unit).rstrip().rstrip(_CLASSIFIERS), True
    if unit and text.startswith(unit):
        return text.removeprefix(unit).lstrip(), True
    return text.rstrip(_CLASSIFIERS), False


def _only_number(text: str) -> FoundNumber | None:
    found = find_numbers(text)
    whole = len(found) == 1 and found[0].start == 0 and found[0].end == len(text)
    return found[0] if whole else None


def agrees(shown: ShownFigure, exact: Decimal, exact_unit: str) -> Disagreement | None:
    """None if the shown figure is the exact one at the precision and scale shown; else what is wrong with it.

    `exact` has 100 digits and a power of ten of 99 at most, which is what the checks let through.

    Zero stands for zero alone, without a sign: neither `0` nor `0k` for 0.4 or 400, and `-0` for nothing. A share
    counted in `%` is shown with its `%`, and 0.35 without a unit is never `35 %`: the query says which it is.
    """
    if not _unit_fits(shown.unit, exact_unit):
        return Disagreement("unit_mismatch", exact_unit or "no unit", shown.unit or "no unit")
    expected = _at_precision(exact, shown)
    if shown.value == expected and (shown.value or not (exact or shown.signed)):
        return None
    code = _kind_of_mismatch(shown, exact, expected)
    if not shown.value:
        expected = exact
    return Disagreement(code, f"{_plain(expected)} (from {_plain(exact)})", _plain(shown.value))


def _unit_fits(shown: str, exact: str) -> bool:
    if canonical_unit(exact) == "%":
        return shown == "%"
    return not shown or same_unit(shown, exact)


def _at_precision(exact: Decimal, shown: ShownFigure) -> Decimal:
    """The exact figure rounded as the shown one is; a fraction is compared at the exact figure's own decimals."""
    if shown.decimals is not None:
        return _rounded(exact, shown.scale - shown.decimals)
    places = -int(exact.as_tuple().exponent)
    if places >= _FRACTION_DECIMALS and _rounded(shown.value, -places) == exact:
        return shown.value
    return exact


def _rounded(value: Decimal, power: int) -> Decimal:
    """The value at a multiple of that power of ten, half away from zero."""
    return EXACT.quantize(value, Decimal(1).scaleb(power, EXACT))


def _kind_of_mismatch(shown: ShownFigure, exact: Decimal, expected: Decimal) -> Mismatch:
    if shown.signed and not shown.value:
        return "sign_mismatch"
    if shown.value and shown.value == expected.copy_negate():
        return "sign_mismatch"
    if shown.value and shown.decimals is not None:
        for power in (-12, -9, -8, -6, -4, -3, -2, -1, 1, 2, 3, 4, 6, 8, 9, 12):
            moved = EXACT.scaleb(exact, power)
            if _rounded(moved, shown.scale - shown.decimals) == shown.value:
                return "scale_mismatch"
    return "shown_mismatch"


def _plain(value: Decimal) -> str:
    return format(value, "f")


def show(value: Decimal, unit: str, language: Literal["en", "zh"] = "en") -> str:
    """The canonical full-precision form: `1,234.50 USD`, `-4.2 %`, `42`; in Chinese `1,234.50 元`, `-4.2%`.

    `read_shown` reads it back with the same unit, and it always agrees with the value.
    """
    number = format(value if value else value.copy_abs(), ",f")
    if not unit:
        return number
    if language == "zh" and canonical_unit(unit) == "%":
        return f"{number}%"
    if language == "zh" and is_currency(unit) and canonical_unit(unit) == "CNY":
        return f"{number} 元"
    return f"{number} {unit}"
