"""Signed values as compact JWS: one algorithm, explicit type, exact claims, audience (RFC 8725, G18).

Apart from the kinds of statements, because how strictly one is read must not depend on what it says.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from countersign.domain.audit import RestoreOrder
from countersign.domain.canonical import canonical_bytes
from countersign.domain.command import Command
from countersign.domain.decision import Statement
from countersign.domain.directory import Person
from countersign.domain.errors import InputRefused, StatementRefused
from countersign.domain.freeze import FreezeOrder
from countersign.domain.operation import RequestStatement
from countersign.domain.strict_json import parse
from countersign.domain.values import first_problem
from countersign.signing.keys import public_key

MAX_TOKEN = 8_000
_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+")
_REGISTERED = {"installation": "aud", "person": "sub", "issued_at": "iat", "expires_at": "exp", "id": "jti"}
"""Fields that are claims under the name that RFC 7519 has for them; all others keep their own."""
_KEY_ID = "key_id"
"""The field that is no claim: it stands in the header, as `kid`."""

Signed = TypeVar("Signed", Statement, RequestStatement, Command, FreezeOrder, RestoreOrder)


@dataclass(frozen=True)
class Kind(Generic[Signed]):
    """One kind of signed value; `typ` tells it from all others, so that none passes for another."""

    typ: str
    form: type[Signed]

    def claims(self) -> dict[str, str]:
        """The field of each claim; all of them must be there, and no other."""
        return {_REGISTERED.get(name, name): name for name in self.form.model_fields if name != _KEY_ID}


def sign(kind: Kind[Signed], value: Signed, key: Ed25519PrivateKey) -> str:
    """The compact JWS of a value."""
    fields = value.model_dump()
    claims = {claim: _claim(fields[name]) for claim, name in kind.claims().items()}
    headers = {"typ": kind.typ, "kid": value.key_id}
    return jwt.api_jws.encode(canonical_bytes(claims), key, algorithm="EdDSA", headers=headers)


def verify(
    kind: Kind[Signed], token: str, persons: Mapping[str, Person], *, installation: str, now: datetime
) -> tuple[Signed, Person]:
    """The value that `token` states and the person who signed it; its own times are not judged here.

    Args:
        kind: what it must be.
        token: compact JWS.
        persons: the directory of one tenant by person id.
        installation: the audience that it must name.
        now: by whose time the key is judged.

    Raises:
        StatementRefused: with the reason of the first check that failed.
    """
    header, claims = _read(token, kind.typ, installation)
    value = _value(kind, header, claims)
    return value, _verified_signer(token, value.tenant, value.person, value.key_id, persons, now)


def _claim(value: Any) -> Any:
    return int(value.timestamp()) if isinstance(value, datetime) else value


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


def _value(kind: Kind[Signed], header: dict[str, Any], claims: dict[str, Any]) -> Signed:
    named = kind.claims()
    if set(claims) != set(named):
        odd = ", ".join(sorted(repr(name[:40]) for name in set(claims) ^ set(named)))
        raise StatementRefused("claims", f"the statement lacks or adds claims: {odd}")
    fields = {name: _instant(claims[claim]) if name.endswith("_at") else claims[claim] for claim, name in named.items()}
    try:
        return kind.form.model_validate({**fields, _KEY_ID: header["kid"]})
    except ValidationError as error:
        raise StatementRefused("claims", f"the statement's claims are wrong: {first_problem(error)}") from None


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


def _instant(seconds: Any) -> datetime:
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise StatementRefused("claims", "the statement's times must be whole seconds")
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise StatementRefused("claims", "the statement's times are beyond any calendar") from None
