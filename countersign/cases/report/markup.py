"""What a draft's text may hold beside words: plain CommonMark without raw HTML, links, images or code blocks.

Apart from the numbers because these rules are about what a reader cannot see: characters that draw nothing, markup that
hides or replaces text, and headings that pose as the sections which Countersign itself writes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from countersign.cases.report.fields import Field, Filled
from countersign.cases.report.wording import RESERVED_HEADINGS
from countersign.domain.draft import Violation
from countersign.domain.figures.scripts import foreign_words
from countersign.domain.figures.view import as_rendered
from countersign.domain.report import CLAIM_REFERENCE, Draft, ReportRequest
from countersign.domain.visible import is_hidden

_REFERENCE_LIKE = re.compile(r"\{\{|\}\}")
_MARKUP = (
    ("no raw HTML", re.compile(r"<(?=[A-Za-z/!?{])")),
    ("no link or image", re.compile(r"\](?=[(\[:{])")),
    ("no address", re.compile(r"\b(?:(?:https?|ftp|file)://|(?:javascript|data|mailto):(?=\S)|www\.)", re.IGNORECASE)),
    ("no entity but &amp; &lt; &gt; &quot;", re.compile(r"&(?!(?:amp|lt|gt|quot);)(?=#|\{|\w+[;{])")),
    ("no code block, nothing struck out", re.compile(r"```+|~~+")),
    ("no heading of the first level", re.compile(r"^ {0,3}#(?=\s)|^ {0,3}=+\s*$", re.MULTILINE)),
    ("no figure as a list marker", re.compile(r"^[ >]*(?:[-*+] +)*(?=\{\{[a-z0-9_]+\}\}[.)](?:\s|$))", re.MULTILINE)),
    ("no backslash before a reference", re.compile(r"\\+(?=\{\{)")),
    ("a space or word between two figures", re.compile(r"(?<=\}\})[*_`~\\]*(?=\{\{)")),
)
_BLOCK = re.compile(r" {4}| *(?:#{1,6}(?=\s|$)|>|[-*+](?=\s|$)|[0-9]{1,9}[.)](?=\s|$)|(?:[-_*=]\s*)+$)")
"""What would begin a heading, quotation, list, rule or code block in a field that is one line of words."""
_HEADING = re.compile(r"^[ >#]*[*_]*(?P<text>[^\n#*_:：]+?)[*_:：#\s]*$", re.MULTILINE)


def _folded(heading: str) -> str:
    """A heading as a hurried reader takes it: look-alikes, case, accents, closing marks and a plural s make no odds."""
    plain = unicodedata.normalize("NFKD", as_rendered(unicodedata.normalize("NFKC", heading)).text)
    letters = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(letters.casefold().split()).strip(" .。-–—_").removesuffix("s")


_RESERVED = frozenset(_folded(heading) for heading in RESERVED_HEADINGS)


def check_markup(field: Field) -> Iterator[Violation]:
    """Every hidden character, piece of markup and broken reference in one field."""
    yield from hidden_characters(field, "\n\t" if field.name == "body" else "")
    for expected, pattern in _MARKUP:
        for match in pattern.finditer(field.text):
            yield _violation("markup_not_allowed", field, match.start(), expected)
    if field.name == "body":
        for match in _HEADING.finditer(field.text):
            if _folded(match["text"]) in _RESERVED:
                yield _violation(
                    "markup_not_allowed", field, match.start("text"), "no heading of a section added later"
                )
    elif _BLOCK.match(field.text):
        yield _violation("markup_not_allowed", field, 0, "words on one line")
    yield from _broken_references(field)


def check_scripts(filled: Filled, request: ReportRequest) -> Iterator[Violation]:
    """Every word in a script that is not read for numbers, but for those of a claim and those that the request uses."""
    columns = request.dataset.schema_.columns
    asked = " ".join((request.question, request.title, request.period, request.dataset.name, *columns))
    known = {match.group() for match in foreign_words(asked)}
    for match in foreign_words(filled.text):
        if match.group() not in known and not filled.touching(*match.span()):
            place, expected = filled.place(match.start()), "Latin letters or Chinese characters, or a reference"
            yield Violation(code="foreign_script", place=place, expected=expected, found=match.group())


def hidden_characters(field: Field, allowed: str = "") -> Iterator[Violation]:
    """Every character that draws nothing, turns the direction of text, or belongs to no script."""
    for at, letter in enumerate(field.text):
        if is_hidden(letter) and letter not in allowed:
            found = f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".rstrip()
            yield Violation(code="hidden_character", place=field.place(at), expected="visible characters", found=found)


def hidden_in_claims(draft: Draft) -> Iterator[Violation]:
    """Hidden characters in what the reader sees of each claim."""
    for claim in draft.claims:
        for part in ("value", "unit", "shown"):
            yield from hidden_characters(Field(f"claims.{claim.id}.{part}", getattr(claim, part)))


def _broken_references(field: Field) -> Iterator[Violation]:
    covered = {at for match in CLAIM_REFERENCE.finditer(field.text) for at in range(*match.span())}
    for match in _REFERENCE_LIKE.finditer(field.text):
        if match.start() not in covered:
            yield _violation("malformed_reference", field, match.start(), "{{claim_id}} without spaces")


def _violation(code: str, field: Field, offset: int, expected: str) -> Violation:
    end = field.text.find("\n", offset)
    found = field.text[offset : end if end >= 0 else None][:40] or "the end of the line"
    return Violation(code=code, place=field.place(offset), expected=expected, found=found)
