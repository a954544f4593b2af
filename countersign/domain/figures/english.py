"""Numbers written in English words: `twenty-five`, `two hundred and six`, `a third`, `doubled`, `minus four per cent`.

Apart from digits because words need a vocabulary, and judgement about the words that only sometimes count. Decided so:
- ordinals count (`first`, `third`); whether one merely enumerates is for the caller, who knows the place in the text;
- `one` counts unless it stands for a noun (`no one`, `this one`) or precedes a superlative (`one of the largest`);
- `quarter` counts as a share (`a quarter`, `three quarters`, `quarter of`), not as a time of the year;
- plural `dozens`, `thousands` and `a couple` name no number: they look like one and are handed back unread;
- `once`, `both`, `single`, `few`, `several`, `decade` do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from countersign.domain.figures.found import EXACT, FoundNumber
from countersign.domain.figures.units import UNIT_AFTER, canonical_unit

_NAMES = """
    zero one two three four five six seven eight nine
    ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
    twenty thirty forty fifty sixty seventy eighty ninety
""".split("\n")
_DIGITS, _TEENS, _TENS = (line.split() for line in _NAMES[1:4])
_SMALL = {word: at for at, word in enumerate(_DIGITS + _TEENS)} | {word: 20 + 10 * at for at, word in enumerate(_TENS)}
_SMALL |= {"nil": 0, "nought": 0, "naught": 0}
_TIMES = {"hundred": 100, "dozen": 12}
_POWERS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_NTH = """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth
"""
_ORDINALS = {word: at for at, word in enumerate(_NTH.split(), 1)}
_ORDINALS |= {word[:-1] + "ieth": 20 + 10 * at for at, word in enumerate(_TENS)}
_PARTS = {"half": 2, "halves": 2, "quarter": 4, "hundredth": 100, "thousandth": 1000}
_PARTS |= {word: number for word, number in _ORDINALS.items() if 2 < number < 21}
_STANDING = {"half": "0.5", "halves": "0.5", "halve": "0.5", "halved": "0.5", "halving": "0.5", "twice": "2"}
_STANDING |= {"thrice": "3", "pair": "2", "pairs": "2"}
_GROUPS = "solo duo trio quartet quintet sextet septet octet nonet".split()
_STANDING |= {word + plural: str(at) for at, word in enumerate(_GROUPS, 1) for plural in ("", "s") if at > 1}
_STANDING |= {word + "some": str(_SMALL[word]) for word in _DIGITS[2:]}
_MULTIPLES = {"double": 2, "triple": 3, "treble": 3, "quadruple": 4, "quintuple": 5}
_MULTIPLES |= {"sextuple": 6, "septuple": 7, "octuple": 8, "nonuple": 9, "decuple": 10}
_STANDING |= {word[:-1] + ending: str(n) for word, n in _MULTIPLES.items() for ending in ("e", "ed", "es", "ing")}
_STANDING |= {word + "fold": str(_SMALL[word]) for word in _DIGITS[2:] + _TEENS}
_STANDING |= {"hundredfold": "100", "thousandfold": "1000"}
_VAGUE = "tens|dozens|hundreds|thousands|millions|billions|trillions|zillions?|umpteen|couple"

_IDIOMS = re.compile(
    r"\b(?:(?:no|this|that|each|any|which|every|the)\s+one(?!\s+(?:hundred|thousand|million|billion|half|third|quarter))"
    r"|one\s+another|one's|one-(?:off|sided|way)|one\s+of\s+the\s+(?:most|least|best|worst|\w+est)"
    r"|at\s+first|first\s+of\s+all|in\s+the\s+first\s+place|first-hand|first\s+names?"
    r"|per\s+second|second-hand|second\s+thoughts?|third[\s-]part(?:y|ies)"
    r"|double[\s-](?:check|count|entr)\w*)\b",
    re.IGNORECASE,
)


def _any(words: list[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_CARDINAL_SMALL = rf"(?:(?:{_any(_TENS)})(?:[\s-]?(?:{_any(_DIGITS[1:])})(?![a-z]))?|{_any([*_SMALL])})"
_LARGE = rf"(?:{_any([*_TIMES, *_POWERS])})"
_WORD = rf"(?:{_CARDINAL_SMALL}|{_LARGE}(?:\s+and(?=\s+(?:{_CARDINAL_SMALL})\b))?)"
_SIGN = r"(?:(?P<sign>minus|negative)\s+)?"
_UNIT = rf"(?P<unit>{UNIT_AFTER})?"
_CARDINAL = re.compile(rf"(?<![a-z]){_SIGN}(?P<words>{_WORD}(?:[\s-]+{_WORD})*)(?![a-z]){_UNIT}", re.IGNORECASE)
_ORDINAL = re.compile(
    rf"(?<![a-z])(?:(?P<tens>{_any(_TENS)})[\s-]?)?(?P<last>{_any([*_ORDINALS])})(?:ly)?(?![a-z])", re.IGNORECASE
)
_SHARE = re.compile(
    rf"(?<![a-z]){_SIGN}(?P<above>an?|{_any([*_SMALL])})[\s-]+(?P<below>{_any([*_PARTS])})s?(?![a-z])"
    r"|(?<![a-z])(?P<alone>quarter)(?=\s+of\b)",
    re.IGNORECASE,
)
_ALONE = re.compile(rf"(?<![a-z])(?P<word>{_any([*_STANDING])})(?![a-z])", re.IGNORECASE)
_PLURAL_PARTS = _any([part for part in _PARTS if part not in ("half", "halves", "quarter")])
_NO_NUMBER = re.compile(rf"(?<![a-z])(?:{_VAGUE}|(?:{_PLURAL_PARTS})s)(?![a-z])", re.IGNORECASE)


def english(text: str) -> Iterator[FoundNumber]:
    """Every number in English words in a plain text; a phrase that names none clearly is handed back unread."""
    idioms = [match.span() for match in _IDIOMS.finditer(text)]
    for found in _words(text):
        if not any(start <= found.start and found.end <= end for start, end in idioms):
            yield found


def _words(text: str) -> Iterator[FoundNumber]:
    for match in _CARDINAL.finditer(text):
        yield _cardinal(match)
    for match in _ORDINAL.finditer(text):
        yield replace(_found(match, Decimal(_ordinal_value(match))), ordinal=True)
    for match in _SHARE.finditer(text):
        yield _found(match, _share_value(match), decimals=None)
    for match in _ALONE.finditer(text):
        value = Decimal(_STANDING[match["word"].lower()])
        yield _found(match, value, decimals=None if value < 1 else 0)
    for match in _NO_NUMBER.finditer(text):
        yield _found(match, None)


def _found(match: re.Match[str], value: Decimal | None, decimals: int | None = 0) -> FoundNumber:
    return FoundNumber(match.start(), match.end(), match.group(), value, decimals=decimals)


def _cardinal(match: re.Match[str]) -> FoundNumber:
    words = [word for word in re.split(r"[\s-]+", _spaced(match["words"].lower())) if word != "and"]
    number = _number(words)
    if number is None:
        return _found(match, None)
    value = Decimal(-number if match["sign"] else number)
    unit = canonical_unit(match["unit"] or "")
    scale = _POWERS.get(words[-1], 0)
    return FoundNumber(match.start(), match.end(), match.group(), value, unit, scale, signed=bool(match["sign"]))


def _spaced(words: str) -> str:
    """`twentyfive` as two words."""
    return re.sub(rf"({_any(_TENS)})(?=[a-z])", r"\1 ", words)


def _number(words: list[str]) -> int | None:
    """The integer that the words name in their order; None when they name none, such as `two three`."""
    total, current, last_power = 0, 0, 15
    for word in words:
        if word in _SMALL:
            if current % 100 and not (current % 100 >= 20 and current % 10 == 0 and 0 < _SMALL[word] < 10):
                return None
            current += _SMALL[word]
        elif word in _TIMES:
            if current > 99:
                return None
            current = (current or 1) * _TIMES[word]
        elif _POWERS[word] >= last_power:
            return None
        else:
            last_power = _POWERS[word]
            total, current = total + (current or 1) * 10**last_power, 0
    return total + current


def _ordinal_value(match: re.Match[str]) -> int:
    tens = _SMALL[match["tens"].lower()] if match["tens"] else 0
    return tens + _ORDINALS[match["last"].lower()]


def _share_value(match: re.Match[str]) -> Decimal:
    if match["alone"]:
        return Decimal("0.25")
    above = _SMALL.get(match["above"].lower(), 1)
    value = EXACT.divide(Decimal(above), Decimal(_PARTS[match["below"].lower()]))
    return value.copy_negate() if match["sign"] else value
