"""Units and scale words beside a number, and when two ways of writing a unit mean the same.

Apart from the readers because digits, English and Chinese share them, and the checks compare a claim's unit with them.
"""

from __future__ import annotations

import re

_CODES = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF
    CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD
    HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD
    MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN
    PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TND TOP TRY TTD
    TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW
"""
ISO_4217 = frozenset(_CODES.split())
"""Currency codes in use; written in capitals they are currencies wherever they stand beside a number."""

_SYMBOLS = {"US$": "USD", "HK$": "HKD", "NT$": "TWD", "A$": "AUD", "C$": "CAD", "S$": "SGD", "R$": "BRL", "$": "USD"}
_SYMBOLS |= {"€": "EUR", "£": "GBP", "¥": "¥", "₹": "INR", "₩": "KRW", "₽": "RUB", "₺": "TRY", "₫": "VND", "₴": "UAH"}
_WORDS = {
    "US dollars": "USD", "dollars": "USD", "dollar": "USD", "euros": "EUR", "euro": "EUR", "pounds": "GBP",
    "yuan": "CNY", "RMB": "CNY", "renminbi": "CNY", "yen": "JPY", "人民币": "CNY", "元人民币": "CNY", "元": "CNY",
    "美元": "USD", "欧元": "EUR", "英镑": "GBP", "日元": "JPY", "港元": "HKD", "块钱": "CNY",
}  # fmt: skip
_MEASURES = {
    "%": "%", "percent": "%", "per cent": "%", "‰": "‰",
    "percentage points": "pp", "percentage point": "pp", "pp": "pp", "个百分点": "pp", "百分点": "pp",
    "basis points": "bp", "basis point": "bp", "bps": "bp", "个基点": "bp",
    "x": "x", "×": "x", "fold": "x", "-fold": "x", "times": "x", "倍": "x",
}  # fmt: skip
_TIME = {"年": "年", "月": "月", "日": "日", "号": "日"}
_ALIASES = {word.casefold(): unit for word, unit in (_SYMBOLS | _WORDS | _MEASURES).items()}
_EITHER = {"¥": frozenset({"CNY", "JPY"})}
"""The one sign that two currencies share."""
_CURRENCIES = ISO_4217 | {"¥"}

TENTHS = "成"
"""Chinese for tenths: 三成 is thirty per cent, shown to the nearest ten."""

SCALES = {"k": 3, "K": 3, "M": 6, "mn": 6, "B": 9, "bn": 9, "T": 12, "tn": 12}
SCALES |= {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "lakh": 5, "crore": 7}
SCALES |= {"mln": 6, "mio": 6, "bln": 9, "mrd": 9, "trn": 12}
SCALES |= {"千": 3, "万": 4, "百万": 6, "千万": 7, "亿": 8, "十亿": 9, "百亿": 10, "千亿": 11, "万亿": 12}
"""Powers of ten of scale words after digits. A small `m` or `b` is no scale: it may be metres or bytes."""


def _alternatives(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_LETTERS_END = "(?![A-Za-z0-9])"
CURRENCY_BEFORE = rf"(?:{_alternatives(list(_SYMBOLS))}|(?<![A-Za-z])(?:RMB|{_alternatives(list(ISO_4217))})\s?)"
_AFTER_WORDS = [word for word in _WORDS | _MEASURES if word.isascii() and word[-1].isalpha() and word != "times"]
_AFTER_SIGNS = [word for word in _SYMBOLS | _WORDS | _MEASURES if word not in _AFTER_WORDS and word != "times"]
UNIT_AFTER = (
    rf"(?:\s?(?:{_alternatives([*_AFTER_SIGNS, *_TIME, TENTHS])})"
    rf"|\s?(?:(?i:{_alternatives(_AFTER_WORDS)})|{_alternatives(list(ISO_4217))}){_LETTERS_END})"
)
_SCALE_WORDS = [word for word in SCALES if word.isascii()]
SCALE_AFTER = (
    rf"(?:\s?(?:{_alternatives([word for word in SCALES if not word.isascii()])})(?![克米瓦])"
    rf"|[\s-]?(?:{_alternatives([w for w in _SCALE_WORDS if len(w) < 3])}"
    rf"|(?i:{_alternatives([w for w in _SCALE_WORDS if len(w) > 2])})s?)(?![A-Za-z0-9]))"
)


def scale_power(word: str) -> int:
    """The power of ten of a scale word as it stands in a text: `k` 3, ` Millions` 6, `万` 4; nothing is 0."""
    bare = word.strip(" \t\n\u00a0\u202f\u2009-")
    if not bare:
        return 0
    return SCALES[bare] if bare in SCALES else SCALES[bare.casefold().removesuffix("s")]


def canonical_unit(word: str) -> str:
    """One spelling for each unit: `dollars`, `$` and `usd` are `USD`; an unknown unit is itself in lower case."""
    bare = " ".join(word.split())
    folded = bare.casefold()
    if folded.upper() in ISO_4217:
        return folded.upper()
    return _ALIASES.get(folded, _TIME.get(bare, folded))


def same_unit(one: str, other: str) -> bool:
    """Whether two units mean the same; `¥` may be CNY or JPY, and `$` is US dollars only."""
    first, second = canonical_unit(one), canonical_unit(other)
    return first == second or second in _EITHER.get(first, ()) or first in _EITHER.get(second, ())


def is_currency(unit: str) -> bool:
    """Whether a unit is money."""
    return canonical_unit(unit) in _CURRENCIES


_NAMED = re.compile(
    rf"{_alternatives(list(_SYMBOLS))}|{_alternatives([w for w in _WORDS if not w.isascii()])}"
    rf"|(?<![A-Za-z])(?:{_alternatives(list(ISO_4217))}|(?i:{_alternatives([w for w in _WORDS if w.isascii()])}))"
    rf"{_LETTERS_END}"
)

CURRENCY_WORD = re.compile(
    rf"{_alternatives(list(_SYMBOLS))}|{_alternatives(list(ISO_4217))}|(?i:{_alternatives(list(_WORDS))})"
)
"""A currency's sign, code in capitals or name, and nothing else."""
MEASURE_AFTER = re.compile(
    rf"(?:{_alternatives(_AFTER_SIGNS)})|(?:(?i:{_alternatives(_AFTER_WORDS)})|{_alternatives(list(ISO_4217))})"
    rf"{_LETTERS_END}"
)
"""A currency or measure at the start of what follows a figure."""


def currencies_named(text: str) -> tuple[str, ...]:
    """The currencies that a text names, each once, in the order of the text."""
    return tuple(dict.fromkeys(canonical_unit(match.group()) for match in _NAMED.finditer(text)))
