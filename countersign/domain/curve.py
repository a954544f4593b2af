"""Whether 32 bytes are an Ed25519 public key that only its holder can sign for. Pure.

Apart because the libraries that verify signatures take any bytes of the right length: with the neutral point a
signature without any private key verifies, and a point of small order added to a key makes a second key of the same
holder, who could then vote as two persons (G04). Formulas: RFC 8032, section 5.1.
"""

from __future__ import annotations

import base64
from functools import lru_cache

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT_OF_MINUS_1 = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]
_NEUTRAL: _Point = (0, 1, 1, 0)


@lru_cache(maxsize=4096)
def is_public_key(text: str) -> bool:
    """Whether `text` is 32 bytes in base64url without padding that encode, in the one canonical way, a point of the
    prime-order subgroup other than the neutral one."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except ValueError:
        return False
    if len(data) != 32 or base64.urlsafe_b64encode(data).decode().rstrip("=") != text:
        return False
    point = _decoded(data)
    return point is not None and not _is_neutral(point) and _is_neutral(_times(_ORDER, point))


def _decoded(data: bytes) -> _Point | None:
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT_OF_MINUS_1 % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    x = _P - x if x & 1 != sign else x
    return x, y, 1, x * y % _P


def _added(p: _Point, q: _Point) -> _Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % _P, (p[1] + p[0]) * (q[1] + q[0]) % _P
    c, d = 2 * p[3] * q[3] * _D % _P, 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(factor: int, point: _Point) -> _Point:
    total = _NEUTRAL
    while factor:
        if factor & 1:
            total = _added(total, point)
        point, factor = _added(point, point), factor >> 1
    return total


def _is_neutral(point: _Point) -> bool:
    return point[0] % _P == 0 and (point[1] - point[2]) % _P == 0
