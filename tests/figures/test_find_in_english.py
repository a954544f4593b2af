"""Which parts of an English text are numbers, and what they say: readable as a specification, row by row.

A row is a text and what is found in it, each as `text = value unit`; `?` means that it looks like a number and cannot
be read; a date is its ISO text.
"""

from __future__ import annotations

import pytest

from countersign.domain.figures.finding import find_numbers
from countersign.domain.figures.found import FoundNumber


def told(found: FoundNumber) -> str:
    said = found.day or ("?" if found.value is None else f"{found.value.normalize():f}")
    return f"{found.text} = {said} {found.unit}".rstrip()


DIGITS = [
    ("sold 42 units", ["42 = 42"]),
    ("1,234,567 rows", ["1,234,567 = 1234567"]),
    ("12.50", ["12.50 = 12.5"]),
    (".5 of it", [".5 = 0.5"]),
    ("fell by -4.2 %", ["-4.2 % = -4.2 %"]),
    ("fell by \u22124.2%", ["\u22124.2% = -4.2 %"]),
    ("fell by –4.2%", ["–4.2% = -4.2 %"]),
    ("+5", ["+5 = 5"]),
    ("minus 3 percent", ["minus 3 percent = -3 %"]),
    ("negative 7", ["negative 7 = -7"]),
    ("35 %", ["35 % = 35 %"]),
    ("35%", ["35% = 35 %"]),
    ("35 per cent", ["35 per cent = 35 %"]),
    ("2 percentage points", ["2 percentage points = 2 pp"]),
    ("25 bps", ["25 bps = 25 bp"]),
    ("5‰", ["5‰ = 5 ‰"]),
    ("3x", ["3x = 3 x"]),
    ("5-fold", ["5-fold = 5 x"]),
    ("1.25k", ["1.25k = 1250"]),
    ("1.25 k visits", ["1.25 k = 1250"]),
    ("$35M", ["$35M = 35000000 USD"]),
    ("-$35M", ["-$35M = -35000000 USD"]),
    ("$-35M", ["$-35M = -35000000 USD"]),
    ("US$5", ["US$5 = 5 USD"]),
    ("C$5", ["C$5 = 5 CAD"]),
    ("€1.2bn", ["€1.2bn = 1200000000 EUR"]),
    ("£3 million", ["£3 million = 3000000 GBP"]),
    ("¥500", ["¥500 = 500 ¥"]),
    ("EUR 7", ["EUR 7 = 7 EUR"]),
    ("7 EUR", ["7 EUR = 7 EUR"]),
    ("7 euros", ["7 euros = 7 EUR"]),
    ("2.5 trillion dollars", ["2.5 trillion dollars = 2500000000000 USD"]),
    ("5 lakh", ["5 lakh = 500000"]),
    ("1e6", ["1e6 = 1000000"]),
    ("1.5E-3", ["1.5E-3 = 0.0015"]),
    ("1/2", ["1/2 = 0.5"]),
    ("½", ["½ = 0.5"]),
    ("1½ and 2 ¾", ["1½ = 1.5", "2 ¾ = 2.75"]),
    ("the 3rd region", ["3rd = 3"]),
    ("21st", ["21st = 21"]),
    ("3-5 days", ["3 = 3", "5 = 5"]),
    ("3–5 days", ["3 = 3", "5 = 5"]),
    ("10 %-20 %", ["10 % = 10 %", "20 % = 20 %"]),
    ("top-10 list", ["10 = 10"]),
    ("123\u00a0456", ["123\u00a0456 = 123456"]),
    ("(12)", ["12 = 12"]),
    ("**35**", ["35 = 35"]),
    ("2 hundred", ["2 = 2", "hundred = 100"]),
    ("1.", ["1 = 1"]),
    ("Ends in 2026.", ["2026 = 2026"]),
    ("5 years", ["5 = 5"]),
]

DATES = [
    ("on 2026-06-30", ["2026-06-30 = 2026-06-30"]),
    ("in 2026-06", ["2026-06 = 2026-06"]),
    ("2026/6/30", ["2026/6/30 = 2026-06-30"]),
    ("30 June 2026", ["30 June 2026 = 2026-06-30"]),
    ("June 30, 2026", ["June 30, 2026 = 2026-06-30"]),
    ("1st Mar. 2026", ["1st Mar. 2026 = 2026-03-01"]),
    ("January to June 2026", ["June 2026 = 2026-06"]),
    ("2026-02-30", ["2026-02-30 = ?"]),
    ("30.06.2026", ["30.06.2026 = ?"]),
    ("at 10:30", ["10:30 = ?"]),
    ("2024-2026", ["2024 = 2024", "2026 = 2026"]),
]

