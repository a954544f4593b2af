"""Settling: people say what became of an effect whose outcome stays unknown, each with a signed command and evidence.

Pure. The gateway verifies the statements again for itself, and counts them by these rules (G36).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from countersign.domain.directory import Role
from countersign.domain.identity import PersonId
from countersign.domain.money import Amount, WrittenAmount
from countersign.domain.values import Instant, Value

Finding = Literal["executed", "not_executed"]


class Settling(Value):
    """Who a policy lets settle an unknown outcome, and when two persons are needed for it."""

    role: Role
    two_over: Annotated[tuple[WrittenAmount, ...], Field(strict=False)] = ()
    """One amount per currency; an action with an amount needs two persons above it, and always where its currency is
    not among these. An action without an amount needs one."""

    @model_validator(mode="after")
    def _one_per_currency(self) -> Settling:
        currencies = [limit.currency for limit in self.two_over]
        twice = next((one for one in currencies if currencies.count(one) > 1), None)
        if twice is not None:
            raise ValueError(f"'two_over' has more than one amount in {twice}; give one per currency")
        return self

    def persons(self, amount: Amount | None) -> int:
        """How many persons have to say the same."""
        if amount is None:
            return 1
        limits = {limit.currency: limit.minor for limit in self.two_over}
        return 1 if amount.minor <= limits.get(amount.currency, -1) else 2


class Unsettled(NamedTuple):
    """An effect that may have happened, for a ruling on what somebody says of it."""

    key: str
    settling: Settling | None
    """What the policy that it was proposed by says of settling; nothing: nobody may."""
    authors: frozenset[PersonId]
    """Who made the action; they are no witnesses of what became of it."""
    busy: bool
    """Whether the gateway is looking it up, or sending it, at this moment."""
    unreadable: str = ""
    """Why what that policy says is not known, which is another thing than that it lets nobody; empty where it is."""


class Settlement(Value):
    """What one person said of one execution."""

    person: PersonId
    key: str
    """The execution's idempotency key."""
    finding: Finding
    reference: str
    """What the outside calls the effect; empty where it was not executed."""
    at: Instant


class Settled(Value):
    """What enough people agree on."""

    finding: Finding
    reference: str
    persons: Annotated[tuple[PersonId, ...], Field(strict=False)]
    at: Instant


def problem_with(finding: Finding | Literal[""], reference: str) -> str:
    """What is wrong with a finding as it was said, in a sentence; empty if nothing."""
    if not finding:
        return "settle says what became of the effect; give executed or not_executed"
    if finding == "executed" and not reference:
        return "what was executed has a name outside; give its reference there"
    return "what was not executed has no reference; leave it out" if finding != "executed" and reference else ""


def settled(said: Sequence[Settlement], needed: int) -> Settled | None:
    """What `needed` persons say alike, whoever says otherwise; the last word of each person counts.

    Nothing where two different findings have enough persons each: people who contradict each other settle nothing.
    """
    last = {one.person: one for one in sorted(said, key=lambda one: one.at)}
    alike: dict[tuple[Finding, str], list[Settlement]] = {}
    for one in last.values():
        alike.setdefault((one.finding, one.reference), []).append(one)
    agreed = [(what, by) for what, by in alike.items() if len(by) >= needed]
    if len(agreed) != 1:
        return None
    (finding, reference), by = agreed[0]
    return Settled(finding=finding, reference=reference, persons=tuple(one.person for one in by), at=_latest(by))


def _latest(said: Sequence[Settlement]) -> datetime:
    return max(one.at for one in said)
