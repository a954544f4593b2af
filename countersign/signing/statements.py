"""Statements as compact JWS: one algorithm, explicit type, audience and time limits (RFC 8725, G18).

Two kinds, told apart by `typ` so that one never passes for the other: `decision+jwt` and `request+jwt`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from countersign.domain.canonical import canonical_bytes
from countersign.domain.decision import Statement
from countersign.domain.directory import Person
from countersign.domain.errors import InputRefused, StatementRefused
from countersign.domain.operation import RequestStatement
from countersign.domain.strict_json import parse
from countersign.domain.values import first_problem
from countersign.signing.keys import public_key

DECISION = "decision+jwt"
REQUEST = "request+jwt"
MAX_TOKEN = 8_000
LEEWAY = timedelta(seconds=60)
"""How far a signer's clock may be ahead of ours."""
_COMMON_CLAIMS = frozenset({"aud", "sub", "tenant", "operation", "iat", "jti"})
_REQUEST_CLAIMS = _COMMON_CLAIMS | {"request_hash"}
_APPROVAL_CLAIMS = frozenset(
    {"approval_id", "approval_version", "action_hash", "decision", "edited_action", "comment_hash"}
)
_DECISION_CLAIMS = _COMMON_CLAIMS | _APPROVAL_CLAIMS | {"exp"}
_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+")


def sign_decision(statement: Statement, key: Ed25519PrivateKey) -> str:
    """The compact JWS of a decision."""
    claims = {
        **_common(statement),
        "exp": _seconds(statement.expires_at),
        "approval_id": statement.approval_id,
        "approval_version": statement.approval_version,
        "action_hash": statement.action_hash,
        "decision": statement.decision,
        "edited_action": statement.edited_action,
        "comment_hash": statement.comment_hash,
    }
    return _sign(claims, DECISION, statement.key_id, key)


def sign_request(statement: RequestStatement, key: Ed25519PrivateKey) -> str:
    """The compact JWS of a request to start an operation."""
    return _sign({**_common(statement), "request_hash": statement.request_hash}, REQUEST, statement.key_id, key)


def verify_decision(
    token: str, persons: Mapping[str, Person], *, installation: str, now: datetime
) -> tuple[Statement, Person]:
    """The decision that `token` states and the person who signed it.

    Args:
        token: compact JWS.
        persons: the directory of the one tenant that the run belongs to, by person id.
        installation: the audience that it must name.
        now: workflow time in the run, wall time in the gateway.

    Raises:
        StatementRefused: with the reason of the first check that failed.
    """
    header, claims = _read(token, DECISION, installation)
    statement = _decision(header, claims)
    signer = _verified_signer(token, statement.tenant, statement.person, statement.key_id, persons, now)
    _check_issued(statement.issued_at, now)
    if now >= statement.expires_at:
        expired = f"the statement was good until {statement.expires_at.isoformat()}; sign a new one"
        raise StatementRefused("expired", expired)
    return statement, signer


def verify_request(
    token: str, persons: Mapping[str, Person], *, installation: str, now: datetime
) -> tuple[RequestStatement, Person]:
    """The request that `token` states and the person who signed it; StatementRefused otherwise."""
    header, claims = _read(token, REQUEST, installation)
    statement = _request(header, claims)
    signer = _verified_signer(token, statement.tenant, statement.person, statement.key_id, persons, now)
    _check_issued(statement.issued_at, now)
    return statement, signer


def _common(statement: Statement | RequestStatement) -> dict[str, Any]:
    return {
        "aud": statement.installation,
        "sub": statement.person,
        "tenant": statement.tenant,
        "operation": statement.operation,
        "iat": _seconds(statement.issued_at),
        "jti": statement.id,
    }


def _sign(claims: dict[str, Any], typ: str, key_id: str, key: Ed25519PrivateKey) -> str:
    return jwt.api_jws.encode(canonical_bytes(claims), key, algorithm="EdDSA", headers={"typ": typ, "kid": key_id})