UNREADABLE = [
    ("007", ["007 = ?"]),
    ("02026", ["02026 = ?"]),
    ("1,23", ["1,23 = ?"]),
    ("0,123", ["0,123 = ?"]),
    ("1,2,3", ["1,2,3 = ?"]),
    ("35.220,50", ["35.220,50 = ?"]),
    ("1'000", ["1'000 = ?"]),
    ("1_000", ["1_000 = ?"]),
    ("1.2.3", ["1.2.3 = ?"]),
    ("v1.2.3", ["v1.2.3 = ?"]),
    ("Q1", ["Q1 = ?"]),
    ("B2B", ["B2B = ?"]),
    ("5G", ["5G = ?"]),
    ("5m", ["5m = ?"]),
    ("x2", ["x2 = ?"]),
    ("±5", ["±5 = ?"]),
    ("--5 and -$-5", ["-5 = -5", "-$-5 = ?"]),
    ("$5 EUR", ["$5 EUR = ?"]),
    ("1/0", ["1/0 = ?"]),
    ("10²", ["10² = ?"]),
    ("1e999", ["1e999 = ?"]),
    ("chapter IV", ["IV = ?"]),
    ("MMXXVI", ["MMXXVI = ?"]),
    ("dozens of orders", ["dozens = ?"]),
    ("thousands", ["thousands = ?"]),
    ("a couple of days", ["couple = ?"]),
    ("two three", ["two three = ?"]),
    ("two hundred hundred", ["two hundred hundred = ?"]),
    ("two million three billion", ["two million three billion = ?"]),
    ("thirds", ["thirds = ?"]),
    ("twenty twenty-six", ["twenty twenty-six = ?"]),
]

WORDS = [
    ("two regions", ["two = 2"]),
    ("Two regions", ["Two = 2"]),
    ("TWELVE", ["TWELVE = 12"]),
    ("zero", ["zero = 0"]),
    ("half of it", ["half = 0.5"]),
    ("a half", ["a half = 0.5"]),
    ("twenty-five", ["twenty-five = 25"]),
    ("twenty five", ["twenty five = 25"]),
    ("twentyfive", ["twentyfive = 25"]),
    ("ninety-nine", ["ninety-nine = 99"]),
    ("two hundred and six", ["two hundred and six = 206"]),
    ("one thousand two hundred", ["one thousand two hundred = 1200"]),
    ("twelve hundred", ["twelve hundred = 1200"]),
    ("a hundred", ["hundred = 100"]),
    ("one hundred thousand", ["one hundred thousand = 100000"]),
    ("three million and five", ["three million and five = 3000005"]),
    ("two dozen", ["two dozen = 24"]),
    ("million", ["million = 1000000"]),
    ("two billion dollars", ["two billion dollars = 2000000000 USD"]),
    ("minus four per cent", ["minus four per cent = -4 %"]),
    ("two and three", ["two = 2", "three = 3"]),
    ("one, two", ["one = 1", "two = 2"]),
    ("three quarters", ["three quarters = 0.75"]),
    ("one-fifth", ["one-fifth = 0.2"]),
    ("a quarter of sales", ["a quarter = 0.25"]),
    ("quarter of sales", ["quarter = 0.25"]),
    ("two-tenths", ["two-tenths = 0.2"]),
    ("first", ["first = 1"]),
    ("the second region", ["second = 2"]),
    ("third place", ["third = 3"]),
    ("twenty-first", ["twenty-first = 21"]),
    ("twelfth", ["twelfth = 12"]),
    ("thirdly", ["thirdly = 3"]),
    ("doubled", ["doubled = 2"]),
    ("twice as many", ["twice = 2"]),
    ("tripled", ["tripled = 3"]),
    ("tenfold", ["tenfold = 10"]),
    ("hundredfold", ["hundredfold = 100"]),
    ("halved", ["halved = 0.5"]),
    ("a pair", ["pair = 2"]),
    ("one of the regions", ["one = 1"]),
    ("the one hundred largest", ["one hundred = 100"]),
    ("two_regions", ["two = 2"]),
    ("double the sales", ["double = 2"]),
]

NO_NUMBERS = [
    "Revenue grew in every region.",
    "no one knows",
    "everyone, someone, anyone",
    "one another",
    "this one",
    "one of the largest regions",
    "a one-off effect",
    "at first",
    "first of all",
    "per second",
    "second-hand",
    "third-party data",
    "double-counted",
    "per quarter",
    "last quarter",
    "quarterly",
    "on behalf of",
    "tension, often, weight, listen",
    "freight and height",
    "attend",
    "once the data is in",
    "both regions",
    "several, few, many",
    "I think",
    "CD and MD",
    "type V",
    "May and March",
    "m² and km³",
    "A, B and C",
    "%",
    "USD",
    "artwork",
    "canine",
    "someone's money",
]


@pytest.mark.parametrize(("text", "expected"), DIGITS + DATES + UNREADABLE + WORDS)
def test_what_is_found(text: str, expected: list[str]) -> None:
    assert [told(found) for found in find_numbers(text)] == expected


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number(text: str) -> None:
    assert [told(found) for found in find_numbers(text)] == []


@pytest.mark.parametrize(
    ("text", "scale", "decimals"),
    [
        ("1.25k", 3, 2),
        ("$35M", 6, 0),
        ("35.20", 0, 2),
        ("1.2e6", 6, 1),
        ("two million", 6, 0),
        ("two hundred", 0, 0),
        ("1/3", 0, None),
        ("half", 0, None),
    ],
)
def test_precision_that_is_shown(text: str, scale: int, decimals: int | None) -> None:
    (found,) = find_numbers(text)
    assert (found.scale, found.decimals) == (scale, decimals)


def test_finds_tell_their_own_place() -> None:
    text = "From 1,200 to two hundred, June 2026, Q1."
    assert [text[found.start : found.end] for found in find_numbers(text)] == [f.text for f in find_numbers(text)]
