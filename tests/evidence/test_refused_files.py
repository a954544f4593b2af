"""What is refused, and that the refusal says where: row, line, column and value."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.errors import DataRefused
from countersign.domain.report import DatasetSchema
from countersign.evidence.dataset import Dataset
from tests.evidence.opening import opened, rows

STRUCTURE = [
    ("empty", b"", "empty"),
    ("only a byte order mark", b"\xef\xbb\xbf", "empty"),
    ("header only", b"a,b\n", "no records"),
    ("header only without line end", b"a,b", "no records"),
    ("short record", b"a,b\n1,2\n3\n", "row 2 (line 3) has 1 fields"),
    ("long record", b"a,b\n1,2,3\n", "row 1 (line 2) has 3 fields"),
    ("trailing delimiter", b"a,b\n1,2,\n", "row 1 (line 2) has 3 fields"),
    ("short after quoted newline", b'a,b\n"x\ny",2\n3\n', "row 2 (line 4) has 1 fields"),
    ("empty line", b"a,b\n1,2\n\n3,4\n", "line 3 is empty"),
    ("empty line at the end", b"a,b\n1,2\n\n", "line 3 is empty"),
    ("same name twice", b"a,a\n1,2\n", "'a' twice"),
    ("names that differ by case", b"Amount,amount\n1,2\n", "'amount' twice"),
    ("no name", b"a,\n1,2\n", "column 2 has no name"),
    ("blank name", b"a,  \n1,2\n", "column 2 has no name"),
    ("NUL byte", b"a,b\n1,2\n3,\x00\n", "line 3 holds a NUL byte"),
    ("UTF-16", "a,b\n1,2\n".encode("utf-16"), "UTF-16"),
    ("UTF-16 without mark", "a,b\n1,2\n".encode("utf-16-le"), "NUL byte"),
    ("latin-1", "a,b\n1,2\nM\u00fcnchen,4\n".encode("latin-1"), "line 3 is not UTF-8 (byte 0xfc)"),
    ("cut character", "a\nM\u00fc".encode()[:-1], "cut off"),
    ("surrogate bytes", b"a\n\xed\xa0\x80\n", "not UTF-8"),
    ("overlong bytes", b"a\n\xc0\xaf\n", "not UTF-8"),
    ("text after quote", b'a,b\n1,"x"y\n', "line 2 goes on after a closing quote"),
    ("quote in the middle", b'a,b\n1,2\n3,x"y\n', "line 3 has a quote inside"),
    ("doubled quote outside", b'a,b\n1,x""y\n', "line 2 has a quote inside"),
    ("space before quote", b'a,b\n1, "x"\n', "line 2 has a quote inside"),
    ("open quote", b'a,b\n1,2\n3,"x\n4,5\n', "line 3 is never closed"),
    ("backslash quote", b'a,b\n1,"x\\"y"\n', "line 2 goes on"),
    ("lone carriage return", b"a\n1\r2\n3\n", "line 2 ends unlike"),
    ("old line ends", b"a\r1\r2\r", "line 1 ends unlike"),
    ("mixed line ends", b"a,b\r\n1,2\n3,4\r\n", "line 2 ends unlike"),
    ("carriage return beside quotes", b'a,b\n"x"\r,2\n', "after a closing quote"),
]


@pytest.mark.parametrize(("data", "words"), [pytest.param(*case, id=name) for name, *case in STRUCTURE])
def test_a_broken_file_is_refused_with_its_place(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(DataRefused) as refusal:
        rows(tmp_path, data)
    assert words in refusal.value.message
    assert "\n" not in refusal.value.message


VALUES = [
    ("thousands", 'a,b\n1,2\n3,"1,200.50"\n', "row 2 (line 3), column 'b': '1,200.50'", 'thousands: ","'),
    ("decimal comma", 'a\n"1,5"\n"2,25"\n', "row 1 (line 2), column 'a': '1,5'", 'decimal: ","'),
    ("european", 'a\n"1.234,50"\n', "'1.234,50'", 'thousands: "."'),
    ("apostrophe", "a\n1'000\n", '"1\'000"', "thousands"),
    ("parentheses", "a\n5\n(12.50)\n", "row 2 (line 3), column 'a': '(12.50)'", "parentheses: true"),
    ("dollar", "a\n$5\n", "'$5'", "currency"),
    ("negative dollar", "a\n-$5\n", "'-$5'", "currency"),
    ("code", "a\nEUR 5\n", "'EUR 5'", "currency"),
    ("per cent", "a\n35%\n4 %\n", "'35%'", "percent: true"),
    ("unicode minus", "a\n5\n\u22125\n", "row 2 (line 3), column 'a': '\u22125'", "unicode_minus"),
    ("accounting minus", "a\n5\n12.50-\n", "'12.50-'", "in front"),
    ("plus", "a\n1\n+5\n", "'+5'", "text"),
    ("exponent", "a\n1\n1e5\n", "'1e5'", "text"),
    ("no leading digit", "a\n1\n.5\n", "'.5'", "text"),
    ("no trailing digit", "a\n1\n5.\n", "'5.'", "text"),
    ("space", "a\n1\n 5\n", "' 5'", "text"),
    ("underscore", "a\n1\n1_000\n", "'1_000'", "thousands"),
    ("NaN among numbers", "a\n1\n2\nNaN\n", "row 3 (line 4), column 'a': 'NaN'", "text"),
    ("infinity among numbers", "a\n1\ninf\n", "'inf'", "text"),
    ("word among numbers", "a\n1\n2\nn/a\n", "'n/a'", "text"),
    ("hexadecimal", "a\n1\n2\n0x1F\n", "'0x1F'", "text"),
    ("full-width digits", "a\n1\n\uff11\uff12\n", "'\uff11\uff12'", "text"),
    ("39 digits", f"a\n1\n{'9' * 39}\n", "row 2 (line 3), column 'a'", "38 digits"),
    ("digits on both sides", f"a\n{'9' * 30}\n0.{'1' * 9}\n", "column 'a'", "38 digits"),
    ("impossible date", "a\n2026-01-31\n2026-02-30\n", "row 2 (line 3), column 'a': '2026-02-30'", "text"),
    ("month 13", "a\n2026-13-01\n", "'2026-13-01'", "text"),
    ("undeclared order", "a\n03/04/2026\n", "'03/04/2026'", "date_order"),
    ("two-digit year", "a\n03.04.26\n", "'03.04.26'", "text"),
    ("mixed dates", "a\n2026-01-02\n03/04/2026\n", "row 2 (line 3), column 'a': '03/04/2026'", "date_order"),
    ("short date", "a\n2026-1-2\n", "'2026-1-2'", "text"),
]


@pytest.mark.parametrize(("data", "place", "way_out"), [pytest.param(*case, id=name) for name, *case in VALUES])
def test_an_undeclared_format_is_refused_and_says_what_to_declare(
    tmp_path: Path, data: str, place: str, way_out: str
) -> None:
    with pytest.raises(DataRefused) as refusal:
        rows(tmp_path, data)
    assert place in refusal.value.message
    assert way_out in refusal.value.message


def number(**form: Any) -> dict[str, Any]:
    """Column `a` as a number in that format."""
    return {"columns": {"a": {"type": "number", "number": form}}}


def date(order: str) -> dict[str, Any]:
    """Column `a` as a date in that order."""
    return {"columns": {"a": {"type": "date", "date_order": order}}}


DECLARED = [
    ("two-digit group", 'a\n"1,23,456"\n', number(thousands=","), "'1,23,456'"),
    ("four-digit group", 'a\n"1,2345"\n', number(thousands=","), "'1,2345'"),
    ("long first group", 'a\n"1234,567"\n', number(thousands=","), "'1234,567'"),
    ("group after the decimal point", 'a\n"1.234,567"\n', number(thousands=","), "'1.234,567'"),
    ("decimal point where comma is declared", "a\n1.5\n", number(decimal=","), "'1.5'"),
    ("sign inside parentheses", "a\n(-5)\n", number(parentheses=True), "'(-5)'"),
    ("open parenthesis", "a\n(5\n", number(parentheses=True), "'(5'"),
    ("another currency", "a\n$5\n\u20ac6\n", number(currency="$"), "row 2 (line 3), column 'a': '\u20ac6'"),
    ("currency on both sides", "a\n$5$\n", number(currency="$"), "'$5$'"),
    ("two signs", "a\n-$-5\n", number(currency="$"), "'-$-5'"),
    ("per cent missing", "a\n5%\n6\n", number(percent=True), "row 2 (line 3), column 'a': '6'"),
    ("permille", "a\n5\u2030\n", number(percent=True), "'5\u2030'"),
    ("two minus signs", "a\n-\u22125\n", number(unicode_minus=True), "'-\u22125'"),
    ("word", "a\nunknown\n", number(), "'unknown'"),
    ("31 April", "a\n31/04/2026\n", date("dmy"), "'31/04/2026'"),
    ("month first as day first", "a\n01/13/2026\n", date("dmy"), "'01/13/2026'"),
    ("day first as month first", "a\n13/01/2026\n", date("mdy"), "'13/01/2026'"),
    ("mixed separators", "a\n01/02.2026\n", date("dmy"), "'01/02.2026'"),
    ("iso where day first is declared", "a\n2026-01-02\n", date("dmy"), "'2026-01-02'"),
    ("no leap year", "a\n2025-02-29\n", date("iso"), "'2025-02-29'"),
    ("year zero", "a\n0000-01-01\n", date("iso"), "'0000-01-01'"),
]


@pytest.mark.parametrize(("data", "schema", "place"), [pytest.param(*case, id=name) for name, *case in DECLARED])
def test_a_value_outside_its_declared_format_is_refused(
    tmp_path: Path, data: str, schema: dict[str, Any], place: str
) -> None:
    with pytest.raises(DataRefused) as refusal:
        rows(tmp_path, data, schema)
    assert place in refusal.value.message


MONEY = {"type": "number", "currency_column": "c"}
SCHEMAS = [
    ("column not there", {"columns": {"x": {"type": "text"}}}, "'x'"),
    ("same marks", number(thousands=",", decimal=","), "thousands and decimal"),
    ("a digit as currency", number(currency="5"), "currency '5'"),
    ("a minus as currency", number(currency="-"), "currency '-'"),
    ("text with a currency", {"columns": {"a": {"type": "text", "currency": "EUR"}}}, "type number"),
    ("two currencies", {"columns": {"a": MONEY | {"currency": "EUR"}}}, "exclude each other"),
    ("currency column not there", {"columns": {"a": MONEY}}, "currency_column 'c' is not in the header"),
    ("currency column of numbers", {"columns": {"a": MONEY | {"currency_column": "b"}}}, "of type number"),
    ("unknown encoding", {"encoding": "utf-9"}, "encoding 'utf-9'"),
    ("encoding of no text", {"encoding": "base64"}, "base64"),
    ("wrong encoding", {"encoding": "ascii"}, "ascii"),
]


@pytest.mark.parametrize(("schema", "words"), [pytest.param(*case, id=name) for name, *case in SCHEMAS])
def test_a_schema_that_does_not_fit_is_refused(tmp_path: Path, schema: dict[str, Any], words: str) -> None:
    with pytest.raises(DataRefused) as refusal:
        rows(tmp_path, "a,b,d\n1,2,\u00e9\n", schema)
    assert words in refusal.value.message


def test_money_without_a_currency_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataRefused, match=r"row 2 \(line 3\), column 'a': 6 has no currency"):
        rows(tmp_path, "a,c\n5,EUR\n6,\n", {"columns": {"a": MONEY}})


def test_the_first_fault_in_a_long_file_is_named_with_its_line(tmp_path: Path) -> None:
    data = 'a,b\n"x\ny",1\n' + "z,2\n" * 30_000 + "z,+3\n" + "z,+4\n"
    with pytest.raises(DataRefused, match=r"row 30002 \(line 30004\), column 'b': '\+3'"):
        rows(tmp_path, data)


def test_other_bytes_than_the_pinned_ones_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "evidence.csv"
    path.write_bytes(b"a\n1\n")
    pinned = "sha256:" + hashlib.sha256(b"other").hexdigest()
    with pytest.raises(DataRefused, match="was changed"):
        Dataset.open(path, pinned, DatasetSchema(), cache=tmp_path / "cache")


def test_a_refusal_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(DataRefused):
        rows(tmp_path, 'a\n"1"\n+2\n')
    with opened(tmp_path, 'a\n"1"\n'):
        pass
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_column_that_turns_into_numbers_after_many_words_is_refused(tmp_path: Path) -> None:
    data = "a\n" + "word\n" * 6_000 + "12\n" * 7_000
    with pytest.raises(DataRefused, match=r"row 1 \(line 2\), column 'a': 'word'"):
        rows(tmp_path, data)
