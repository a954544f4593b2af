"""What a dataset's values are once it is read: exact, in the declared format, blanks as blanks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evidence.opening import opened, rows

NUMBER = "number"


def column(**fields: Any) -> dict[str, Any]:
    """A schema for column `a` alone."""
    return {"columns": {"a": fields}}


def formatted(**form: Any) -> dict[str, Any]:
    """A schema for numbers of column `a` in one format."""
    return column(type=NUMBER, number=form)


PLAIN = [
    ("integers", "a\n1\n-2\n0\n", ["1", "-2", "0"]),
    ("beyond 2^53", "a\n9007199254740993\n", ["9007199254740993"]),
    ("19 digits", "a\n-9223372036854775808\n1\n", ["-9223372036854775808", "1"]),
    ("38 digits", f"a\n{'9' * 38}\n-{'9' * 38}\n", ["9" * 38, "-" + "9" * 38]),
    ("decimals", "a\n0.10\n-1.25\n", ["0.10", "-1.25"]),
    ("mixed scales", "a\n1\n0.125\n-2.5\n", ["1.000", "0.125", "-2.500"]),
    ("38 decimals", f"a\n0.{'1' * 37}\n", ["0." + "1" * 37]),
    ("negative below one", "a\n-0.05\n", ["-0.05"]),
    ("negative zero", "a\n-0.00\n5.00\n", ["0.00", "5.00"]),
    ("blank is no value", "a,b\n1,x\n,y\n3,z\n", ["1", None, "3"]),
    ("quoted blank is no value", 'a,b\n"",x\n3,z\n', [None, "3"]),
    ("leading zeros are identifiers", "a\n007\n12\n", ["007", "12"]),
    ("a minority of numbers is text", "a\nx\ny\n5\n", ["x", "y", "5"]),
    ("iso dates", "a\n2024-02-29\n1999-12-31\n", ["2024-02-29", "1999-12-31"]),
    ("date and time stay text", "a\n2024-02-29 10:00\n", ["2024-02-29 10:00"]),
    ("all blank", "a,b\n,1\n,2\n", [None, None]),
    ("spaces are content", "a\n x \ny\n", [" x ", "y"]),
    ("byte order mark", "\ufeffa\n1\n", ["1"]),
    ("no line end at the end", "a\n1\n2", ["1", "2"]),
    ("CR LF", "a\r\n1\r\n2\r\n", ["1", "2"]),
    ("quoted newline", 'a,b\n"x\ny",1\nz,2\n', ["x\ny", "z"]),
    ("CR LF and quoted LF", 'a,b\r\n"x\ny",1\r\n"p\r\nq",2\r\n', ["x\ny", "p\r\nq"]),
    ("doubled quotes", 'a,b\n"say ""no""",1\n"""",2\n', ['say "no"', '"']),
    ("quoted delimiter", 'a,b\n"x,y",1\n', ["x,y"]),
    ("other scripts", "a\n\u534e\u4e1c\n\U0001f600 ok\n", ["\u534e\u4e1c", "\U0001f600 ok"]),
    ("backslash is content", "a\n\\N\nx\\\n", ["\\N", "x\\"]),
    ("hash is content", "a\n#1 shop\nb\n", ["#1 shop", "b"]),
    ("NULL and NaN as words are text", "a\nNULL\nNaN\ntrue\n", ["NULL", "NaN", "true"]),
]


@pytest.mark.parametrize(("data", "expected"), [pytest.param(data, values, id=name) for name, data, values in PLAIN])
def test_undeclared_values_are_read_exactly(tmp_path: Path, data: str, expected: list[str | None]) -> None:
    assert [row[0] for row in rows(tmp_path, data)] == expected


DECLARED = [
    ("thousands", 'a\n"1,234,567.80"\n"-1,000"\n999\n', formatted(thousands=","), ["1234567.80", "-1000.00", "999.00"]),
    ("european", 'a\n"1.234,5"\n"-0,25"\n', formatted(thousands=".", decimal=","), ["1234.50", "-0.25"]),
    ("apostrophe", "a\n1'000\n", formatted(thousands="'"), ["1000"]),
    ("space", "a\n1 000 000\n", formatted(thousands=" "), ["1000000"]),
    ("parentheses", "a\n(12.50)\n12.50\n", formatted(parentheses=True), ["-12.50", "12.50"]),
    ("sign and currency", "a\n$5\n-$5\n$-5\n5 $\n5\n", formatted(currency="$"), ["5", "-5", "-5", "5", "5"]),
    ("code", "a\nEUR 1.5\n-2.5 EUR\n", formatted(currency="EUR"), ["1.5", "-2.5"]),
    (
        "accounting",
        'a\n"($1,200.50)"\n"$(3)"\n"(4 $)"\n',
        formatted(currency="$", thousands=",", parentheses=True),
        ["-1200.50", "-3.00", "-4.00"],
    ),
    ("per cent", "a\n35 %\n-4.2%\n", formatted(percent=True), ["35.0", "-4.2"]),
    ("unicode minus", "a\n\u22125.5\n-1.0\n", formatted(unicode_minus=True), ["-5.5", "-1.0"]),
    ("declared zeros", "a\n007\n", column(type=NUMBER), ["7"]),
    ("text as declared", "a\n1\n2\n", column(type="text"), ["1", "2"]),
    ("day first", "a\n31/12/2025\n01.02.2026\n", column(type="date", date_order="dmy"), ["2025-12-31", "2026-02-01"]),
    ("month first", "a\n12-31-2025\n", column(type="date", date_order="mdy"), ["2025-12-31"]),
]


@pytest.mark.parametrize(("data", "schema", "expected"), [pytest.param(*case, id=name) for name, *case in DECLARED])
def test_declared_formats_are_read_exactly(
    tmp_path: Path, data: str, schema: dict[str, Any], expected: list[str]
) -> None:
    assert [row[0] for row in rows(tmp_path, data, schema)] == expected


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "gb18030"])
def test_a_declared_encoding_is_transcribed(tmp_path: Path, encoding: str) -> None:
    word = "\u534e\u4e1c" if encoding == "gb18030" else "M\u00fcnchen"
    data = f"a,b\n{word},1\n".encode(encoding)
    assert rows(tmp_path, data, {"encoding": encoding}) == [(word, "1")]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_a_declared_delimiter_separates(tmp_path: Path, delimiter: str) -> None:
    data = f"a{delimiter}b\nx,y{delimiter}1\n"
    assert rows(tmp_path, data, {"delimiter": delimiter}) == [("x,y", "1")]


def test_the_whole_column_decides_not_its_first_rows(tmp_path: Path) -> None:
    data = "a,b\n" + "1,x\n" * 20_000 + "0.25,007\n" + "2,x\n"
    with opened(tmp_path, data) as dataset:
        assert dataset.single_value("SELECT sum(a) FROM data").text == "20002.25"
        assert dataset.single_value("SELECT max(b) FROM data").text == "x"


def test_zeros_late_in_a_long_column_make_all_of_it_text(tmp_path: Path) -> None:
    data = "a\n" + "12\n" * 20_000 + "007\n"
    with opened(tmp_path, data) as dataset:
        assert dataset.describe().columns[0].type == "text"
        assert dataset.single_value("SELECT min(a) FROM data").text == "007"


def test_column_names_may_hold_anything_but_a_repeat(tmp_path: Path) -> None:
    with opened(tmp_path, 'select,"x ""y""",$1\n1,2,3\n') as dataset:
        assert dataset.query("FROM data").columns == ("select", 'x "y"', "$1")
        assert dataset.single_value('SELECT "x ""y""" FROM data').text == "2"


