"""How long the agents' stored threads are kept after their operation has ended, and what was deleted."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from countersign.domain.durations import Duration
from countersign.domain.identity import TenantId
from countersign.domain.values import Value

DELETED = "threads.deleted"
"""The type of the audit's record of it."""


class RetentionOrder(Value):
    """Delete the threads of all operations that ended longer ago than this."""

    keep: Duration
    tenant: TenantId | Literal[""] = ""
    """Empty: of every tenant."""


class Forgotten(Value):
    """How much was deleted."""

    operations: Annotated[int, Field(ge=0)]
    threads: Annotated[int, Field(ge=0)]

    def __add__(self, other: Forgotten) -> Forgotten:
        """Both together."""
        return Forgotten(operations=self.operations + other.operations, threads=self.threads + other.threads)


NOTHING = Forgotten(operations=0, threads=0)
