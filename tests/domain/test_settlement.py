"""How many persons settle an unknown outcome: one amount per currency says it, and never the laxer of two."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from countersign.domain.money import amount
from countersign.domain.settlement import Settling


@pytest.mark.parametrize(
    ("money", "persons"), [("1000.00 EUR", 1), ("1000.01 EUR", 2), ("1 JPY", 2), ("500.00 USD", 1)]
)
def test_above_its_currencys_amount_two_persons_have_to_say_the_same(money: str, persons: int) -> None:
    settling = Settling.model_validate({"role": "lead", "two_over": ["1000.00 EUR", "500.00 USD"]})
    assert settling.persons(amount(money)) == persons


@pytest.mark.guarantee("G36")
def test_a_second_amount_in_the_same_currency_is_refused() -> None:
    with pytest.raises(ValidationError, match="more than one amount in EUR; give one per currency"):
        Settling.model_validate({"role": "lead", "two_over": ["1000.00 EUR", "5.00 USD", "999999.00 EUR"]})
