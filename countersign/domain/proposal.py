"""A proposal: one version of an action as it is put before people, and how it stands."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from countersign.domain.action import Action, Reversibility
from countersign.domain.identity import PersonId
from countersign.domain.policy import Assessment, DecisionKind
from countersign.domain.values import Instant, Sha256, Value


class Proposal(Value):
    """Everything a reviewer is asked to decide about; frozen once it is made."""

    approval_id: str
    approval_version: Annotated[int, Field(ge=1)]
    action: Action
    action_hash: Sha256
    requester: PersonId
    """The person who signed the request, whom the agent acts for; may not approve (G02)."""
    reason: str
    """Why the action is proposed: the requester's question."""
    summary: str
    """The draft's title."""
    document: Sha256
    """The bytes that would go out, in the ledger."""
    evidence: Annotated[tuple[str, ...], Field(strict=False)]
    """References to the data it rests on: file name and hash."""
    reversibility: Reversibility
    draft_version: int
    verdict: str
    checks: str
    """What the deterministic checks said, in a sentence."""
    rubric_version: str
    model_version: str
    """The models that drafted and graded."""
    assessment: Assessment
    proposed_at: Instant
    deadline: Instant
    """From this instant on it is expired."""
    execute_by: Instant
    """From this instant on a grant is void, however it came about (G25)."""

    @property
    def tenant(self) -> str:
        """Whose business it is."""
        return self.action.tenant

    @property
    def operation(self) -> str:
        """Which operation it belongs to."""
        return self.action.operation

    @property
    def decisions(self) -> frozenset[DecisionKind]:
        """The decisions that every need allows."""
        allowed = [frozenset(need.decisions) for need in self.assessment.needs]
        return frozenset.intersection(*allowed) if allowed else frozenset()


class ApprovalStatus(StrEnum):
    """How a proposal stands; everything but `pending` and `granted` is final (G10)."""

    PENDING = "pending"
    GRANTED = "granted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    """A newer proposal of the operation took its place."""
    CONSUMED = "consumed"
    """Executed; the grant is used up."""


class Vote(Value):
    """One accepted decision."""

    person: PersonId
    decision: DecisionKind
    statement_id: str
    statement: str
    """The compact JWS as it came, so that anyone can verify it again."""
    comment_hash: Sha256 | Literal[""] = ""
    decided_at: Instant


class Approval(Value):
    """A proposal with its votes."""

    proposal: Proposal
    status: ApprovalStatus
    votes: Annotated[tuple[Vote, ...], Field(strict=False)] = ()
