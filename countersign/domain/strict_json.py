"""JSON as it is accepted at every entrance: one meaning per byte string, or a refusal.

The standard parser takes duplicate keys (last wins), NaN, lone surrogates and NUL, and recurses until it breaks; two
readers could then see two different actions. PostgreSQL refuses some of these and SQLite does not, so they stop here.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from countersign.domain.errors import InputRefused

MAX_BYTES = 64 * 1024
MAX_DEPTH = 32
MAX_DIGITS = 400
"""Digits of an integer: more than any number has, and far below where Python itself refuses."""


def parse(data: bytes, *, where: str, max_bytes: int = MAX_BYTES) -> Any:
    """Parse UTF-8 JSON strictly.

    Args:
        data: the raw bytes.
        where: what is being read, for the message ("signal decide", "request file x.json").
        max_bytes: the size above which nothing is parsed.

    Raises:
        InputRefused: too large, too deep, not UTF-8, not JSON, or with a duplicate key, NaN, infinity, NUL or a lone
            surrogate.
    """
    if len(data) > max_bytes:
        raise InputRefused(f"{where}: {len(data)} bytes, at most {max_bytes} are allowed")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputRefused(f"{where}: not UTF-8 at byte {error.start}; send UTF-8") from None
    _check_depth(text, where)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_pairs,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_short_integer,
        )
    except (json.JSONDecodeError, _Refused) as error:
        raise InputRefused(f"{where}: not acceptable JSON: {error}") from None
    check_text(value, where)
    return value


def check_text(value: Any, where: str) -> None:
    """Refuse NUL and lone surrogates in any string of `value`, keys included (iterative, so depth does no harm)."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            _check_string(item, where)
        elif isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)


_SURROGATE = re.compile("[\ud800-\udfff]")


class _Refused(Exception):
    pass


def _check_string(text: str, where: str) -> None:
    if "\x00" in text:
        raise InputRefused(f"{where}: a text contains NUL (\\u0000); remove it")
    if _SURROGATE.search(text):
        raise InputRefused(f"{where}: a text contains a lone surrogate; send well-formed Unicode")


def _check_depth(text: str, where: str) -> None:
    depth, in_string, escaped = 0, False, False
    for character in text:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise InputRefused(f"{where}: nested deeper than {MAX_DEPTH} levels")
        elif character in "]}":
            depth -= 1


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _Refused(f"the key {key[:80]!r} stands twice in one object")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise _Refused(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Refused(f"{text[:40]} is beyond any number")
    return number


def _short_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _Refused(f"an integer of {len(text)} digits; at most {MAX_DIGITS} are allowed")
    return int(text)
