"""Notices: what people are told when a run needs them or has ended. A notice never decides anything, nor links to it.

It holds ids, codes and times alone: it leaves the house by mail and chat (G46).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from countersign.domain.directory import Role
from countersign.domain.escalation import Severity
from countersign.domain.identity import PersonId, TenantId
from countersign.domain.values import Instant, Value


class NoticeKind(StrEnum):
    """What happened."""

    APPROVAL_OPENED = "approval_opened"
    APPROVAL_REMINDER = "approval_reminder"
    APPROVAL_ESCALATED = "approval_escalated"
    APPROVAL_FROZEN = "approval_frozen"
    QUESTION_ASKED = "question_asked"
    QUESTION_REMINDER = "question_reminder"
    QUESTION_ESCALATED = "question_escalated"
    QUESTION_EXPIRED = "question_expired"
    ESCALATION_RAISED = "escalation_raised"
    ESCALATION_UNANSWERED = "escalation_unanswered"
    CONTROL_CHANGED = "control_changed"
    RUN_ENDED = "run_ended"
    FROZEN = "frozen"
    UNFROZEN = "unfrozen"
    DELIVERY_FAILED = "delivery_failed"


class Notice(Value):
    """Something that people are told."""

    kind: NoticeKind
    tenant: TenantId
    operation: str = ""
    """Empty where it concerns the whole tenant."""
    roles: Annotated[tuple[Role, ...], Field(strict=False)] = ()
    persons: Annotated[tuple[PersonId, ...], Field(strict=False)] = ()
    """Told beside whoever has one of the roles."""
    severity: Severity = Severity.LOW
    code: str = ""
    """Reason code, state, or what else tells this one from others of its kind."""
    deadline: Instant | None = None
    at: Instant
