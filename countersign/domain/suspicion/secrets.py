"""What a text would disclose: card and account numbers, e-mail addresses, keys and tokens; found, and masked at once.

Apart from orders because here the shape decides, not the words: a check digit, an issuer's prefix, a key's own form.
A finding never repeats the secret, since findings are kept, shown and sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from countersign.domain.figures.view import as_rendered
from countersign.domain.visible import is_hidden

_CARD = re.compile(
    r"(?<![\w.,])(?:[0-9]{13,19}|[0-9]{4}(?:(?P<mark>[ .\-])[0-9]{2,7})(?:(?P=mark)[0-9]{2,7}){1,3})(?![\w])"
)
_ISSUED = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}"
    r"|(?:5[1-5][0-9]{2}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720))[0-9]{12}"
    r"|(?:6(?:011|5[0-9]{2}|4[4-9][0-9]|2[0-9]{2})|35(?:2[89]|[3-8][0-9]))[0-9]{12,15}"
    r"|(?:50[0-9]{2}|5[6-9][0-9]{2}|6[0-9]{3})[0-9]{9,15}"
)
"""Lengths and prefixes that card schemes issue."""

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ \-]?[A-Za-z0-9]){11,30}")
_IBAN_LENGTHS = {
    entry[:2]: int(entry[2:])
    for entry in """
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18
    FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21
    LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27
    ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20
    """.split()
}
_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:A(?:KIA|SIA)[0-9A-Z]{16}|gh[opsru]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}"
    r"|glpat-[A-Za-z0-9_-]{20,255}|sk-[A-Za-z0-9_-]{20,255}|[rs]k_live_[A-Za-z0-9]{16,255}|xox[abeoprs]-[A-Za-z0-9-]{10,255}"
    r"|AIza[0-9A-Za-z_-]{35}|eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{8,})"
)


@dataclass(frozen=True, slots=True)
class Secret:
    """Something that should not go out."""

    start: int
    """Where it begins in the text."""
    kind: str
    """`payment card number`, `IBAN`, `e-mail address`, `private key` or `access token`."""
    masked: str
    """Enough to find it by, and no more."""


def find_secrets(text: str) -> Iterator[Secret]:
    """Every secret in the text as a reader sees it, each kind in the order of the text."""
    seen = as_rendered(text)
    shown = [at for at, letter in enumerate(seen.text) if letter in "\n\t" or not is_hidden(letter)]
    plain = "".join(seen.text[at] for at in shown)
    for start, kind, masked in _in_plain(plain):
        yield Secret(seen.origin[shown[start]], kind, masked)


def _in_plain(text: str) -> Iterator[tuple[int, str, str]]:
    for match in _CARD.finditer(text):
        digits = re.sub(r"[^0-9]", "", match.group())
        if _ISSUED.fullmatch(digits) and _luhn(digits):
            yield match.start(), "payment card number", f"{len(digits)} digits ending in {digits[-2:]}"
    for match in _IBAN.finditer(text):
        if iban := _iban(match.group()):
            yield match.start(), "IBAN", f"{iban[:2]}** **** ending in {iban[-2:]}"
    for match in _EMAIL.finditer(text):
        yield match.start(), "e-mail address", f"{match.group()[0]}***@***.{match.group().rpartition('.')[2]}"
    for match in _KEY.finditer(text):
        yield match.start(), "private key", "the header of a private key"
    for match in _TOKEN.finditer(text):
        yield match.start(), "access token", f"{match.group()[:4]}*** of {len(match.group())} characters"


def _luhn(digits: str) -> bool:
    doubled = (2 * int(digit) if at % 2 else int(digit) for at, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0 and set(digits) != {"0"}


def _iban(text: str) -> str:
    """The account number at the start of a text, words after it left out; empty where its check digits are wrong."""
    letters = re.sub(r"[ \-]", "", text).upper()
    iban = letters[: _IBAN_LENGTHS.get(letters[:2], 0)]
    if len(iban) < 15 or len(iban) != _IBAN_LENGTHS[letters[:2]] or not iban.isascii():
        return ""
    return iban if int("".join(str(int(letter, 36)) for letter in iban[4:] + iban[:4])) % 97 == 1 else ""
