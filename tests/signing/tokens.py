"""Signed statements, whole and broken: tokens put together by hand, so that a test can send what no signer would.

Apart from the tests because statements and the messages that carry them are attacked in the same ways.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.directory import Key, Person
from countersign.domain.errors import StatementRefused
from countersign.signing.keys import public_text
from countersign.signing.statements import verify_decision
from tests.domain.samples import NOW, a_person, a_proposal

BOB, CARL, EVE = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2, 3))
SECONDS = int(NOW.timestamp())
PROPOSAL = a_proposal()

HEADER: dict[str, Any] = {"alg": "EdDSA", "kid": "bob-1", "typ": "decision+jwt"}
CLAIMS: dict[str, Any] = {
    "aud": "local",
    "sub": "bob",
    "tenant": "acme",
    "operation": "report-1",
    "iat": SECONDS,
    "jti": "statement-000001",
    "exp": SECONDS + 4 * 86_400,
    "approval_id": "apr-1",
    "approval_version": 2,
    "action_hash": PROPOSAL.action_hash,
    "decision": "approve",
    "edited_action": "",
    "comment_hash": "",
}
REQUEST_HEADER = {**HEADER, "typ": "request+jwt"}
REQUEST_CLAIMS: dict[str, Any] = {
    **{name: CLAIMS[name] for name in ("aud", "sub", "tenant", "operation", "iat", "jti")},
    "request_hash": PROPOSAL.action_hash,
}


def a_key(name: str, private: Ed25519PrivateKey, **changes: Any) -> Key:
    """A registered key, good since yesterday."""
    before = NOW - timedelta(days=1)
    return Key.model_validate({"id": name, "public_key": public_text(private), "not_before": before, **changes})


def directory(**changes: Any) -> dict[str, Person]:
    """Bob and Carl of `acme`; `changes` are those of Bob's key."""
    return {
        "bob": a_person("bob", keys=(a_key("bob-1", BOB, **changes),)),
        "carl": a_person("carl", keys=(a_key("carl-1", CARL),)),
    }


def base64url(data: bytes) -> str:
    """Without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def raw_token(header: bytes, payload: bytes, key: Ed25519PrivateKey = BOB) -> str:
    """A compact JWS over any bytes, with a signature that fits them."""
    signed = f"{base64url(header)}.{base64url(payload)}"
    return f"{signed}.{base64url(key.sign(signed.encode()))}"


def token(header: Any = None, claims: Any = None, key: Ed25519PrivateKey = BOB) -> str:
    """A compact JWS over JSON values."""
    parts = (HEADER if header is None else header, CLAIMS if claims is None else claims)
    return raw_token(json.dumps(parts[0]).encode(), json.dumps(parts[1]).encode(), key)


def header_with(**changes: Any) -> dict[str, Any]:
    """Bob's header with changed or added fields."""
    return {**HEADER, **changes}


def claims_with(**changes: Any) -> dict[str, Any]:
    """Bob's claims with changed or added fields."""
    return {**CLAIMS, **changes}


def refusal(forged: str, persons: dict[str, Person] | None = None, now: datetime = NOW) -> StatementRefused:
    """The refusal of a decision, in one line."""
    with pytest.raises(StatementRefused) as refused:
        verify_decision(forged, directory() if persons is None else persons, installation="local", now=now)
    assert len(refused.value.message.splitlines()) == 1
    return refused.value
