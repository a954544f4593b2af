"""Names that look like other names: mixed scripts, and the skeletons of Unicode Technical Standard #39.

Apart from visible, which is about what cannot be seen at all. The table is an extract of UTS #39's confusables for the
scripts that draw Latin letters; the standard itself maps 0 to O, 1 and I to l, and m to rn, so near names in plain
ASCII have one skeleton too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from countersign.domain.visible import is_hidden

_DRAWN_BY = {
    "a": "аɑα", "b": "Ьƅ", "c": "сϲᴄ", "d": "ԁ", "e": "еҽ", "g": "ɡց", "h": "һհ", "i": "іιıɩӏ", "j": "јϳ",
    "l": "1I|ІΙӀǀ", "n": "ոռ", "o": "оοօσᴏ", "p": "рρ", "q": "ԛգ", "r": "гᴦ", "rn": "m", "s": "ѕꜱ", "u": "υսᴜ",
    "v": "νѵᴠ", "w": "ԝѡաᴡ", "x": "х", "y": "уγү", "z": "ᴢ",
    "A": "АΑ", "B": "ВΒ", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "J": "Ј", "K": "КΚ", "M": "МΜ", "N": "Ν", "O": "0ОΟՕ",
    "P": "РΡ", "Q": "Ԛ", "S": "ЅՏ", "T": "ТΤ", "V": "Ѵ", "W": "Ԝ", "X": "ХΧ", "Y": "ҮΥ", "Z": "Ζ",
    "-": "‐‑‒–−", ".": "․", ":": "ː։׃꞉∶", "/": "⁄∕",
}  # fmt: skip
_SKELETON = str.maketrans({letter: drawn for drawn, letters in _DRAWN_BY.items() for letter in letters})
_WORD = re.compile(r"[^\W\d_]+")
_IN_UNITS = "μΩ"
"""Greek letters that stand beside Latin ones in units of measure, and that draw no Latin letter."""
_TOGETHER = ({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}, {"LATIN", "CJK", "HANGUL"}, {"LATIN", "CJK", "BOPOMOFO"})
"""Scripts that are written together in one word (UTS #39, "highly restrictive")."""


def skeleton(text: str) -> str:
    """What a text looks like: texts that a reader takes for one another have the same; it is never shown."""
    plain = unicodedata.normalize("NFKC", "".join(letter for letter in text if not is_hidden(letter)))
    return plain.translate(_SKELETON).casefold().translate(_SKELETON)


def bare_name(text: str) -> str:
    """The letters and digits that a name looks like: `E-Mail`, `e_mail` and `email` are one; empty for none."""
    # Case goes first, since a skeleton keeps I apart from i: it draws a capital I as l.
    drawn = skeleton(unicodedata.normalize("NFKC", text).casefold()).replace("i", "l")
    return "".join(letter for letter in drawn if letter.isalnum())


def looks_like(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known texts that a reader would take this one for although they are others, by name."""
    mine = skeleton(text)
    return tuple(sorted({other for other in known if other != text and skeleton(other) == mine}))


def mixed_scripts(text: str) -> tuple[str, ...]:
    """Words with letters of scripts that no word of any language has together, such as Latin and Cyrillic."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text))
    return tuple(dict.fromkeys(word for word in words if not _belongs_together(_scripts(word))))


def _belongs_together(scripts: set[str]) -> bool:
    return len(scripts) < 2 or any(scripts <= together for together in _TOGETHER)


def _scripts(word: str) -> set[str]:
    """By the first word of the letters' Unicode names, which Python knows; modifier letters are of any script."""
    letters = (one for one in word if unicodedata.category(one) in ("Lu", "Ll", "Lt", "Lo") and one not in _IN_UNITS)
    return {unicodedata.name(letter, "UNKNOWN").split()[0] for letter in letters}
