"""One byte form per value (RFC 8785) and its SHA-256; everything that is signed or compared goes through here."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785

from countersign.domain.errors import InputRefused
from countersign.domain.values import Sha256


def canonical_bytes(value: Any) -> bytes:
    """RFC 8785 canonical JSON of plain data (str, int, bool, None, dict, list).

    Raises:
        InputRefused: for what has no one canonical form: floats (money is text or minor units), integers beyond
            2^53 - 1, lone surrogates, any other type, and nesting without end.
    """
    try:
        _refuse_floats(value)
        return rfc8785.dumps(value)
    except RecursionError:
        raise InputRefused("value has no canonical form: it is nested too deeply") from None
    except ValueError as error:
        # Also what Python itself says of an integer that is too long to print, or of a lone surrogate in a key.
        raise InputRefused(f"value has no canonical form: {str(error)[:200]}") from None


def sha256_hex(data: bytes) -> Sha256:
    """`sha256:` and the hex digest of `data`."""
    return Sha256("sha256:" + hashlib.sha256(data).hexdigest())


def digest(value: Any) -> Sha256:
    """The SHA-256 of the canonical form of `value`."""
    return sha256_hex(canonical_bytes(value))


def _refuse_floats(value: Any) -> None:
    if isinstance(value, float):
        raise InputRefused(f"value has no canonical form: {value!r} is a float; use text or integer minor units")
    if isinstance(value, dict):
        for item in value.values():
            _refuse_floats(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_floats(item)
