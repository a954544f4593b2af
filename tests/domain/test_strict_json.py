"""JSON at the door: one meaning per byte string, or a refusal in one line."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.errors import InputRefused
from countersign.domain.strict_json import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, check_text, parse

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)

REFUSED = [
    # bytes, what the refusal says
    (b"", "not acceptable JSON"),
    (b"   ", "not acceptable JSON"),
    (b"{", "not acceptable JSON"),
    (b"[1,]", "not acceptable JSON"),
    (b"{'a': 1}", "not acceptable JSON"),
    (b"{a: 1}", "not acceptable JSON"),
    (b"// note\n1", "not acceptable JSON"),
    (b"1 2", "not acceptable JSON"),
    (b'{"a": 1}{"a": 1}', "not acceptable JSON"),
    (b'{"a": 1}\0', "not acceptable JSON"),
    (b"]", "not acceptable JSON"),
    (b'"a\nb"', "not acceptable JSON"),
    (b"01", "not acceptable JSON"),
    (b"+1", "not acceptable JSON"),
    (b"1.", "not acceptable JSON"),
    (b".5", "not acceptable JSON"),
    (b"0x10", "not acceptable JSON"),
    (b"TRUE", "not acceptable JSON"),
    (b"undefined", "not acceptable JSON"),
    (b'"\\x41"', "not acceptable JSON"),
    (b'"\\u12"', "not acceptable JSON"),
    (b"\xef\xbb\xbf{}", "BOM"),
    (b'{"a": 1, "a": 1}', "the key 'a' stands twice"),
    (b'{"a": 1, "\\u0061": 2}', "the key 'a' stands twice"),
    (b'[{"x": {"a": 1, "b": 2, "a": 3}}]', "the key 'a' stands twice"),
    (b'{"": 1, "": 1}', "the key '' stands twice"),
    (b"NaN", "NaN is not a number"),
    (b"[Infinity]", "Infinity is not a number"),
    (b'{"a": -Infinity}', "-Infinity is not a number"),
    (b"1e999", "beyond any number"),
    (b"-1e999", "beyond any number"),
    (b'"\\ud800"', "lone surrogate"),
    (b'"\\udc00\\ud800"', "lone surrogate"),
    (b'{"\\udfff": 1}', "lone surrogate"),
    (b'"\xed\xa0\x80"', "not UTF-8 at byte 1"),
    (b'"\xc0\x80"', "not UTF-8 at byte 1"),
    (b'"\xff"', "not UTF-8 at byte 1"),
    ('{"a": "é"}'.encode("latin-1"), "not UTF-8"),
    ('"a"'.encode("utf-16"), "not UTF-8"),
    ('"a"'.encode("utf-16-le"), "not acceptable JSON"),
    (b'"a\\u0000b"', "NUL"),
    (b'{"\\u0000": 1}', "NUL"),
    (b'"a\0b"', "not acceptable JSON"),
    (b"9" * (MAX_DIGITS + 1), "at most 400 are allowed"),
    (b"-" + b"9" * 5_000, "an integer of 5001 digits"),
    (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested deeper than 32"),
    (b'{"a":' * 33 + b"1" + b"}" * 33, "nested deeper than 32"),
    (b"[" * 5_000 + b"]" * 5_000, "nested deeper than 32"),
    (b'["\\n", ' + b"[" * 32 + b"]" * 33, "nested deeper than 32"),
    (b'["\\\\", ' + b"[" * 32 + b"]" * 33, "nested deeper than 32"),
    (b"[" * 60_000, "nested deeper than 32"),
    (b'{"a":' * 5_000, "nested deeper than 32"),
    (b'"' + b"x" * (MAX_BYTES - 1) + b'"', "at most 65536 are allowed"),
    (b" " * 10_000_000, "10000000 bytes"),
]


@pytest.mark.parametrize(("data", "says"), REFUSED, ids=[f"{n}-{data[:12]!r}" for n, (data, _) in enumerate(REFUSED)])
def test_what_two_readers_could_read_differently_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(InputRefused) as refused:
        parse(data, where="signal decide")

    assert refused.value.message.startswith("signal decide: ")
    assert says in refused.value.message
    assert len(refused.value.message.splitlines()) == 1
    assert len(refused.value.message) < 400


ACCEPTED: list[tuple[bytes, Any]] = [
    (b" { } ", {}),
    (b'{"a": {"a": {"a": 1}}}', {"a": {"a": {"a": 1}}}),
    (b'[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
    (b'{"a": 1, "A": 2, " a": 3}', {"a": 1, "A": 2, " a": 3}),
    (b"9007199254740993", 9007199254740993),
    (b"9" * MAX_DIGITS, int("9" * MAX_DIGITS)),
    (b"1e3", 1000.0),
    (b"-0.5", -0.5),
    (b'"\\ud83d\\ude00"', "\U0001f600"),
    ('"😀 é 二"'.encode(), "😀 é 二"),
    (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
    (b'"' + b"[{" * 100 + b'"', "[{" * 100),
    (b'"\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["', '"' + "[" * 35),
    (b'["\\\\", [[]]]', ["\\", [[]]]),
    (b"[" + b"[]," * 5_000 + b"[]]", [[]] * 5_001),
    (b'"' + b"x" * (MAX_BYTES - 2) + b'"', "x" * (MAX_BYTES - 2)),
]


@pytest.mark.parametrize(("data", "value"), ACCEPTED, ids=[f"{n}-{d[:12]!r}" for n, (d, _) in enumerate(ACCEPTED)])
def test_what_has_one_meaning_is_read(data: bytes, value: Any) -> None:
    assert parse(data, where="x") == (json.loads(data) if value is None else value)


@given(VALUES)
def test_every_json_value_comes_back(value: Any) -> None:
    for ascii_only in (True, False):
        assert parse(json.dumps(value, ensure_ascii=ascii_only).encode(), where="x") == value


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused_and_nothing_else(data: bytes) -> None:
    try:
        value = parse(data, where="x")
    except InputRefused:
        return
    assert json.loads(data) == value


@given(st.text(st.sampled_from(list('{}[]",:\\ud8001aNe+-. \n\0')), max_size=60))
def test_anything_that_looks_like_json_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InputRefused):
        parse(text.encode(), where="x")


def test_a_caller_may_allow_another_size() -> None:
    with pytest.raises(InputRefused, match="3 bytes, at most 2 are allowed"):
        parse(b"123", where="x", max_bytes=2)


@pytest.mark.parametrize("value", ["\0", ["a", ("b", "\ud800")], {"k": {"\0": 1}}])
def test_texts_are_checked_wherever_they_lie(value: Any) -> None:
    with pytest.raises(InputRefused):
        check_text(value, "x")


def test_depth_does_not_harm_the_check_of_texts() -> None:
    value: Any = "fine"
    for _ in range(100_000):
        value = [value]

    check_text(value, "x")
