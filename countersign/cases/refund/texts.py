"""What the two texts of a refund's draft may hold: plain words and references, and nothing that only looks like them.

Apart from the checks of the money, because here the question is what people would read: no figure of its own, nothing
hidden, no address, no order to a model, no secret; and no word of a refund as done before it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from countersign.domain.draft import Violation
from countersign.domain.figures.finding import find_numbers
from countersign.domain.figures.scripts import foreign_words
from countersign.domain.figures.surroundings import FIGURE, altered_by
from countersign.domain.refund import AFTERWARDS, AMOUNT, REFERENCE, RefundDraft, RefundRequest
from countersign.domain.suspicion.orders import find_orders
from countersign.domain.suspicion.secrets import find_secrets
from countersign.domain.visible import is_hidden

INJECTION = "prompt_injection_suspected"
SENSITIVE = "sensitive_data"

NEEDED = (AMOUNT, AFTERWARDS)
"""What a message to the customer states."""

_NO_ORDERS = "text that gives no orders to a model or reviewer"
_BRACES = re.compile(r"\{\{|\}\}")
_GLUED = re.compile(r"(?<=[A-Za-z0-9_-])\{\{|\{\{(?<=\}\}\{\{)|\}\}(?=-?[A-Za-z0-9_])")
_ADDRESS = re.compile(
    r"://|\bwww\.|\b(?:mailto|javascript|data|tel):(?=\S)|\](?=[(\[])|<(?=[A-Za-z/!?])", re.IGNORECASE
)
_DONE = re.compile(
    r"\b(?:ha(?:s|ve|d)|was|were|is|are|we|i|they|already|been|got|just|now)"
    r"(?:\s+(?:just|now|already|been|fully|all|since))*\s+"
    r"(?:refunded|reimbursed|returned|repaid|credited|reversed|re-?credited|(?:paid|given|sent|transferred|got)\s+back)\b"
    r"|\brefund(?:s|ed\s+amount)?\s+(?:has|have|was|were|is|are|went|came)(?:\s+(?:already|now|been|gone|come|just))*"
    r"\s+(?:made|issued|processed|completed?|sent|done|executed|confirmed|through|out|on\s+its\s+way)\b"
    r"|\b(?:issued|made|processed|completed|sent|executed|confirmed|gave|got|received)\s+(?:(?:the|a|an|his|her|their|its|full"
    r"|whole)\s+)*(?:refund|reimbursement|repayment)\b"
    r"|(?<!\bbe )\b(?:paid|gave|given|got|gotten|sent|transferred|received|has|have|had)"
    r"(?:\s+(?!to\b|for\b|and\b|asks?\b|wants?\b)[^\s.;!?]+){0,6}\s+back\b"
    r"|\}\}\s+(?:refunded|reimbursed|repaid|credited)\b"
    r"|(?:已经?|完成了?|刚刚?)(?:全额|成功)?(?:退款|退还|退回|退给)"
    r"|(?:退款|款项|钱)(?:已经?|成功|都)+(?:完成|处理|到账|退回|退还|汇出|发出|办理|办好)|退(?:款|还|回|给[^。；]{0,20})?了",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:no|not(?!\s+only\b)|never|nothing|none|neither|nor|nobody|if|once|whether|cannot)\b|n't\b|[未没不无若]",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[.;:!?\n。；：！？]")


class Field(NamedTuple):
    """One text of a draft as it was written."""

    name: str
    text: str

    def finding(self, code: str, offset: int, expected: str, found: str) -> Violation:
        """A finding at an offset, by line and column from 1: `message:1:14`."""
        before = self.text[:offset]
        place = f"{self.name}:{before.count(chr(10)) + 1}:{offset - before.rfind(chr(10))}"
        return Violation(code=code, place=place, expected=expected, found=found)


def fields_of(draft: RefundDraft) -> tuple[Field, Field]:
    """Its texts, in the order of its form."""
    return Field("justification", draft.justification), Field("message", draft.message)


def check_suspicion(draft: RefundDraft, request: RefundRequest, *, by_agent: bool) -> Iterator[Violation]:
    """Every order and secret in the texts, and, where an agent read it, every order in the complaint."""
    for field in fields_of(draft):
        yield from _check_orders(field)
        for secret in find_secrets(field.text):
            found = f"{secret.kind}: {secret.masked}"
            yield field.finding(SENSITIVE, secret.start, f"no {secret.kind}", found)
    complaint = Field("complaint", request.complaint)
    if by_agent:
        yield from _check_orders(complaint)


def _check_orders(field: Field) -> Iterator[Violation]:
    # As it stands in the text that is graded.
    for order in find_orders(field.text, begins_block=True):
        yield field.finding(INJECTION, order.start, _NO_ORDERS, order.excerpt)


def check_texts(draft: RefundDraft, request: RefundRequest) -> Iterator[Violation]:
    """Every other finding about the two texts."""
    justification, message = fields_of(draft)
    for field in (justification, message):
        yield from _check_letters(field, request)
        yield from _check_references(field, known_in(field.name, draft))
        yield from _check_figures(field, draft.amount.currency)
    yield from _check_done(justification)
    if not any(letter.isalnum() for letter in justification.text):
        yield justification.finding("missing_justification", 0, "words that say why this payment and no other", "none")
    yield from _check_message(message, request)


def known_in(field: str, draft: RefundDraft) -> frozenset[str]:
    """The references that a text may hold; the justification is read before there is anything to confirm."""
    known = {AMOUNT, "order", "payment"} | ({"duplicate_of"} if draft.duplicate_of else set())
    return frozenset(known | {AFTERWARDS} if field == "message" else known)


def _check_letters(field: Field, request: RefundRequest) -> Iterator[Violation]:
    for at, letter in enumerate(field.text):
        if is_hidden(letter) and letter not in "\n\t":
            found = f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".rstrip()
            yield field.finding("hidden_character", at, "visible characters", found)
    for match in _ADDRESS.finditer(field.text):
        yield field.finding("markup_not_allowed", match.start(), "plain words without an address", match.group())
    asked = {match.group() for match in foreign_words(request.complaint)}
    for match in foreign_words(field.text):
        if match.group() not in asked:
            yield field.finding("foreign_script", match.start(), "Latin letters or Chinese characters", match.group())


def _check_references(field: Field, known: frozenset[str]) -> Iterator[Violation]:
    allowed = ", ".join(f"{{{{{name}}}}}" for name in sorted(known))
    covered: set[int] = set()
    for match in REFERENCE.finditer(field.text):
        covered |= set(range(*match.span()))
        if match[1] not in known:
            yield field.finding("unknown_reference", match.start(), f"one of {allowed}", match.group())
    for match in _BRACES.finditer(field.text):
        if match.start() not in covered:
            yield field.finding(
                "malformed_reference", match.start(), f"one of {allowed}, without spaces", match.group()
            )
    for match in _GLUED.finditer(field.text):
        expected = "a blank or a mark on both sides of a reference"
        yield field.finding("malformed_reference", match.start(), expected, "a reference that is part of a word")


def _check_figures(field: Field, currency: str) -> Iterator[Violation]:
    """Every number beside the references, and whatever beside the amount changes how it is read."""
    masked = REFERENCE.sub(lambda match: FIGURE * len(match.group()), field.text)
    expected = "a reference such as {{amount}}, and no figure or number word"
    for found in find_numbers(masked):
        yield field.finding("unsupported_number", found.start, expected, found.text)
    for match in REFERENCE.finditer(field.text):
        by = altered_by(masked[: match.start()], masked[match.end() :], currency) if match[1] == AMOUNT else ""
        if by:
            nothing = "no sign, currency, scale or unit beside the amount"
            yield field.finding("unsupported_number", match.start(), nothing, by)


def _check_done(field: Field) -> Iterator[Violation]:
    """A refund that is spoken of as done, in a text that people read before anything is; the message may, since it is
    rendered afterwards alone."""
    for match in _DONE.finditer(field.text):
        clause = _CLAUSE.split(field.text[: match.start()])[-1]
        if not _DENIED.search(clause + match.group()):
            expected = "words of what is to be done; nothing is done before the payment service confirms it"
            yield field.finding("says_done", match.start(), expected, match.group())


def _check_message(field: Field, request: RefundRequest) -> Iterator[Violation]:
    if not request.message_channel:
        if field.text:
            yield field.finding("unasked_message", 0, "an empty text, since nobody is to be told", "a message")
        return
    used = {match[1] for match in REFERENCE.finditer(field.text)}
    for name in NEEDED:
        if name not in used:
            yield field.finding("missing_reference", 0, f"{{{{{name}}}}} in the text", "none")
