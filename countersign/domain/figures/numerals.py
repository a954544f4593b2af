"""Numbers written in digits, with sign, currency, separators, exponent, scale word and unit: `-$1,234.50M`, `35 %`.

Apart from words and dates, since digits have their own rule: all that hangs together is one number, and is read whole
or not at all. `1,23`, `1.2.3`, `007`, `10:30` and `Q1` look like numbers and are handed back unread.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

from countersign.domain.figures.found import EXACT, LONGEST, FoundNumber
from countersign.domain.figures.units import (
    CURRENCY_BEFORE,
    SCALE_AFTER,
    TENTHS,
    UNIT_AFTER,
    canonical_unit,
    scale_power,
)

_SIGN = r"[-+±\u2010-\u2013]"
_DIGITS = r"\.?[0-9](?:[0-9]|[.,'’_:/·\u00a0\u2009\u202f](?=[0-9]))*"
_VULGAR = r"[¼½¾⅐-⅞]"
_NUMERAL = re.compile(
    rf"(?:(?<![0-9A-Za-z%)])(?P<sign>{_SIGN}|(?i:minus|negative)\s|负))?(?P<percent>百分之)?"
    rf"(?:(?P<currency>{CURRENCY_BEFORE})(?P<inner>{_SIGN})?)?"
    rf"(?:(?P<digits>{_DIGITS})(?:\s?(?P<part>{_VULGAR}))?|(?P<vulgar>{_VULGAR}))"
    r"(?P<power>[eE][-+]?[0-9]+)?(?P<raised>[⁰¹²³⁴-⁹]+)?(?P<ordinal>(?:st|nd|rd|th)(?![A-Za-z0-9]))?"
    rf"(?P<scale>{SCALE_AFTER})?(?P<unit>{UNIT_AFTER})?"
)
_CODE = re.compile(r"(?<![A-Za-z0-9_])(?=[A-Za-z0-9_]*[0-9])(?=[A-Za-z0-9_]*[A-Za-z_])[A-Za-z0-9_]+")
"""Letters and digits in one token: `Q1`, `B2B`, `5G`."""
_ROMAN = re.compile(
    r"(?<![A-Za-z0-9])(?=[IVX]{2,}(?![A-Za-z0-9])|[MDCLXVI]{4,}(?![A-Za-z0-9]))"
    r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?![A-Za-z0-9])"
)
"""Capital Roman numerals of two letters or more out of I, V, X, or of four and more; `I`, `V`, `CD`, `MD` are words."""
_ENTITY = re.compile(r"&#?[A-Za-z0-9]+;")
_PLAIN = re.compile(r"(?:0|[1-9][0-9]*)(?:\.([0-9]+))?|\.([0-9]+)")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}([,\u00a0\u2009\u202f])[0-9]{3}(?:\1[0-9]{3})*(?:\.([0-9]+))?")
_FRACTION = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def numerals(text: str) -> Iterator[FoundNumber]:
    """Every number in digits in a plain text, and every token that merely looks like one, unread."""
    for match in _NUMERAL.finditer(text):
        yield _read(match)
    for pattern in (_CODE, _ROMAN):
        for match in pattern.finditer(text):
            yield FoundNumber(match.start(), match.end(), match.group())
    for match in _ENTITY.finditer(text):
        if any(unicodedata.category(letter)[0] == "N" for letter in match.group()):
            yield FoundNumber(match.start(), match.end(), match.group())


def _read(match: re.Match[str]) -> FoundNumber:
    unread = FoundNumber(match.start(), match.end(), match.group())
    sign = (match["sign"] or match["inner"] or "").strip()
    core = _core(match)
    if core is None or match["raised"] or sign == "±" or (match["sign"] and match["inner"]):
        return unread
    value, decimals = core
    unit, scale = _unit(match), _scale(match)
    if unit is None or scale is None:
        return unread
    value = EXACT.scaleb(value, scale)
    if sign and sign != "+":
        value = value.copy_negate()
    return FoundNumber(
        match.start(), match.end(), match.group(), value, unit, scale, decimals, bool(sign), bool(match["ordinal"])
    )


def _core(match: re.Match[str]) -> tuple[Decimal, int | None] | None:
    if match["vulgar"]:
        return _vulgar(match["vulgar"]), None
    core = read_digits(match["digits"])
    if core is None or not match["part"]:
        return core
    return (EXACT.add(core[0], _vulgar(match["part"])), None) if core[1] == 0 else None


def read_digits(digits: str) -> tuple[Decimal, int | None] | None:
    """Value and shown decimals of bare digits: plain, grouped by thousands, or a fraction (no decimals); else None."""
    if len(digits) > LONGEST:
        return None
    if plain := _PLAIN.fullmatch(digits):
        return Decimal(digits), len(plain[1] or plain[2] or "")
    if grouped := _GROUPED.fullmatch(digits):
        return Decimal(digits.replace(grouped[1], "")), len(grouped[2] or "")
    fraction = _FRACTION.fullmatch(digits)
    if fraction and int(fraction[2]):
        return EXACT.divide(Decimal(fraction[1]), Decimal(fraction[2])), None
    return None


def _vulgar(letter: str) -> Decimal:
    above, below = unicodedata.normalize("NFKC", letter).split("\u2044")
    return EXACT.divide(Decimal(above), Decimal(below))


def _unit(match: re.Match[str]) -> str | None:
    """The one unit stated; None where two are (`$5 EUR`)."""
    after = (match["unit"] or "").strip()
    if after == "年" and len(match["digits"] or "") == 4:
        after = ""
    if after == TENTHS:
        after = "%"
    before = "%" if match["percent"] else (match["currency"] or "").strip()
    if before and after and canonical_unit(before) != canonical_unit(after):
        return None
    return canonical_unit(before or after)


def _scale(match: re.Match[str]) -> int | None:
    power = Decimal((match["power"] or "e0")[1:])
    if abs(power) > LONGEST:
        return None
    tenths = 1 if (match["unit"] or "").strip() == TENTHS else 0
    return int(power) + scale_power(match["scale"] or "") + tenths
