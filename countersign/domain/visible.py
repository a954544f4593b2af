"""Which characters a reader cannot see: one rule for drafting, checking, rendering and showing.

Apart from all four because text that one of them lets pass as visible must not be hidden for another.
"""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and patterns that draw nothing although their category says otherwise."""


def is_hidden(character: str) -> bool:
    """Whether it draws nothing of its own: controls (line feed and tab too), formats and bidi marks, line separators,
    variation selectors, fillers, and what belongs to no script. Blanks, which show as room, are not hidden."""
    variation = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp") or variation or character in _INVISIBLE
