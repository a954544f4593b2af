"""What beside a figure changes what it says: a sign or currency before it, a scale, unit or look-alike zeros after it.

Apart from finding numbers because the figure here is a claim's, right in itself, and the words around it are nobody's
number. One rule for both sides: blanks, line ends and marks that are not drawn or only enclose are looked through.
What ends a block of CommonMark ends the neighbourhood; a `-` that makes a list item is no sign, an escaped one is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from countersign.domain.figures.units import (
    CURRENCY_WORD,
    ISO_4217,
    MEASURE_AFTER,
    SCALES,
    currencies_named,
    is_currency,
    same_unit,
)
from countersign.domain.figures.view import as_rendered

FIGURE = "\ufffc"
"""Stands for another claim's figure in the text around one."""
_SCALE_LETTERS = frozenset("k kk m mm mmm b t g mn bn tn md".split())
_SCALE_WORDS = frozenset(
    """
    thousand thousands million millions billion billions trillion trillions lakh lakhs lac lacs crore crores mln mil
    mio mrd mlrd bln trn tsd hundred hundreds dozen dozens grand score gross myriad googol quadrillion ooo oooo oo
    """.split()
)
_SCALE_CJK = (
    r"[十百千万亿兆](?![克米瓦])|百万|千万|打(?![印包])|折|成(?![交为本员功立果])|几|多(?!数)|余(?!额)|分之|番|倍"
)
_MONEY_WORDS = frozenset(
    """
    pound cent cents pence penny franc francs rupee rupees ruble rubles rouble roubles peso pesos krona kronor kroner
    quid buck bucks eur usd gbp chf jpy cny rmb hkd inr krw aud cad
    """.split()
)
_MONEY_CJK = r"[元块欧镑刀角分](?![之为于别])|美金|法郎|卢布|韩元|台币|澳元|加元|人民币"
_DASHES = "-−–‐‑‒⁻₋➖˗﹣－"
_ALTERING = "±∓×÷√≠¬^∕"
_THROUGH = r"[\s*_`~\\()（）\[\]【】:：\"“”'‘’>|=]"
_LOOKED_THROUGH = re.compile(_THROUGH)
_PHRASE = 80
_SIGN_BEFORE = re.compile(
    r"(?:(?<![a-z])(?:minus|negative|neg)\.?(?:\s+(?:of|sign|value|sum|amount|figure|number|total))*"
    r"|负(?:的|数|值|增长|增)?|[减減亏负]|减去|零下|第|(?<![总行列单个人次件户分指基参系函倍])数|几)$",
    re.IGNORECASE,
)
_SIGN_WORDS = frozenset("minus negative neg plus positive less loss losses deficit".split())
_BLOCK_BEFORE = re.compile(
    r"\n[ \t>]*\n|^[ >]*#{1,6}[ \t].*\n|^ {0,3}(?:[-*_][ \t]*){3,}\n|^ {0,3}#{1,6}[ \t]+"
    r"|^ {0,3}(?:> ?)*(?:(?:[-*+]|[0-9]{1,2}[.)]) {1,4}(?![ \n]))+",
    re.MULTILINE,
)
_BLOCK_AFTER = re.compile(r"\n[ \t>]*\n|\n(?= {0,3}(?:#{1,6}\s|[-*+] |[0-9]{1,2}[.)] |(?:[-*_][ \t]*){3,}(?:\n|$)))")
_ZEROS_AFTER = re.compile(r"[,.，'’]?[lI]*[oO]+[lIoO]*(?![a-z])|\s+[oO]{2,}(?![A-Za-z])|[,.，][lI]{2,}(?![A-Za-z])")
_WORD_AFTER = re.compile(r"([A-Za-z]+)(?![A-Za-z0-9²³]|-[A-Za-z])")
_LATIN_UNIT = re.compile(r"[A-Za-z\u00b5\u00c0-\u024f\u1e00-\u1eff\u4e00-\u9fff]+|[kcm]?m[²³]")


def altered_by(before: str, after: str, unit: str) -> str:
    """What beside a figure changes it, as it is read; empty if nothing does.

    `before` and `after` are the text up to the figure and from its end on; `unit` is the claim's own, which may stand.
    """
    first, last = _reach(reversed(before)), _reach(after)
    start = max(0, len(before) - first)
    start = max((match.end() for match in _BLOCK_BEFORE.finditer(before, start)), default=start)
    end = _BLOCK_AFTER.search(after, 0, last)
    seen = as_rendered(before[start:]).text, as_rendered(after[: end.start() if end else last]).text
    return _altered_before(seen[0], unit) or _altered_after(seen[1], unit)