def test_a_few_hundred_thousand_rows_with_quoted_newlines_are_all_there(tmp_path: Path) -> None:
    count = 300_000
    lines = (f'{n},2026-01-{n % 28 + 1:02},"note\n{n}, ""q""",{n % 1000}.{n % 100:02}\r\n' for n in range(count))
    data = "id,day,note,amount\r\n" + "".join(lines)
    cents = sum((n % 1000) * 100 + n % 100 for n in range(count))
    with opened(tmp_path, data) as dataset:
        assert dataset.single_value("SELECT count(*) FROM data").text == str(count)
        assert dataset.single_value("SELECT sum(amount) FROM data").text == f"{cents // 100}.{cents % 100:02}"
        last = dataset.single_value(f"SELECT note FROM data WHERE id = {count - 1}").text
        assert last == f'note\n{count - 1}, "q"'


def test_a_description_says_what_a_reader_needs(tmp_path: Path) -> None:
    schema = {
        "columns": {
            "amount": {"type": "number", "currency_column": "currency"},
            "share": {"type": "number", "number": {"percent": True}},
        }
    }
    data = "zip,amount,currency,share,day\n010,5.5,EUR,3%,2026-01-02\n999,-2,USD,,2026-01-01\n"
    with opened(tmp_path, data, schema) as dataset:
        described = dataset.describe()
    zip_code, amount, _, share, day = described.columns
    assert (described.rows, zip_code.type, amount.type, day.type) == (2, "text", "number", "date")
    assert (amount.minimum, amount.maximum, amount.samples) == ("-2.0", "5.5", ("5.5", "-2.0"))
    assert (amount.currency, amount.currency_column) == ("", "currency")
    assert (share.unit, share.blanks, share.distinct) == ("%", 1, 1)
    assert (day.minimum, day.maximum) == ("2026-01-01", "2026-01-02")
    assert any("zip" in note and "zero" in note for note in described.notes)
    assert any("amount" in note and "currenc" in note for note in described.notes)


@pytest.mark.parametrize("name", ["it's", "a[b]c", "x*", "q?", "{a,b}", "\u534e\u4e1c"])
def test_the_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    assert rows(folder, "a\n1\n") == [("1",)]


def test_other_files_of_a_matching_name_are_not_read(tmp_path: Path) -> None:
    for name in ("[ab]", "a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "evidence.csv").write_text("a\n7\n")
    (tmp_path / "b" / "evidence.csv").write_text("a\n8\n")
    assert rows(tmp_path / "[ab]", "a\n1\n") == [("1",)]
