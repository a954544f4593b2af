"""Public keys that prove nothing: points that anybody can sign for, and a second key of one holder.

Apart from the tests because the curve, the directory and the reading of statements must each refuse them.
"""

from __future__ import annotations

import base64

from countersign.domain import curve

NEUTRAL = (1).to_bytes(32, "little")
ORDER_2 = (2**255 - 20).to_bytes(32, "little")
ORDER_4 = bytes(32)
ORDER_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
"""Points of small order; the last as in the list of libsodium and of RFC 7748's discussions."""
SIGNED_BY_NOBODY = NEUTRAL + bytes(32)
"""A signature that fits every message under the neutral point; made without any private key."""


def text(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def twin_of(public: str) -> str:
    """Another public key that the holder of this one can sign for too: it, with the point of order 2 added."""
    real, small = curve._decoded(base64.urlsafe_b64decode(public + "=")), curve._decoded(ORDER_2)
    assert real is not None
    assert small is not None
    x, y, z, _ = curve._added(real, small)
    inverse = pow(z, -1, curve._P)
    x, y = x * inverse % curve._P, y * inverse % curve._P
    return text((y | (x & 1) << 255).to_bytes(32, "little"))
