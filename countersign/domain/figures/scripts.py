"""Words in letters that the report's languages do not use: a number word in them would be read by nobody here.

Apart from the readers of numbers because no vocabulary is needed: whatever the word says, it is not let in unread.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from countersign.domain.visible import is_hidden

_WORD = re.compile(r"[^\W\d_]+")
_LATIN_AND_HAN = re.compile(
    r"[A-Za-z\u00aa\u00b5\u00ba\u00c0-\u024f\u1e00-\u1eff々\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff21-\uff3a\uff41-\uff5a"
    r"\U00020000-\U0003ffff]"
)


def foreign_words(text: str) -> Iterator[re.Match[str]]:
    """Every word with a letter that is neither Latin nor a Chinese character, digits and marks left aside.

    Both scripts are let into reports of both languages: the names in a dataset are often in the other one, and numbers
    in both are read.
    """
    for match in _WORD.finditer(text):
        if any(_is_foreign(letter) for letter in match.group()):
            yield match


def _is_foreign(letter: str) -> bool:
    return not is_hidden(letter) and unicodedata.category(letter)[0] == "L" and not _LATIN_AND_HAN.fullmatch(letter)
