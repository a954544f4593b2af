"""What goes on while a run is drafted and graded, for whoever watches; never the audit.

Our own stable form of what the agent framework tells: a watcher sees the same whichever release of it is installed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from countersign.domain.identity import OperationId, TenantId
from countersign.domain.values import Instant, Value


class ProgressKind(StrEnum):
    """What happened."""

    DRAFTING = "drafting"  # the agent begins, or goes on after a pause or a kill
    MODEL_CALLED = "model_called"
    MODEL_ANSWERED = "model_answered"
    MODEL_FAILED = "model_failed"
    TOOL_CALLED = "tool_called"
    ASKED = "asked"  # the agent waits for people
    ANSWERED = "answered"
    DRAFTED = "drafted"
    GRADING = "grading"
    GRADED = "graded"


class Progress(Value):
    """One event."""

    tenant: TenantId
    operation: OperationId
    number: Annotated[int, Field(ge=1)]
    """Its offset: counted per operation, without gaps."""
    at: Instant
    kind: ProgressKind
    draft_version: Annotated[int, Field(ge=0)]
    name: Annotated[str, Field(max_length=200)] = ""
    """Which model, tool or verdict; never a text of a person, a model or data (G46)."""
    detail: Annotated[str, Field(max_length=200)] = ""
    """A number or code: `call 3`, `912 ms`, `unavailable`."""
