"""Signed statements under attack: each forgery is refused for its own reason, and nothing else ever comes out."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from countersign.domain.errors import StatementRefused
from countersign.signing.keys import public_text
from countersign.signing.statements import sign_decision, verify_decision, verify_request
from tests.domain.samples import NOW, a_person, a_statement
from tests.domain.weak_keys import NEUTRAL, SIGNED_BY_NOBODY, text
from tests.signing.tokens import (
    BOB,
    CARL,
    CLAIMS,
    EVE,
    HEADER,
    REQUEST_CLAIMS,
    REQUEST_HEADER,
    SECONDS,
    a_key,
    base64url,
    claims_with,
    directory,
    header_with,
    refusal,
    token,
)

pytestmark = pytest.mark.guarantee("G18")

GOOD = token()


def without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def test_a_good_statement_is_read_as_it_was_signed() -> None:
    statement, signer = verify_decision(GOOD, directory(), installation="local", now=NOW)

    assert signer.id == "bob"
    assert statement == a_statement()


def test_what_is_signed_verifies() -> None:
    statement = a_statement(decision="reject", comment_hash=CLAIMS["action_hash"])

    signed = sign_decision(statement, BOB)

    assert verify_decision(signed, directory(), installation="local", now=NOW)[0] == statement
    assert len(signed) < 1_000


def test_all_of_a_statement_is_bound_by_its_signature() -> None:
    assert set(type(a_statement()).model_fields) == {
        "installation", "person", "key_id", "tenant", "operation", "approval_id", "approval_version", "action_hash",
        "decision", "edited_action", "comment_hash", "issued_at", "expires_at", "id",
    }  # fmt: skip
    assert len(CLAIMS) + len(HEADER) == 14 + len({"alg", "typ"})


def signed_with_the_public_key() -> str:
    """The oldest trick: a symmetric signature whose secret is the public key that everybody has."""
    signed = f"{base64url(json.dumps(header_with(alg='HS256')).encode())}.{base64url(json.dumps(CLAIMS).encode())}"
    pem = BOB.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"{signed}.{base64url(hmac.new(pem, signed.encode(), hashlib.sha256).digest())}"


def signed_with_rsa() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    signed = f"{base64url(json.dumps(header_with(alg='RS256')).encode())}.{base64url(json.dumps(CLAIMS).encode())}"
    return f"{signed}.{base64url(key.sign(signed.encode(), PKCS1v15(), SHA256()))}"


ALGORITHMS: dict[str, Callable[[], str]] = {
    "none, unsigned": lambda: token(header_with(alg="none")).rsplit(".", 1)[0] + ".AAAA",
    "none, signed": lambda: token(header_with(alg="none")),
    "None": lambda: token(header_with(alg="None")),
    "HS256 with the public key as secret": signed_with_the_public_key,
    "RS256": signed_with_rsa,
    "ES256": lambda: token(header_with(alg="ES256")),
    "Ed25519, another name for the same": lambda: token(header_with(alg="Ed25519")),
    "eddsa": lambda: token(header_with(alg="eddsa")),
    "missing": lambda: token(without(HEADER, "alg")),
    "null": lambda: token(header_with(alg=None)),
    "a list": lambda: token(header_with(alg=["EdDSA"])),
    "an object": lambda: token(header_with(alg={"EdDSA": 1})),
    "a very long one\n": lambda: token(header_with(alg="EdDSA\n" * 200)),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_algorithm_and_no_other(name: str) -> None:
    assert refusal(ALGORITHMS[name]()).reason == "algorithm"


@pytest.mark.parametrize(
    "header",
    [
        without(HEADER, "typ"),
        without(HEADER, "kid"),
        *(
            header_with(typ=typ)
            for typ in ("JWT", "", None, "request+jwt", "checkpoint+jwt", "DECISION+JWT", ["decision+jwt"])
        ),
        *(header_with(typ=typ) for typ in ("application/decision+jwt", "decision+jwt ")),
        header_with(jku="https://evil.example/keys"),
        header_with(x5u="https://evil.example/cert"),
        header_with(jwk={"kty": "OKP", "crv": "Ed25519", "x": public_text(EVE)}),
        header_with(x5c=["MIIB"]),
        header_with(crit=["exp"], exp=1),
        header_with(crit=[]),
        header_with(b64=True),
        header_with(b64=False, crit=["b64"]),
        header_with(zip="DEF"),
        header_with(cty="JWT"),
        header_with(**{"": 1}),
    ],
)
def test_the_header_is_exactly_the_three_fields(header: dict[str, Any]) -> None:
    assert refusal(token(header)).reason == "type"


def test_a_request_is_no_decision_and_a_decision_no_request() -> None:
    request = token(REQUEST_HEADER, REQUEST_CLAIMS)

    assert verify_request(request, directory(), installation="local", now=NOW)[1].id == "bob"
    assert refusal(request).reason == "type"
    for forged, reason in [(GOOD, "type"), (token(REQUEST_HEADER, CLAIMS), "claims")]:
        with pytest.raises(StatementRefused) as refused:
            verify_request(forged, directory(), installation="local", now=NOW)
        assert refused.value.reason == reason
    assert refusal(token(HEADER, REQUEST_CLAIMS)).reason == "claims"


@pytest.mark.parametrize(
    "audience", ["prod", "", "LOCAL", "local ", None, 1, ["local"], ["local", "prod"], {"local": 1}]
)
def test_a_statement_for_another_installation_is_refused(audience: Any) -> None:
    assert refusal(token(claims=claims_with(aud=audience))).reason == "audience"


def test_a_statement_for_no_installation_is_refused() -> None:
    assert refusal(token(claims=without(CLAIMS, "aud"))).reason == "audience"


@pytest.mark.guarantee("G26")
@pytest.mark.parametrize(
    ("issued", "expires", "reason"),
    [
        (0, 0, "expired"),
        (0, -1, "expired"),
        (-86_400, -1, "expired"),
        (0, -(10**9), "expired"),
        (61, 86_400, "not_yet"),
        (10**9, 2 * 10**9, "not_yet"),
    ],
)
def test_a_statement_is_good_between_its_times(issued: int, expires: int, reason: str) -> None:
    assert refusal(token(claims=claims_with(iat=SECONDS + issued, exp=SECONDS + expires))).reason == reason


def test_a_signers_clock_may_be_a_minute_ahead() -> None:
    ahead = token(claims=claims_with(iat=SECONDS + 60))

    assert verify_decision(ahead, directory(), installation="local", now=NOW)[0].issued_at == NOW + timedelta(minutes=1)


def test_the_last_moment_is_the_one_before_its_end() -> None:
    end = datetime.fromtimestamp(CLAIMS["exp"], UTC)

    assert verify_decision(GOOD, directory(), installation="local", now=end - timedelta(microseconds=1))
    assert refusal(GOOD, now=end).reason == "expired"


@pytest.mark.guarantee("G09")
@pytest.mark.parametrize(
    "forged",
    [
        token(header_with(kid="bob-2")),
        token(header_with(kid="")),
        token(header_with(kid="BOB-1")),
        token(header_with(kid="carl-1")),
        token(header_with(kid="carl-1"), key=CARL),
        token(claims=claims_with(sub="carl")),
        token(claims=claims_with(sub="mallory")),
        token(claims=claims_with(tenant="other")),
    ],
)
def test_an_unknown_key_person_or_tenant_has_one_and_the_same_answer(forged: str) -> None:
    refused = refusal(forged)

    assert refused.reason == "unknown_key"
    assert refused.message == refusal(token(header_with(kid="nobody"))).message


@pytest.mark.guarantee("G09")
def test_a_person_of_another_tenant_is_nobody_here() -> None:
    foreign = {"bob": a_person("bob", tenant="other", keys=(a_key("bob-1", BOB),))}

    assert refusal(GOOD, foreign).reason == "unknown_key"
    assert refusal(GOOD, {}).reason == "unknown_key"


@pytest.mark.guarantee("G07")
@pytest.mark.parametrize(
    "forged",
    [
        token(key=EVE),
        token(key=CARL),
        token(header_with(kid="carl-1"), claims_with(sub="carl")),
        GOOD.rsplit(".", 1)[0] + "." + token(claims=claims_with(decision="reject")).rsplit(".", 1)[1],
        GOOD.rsplit(".", 1)[0] + "." + base64url(b"\0" * 64),
        GOOD.rsplit(".", 1)[0] + "." + base64url(b"\0" * 63),
        GOOD.rsplit(".", 1)[0] + "." + base64url(b"\xff" * 65),
    ],
)
def test_a_signature_by_somebody_else_or_over_something_else_is_refused(forged: str) -> None:
    assert refusal(forged).reason == "signature"


def test_a_signature_that_anybody_can_make_is_refused_whatever_key_the_directory_holds() -> None:
    """Under the neutral point this signature fits every message, as the library that verifies it agrees."""
    signed = GOOD.rsplit(".", 1)[0]
    Ed25519PublicKey.from_public_bytes(NEUTRAL).verify(SIGNED_BY_NOBODY, signed.encode())

    forged = f"{signed}.{base64url(SIGNED_BY_NOBODY)}"

    assert refusal(forged, directory(public_key=text(NEUTRAL))).reason == "signature"


def test_a_signature_has_one_form() -> None:
    """S + L is the other solution of the same equation; taking it would give one statement two spellings."""
    order = 2**252 + 27742317777372353535851937790883648493
    signed, signature = GOOD.rsplit(".", 1)
    raw = BOB.sign(signed.encode())
    assert base64url(raw) == signature
    other = raw[:32] + (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")

    assert refusal(f"{signed}.{base64url(other)}").reason == "signature"


def test_a_key_that_the_directory_holds_in_another_form_verifies_nothing() -> None:
    assert refusal(GOOD, directory(public_key=public_text(BOB) + "=")).reason == "signature"
    assert refusal(GOOD, directory(public_key="nonsense")).reason == "signature"


@pytest.mark.guarantee("G06")
@pytest.mark.parametrize(
    "changes",
    [
        {"revoked_at": NOW},
        {"revoked_at": NOW - timedelta(days=1)},
        {"not_after": NOW},
        {"not_before": NOW + timedelta(microseconds=1)},
    ],
)
def test_a_key_is_judged_by_our_time_whatever_time_the_statement_tells(changes: dict[str, Any]) -> None:
    """Whoever holds a revoked key can write any earlier time into a statement."""
    for issued in (SECONDS, SECONDS - 30 * 86_400):
        assert refusal(token(claims=claims_with(iat=issued)), directory(**changes)).reason == "key_not_valid"
