"""Freezes: every effect of a tenant, or of one tool, is held at the gateway until two persons lift it. Pure.

Changes of authority alone are never held: without them nobody could lift it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, model_validator

from countersign.domain.identity import PersonId, TenantId
from countersign.domain.values import Instant, Value, Why

Tool = Annotated[str, Field(max_length=100)]


class FreezeOrder(Value):
    """What a person signs to hold effects; each field is bound by the signature, `typ: freeze+jwt`."""

    installation: str
    person: PersonId
    key_id: str
    tenant: TenantId
    tool: Tool
    """As in Freeze."""
    reason: Why
    issued_at: Instant
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16,64}$")]


class Freeze(Value):
    """One freeze."""

    tenant: TenantId
    number: Annotated[int, Field(ge=1)]
    """Counted per tenant; what `unfreeze` names."""
    tool: Tool = ""
    """The gateway's tool that it holds; empty: all of them."""
    reason: Why
    person: PersonId
    """Who froze it."""
    since: Instant
    lifted_at: Instant | None = None
    lifted_by: str = ""
    """The operation by which it was lifted; empty while it holds."""

    @model_validator(mode="after")
    def _lifted_by_an_operation(self) -> Freeze:
        if (self.lifted_at is not None) != bool(self.lifted_by):
            raise ValueError("a freeze is lifted at a time and by an operation, or not at all")
        return self

    @property
    def in_force(self) -> bool:
        """Whether it still holds anything."""
        return self.lifted_at is None

    def holds(self, tool: str, *, changes_authority: bool) -> bool:
        """Whether it holds an effect of this tool; never a change of authority, or it could hold its own end."""
        return self.in_force and not changes_authority and self.tool in ("", tool)


def holding(freezes: Iterable[Freeze], tool: str, *, changes_authority: bool) -> Freeze | None:
    """The first freeze that holds an effect of this tool; nothing if none does."""
    return next((one for one in freezes if one.holds(tool, changes_authority=changes_authority)), None)
