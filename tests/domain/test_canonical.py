"""The canonical form: the vectors of RFC 8785, and a refusal for all that has no one form."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.canonical import canonical_bytes, digest, sha256_hex
from countersign.domain.errors import InputRefused

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)

VECTORS: list[tuple[Any, str]] = [
    # RFC 8785, 3.2.2: string of the sample, and literals
    (
        {"string": '€$\u000f\nA\'B"\\\\"/', "literals": [None, True, False]},
        '{"literals":[null,true,false],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ),
    # RFC 8785, 3.2.3: keys sorted by UTF-16 code units, not by code points
    (
        {
            "€": "Euro Sign",
            "\r": "Carriage Return",
            "\ufb33": "Hebrew Letter Dalet With Dagesh",
            "1": "One",
            "😀": "Emoji: Grinning Face",
            "\u0080": "Control",
            "ö": "Latin Small Letter O With Diaeresis",
        },
        '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",'
        '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ),
    # the reference implementation's `structures`, `arrays` and `french`
    (
        {"1": {"f": {"f": "hi", "F": 5}, "\n": 56}, "10": {}, "": "empty", "a": {}, "111": [], "A": {}},
        '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[],"A":{},"a":{}}',
    ),
    ([56, {"d": True, "10": None, "1": []}], '[56,{"1":[],"10":null,"d":true}]'),
    ({"pêche": 1, "péché": 2, "peach": 3, "sin": 4}, '{"peach":3,"péché":2,"pêche":1,"sin":4}'),
    (2**53 - 1, "9007199254740991"),
    (-(2**53) + 1, "-9007199254740991"),
    ("\b\t\n\f\r\x00\x1f\x7f", '"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f"'),
    (("a", ("b",)), '["a",["b"]]'),
]


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(("value", "form"), VECTORS)
def test_the_form_of_rfc_8785(value: Any, form: str) -> None:
    assert canonical_bytes(value) == form.encode()
    assert digest(value) == "sha256:" + hashlib.sha256(form.encode()).hexdigest()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def endless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


REFUSED = [
    *(1.5, 0.0, -0.0, 1e300, float("nan"), float("inf"), [1, {"a": (2, 0.1)}]),
    *(2**53, -(2**53), 10**5_000, {"a": [2**64]}),
    *("\ud800", {"\udfff": 1}, ["\ude00\ud83d"]),
    *(b"bytes", {1, 2}, object(), {1: "a"}, {None: "a"}, {"a": {2: 1}}, {1.5: 1}, 1j),
    *(nested(100_000), endless()),
]


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize("value", REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_what_has_no_one_form_is_refused_in_one_line(value: Any) -> None:
    with pytest.raises(InputRefused, match="no canonical form") as refused:
        canonical_bytes(value)

    assert len(refused.value.message) < 300


@pytest.mark.guarantee("G14")
@given(PLAIN)
def test_the_form_is_the_same_for_the_same_content_and_reads_back(value: Any) -> None:
    form = canonical_bytes(value)

    assert json.loads(form) == value
    assert canonical_bytes(json.loads(form)) == form


@pytest.mark.guarantee("G14")
@given(PLAIN, PLAIN)
def test_two_values_have_one_form_only_if_they_are_the_same(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)

    assert (canonical_bytes(one) == canonical_bytes(other)) == same


def test_a_hash_says_its_kind() -> None:
    assert sha256_hex(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
