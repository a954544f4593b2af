"""Ed25519 key pairs: made, kept in files that only their owner can read, and written as text for the directory."""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from countersign.domain.curve import is_public_key
from countersign.domain.errors import Conflict, InputRefused, NotFound, Unavailable


def public_text(key: Ed25519PrivateKey | Ed25519PublicKey) -> str:
    """The public key's 32 raw bytes as base64url without padding."""
    public = key.public_key() if isinstance(key, Ed25519PrivateKey) else key
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def public_key(text: str) -> Ed25519PublicKey:
    """The inverse of `public_text`; InputRefused for anything else, other spellings and weak points included."""
    if not is_public_key(text):
        raise InputRefused(f"public key {text[:60]!r} is not the plain base64url of an Ed25519 key of its holder's own")
    return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(text + "="))


def new_key_file(path: Path) -> Ed25519PrivateKey:
    """Make a key pair and write the private half to `path`, readable by its owner only.

    Raises:
        Conflict: the file is there already.
        Unavailable: it cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Linked when it is whole: a reader never meets half a key, and of two makers one succeeds.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-") as file:
            file.write(_pem(key))
            file.flush()
            os.link(file.name, path)
    except FileExistsError:
        raise Conflict(f"key file {path} exists; choose another name or remove it first") from None
    except OSError as error:
        raise Unavailable(f"key file {path} cannot be written: {error.strerror}; choose another folder") from None
    return key


def read_key_file(path: Path) -> Ed25519PrivateKey:
    """The private key in `path`; NotFound or InputRefused in plain words."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"key file {path} is not there; make one with: .venv/bin/python starter.py keys new") from None
    except OSError as error:
        raise InputRefused(f"key file {path} cannot be read: {error.strerror}") from None
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputRefused(f"key file {path} holds no private key in PEM form") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputRefused(f"key file {path} holds another kind of key; Ed25519 is needed")
    return key


def _pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
