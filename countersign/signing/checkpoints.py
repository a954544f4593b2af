"""Checkpoints of audit chains as compact JWS, `typ: checkpoint+jwt`, signed by the installation's own key.

Apart from statements because the signer is the installation and no person, and the type keeps one from passing for
the other.
"""

from __future__ import annotations

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import ValidationError

from countersign.domain.audit import Checkpoint
from countersign.domain.canonical import canonical_bytes
from countersign.domain.errors import InputRefused, StatementRefused
from countersign.domain.strict_json import parse

CHECKPOINT = "checkpoint+jwt"


def sign_checkpoint(checkpoint: Checkpoint, key: Ed25519PrivateKey) -> str:
    """The compact JWS of a checkpoint."""
    payload = canonical_bytes(checkpoint.model_dump(mode="json"))
    return jwt.api_jws.encode(payload, key, algorithm="EdDSA", headers={"typ": CHECKPOINT})


def verify_checkpoint(token: str, key: Ed25519PublicKey) -> Checkpoint:
    """The checkpoint that `token` states.

    Raises:
        StatementRefused: `malformed`, `type`, `signature` or `claims`, whichever check fails first.
    """
    try:
        header = jwt.get_unverified_header(token)
        if header != {"alg": "EdDSA", "typ": CHECKPOINT}:
            raise StatementRefused("type", f"the header must be exactly alg EdDSA and typ {CHECKPOINT!r}")
        claims = parse(jwt.api_jws.decode(token, key, algorithms=["EdDSA"]), where="checkpoint")
        return Checkpoint.model_validate(claims)
    except jwt.InvalidSignatureError:
        raise StatementRefused(
            "signature", "the signature is not by this installation's key over this content"
        ) from None
    except ValidationError:
        raise StatementRefused("claims", "the claims are not installation, tenant, count and head") from None
    except (jwt.PyJWTError, InputRefused, ValueError) as error:
        raise StatementRefused("malformed", f"it is no compact JWS: {error}") from None
