"""A text as a person sees it: full-width forms as plain ones, marks that draw nothing left out, look-alikes unmasked.

Apart from the readers, so that none of them has to think of disguises: they read plain characters, and the way back to
the original place, and whether something was disguised there, is kept here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_PLAIN = {"\u3000": " ", "￥": "¥", "￡": "£", "\u2212": "-", "﹣": "-", "﹪": "%", "٪": "%"}
_KEPT = "，：～"
"""Full-width marks that separate sentences; read as `,` and `:` they would join two numbers into one."""
_LOOKALIKES = dict(zip("аеорсухіѕһԁтнгνοιυτ", "aeopcyxishdthrvoiut", strict=True))
_LOOKALIKES |= dict(zip("АВЕІКМНОРЅСТХΑΒΕΙΚΜΝΟΡΤΧ", "ABEIKMHOPSCTXABEIKMNOPTX", strict=True))
"""Cyrillic and Greek letters that draw the Latin letters which number words are made of."""
_UNDRAWN = "*`~"
"""Markdown marks that vanish inside a word or number when it is rendered."""

_BLANKS = re.compile(r"\s{2,}")


@dataclass(frozen=True, slots=True)
class Seen:
    """A text in plain characters, with the way back."""

    text: str
    origin: tuple[int, ...]
    """For each character its place in the original."""
    disguised: frozenset[int]
    """Places of the original whose character stands in for another one, or draws nothing and is left out."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original's span for a span of the seen text."""
        return self.origin[start], self.origin[end - 1] + 1

    def honest(self, start: int, end: int) -> bool:
        """Whether the span holds exactly what is written there: nothing but blanks left out, nothing disguised."""
        return self.disguised.isdisjoint(range(*self.span(start, end)))


def as_written(text: str) -> Seen:
    """Every character of the text, each as the plain one it stands for."""
    return _seen(text, range(len(text)), frozenset())


def as_rendered(text: str) -> Seen:
    """The text without what draws nothing, so that `1<zero width>2`, `**3**5` and `35  %` read as they look.

    Of a run of blanks the first is kept, since that is what is drawn; an empty line stays, since it parts paragraphs.
    """
    undrawn = frozenset(at for at in range(len(text)) if _undrawn(text, at))
    blanks = {at for run in _BLANKS.finditer(text) if run.group().count("\n") < 2 for at in range(*run.span())[1:]}
    return _seen(text, [at for at in range(len(text)) if at not in undrawn and at not in blanks], undrawn)


def _seen(text: str, kept: range | list[int], undrawn: frozenset[int]) -> Seen:
    plain = [_plain(text[at]) for at in kept]
    disguised = frozenset(at for at, letter in zip(kept, plain, strict=True) if _is_disguise(text[at], letter))
    return Seen("".join(plain), tuple(kept), disguised | undrawn)


def _plain(letter: str) -> str:
    if letter.isascii() or letter in _KEPT:
        return letter
    if "！" <= letter <= "～":
        return chr(ord(letter) - 0xFEE0)
    if letter in _PLAIN or letter in _LOOKALIKES:
        return _PLAIN.get(letter) or _LOOKALIKES[letter]
    folded = unicodedata.normalize("NFKC", letter)
    return folded if len(folded) == 1 and folded.isascii() and folded.isalpha() else letter


def _is_disguise(original: str, plain: str) -> bool:
    return original != plain and original not in _PLAIN and not "！" <= original <= "～"


def _undrawn(text: str, at: int) -> bool:
    letter = text[at]
    if letter in _UNDRAWN:
        return True
    if letter == "\\":
        return at + 1 < len(text) and text[at + 1].isascii() and not text[at + 1].isalnum() and text[at + 1] != "\n"
    return unicodedata.category(letter) in ("Cf", "Mn", "Me")
