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


def escaped(text: str) -> str:
    """`text` with every character that shows as nothing, or acts on the screen, written as `\\u{...}`.

    Line feeds are kept. Variation selectors and blanks wider than a space are escaped too: two texts that look the
    same here are the same, or made of look-alikes.
    """
    return "".join(character if _shows(character) else _code(character) for character in text)


def unseen(text: str) -> tuple[str, ...]:
    """The characters that `escaped` writes out, each once, in the order in which they come."""
    return tuple(dict.fromkeys(_code(character) for character in text if not _shows(character)))


def _shows(character: str) -> bool:
    if character in "\n ":
        return True
    return not is_hidden(character) and unicodedata.category(character) != "Zs"


def _code(character: str) -> str:
    return f"\\u{{{ord(character):04x}}}"
