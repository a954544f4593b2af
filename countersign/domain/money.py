"""Amounts of money: whole minor units of one currency; nothing is rounded, no two currencies are compared."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from countersign.domain.errors import InputRefused
from countersign.domain.figures.units import ISO_4217
from countersign.domain.values import Value

Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
"""ISO 4217 code."""

_PLACES = {
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV",
                     "XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
}  # fmt: skip
"""Decimal places of the currencies that do not have two (ISO 4217, list one)."""

_WRITTEN = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,3}))? ([A-Z]{3})")


class Amount(Value):
    """Money, never negative."""

    currency: Currency
    minor: Annotated[int, Field(ge=0, le=2**53 - 1)]
    """Minor units: cents of EUR, whole JPY, thousandths of KWD."""

    def __str__(self) -> str:
        """As people write it: `1000.00 EUR`, `1000 JPY`."""
        places = places_of(self.currency)
        digits = f"{self.minor:0{places + 1}d}"
        number = f"{digits[:-places]}.{digits[-places:]}" if places else digits
        return f"{number} {self.currency}"


def places_of(currency: str) -> int:
    """How many decimal places a currency has."""
    return _PLACES.get(currency, 2)


def amount(text: str) -> Amount:
    """The amount that a text such as `1000.00 EUR` or `1000 JPY` means.

    Raises:
        InputRefused: for any other form; more decimal places than the currency has are never rounded away.
    """
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise InputRefused(f"amount {text[:40]!r} is not allowed; write it as 1000.00 EUR: digits, a blank, a currency")
    whole, fraction, currency = written[1], written[2] or "", written[3]
    if currency not in ISO_4217:
        raise InputRefused(f"amount {text!r}: {currency} is no currency in use (ISO 4217)")
    places = places_of(currency)
    if fraction and len(fraction) != places:
        raise InputRefused(f"amount {text!r} is not allowed; {currency} has {places} decimal places, or none are given")
    return Amount(currency=currency, minor=int(whole + fraction.ljust(places, "0")))


def _from_text(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError(f"{value} names no currency; write it as 1000.00 EUR: digits, a blank, a currency")
    if not isinstance(value, str):
        return value
    try:
        return amount(value)
    except InputRefused as refused:
        raise ValueError(refused.message) from None


WrittenAmount = Annotated[Amount, BeforeValidator(_from_text)]
"""An amount in a file that people write; its JSON form is that of `Amount`."""
