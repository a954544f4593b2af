"""Text that tries to give orders to a model or a reviewer: found, shortened and made visible.

Apart from the table of phrases because here disguises are taken off: look-alike letters, characters and markup that
draw nothing, text that runs backwards, letters written in Unicode's invisible tags, and base64. Pure: a finding is a
suspicion that a person has to look at, and nothing is acted on.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from countersign.domain.figures.view import as_rendered
from countersign.domain.suspicion.phrases import MARKERS, ORDERS
from countersign.domain.visible import escaped, is_hidden

WINDOW = 20_000
"""Characters of a text that are looked at at once; longer ones are looked at piece by piece."""

_OVERLAP = 2_000
"""Characters that two pieces of a long text have in common; more than any order has."""
_BLOCK = "\n\n"
_EXCERPT = 80
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,}")
_TAGS = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007e])[\U000e0020-\U000e007e]{4,}")
"""Tags draw nothing and stand for ASCII letters; after the black flag they innocently say whose flag it is."""
_OVERRIDE = re.compile("[\u202d\u202e]")
_UNSEEN = 12
"""Hidden characters in a row, more than any script, emoji or sloppy export needs."""
_REPORTED = re.compile(
    r"\b(?:who|they|we|not|never|n.t|cannot|nobody|customers|users|employees|drivers)\W{1,3}$", re.IGNORECASE
)
"""What before a verb makes a statement of it: `customers who ignore previous instructions`."""


@dataclass(frozen=True, slots=True)
class Order:
    """What looks like an order."""

    start: int
    """Where it begins in the text."""
    excerpt: str
    """A piece of one line, with every hidden character written out."""


def find_orders(text: str, *, begins_block: bool = False) -> Iterator[Order]:
    """Every order, forged frame and unseen message in the text, in no particular order, once per place.

    Args:
        text: of any length.
        begins_block: whether an empty line stands before it where it is read, as before the next message of a
            conversation, so that it can begin as one does.
    """
    before = _BLOCK if begins_block else ""
    whole = before + text
    turned = _OVERRIDE.search(whole) is not None
    seen: set[int] = set()
    for start in range(0, max(1, len(whole) - _OVERLAP), WINDOW - _OVERLAP):
        for order in _in_piece(whole[start : start + WINDOW], cut=start > 0, turned=turned):
            at = max(start + order.start - len(before), 0)
            if at not in seen:
                seen.add(at)
                yield Order(at, order.excerpt)


def _in_piece(text: str, *, cut: bool, turned: bool) -> Iterator[Order]:
    """What a piece of a text holds.

    Args:
        text: the piece.
        cut: whether there is more before it, so that base64 may begin anywhere in a group of four.
        turned: whether the text has what makes letters run backwards, here or before.
    """
    yield from _in_letters(text)
    yield from _unseen(text, turned)
    for match in _BASE64.finditer(text):
        for skipped in range(4) if cut and match.start() == 0 else (0,):
            decoded = _decoded(match.group()[skipped:])
            if next(_in_letters(decoded), None):
                yield Order(match.start(), f"{excerpt(match.group(), 24)} (base64 of: {excerpt(decoded)})")


def excerpt(text: str, length: int = _EXCERPT) -> str:
    """The start of a text on one line, with what does not show written out."""
    return escaped(text[:length].replace("\n", " ")) + ("…" if len(text) > length else "")


def _in_letters(text: str) -> Iterator[Order]:
    plain, origin = _plain(text)
    for match in chain.from_iterable(each.finditer(plain) for each in ORDERS):
        if not _REPORTED.search(plain, max(0, match.start() - 20), match.start()):
            yield Order(origin[match.start()], excerpt(plain[match.start() :]))
    for match in MARKERS.finditer(text):
        blank = len(match.group()) - len(match.group().lstrip())
        yield Order(match.start() + blank, excerpt(text[match.start() + blank :]))


def _plain(text: str) -> tuple[str, list[int]]:
    """The text as it looks, without accents, and for each of its characters the place in the original."""
    letters: list[str] = []
    origin: list[int] = []
    seen = as_rendered(text)
    for letter, at in zip(seen.text, seen.origin, strict=True):
        if letter.isascii() or not is_hidden(letter):
            bare = letter if letter.isascii() else _without_accents(letter)
            letters.append(bare)
            origin += [at] * len(bare)
    return "".join(letters), origin


def _without_accents(letter: str) -> str:
    return "".join(part for part in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(part))


def _unseen(text: str, turned: bool) -> Iterator[Order]:
    """Messages in characters that nobody sees, or sees in another order than a model reads them."""
    if turned and next(_in_letters(text[::-1]), None):
        begins = _OVERRIDE.search(text)
        at = begins.start() if begins is not None else 0
        yield Order(at, f"backwards: {excerpt(text[at:])}")
    if text.isascii():
        return
    for match in _TAGS.finditer(text):
        hidden = "".join(chr(ord(tag) - 0xE0000) for tag in match.group())
        yield Order(match.start(), f"invisible tags that spell: {excerpt(hidden)}")
    run = 0
    for at, letter in enumerate(text):
        run = run + 1 if not letter.isspace() and is_hidden(letter) and not _is_tag(letter) else 0
        if run == _UNSEEN:
            yield Order(at - run + 1, f"a row of hidden characters: {excerpt(text[at - run + 1 :], run)}")


def _is_tag(letter: str) -> bool:
    return "\U000e0020" <= letter <= "\U000e007f"


def _decoded(encoded: str) -> str:
    """What a text in base64 says; empty where it is none, or says nothing that can be read."""
    whole = encoded[: len(encoded) - (len(encoded) % 4 == 1)]
    try:
        decoded = base64.b64decode(whole + "=" * (-len(whole) % 4), altchars=b"-_" if set("-_") & set(whole) else None)
    except ValueError:
        return ""
    return decoded.decode("utf-8", errors="ignore")
