"""What a reader of figures hands back: one number with its place in the text.

Apart from the readers, so that digits, English words, Chinese words and dates all speak of a find in the same terms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal

EXACT = Context(prec=500, rounding=ROUND_HALF_UP)
"""Arithmetic on figures: room for any figure that a text can hold, so that nothing is rounded in between."""
LONGEST = 100
"""Digits of the longest number that is read; a longer one is no figure, and is reported as unreadable."""


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """Something in a text that a person reads as a number, or that looks like one."""

    start: int
    end: int
    text: str
    value: Decimal | None = None
    """The number itself, sign and scale applied; None for a date and for what cannot be read."""
    unit: str = ""
    """Canonical unit beside the number: `%`, `USD`, `x`, `月`; empty when none is stated."""
    scale: int = 0
    """Power of ten of the scale word: 3 for `1.2k`, 4 for `1.2万`."""
    decimals: int | None = 0
    """Digits shown after the point, before the scale applies; None for a fraction, which is stated exactly."""
    signed: bool = False
    """A plus or minus sign is shown."""
    ordinal: bool = False
    """It says which one, not how many: `42nd`, `first`, `第三`."""
    day: str = ""
    """ISO text of a date: `2026-06-30`, or `2026-06` for a month."""

    @property
    def readable(self) -> bool:
        """Whether it could be read as a number or a date; if not, it must be reported."""
        return self.value is not None or bool(self.day)

    def unread(self) -> FoundNumber:
        """The same place, as something that looks like a number and cannot be read."""
        return FoundNumber(self.start, self.end, self.text)

    def moved(self, start: int, end: int, text: str) -> FoundNumber:
        """The same reading at another place."""
        return replace(self, start=start, end=end, text=text)
