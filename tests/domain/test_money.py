"""Money: whole minor units of one currency, read in one form, written back in the same, and never rounded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from countersign.domain.errors import InputRefused
from countersign.domain.figures.units import ISO_4217
from countersign.domain.money import Amount, WrittenAmount, amount, places_of

pytestmark = pytest.mark.guarantee("G08")

WRITTEN = [
    # as people write it, minor units
    ("0.00 EUR", 0),
    ("0.01 EUR", 1),
    ("1000.00 EUR", 100_000),
    ("1000 EUR", 100_000),
    ("007.50 USD", 750),
    ("1000 JPY", 1_000),
    ("1 KWD", 1_000),
    ("1.005 KWD", 1_005),
    ("999999999999.99 EUR", 99_999_999_999_999),
    ("999999999999.999 KWD", 999_999_999_999_999),
]
UNREADABLE = [
    "", "EUR", "1000", "1000.0 EUR", "1000.001 EUR", "1000.00 JPY", "1.00 KWD", "1,000.00 EUR", "1.000,00 EUR",
    "-1.00 EUR", "+1.00 EUR", "1.00EUR", "1.00  EUR", " 1.00 EUR", "1.00 EUR ", "1.00 EUR\n", "1.00 eur", "€1.00",
    ".50 EUR", "1. EUR", "1e3 EUR", "１.00 EUR", "1.00 XXX", "1.00 ABC", "1000000000000 EUR", "9" * 400 + " EUR",
]  # fmt: skip


@pytest.mark.parametrize(("text", "minor"), WRITTEN)
def test_an_amount_means_its_minor_units(text: str, minor: int) -> None:
    assert amount(text) == Amount(currency=text[-3:], minor=minor)


@pytest.mark.parametrize("text", UNREADABLE)
def test_any_other_form_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InputRefused, match="amount"):
        amount(text)


@given(st.sampled_from(sorted(ISO_4217)), st.integers(0, 10**12 - 1))
def test_what_is_written_is_read_back_as_the_same(currency: str, minor: int) -> None:
    assert amount(str(Amount(currency=currency, minor=minor))).minor == minor


def test_places_follow_the_currency() -> None:
    assert [places_of(currency) for currency in ("JPY", "EUR", "KWD")] == [0, 2, 3]


@pytest.mark.parametrize(
    "fields",
    [
        {"currency": "EUR", "minor": -1},
        {"currency": "EUR", "minor": 2**53},
        {"currency": "EUR", "minor": 1.0},
        {"currency": "EUR", "minor": "1"},
        {"currency": "EUR", "minor": True},
        {"currency": "eur", "minor": 1},
        {"currency": "EURO", "minor": 1},
        {"currency": "EUR\n", "minor": 1},
        {"minor": 1},
        {"currency": "EUR"},
    ],
)
def test_a_malformed_amount_does_not_exist(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Amount.model_validate(fields)


def test_a_file_says_amounts_as_people_write_them_and_json_says_them_in_minor_units() -> None:
    written: TypeAdapter[Amount] = TypeAdapter(WrittenAmount)

    assert written.validate_python("12.50 EUR") == Amount(currency="EUR", minor=1250)
    assert written.validate_json(written.dump_json(amount("12.50 EUR"))) == amount("12.50 EUR")
    with pytest.raises(ValidationError, match=r"write it as 1000\.00 EUR"):
        written.validate_python("12,50 EUR")
    with pytest.raises(ValidationError):
        written.validate_python(1250)
