"""What every kind of draft has in common: its form in the ledger, its texts, and what the checks find in it.

Apart from the kinds themselves (domain.report, domain.refund), since the ledger and the steps know none of them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from countersign.domain.values import Value

DraftObject = dict[str, JsonValue]
"""A draft as the ledger keeps it, in the order of its form's fields; only its case reads it by that form."""

Text = Annotated[str, Field(min_length=1, max_length=20_000)]
ShortText = Annotated[str, Field(min_length=1, max_length=500)]
Question = Annotated[str, Field(min_length=1, max_length=2_000)]


class Violation(Value):
    """One finding of the deterministic checks."""

    code: str
    """Stable word such as `unsupported_number`, `value_mismatch`, `unit_mismatch`, `missing_source`."""
    place: str
    """Where: `title`, `body:3:14` (line and column, from 1), `claims.c1.value`."""
    expected: str
    found: str

    def sentence(self) -> str:
        """The finding as one line for the agent and for people."""
        return f"{self.place}: {self.code}: expected {self.expected}, found {self.found}"
