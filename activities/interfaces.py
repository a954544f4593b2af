"""What a workflow may call: one typed stub per step, with the values that go in and come out.

Apart from the steps themselves, so that workflow code imports neither them nor what they need. Everything here lands in
workflow history: ids, hashes and small values only (G46).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import Field
from temporalio import activity

from countersign.domain.decision import Outcome
from countersign.domain.execution import EffectResult
from countersign.domain.identity import Name, OperationId, TenantId
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.rubric import Verdict
from countersign.domain.state import State
from countersign.domain.values import Instant, Sha256, Value


class RunOrder(Value):
    """A workflow's input: which registered operation to carry out."""

    tenant: TenantId
    operation: OperationId
    case: Name
    request_hash: Sha256


class OpenOrder(Value):
    """Open an operation that is registered as ordered."""

    run: RunOrder
    now: Instant


class RunPlan(Value):
    """How a run goes, by its case and the installation's settings; asked once, so that a run keeps its own bounds."""

    drafted: bool
    """Whether an agent drafts, and checks and a grade come before the proposal."""
    max_rounds: Annotated[int, Field(ge=1)]
    """Draft versions at the most."""
    max_grader_tries: Annotated[int, Field(ge=1)]
    """Grader calls per draft at the most, where the answer cannot be read."""


class StepOrder(Value):
    """One step on one draft version."""

    tenant: TenantId
    operation: OperationId
    run_id: str
    draft_version: Annotated[int, Field(ge=0)]
    """0 where the case has no draft."""


class DraftWritten(Value):
    """A stored draft."""

    content: Sha256
    model: str


class Checked(Value):
    """What the deterministic checks found."""

    codes: Annotated[tuple[str, ...], Field(strict=False)]
    """The violations' codes, without the texts; empty is a pass."""


class Graded(Value):
    """What the gate made of the grader's answer."""

    verdict: Verdict
    model: str


class ProposeOrder(Value):
    """Put an action before people: of a checked and graded draft, or, from version 2 on, what the version before was
    edited to or is asked anew as."""

    step: StepOrder
    approval_version: Annotated[int, Field(ge=1)]
    draft_model: str = ""
    grade_model: str = ""
    now: Instant


class Proposed(Value):
    """A proposal as the run needs to know it; everything else lies in the ledger."""

    approval_id: str
    approval_version: int
    action_hash: Sha256
    view: Sha256
    """Hash of the reviewer's view."""
    roles: Annotated[tuple[str, ...], Field(strict=False)]
    """The roles that are asked; none where the policy grants by rule."""
    status: ApprovalStatus
    deadline: Instant
    execute_by: Instant


class Message(Value):
    """A signal or update as it came in; reading it is the activity's work, so that no flood can stall a run."""

    id: str
    """The run's own id: run id and running number."""
    name: str
    transport: Literal["signal", "update"]
    body: str | None = None
    """The text of its one JSON argument; nothing if it had not that form."""
    problem: str = ""
    """What is wrong with its form, where it has none."""
    received_at: Instant
    """When the run took it in, by workflow time; that a deadline passes before its ruling does not make it late."""


class MessageBatch(Value):
    """Messages in their order of arrival."""

    tenant: TenantId
    operation: OperationId
    messages: Annotated[tuple[Message, ...], Field(strict=False)]


class Decided(Value):
    """One outcome per message, and how the current approval stands after them."""

    outcomes: Annotated[tuple[Outcome, ...], Field(strict=False)]
    status: ApprovalStatus | None


class SettleOrder(Value):
    """End a pending approval without a decider."""

    tenant: TenantId
    operation: OperationId
    approval_id: str
    status: ApprovalStatus
    now: Instant


class StateRecord(Value):
    """Where the run stands now."""

    tenant: TenantId
    operation: OperationId
    state: State
    reason: str
    now: Instant


class EffectOrder(Value):
    """Which granted approval to execute; the gateway reads everything else for itself."""

    tenant: TenantId
    operation: OperationId
    approval_id: str


class Opening(ABC):
    """The run's own records."""

    @abstractmethod
    @activity.defn
    def open_run(self, order: OpenOrder) -> RunPlan:
        """Check the registered request, its hash and its signature, and write down that the run is RUNNING."""

    @abstractmethod
    @activity.defn
    def record_state(self, record: StateRecord) -> None:
        """Write down where the run stands."""


class Drafting(ABC):
    """The agent's step."""

    @abstractmethod
    @activity.defn
    async def draft(self, order: StepOrder) -> DraftWritten:
        """Let the deep agent write a version; heartbeats, resumes from its checkpoint, can be cancelled."""


class Validating(ABC):
    """The deterministic checks' step."""

    @abstractmethod
    @activity.defn
    async def validate(self, order: StepOrder) -> Checked:
        """Recompute every figure of a version on the pinned data."""


class Grading(ABC):
    """The rubric's step."""

    @abstractmethod
    @activity.defn
    async def grade(self, order: StepOrder) -> Graded:
        """One grader call on a version, through the gate."""


class Proposing(ABC):
    """The policy's step."""

    @abstractmethod
    @activity.defn
    def propose(self, order: ProposeOrder) -> Proposed:
        """Build the action, ask the policy, store proposal and reviewer's view; a denial is a refusal of this step."""


class Deciding(ABC):
    """The people's step."""

    @abstractmethod
    @activity.defn
    def decide(self, batch: MessageBatch) -> Decided:
        """Read, verify and rule on messages, recording each."""

    @abstractmethod
    @activity.defn
    def settle(self, order: SettleOrder) -> ApprovalStatus:
        """Expire or cancel a pending approval; a vote that came first stands."""


class Executing(ABC):
    """The gateway's steps."""

    @abstractmethod
    @activity.defn
    def execute(self, order: EffectOrder) -> EffectResult:
        """Carry out the granted action once."""

    @abstractmethod
    @activity.defn
    def reconcile(self, order: EffectOrder) -> EffectResult:
        """Look up what became of an unknown outcome; fails, to be tried again, for as long as it stays unknown."""
