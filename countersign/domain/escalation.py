"""Escalation: why a run is brought before people, to whom a policy routes it, and what they are told. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from countersign.domain.directory import Role
from countersign.domain.durations import Duration
from countersign.domain.identity import OperationId, PersonId, TenantId
from countersign.domain.values import Instant, Sha256, Value

OUT_OF_BUDGET = "budget_exceeded"
"""The reason code of a run whose budget for models is used up."""


class Reason(StrEnum):
    """Why a run cannot go on by itself."""

    POLICY_CONFLICT = "POLICY_CONFLICT"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    SENSITIVE_DATA = "SENSITIVE_DATA"
    TOOL_OUTCOME_UNKNOWN = "TOOL_OUTCOME_UNKNOWN"
    LOW_CONFIDENCE = "LOW_CONFIDENCE"
    PROMPT_INJECTION_SUSPECTED = "PROMPT_INJECTION_SUSPECTED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    REPEATED_TOOL_FAILURE = "REPEATED_TOOL_FAILURE"
    APPROVAL_TIMEOUT = "APPROVAL_TIMEOUT"


class Severity(StrEnum):
    """How urgent it is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Route(Value):
    """To whom a policy brings a run for one reason."""

    role: Role
    """Who may then take the run over, or end it."""
    severity: Annotated[Severity, Field(strict=False)]
    within: Duration | None = None
    """How long they have. Nothing: it waits for them.

    A run that nobody took over by then ends as failed; one held undecided at its deadline ends as expired; one whose
    outcome is unknown goes on being looked up, and they are called again."""
    tell: Annotated[tuple[Role, ...], Field(strict=False)] = ()
    """Roles that hear of it beside `role`."""


class Escalation(Value):
    """A run that was brought before people, once."""

    tenant: TenantId
    operation: OperationId
    number: Annotated[int, Field(ge=1)]
    """Counted per operation."""
    reason: Reason
    code: str
    """Why, in particular: the reason code with which the run gave up."""
    role: Role
    severity: Severity
    deadline: Instant | None
    attempts: Annotated[int, Field(ge=0)]
    """How often it was tried: asks where nobody decided, sendings where the outcome is unknown, else draft versions."""
    last_error: str
    """The code of the last step that failed, or of the last finding; empty where nothing did."""
    snapshot: Sha256
    """Everything the ledger knew of the operation then, as canonical JSON in the documents."""
    suggested_action: str
    raised_at: Instant
    outcome: Literal["open", "taken_over", "ended", "went_on", "unanswered"] = "open"
    answered_by: PersonId | None = None

    @property
    def out_of_budget(self) -> bool:
        """Whether the run waits for a larger budget, rather than for somebody who mends it."""
        return self.code == OUT_OF_BUDGET


SUGGESTED: Mapping[Reason, str] = {
    Reason.POLICY_CONFLICT: "compare the request with the policy; take the run over and change the action, or end it",
    Reason.PERMISSION_DENIED: "look at who asked and at their roles; have the roles or the request changed",
    Reason.SENSITIVE_DATA: "look at what the draft would disclose; take the run over and amend it, or end it",
    Reason.TOOL_OUTCOME_UNKNOWN: (
        "ask the outside system by the idempotency key, and settle what you find there; nothing is sent anew meanwhile"
    ),
    Reason.LOW_CONFIDENCE: "read the findings of checks and grader; take the run over and amend the draft, or end it",
    Reason.PROMPT_INJECTION_SUSPECTED: "find the text in draft or data that gives orders; then amend, or end the run",
    Reason.BUDGET_EXCEEDED: (
        "look at what was spent; raise the budget, take the run over, or end it and ask a narrower question"
    ),
    Reason.REPEATED_TOOL_FAILURE: (
        "look at what failed or refused: model service, data or outside system; take the run over, or end it"
    ),
    Reason.APPROVAL_TIMEOUT: "find out why nobody decided; take the run over and propose again, or end it",
}
"""What a person is told to do first."""

_SUGGESTED_FOR: Mapping[str, str] = {
    "checkpoint_refused": (
        "read its sentence in timeline, which names the key that is missing; put that key back into"
        " COUNTERSIGN_THREAD_KEYS, or where that is not set into keys/threads.keys (doctor names all that are missing),"
        " and restart the workers; then take the run over and release it, or end it"
    ),
    "model_refused": (
        "read its sentence in timeline; look at the model service's key, quota and model's name, or at the request;"
        " then take the run over and release it, or end it"
    ),
}
"""The same for codes that say more than their reason."""

REASONS: Mapping[str, Reason] = {
    "denied_by_policy": Reason.POLICY_CONFLICT,
    "not_authorised": Reason.PERMISSION_DENIED,
    "sensitive_data": Reason.SENSITIVE_DATA,
    "prompt_injection_suspected": Reason.PROMPT_INJECTION_SUSPECTED,
    "checks_failed": Reason.LOW_CONFIDENCE,
    "rubric_failed": Reason.LOW_CONFIDENCE,
    "max_iterations_reached": Reason.LOW_CONFIDENCE,
    "evidence_contradicts_itself": Reason.LOW_CONFIDENCE,
    "evidence_gone": Reason.REPEATED_TOOL_FAILURE,
    "data_refused": Reason.REPEATED_TOOL_FAILURE,
    "drafting_failed": Reason.BUDGET_EXCEEDED,
    "rubric_grader_error": Reason.REPEATED_TOOL_FAILURE,
    "model_refused": Reason.REPEATED_TOOL_FAILURE,
    "checkpoint_refused": Reason.REPEATED_TOOL_FAILURE,
    "step_failed": Reason.REPEATED_TOOL_FAILURE,
    "voided_too_often": Reason.REPEATED_TOOL_FAILURE,
    "outside_refused": Reason.REPEATED_TOOL_FAILURE,
    "facts_refused": Reason.REPEATED_TOOL_FAILURE,
    "facts_unreadable": Reason.REPEATED_TOOL_FAILURE,
    "facts_unsteady": Reason.REPEATED_TOOL_FAILURE,
    OUT_OF_BUDGET: Reason.BUDGET_EXCEEDED,
    "undecided_at_deadline": Reason.APPROVAL_TIMEOUT,
    "unanswered_at_deadline": Reason.APPROVAL_TIMEOUT,
    "outcome_unknown": Reason.TOOL_OUTCOME_UNKNOWN,
    "lease_over": Reason.APPROVAL_TIMEOUT,
}
"""By the code with which a run gave up; docs/operations.md says what to do about each."""


def suggested(reason: Reason, code: str) -> str:
    """What a person is told to do first about a run that gave up with `code`."""
    return _SUGGESTED_FOR.get(code, SUGGESTED[reason])


def reason_of(code: str) -> Reason | None:
    """Why a run that gave up with `code` is brought before people; nothing where nobody could mend it."""
    return REASONS.get(code)
