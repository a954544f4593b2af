"""How a run presents itself to the outside: queries and result. Small values only; the ledger has the rest."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import QuestionStatus
from countersign.domain.state import State
from countersign.domain.values import Instant, Value


class RunStatus(Value):
    """Answer to the query `status`."""

    tenant: str
    operation: str
    case: str
    state: State
    reason: str
    draft_version: int
    approval_id: str
    control: str
    """Who is in control: `agent`, `nobody`, or the person."""
    control_version: int
    messages: int
    """Signals and updates received, accepted or not."""
    waiting: int
    """How many of them have no ruling yet."""
    refused: int
    """How many of them were refused; a statement that only came once more is not."""


class ProposalView(Value):
    """Answer to the query `proposal`: what the pending decision is about, by ids and hashes."""

    approval_id: str
    approval_version: int
    action_hash: str
    view: str
    """Hash of the reviewer's view, in the ledger's documents."""
    roles: Annotated[tuple[str, ...], Field(strict=False)]
    status: ApprovalStatus
    deadline: Instant
    execute_by: Instant


class QuestionView(Value):
    """Answer to the query `question`: what the agent waits for, by ids and hashes; the ledger has the texts."""

    number: int
    question: str
    """Its hash."""
    calls: int
    roles: Annotated[tuple[str, ...], Field(strict=False)]
    status: QuestionStatus
    deadline: Instant


class Step(Value):
    """One line of the query `timeline`."""

    at: Instant
    state: State
    reason: str


class RunResult(Value):
    """What a run ends with, whatever its end: a refusal by people is a result, not a failure of the workflow."""

    state: State
    reason: str
    reference: str = ""
    """Where the effect lies."""
    key: str = ""
    """The idempotency key it was sent under."""