def _reach(letters: Iterable[str]) -> int:
    """How far to look: through all that is looked through, and the longest word or phrase beyond it."""
    return next((at for at, letter in enumerate(letters) if not _LOOKED_THROUGH.match(letter)), 0) + _PHRASE


def _altered_before(text: str, unit: str) -> str:
    bare = re.sub(rf"{_THROUGH}+$", "", text)
    if not bare:
        return ""
    if bare[-1] in _DASHES:
        return "" if _joins(bare[:-1], adjacent=bare == text) else bare[-1]
    if bare[-1] in _ALTERING:
        return bare[-1]
    if match := _SIGN_BEFORE.search(bare):
        return match.group()
    word = re.search(r"[A-Za-z]*$", bare)
    found = _money_at_end(bare) or (word.group() if word and _is_scale(word.group()) else "")
    return "" if found and same_unit(found, unit) else found


def _joins(rest: str, *, adjacent: bool) -> bool:
    """Whether a dash after this text makes a range or a compound (`42 - 42`, `mid-42`) and no sign."""
    before = rest.rstrip()
    return before.endswith(FIGURE) or (adjacent and rest[-1:].isalnum()) or (before != rest and before.endswith("—"))


def _money_at_end(text: str) -> str:
    tail = re.search(r"(?:[A-Za-z]*[^\w\s]|[A-Za-z]+(?: [A-Za-z]+)?|[\u4e00-\u9fff]{1,4})$", text)
    last = tail.group() if tail else ""
    if unicodedata.category(text[-1]) == "Sc":
        return last
    for word in (last, last.rpartition(" ")[2]):
        if CURRENCY_WORD.fullmatch(word) or word.casefold() in _MONEY_WORDS:
            return word
    match = re.search(rf"(?:{_MONEY_CJK}|美元|欧元|英镑|日元|港元)$", last)
    return match.group() if match else ""


def _altered_after(text: str, unit: str) -> str:
    if match := _ZEROS_AFTER.match(text):
        return match.group()
    if re.match(rf"[{_DASHES}](?![\w{FIGURE}])(?!\s)|[{_DASHES}](?=\s|$)", text):
        return text[0]
    bare = re.sub(rf"^{_THROUGH}+", "", text)
    if unit and re.match(rf"{re.escape(unit)}(?![A-Za-z0-9])", bare, re.IGNORECASE):
        return ""
    found = _unit_or_scale(bare)
    return "" if found and same_unit(found, unit) else found


def _unit_or_scale(text: str) -> str:
    if text[:1] in (*_ALTERING, "%", "‰") or (text and unicodedata.category(text[0]) == "Sc"):
        return text[0]
    word = _WORD_AFTER.match(text)
    if word and (_is_scale(word[1]) or word[1].casefold() in _MONEY_WORDS or word[1] in ("st", "nd", "rd", "th")):
        return word[1]
    match = MEASURE_AFTER.match(text) or re.match(rf"{_SCALE_CJK}|{_MONEY_CJK}", text)
    return match.group().strip() if match else ""


def _is_scale(word: str) -> bool:
    return word in SCALES or word.casefold() in _SCALE_LETTERS | _SCALE_WORDS


def is_plain_unit(unit: str) -> bool:
    """Whether a unit only says what is counted: `%`, a currency, or plain words that hold no sign and no scale.

    Words are of Latin letters or Chinese characters with blanks between them; `TEUR`, `mln`, `-` and `(loss)` are none.
    """
    if unit in ("%", "‰", "°C") or is_currency(unit):
        return True
    words = unit.split(" ")
    if not all(_LATIN_UNIT.fullmatch(word) for word in words) or re.match(rf"{_SCALE_CJK}|[数来负减減亏]", unit):
        return False
    money = bool(currencies_named(unit))
    return not any(word.casefold() in _SIGN_WORDS or _scales(word, beside_money=money) for word in words)


def _scales(word: str, *, beside_money: bool) -> bool:
    folded = word.casefold()
    if folded in _SCALE_WORDS or word in SCALES:
        return True
    if folded in _SCALE_LETTERS:
        return beside_money or word.isupper() or folded in ("kk", "mn", "bn", "tn", "md", "k")
    rests = (folded[:-3] if word[-3:].upper() in ISO_4217 else "", folded[3:] if word[:3] in ISO_4217 else "")
    return any(rest in _SCALE_LETTERS | _SCALE_WORDS for rest in rests)
