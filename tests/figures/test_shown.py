"""Whether a figure as it is shown stands for the exact one: unit, sign, scale and the one rounding mode."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.figures.finding import find_numbers
from countersign.domain.figures.shown import agrees, read_shown, show

AGREEING = [
    ("42", "42", ""),
    ("42", "42", "rows"),
    ("42 rows", "42", "rows"),
    ("1,234.50 USD", "1234.50", "USD"),
    ("$1,234.50", "1234.5", "USD"),
    ("USD 1,234.50", "1234.5", "USD"),
    ("1,234.5 dollars", "1234.50", "USD"),
    ("$35.2M", "35184000", "USD"),
    ("35 THB", "35", "THB"),
    ("(1,234)", "-1234", ""),
    ("(1,234) USD", "-1234", "USD"),
    ("-4.2 %", "-4.15", "%"),
    ("35%", "35.4", "%"),
    ("+3 %", "3.2", "%"),
    ("3", "2.5", ""),
    ("-3", "-2.5", ""),
    ("2.68", "2.675", ""),
    ("1.25k", "1254", ""),
    ("two", "2", "regions"),
    ("two regions", "2", "regions"),
    ("twice", "2", ""),
    ("half", "0.5", ""),
    ("1/3", "0.333333", ""),
    ("a third", "0.3333", ""),
    ("12 kg", "12", "kg"),
    ("12kg", "12", "kg"),
    ("35", "35", "thousand USD"),
    ("35 thousand USD", "35", "thousand USD"),
    ("¥500", "500", "CNY"),
    ("¥500", "500", "JPY"),
    ("3x", "3", "times"),
    ("1.2万元", "12345", "CNY"),
    ("1.2万", "12345", "元"),
    ("3亿", "280000000", ""),
    ("百分之三十五", "35.2", "%"),
    ("三成", "32", "%"),
    ("两个地区", "2", "地区"),
    ("两个", "2", ""),
    ("１２３", "123", ""),
    ("123456789012345678901234567890.12", "123456789012345678901234567890.123", ""),
]

DISAGREEING = [
    ("43", "42", "", "shown_mismatch"),
    ("1,200", "1234", "", "shown_mismatch"),
    ("2", "2.5", "", "shown_mismatch"),
    ("2.67", "2.675", "", "shown_mismatch"),
    ("4.2 %", "-4.2", "%", "sign_mismatch"),
    ("-5", "5", "", "sign_mismatch"),
    ("1,234", "-1234", "", "sign_mismatch"),
    ("0", "-0.4", "", "shown_mismatch"),
    ("0k", "42", "", "shown_mismatch"),
    ("0M USD", "1234.5", "USD", "shown_mismatch"),
    ("-0", "-0.4", "", "sign_mismatch"),
    ("+0", "0.4", "", "sign_mismatch"),
    ("$35.2k", "35200000", "USD", "scale_mismatch"),
    ("3.5万", "350000000", "", "scale_mismatch"),
    ("0.35 %", "35", "%", "scale_mismatch"),
    ("35 %", "0.35", "%", "scale_mismatch"),
    ("35 %", "0.35", "", "unit_mismatch"),
    ("35", "35", "%", "unit_mismatch"),
    ("$5", "5", "EUR", "unit_mismatch"),
    ("$5", "5", "CAD", "unit_mismatch"),
    ("¥5", "5", "USD", "unit_mismatch"),
    ("5元", "5", "JPY", "unit_mismatch"),
    ("2 percentage points", "2", "%", "unit_mismatch"),
    ("half", "0.49", "", "shown_mismatch"),
    ("1/3", "0.33", "", "shown_mismatch"),
]

UNREADABLE = ["", "about", "dozens", "USD", "1,23", "about 42", "42 or 43", "Q1", "10:30", "42 apples"]
UNREADABLE += ["42nd", "forty second", "first", "第四十二", "第42", "€5 USD", "(-5)", "()", "2026-06-30"]


@pytest.mark.parametrize(("text", "exact", "unit"), AGREEING)
def test_shown_stands_for_the_exact_figure(text: str, exact: str, unit: str) -> None:
    shown = read_shown(text, unit)
    assert shown is not None
    assert agrees(shown, Decimal(exact), unit) is None


@pytest.mark.parametrize(("text", "exact", "unit", "code"), DISAGREEING)
def test_shown_differs_and_says_how(text: str, exact: str, unit: str, code: str) -> None:
    shown = read_shown(text, unit)
    assert shown is not None
    wrong = agrees(shown, Decimal(exact), unit)
    assert wrong is not None
    assert wrong.code == code


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_not_one_figure_is_not_read(text: str) -> None:
    assert read_shown(text, "USD") is None


@pytest.mark.parametrize(
    ("value", "unit", "english", "chinese"),
    [
        ("1234.50", "USD", "1,234.50 USD", "1,234.50 USD"),
        ("-4.2", "%", "-4.2 %", "-4.2%"),
        ("42", "", "42", "42"),
        ("12000", "CNY", "12,000 CNY", "12,000 元"),
        ("3", "rows", "3 rows", "3 rows"),
        ("-0.0", "", "0.0", "0.0"),
        ("1E+3", "", "1,000", "1,000"),
    ],
)
def test_canonical_form(value: str, unit: str, english: str, chinese: str) -> None:
    assert (show(Decimal(value), unit, "en"), show(Decimal(value), unit, "zh")) == (english, chinese)


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**30), max_value=10**30)
UNITS = st.sampled_from(["", "USD", "EUR", "CNY", "%", "rows", "orders", "kg", "x", "元", "个地区"])
LANGUAGES = st.sampled_from(["en", "zh"])


@given(NUMBERS | st.integers(-(10**40), 10**40).map(Decimal), UNITS, LANGUAGES)
def test_every_canonical_form_is_found_and_agrees(value: Decimal, unit: str, language) -> None:
    text = show(value, unit, language)
    (found,) = find_numbers(text)
    shown = read_shown(text, unit)
    assert found.value == value
    assert shown is not None
    assert agrees(shown, value, unit) is None


@pytest.mark.parametrize("text", ["9" * 100, "1e100", "1e-100", "0." + "0" * 90 + "1e-99", "-" + "9" * 90 + "万亿"])
@pytest.mark.parametrize("exact", ["9" * 100, "9" * 100 + "e99", "-1e-99", "0"])
def test_the_largest_and_smallest_figures_are_compared(text: str, exact: str) -> None:
    shown = read_shown(text, "")
    assert shown is not None
    same = text == exact or (text, exact) == ("1e100", "9" * 100)
    assert (agrees(shown, Decimal(exact), "") is None) == same


@given(st.integers(1, 10**12), st.integers(1, 10**6))
def test_another_value_never_agrees(value: int, away: int) -> None:
    shown = read_shown(show(Decimal(value), "USD"), "USD")
    assert shown is not None
    assert agrees(shown, Decimal(value + away), "USD") is not None


@given(st.integers(-(10**9), 10**9), st.sampled_from([("k", 3), ("M", 6), ("万", 4), ("亿", 8)]), st.integers(0, 2))
def test_rounding_is_half_away_from_zero_at_the_digit_shown(value: int, scale: tuple[str, int], places: int) -> None:
    word, power = scale
    step = 10 ** (power - places)
    rounded = (abs(value) + step // 2) // step * step * (1 if value >= 0 else -1)
    text = f"{Decimal(rounded).scaleb(-power):.{places}f}{word}"
    shown = read_shown(text if rounded else text.lstrip("-"), "")
    assert shown is not None
    assert (agrees(shown, Decimal(value), "") is None) == bool(rounded or not value)