def _read(token: str, typ: str, installation: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims before the signature is checked, so that the key can be chosen; nothing is trusted yet."""
    if len(token) > MAX_TOKEN:
        found = f"the statement has {len(token)} characters, at most {MAX_TOKEN} are allowed"
        raise StatementRefused("too_large", found)
    header, claims = _parts(token)
    if header.get("alg") != "EdDSA":
        found = str(header.get("alg"))[:60]
        raise StatementRefused("algorithm", f"the statement's algorithm is {found!r}; only EdDSA is accepted")
    if header.get("typ") != typ or set(header) != {"alg", "typ", "kid"}:
        raise StatementRefused("type", f"the statement's header must be exactly alg, kid and typ {typ!r}")
    if claims.get("aud") != installation:
        raise StatementRefused("audience", f"the statement is not for this installation ({installation})")
    return header, claims


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    form = _COMPACT.fullmatch(token)
    if form is None:
        raise StatementRefused("malformed", "the statement is no compact JWS: three base64url parts with dots between")
    try:
        header, claims = (parse(_decoded(part), where="statement") for part in form.groups())
    except (InputRefused, ValueError) as error:
        raise StatementRefused("malformed", f"the statement is no compact JWS: {error}") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise StatementRefused("malformed", "the statement's header and claims must be JSON objects")
    return header, claims


def _decoded(part: str) -> bytes:
    data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if base64.urlsafe_b64encode(data).decode().rstrip("=") != part:
        # Unused bits may be set in any way: the same bytes would then have several spellings.
        raise InputRefused("a part is not in plain base64url")
    return data


def _decision(header: dict[str, Any], claims: dict[str, Any]) -> Statement:
    _check_claims(claims, _DECISION_CLAIMS)
    try:
        return Statement(
            installation=claims["aud"],
            person=claims["sub"],
            key_id=header["kid"],
            tenant=claims["tenant"],
            operation=claims["operation"],
            approval_id=claims["approval_id"],
            approval_version=claims["approval_version"],
            action_hash=claims["action_hash"],
            decision=claims["decision"],
            edited_action=claims["edited_action"],
            comment_hash=claims["comment_hash"],
            issued_at=_instant(claims["iat"]),
            expires_at=_instant(claims["exp"]),
            id=claims["jti"],
        )
    except ValidationError as error:
        raise StatementRefused("claims", f"the statement's claims are wrong: {first_problem(error)}") from None


def _request(header: dict[str, Any], claims: dict[str, Any]) -> RequestStatement:
    _check_claims(claims, _REQUEST_CLAIMS)
    try:
        return RequestStatement(
            installation=claims["aud"],
            person=claims["sub"],
            key_id=header["kid"],
            tenant=claims["tenant"],
            operation=claims["operation"],
            request_hash=claims["request_hash"],
            issued_at=_instant(claims["iat"]),
            id=claims["jti"],
        )
    except ValidationError as error:
        raise StatementRefused("claims", f"the statement's claims are wrong: {first_problem(error)}") from None


def _check_claims(claims: dict[str, Any], wanted: frozenset[str]) -> None:
    if set(claims) != wanted:
        odd = ", ".join(sorted(repr(name[:40]) for name in set(claims) ^ wanted))
        raise StatementRefused("claims", f"the statement lacks or adds claims: {odd}")


def _verified_signer(
    token: str, tenant: str, person: str, key_id: str, persons: Mapping[str, Person], now: datetime
) -> Person:
    signer = persons.get(person)
    key = signer.key(key_id) if signer is not None and signer.tenant == tenant else None
    if signer is None or key is None:
        # One answer for an unknown person, an unknown key and another tenant's person (G09).
        raise StatementRefused("unknown_key", "the statement's key belongs to no person of this tenant")
    try:
        jwt.api_jws.decode(token, public_key(key.public_key), algorithms=["EdDSA"])
    except (jwt.PyJWTError, InputRefused):
        raise StatementRefused("signature", "the statement's signature does not fit its content and key") from None
    if not key.good_at(now):
        # By the verifier's time, not the statement's: whoever holds a revoked key can write any earlier time into it.
        raise StatementRefused(
            "key_not_valid", f"key {key_id} is not valid now; it is not yet good, expired or revoked"
        )
    return signer


def _check_issued(issued_at: datetime, now: datetime) -> None:
    if issued_at > now + LEEWAY:
        raise StatementRefused("not_yet", "the statement is from the future; check the signing machine's clock")


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _instant(seconds: Any) -> datetime:
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise StatementRefused("claims", "the statement's times must be whole seconds")
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise StatementRefused("claims", "the statement's times are beyond any calendar") from None
