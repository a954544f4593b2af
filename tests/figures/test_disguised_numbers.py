"""A number that is disguised is found as what a reader sees, and reported as unreadable, whatever the disguise."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest

from countersign.domain.figures.finding import find_numbers

DISGUISES = [
    "1\u200b2",
    "2\u00ad026",
    "2\u2060026",
    "**3**5",
    "3`5`",
    "t*w*o",
    "tw\u200bo",
    "tw\u043e",
    "tw\u034fo",
    "\U0001d7db",
    "\U0001d42d\U0001d430\U0001d428",
    "\u0663\u0664",
    "\u096a",
    "①",
    "⑴",
    "⒈",
    "¹",
    "10⁶",
    "１２①",
    "㈤",
    "🔟",
    "💯",
    "&#49;",
    "&frac12;",
    "&sup2;",
    "1\\.5",
    "1\\,000",
    "\\-5\u200b0",
]


@pytest.mark.parametrize("text", DISGUISES)
def test_a_disguised_number_is_one_unreadable_find(text: str) -> None:
    (found,) = find_numbers(f"sold {text} units")
    assert found.text == text.strip("*`\\")
    assert not found.readable


@pytest.mark.parametrize(("text", "value"), [("１２", 12), ("**42**", 42), ("`42`", 42), ("$３５", 35)])
def test_plain_forms_stay_readable(text: str, value: int) -> None:
    (found,) = find_numbers(text)
    assert found.value == value


VEILED = """
    sold a fortnight ago|XL percent|xii percent|fourpercent|O percent|lO%|growth of f o u r|l,OOO USD|OOO|a mln|a bn|$ O
    hat-tricks|a century|a myriad of|a grand|in the thirties|low teens|Multimillion|Twelvemonth|single-digit
    f*o*u*r|a score of orders|gross of eggs|a lakh|crore|googol|zilch|vier|zwölf Prozent|cinquante|cincuenta
    fünfundzwanzig|a f o u r b|⚃|🂡|🕛|⠼⠙|打了对折|腰斩|双位数|数倍|卌|35  percents
"""


@pytest.mark.parametrize("text", [each.strip() for each in re.split(r"[|\n]", VEILED) if each.strip()])
def test_what_says_a_number_without_being_one_is_reported(text: str) -> None:
    assert find_numbers(f"It was {text} then")


@pytest.mark.parametrize("text", ["sextupled", "octupled", "quartet", "foursome", "septets"])
def test_words_for_multiples_and_groups_have_a_value(text: str) -> None:
    (found,) = find_numbers(text)
    assert found.readable


@pytest.mark.parametrize(
    "text",
    [
        "growth in percent",
        "percent change (in %)",
        "the grand total",
        "gross margin and credit score",
        "U.S.A., e.g. a b c",
        "Revenue USD, a mix of EUR and CHF",
        "Sept was fine in Leipzig",
        "各币种的美元金额",
    ],
)
def test_ordinary_prose_is_not_reported(text: str) -> None:
    assert find_numbers(text) == ()


def test_blanks_are_read_as_they_are_drawn_but_not_across_paragraphs() -> None:
    assert [(found.text, found.unit) for found in find_numbers("35  %, 2026\n\nEUR")] == [("35  %", "%"), ("2026", "")]


def test_no_numeric_character_of_unicode_is_passed_by() -> None:
    numeric = [chr(at) for at in range(sys.maxunicode + 1) if unicodedata.category(chr(at))[0] == "N"]
    passed = [letter for letter in numeric if len(find_numbers(f"sold {letter} units")) != 1]
    assert len(numeric) > 1000
    assert passed == []


@pytest.mark.parametrize(
    "piece",
    ["1,", "two ", "一", "一万", "1\u200b", "①", "1 ①", "亿", "hundred ", "1", "twenty-", "O", "lOO,", "f o u r "],
)
def test_the_longest_text_is_read_without_failing(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    assert find_numbers(text)
