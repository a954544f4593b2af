"""Statements in any form: what is no plain compact JWS is refused, and no text at all makes anything else happen."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.errors import StatementRefused
from countersign.signing.compact import MAX_TOKEN
from countersign.signing.statements import sign_decision, verify_decision
from tests.domain.samples import NOW
from tests.signing.tokens import (
    BOB,
    CLAIMS,
    HEADER,
    SECONDS,
    base64url,
    claims_with,
    directory,
    header_with,
    raw_token,
    refusal,
    token,
)

pytestmark = pytest.mark.guarantee("G18")

GOOD = token()
PAYLOAD = json.dumps(CLAIMS).encode()
HEAD = json.dumps(HEADER).encode()
ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"


def unused_bits_set(header: bytes, payload: bytes) -> str:
    """The header's same bytes in another spelling, with a signature over that spelling."""
    padded = header if len(header) % 3 else header + b" "
    part = base64url(padded)
    signed = f"{part[:-1]}{ALPHABET[ALPHABET.index(part[-1]) + 1]}.{base64url(payload)}"
    return f"{signed}.{base64url(BOB.sign(signed.encode()))}"


MALFORMED: dict[str, str] = {
    "empty": "",
    "no dots": "statement",
    "two parts": GOOD.rsplit(".", 1)[0],
    "four parts": GOOD + ".AAAA",
    "five parts, as an encrypted one": "a.b.c.d.e",
    "only dots": "..",
    "no signature": GOOD.rsplit(".", 1)[0] + ".",
    "detached payload": f"{GOOD.split('.')[0]}..{GOOD.split('.')[2]}",
    "JSON serialisation": json.dumps(
        {"payload": GOOD.split(".")[1], "signatures": [{"signature": GOOD.split(".")[2]}]}
    ),
    "blank before": " " + GOOD,
    "newline after": GOOD + "\n",
    "blank inside": GOOD[:40] + " " + GOOD[40:],
    "padded": GOOD + "==",
    "padded payload": GOOD.replace(".", "==.", 1),
    "standard alphabet": GOOD[:-4] + "+/aa",
    "Bearer": "Bearer " + GOOD,
    "full-width letters": GOOD.replace("e", "ｅ"),
    "a Cyrillic letter": GOOD.replace("a", "а", 1),
    "lone surrogate": GOOD + "\ud800",
    "NUL": GOOD + "\0",
    "unused bits set in the header": unused_bits_set(HEAD, PAYLOAD),
    "unused bits set in the header, one byte longer": unused_bits_set(HEAD + b" ", PAYLOAD),
    "not base64 length": "AAAAA." + GOOD.split(".", 1)[1],
    "duplicate key in the payload": raw_token(HEAD, PAYLOAD[:-1] + b', "decision": "approve"}'),
    "duplicate key in the header": raw_token(HEAD[:-1] + b', "alg": "EdDSA"}', PAYLOAD),
    "alg none hidden behind a second alg": raw_token(b'{"alg": "none", ' + HEAD[1:], PAYLOAD),
    "NaN": raw_token(HEAD, PAYLOAD.replace(str(SECONDS).encode(), b"NaN", 1)),
    "Infinity": raw_token(HEAD, PAYLOAD.replace(str(SECONDS).encode(), b"Infinity", 1)),
    "an integer of 5,000 digits": raw_token(HEAD, PAYLOAD.replace(str(SECONDS).encode(), b"9" * 5_000, 1)),
    "lone surrogate in a claim": raw_token(HEAD, PAYLOAD.replace(b'"bob"', b'"\\ud800"')),
    "lone surrogate in the key id": raw_token(HEAD.replace(b'"bob-1"', b'"\\ud800"'), PAYLOAD),
    "NUL in a claim": raw_token(HEAD, PAYLOAD.replace(b'"bob"', b'"bob\\u0000"')),
    "payload is no JSON": raw_token(HEAD, b"approve"),
    "payload is empty": raw_token(HEAD, b""),
    "payload is a list": raw_token(HEAD, b"[1]"),
    "payload is a text": raw_token(HEAD, b'"approve"'),
    "payload is null": raw_token(HEAD, b"null"),
    "payload is not UTF-8": raw_token(HEAD, b"\xff\xfe"),
    "payload has a BOM": raw_token(HEAD, b"\xef\xbb\xbf" + PAYLOAD),
    "payload with more behind": raw_token(HEAD, PAYLOAD + b"{}"),
    "nested 2,000 deep": raw_token(HEAD, b'{"a":' * 1_000 + b"[" * 500),
    "header is a list": raw_token(b"[]", PAYLOAD),
    "header is null": raw_token(b"null", PAYLOAD),
    "header is no JSON": raw_token(b"{", PAYLOAD),
    "header nested 2,000 deep": raw_token(b"[" * 2_000, PAYLOAD),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_plain_compact_jws_is_refused(name: str) -> None:
    assert refusal(MALFORMED[name]).reason == "malformed"


@pytest.mark.parametrize("size", [MAX_TOKEN + 1, 10_000_000])
@pytest.mark.parametrize("filler", ["a", ".", "é"])
def test_a_token_beyond_any_statement_is_not_even_read(size: int, filler: str) -> None:
    assert refusal(filler * size).reason == "too_large"


@pytest.mark.guarantee("G14")
@given(st.integers(0, len(GOOD) - 1), st.sampled_from("ABCDwxyz0189-_."))
def test_a_token_with_one_other_character_is_refused(place: int, character: str) -> None:
    forged = GOOD[:place] + character + GOOD[place + 1 :]
    if forged != GOOD:
        assert refusal(forged).reason in {
            "malformed",
            "algorithm",
            "type",
            "audience",
            "claims",
            "unknown_key",
            "signature",
        }


@pytest.mark.guarantee("G14")
@given(st.integers(0, len(PAYLOAD) - 1), st.integers(1, 255))
def test_one_changed_byte_under_the_old_signature_is_refused(place: int, change: int) -> None:
    changed = PAYLOAD[:place] + bytes([PAYLOAD[place] ^ change]) + PAYLOAD[place + 1 :]
    head, _, signature = GOOD.split(".")

    refusal(f"{head}.{base64url(changed)}.{signature}")


@pytest.mark.guarantee("G19")
@given(
    st.text(max_size=200)
    | st.from_regex(r"[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{0,60}", fullmatch=True)
)
def test_any_text_is_refused_and_nothing_else_is_raised(text: str) -> None:
    refusal(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.guarantee("G19")
@given(JSON, JSON)
def test_any_signed_json_is_refused_and_nothing_else_is_raised(header: Any, claims: Any) -> None:
    refusal(raw_token(json.dumps(header).encode(), json.dumps(claims).encode()))


@pytest.mark.guarantee("G19")
@given(st.sampled_from(sorted(CLAIMS)), JSON)
def test_any_value_of_a_claim_is_refused_or_read_as_it_stands(name: str, value: Any) -> None:
    try:
        statement, _ = verify_decision(
            token(claims=claims_with(**{name: value})), directory(), installation="local", now=NOW
        )
    except StatementRefused:
        return
    assert verify_decision(sign_decision(statement, BOB), directory(), installation="local", now=NOW)[0] == statement


@pytest.mark.guarantee("G19")
@given(st.sampled_from(sorted(HEADER)), JSON)
def test_any_value_in_the_header_is_refused(name: str, value: Any) -> None:
    if value != HEADER[name]:
        refusal(token(header_with(**{name: value})))
