"""What a workflow may call: one typed stub per step, with the values that go in and come out.

Apart from the steps themselves, so that workflow code imports neither them nor what they need. Everything here lands in
workflow history: ids, hashes and small values only (G46).
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import Field
from temporalio import activity

from countersign.domain.command import CommandKind, Ending
from countersign.domain.control import Control
from countersign.domain.decision import Outcome
from countersign.domain.directory import Role
from countersign.domain.escalation import Reason, Severity
from countersign.domain.execution import EffectResult
from countersign.domain.identity import Name, OperationId, PersonId, TenantId
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import QuestionStatus
from countersign.domain.retention import Forgotten, RetentionOrder
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


class HandOnOrder(Value):
    """The run goes on in a next one, since its history has grown long."""

    tenant: TenantId
    operation: OperationId
    line: str
    """The id of the run that began; what every step names as its own, whichever run asks for it."""
    now: Instant


class EarlierEffect(Value):
    """An execution that is older than the run."""

    approval_id: str
    effect: EffectResult


class RunPlan(Value):
    """How a run goes, by its case and the installation's settings; asked once, so that a run keeps its own bounds."""

    drafted: bool
    """Whether an agent drafts, and checks and a grade come before the proposal."""
    max_rounds: Annotated[int, Field(ge=1)]
    """Draft versions at the most."""
    max_grader_tries: Annotated[int, Field(ge=1)]
    """Grader calls per draft at the most, where the answer cannot be read."""
    control: Control
    """Who is in control, and how people ended the operation where they did: both can be older than the run."""
    ending: Ending | None = None
    gathers: bool = False
    """Whether facts are gathered outside before anything is drafted or proposed."""
    followers: Annotated[tuple[RunOrder, ...], Field(strict=False)] = ()
    """The operations whose runs it begins once its effect is confirmed."""
    standing: EarlierEffect | None = None
    """The operation's execution, where an earlier run has come so far: its effect is never asked for again."""


class StepOrder(Value):
    """One step on one draft version."""

    tenant: TenantId
    operation: OperationId
    line: str
    """As in HandOnOrder."""
    draft_version: Annotated[int, Field(ge=0)]
    """0 where the case has no draft."""
    control_version: Annotated[int, Field(ge=1)]
    """Under whose control it is done; what comes of it later than that is discarded (G30)."""
    resumed: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """How often the version was gone on with after a pause: by an answer, or by more to spend. Not written down where
    it is 0: the runs of before there were pauses replay to the same orders."""


class QuestionAsked(Value):
    """A question of the agent's as the run needs to know it; the texts lie in the ledger."""

    number: Annotated[int, Field(ge=1)]
    question: Sha256
    """Its hash, which an answer names."""
    calls: Annotated[int, Field(ge=1)]
    """How many calls wait."""
    roles: Annotated[tuple[str, ...], Field(strict=False)]
    status: QuestionStatus
    deadline: Instant
    ticks: Annotated[tuple[Instant, ...], Field(strict=False)] = ()
    """When reminders and further people are due."""
    freezes: bool = False
    """Whether a run that nobody answered is held at the deadline instead of ending."""


class QuestionOrder(Value):
    """A tick (counted from 0), or the deadline, of a pending question has come."""

    tenant: TenantId
    operation: OperationId
    number: Annotated[int, Field(ge=1)]
    tick: Annotated[int, Field(ge=0)] | None = None
    """Nothing: the deadline."""
    now: Instant


class QuestionMarked(Value):
    """How a question stands after it."""

    status: QuestionStatus
    escalated: bool
    """Whether further people are asked from this tick on."""
    roles: Annotated[tuple[str, ...], Field(strict=False)]


class DraftWritten(Value):
    """A stored draft; or, where `asked` is given, none yet: the agent waits for people."""

    content: Sha256 | Literal[""]
    model: str
    asked: QuestionAsked | None = None


class Checked(Value):
    """What the deterministic checks found."""

    codes: Annotated[tuple[str, ...], Field(strict=False)]
    """The violations' codes, without the texts; empty is a pass."""
    stops: str = ""
    """The code of a finding that no further draft may mend, since people have to look at it; empty if there is none."""


class Graded(Value):
    """What the gate made of the grader's answer."""

    verdict: Verdict
    model: str


class ProposeOrder(Value):
    """Put an action before people: of a checked and graded draft, or, from version 2 on, what the version before was
    edited to or is asked anew as."""

    step: StepOrder
    approval_version: Annotated[int, Field(ge=1)]
    proposed_by: str = "agent"
    """`agent`, or the person in control, who is then one of the action's authors."""
    content: Sha256 | Literal[""] = ""
    """Arguments that the person gave instead of those that the draft comes to; the ledger's documents hold them."""
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
    ticks: Annotated[tuple[Instant, ...], Field(strict=False)] = ()
    """When reminders and further lines of people are due (domain.need.ticks)."""
    freezes: bool = False
    """Whether a run that nobody decided about is held at the deadline instead of ending."""


class MarkOrder(Value):
    """A tick of a pending approval has come."""

    tenant: TenantId
    operation: OperationId
    approval_id: str
    tick: Annotated[int, Field(ge=0)]
    now: Instant


class Marked(Value):
    """How the approval stands at a tick."""

    status: ApprovalStatus
    escalated: bool
    """Whether further people are asked from this tick on."""
    roles: Annotated[tuple[str, ...], Field(strict=False)]
    """The roles that are asked now."""


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
    """When the run took it in, by workflow time, or the server before that, where it matters (`SignalTimes`); that a
    deadline passes before its ruling does not make it late."""
    signal: Annotated[int, Field(ge=0)] = 0
    """Which of this run's signals it is, counted from 1; 0 for an update."""


class MessageBatch(Value):
    """Messages in their order of arrival."""

    tenant: TenantId
    operation: OperationId
    messages: Annotated[tuple[Message, ...], Field(strict=False)]


class Told(Value):
    """An accepted command that the run has to act upon."""

    command: CommandKind
    person: PersonId
    draft_version: int
    content: Sha256 | Literal[""] = ""


class Decided(Value):
    """One outcome per message, and how approval and control stand after them."""

    outcomes: Annotated[tuple[Outcome, ...], Field(strict=False)]
    status: ApprovalStatus | None
    """The current approval's."""
    question: QuestionStatus | None = None
    """The newest question's, where a command was among the messages and there is one."""
    control: Control | None = None
    """Where a command was among the messages: who is in control now."""
    ending: Ending | None = None
    """How people ended the run, where they did."""
    draft_version: int = 0
    """The latest, where a command was among the messages."""
    told: Annotated[tuple[Told, ...], Field(strict=False)] = ()
    """The accepted commands, in their order."""


class TimesOrder(Value):
    """Signals of the asking run, counted from 1, whose times decide."""

    tenant: TenantId
    operation: OperationId
    signals: Annotated[tuple[int, ...], Field(strict=False)]


class SignalTimes(Value):
    """When the server recorded each, in the order's order."""

    times: Annotated[tuple[Instant, ...], Field(strict=False)]
    cancelled_at: Instant | None = None
    """When it recorded that the run is to be cancelled, if anybody asked for that."""


class LapseOrder(Value):
    """A person's lease is over."""

    tenant: TenantId
    operation: OperationId
    control_version: int
    now: Instant


class EscalateOrder(Value):
    """The run cannot go on by itself."""

    tenant: TenantId
    operation: OperationId
    code: str
    """Why: the reason code that it would end with."""
    attempts: Annotated[int, Field(ge=0)]
    now: Instant


class Escalated(Value):
    """To whom it was brought; `number` 0 where no policy routes the reason, and nothing was done."""

    number: int
    reason: Reason | None = None
    role: Role | Literal[""] = ""
    severity: Severity | None = None
    deadline: Instant | None = None


class UnansweredOrder(Value):
    """Nobody took an escalated run over within its time."""

    tenant: TenantId
    operation: OperationId
    number: Annotated[int, Field(ge=1)]
    now: Instant


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


class GatherOrder(Value):
    """Which operation's facts to gather."""

    tenant: TenantId
    operation: OperationId


class Gathered(Value):
    """Facts that were gathered."""

    content: Sha256


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
    def hand_on(self, order: HandOnOrder) -> None:
        """Write down that the run goes on in a next one."""

    @abstractmethod
    @activity.defn
    def take_on(self, order: HandOnOrder) -> None:
        """Make the asking run the one that carries the line on; refused where nobody handed it on."""

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


class Questioning(ABC):
    """What the agent asks of people, while nobody answers."""

    @abstractmethod
    @activity.defn
    def mark_question(self, order: QuestionOrder) -> QuestionMarked:
        """Remind, or ask further people, once, of a question that is pending still."""

    @abstractmethod
    @activity.defn
    def expire_question(self, order: QuestionOrder) -> QuestionMarked:
        """Close it at its deadline; an answer that came first stands."""


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
    async def signal_times(self, order: TimesOrder) -> SignalTimes:
        """When the server recorded signals of the asking run."""

    @abstractmethod
    @activity.defn
    def mark(self, order: MarkOrder) -> Marked:
        """Remind, or ask further people, once, of an approval that is pending still."""

    @abstractmethod
    @activity.defn
    def settle(self, order: SettleOrder) -> ApprovalStatus:
        """Expire or cancel a pending approval; a vote that came first stands."""


class Escalating(ABC):
    """What is brought before people because the run cannot go on."""

    @abstractmethod
    @activity.defn
    def escalate(self, order: EscalateOrder) -> Escalated:
        """Bring the run before whom the policy names for the reason, with all that is known of it."""

    @abstractmethod
    @activity.defn
    def unanswered(self, order: UnansweredOrder) -> None:
        """Write down that nobody came."""

    @abstractmethod
    @activity.defn
    def lapse(self, order: LapseOrder) -> Control:
        """Take control from a person whose lease is over; returns who is in control now."""


class Retaining(ABC):
    """What is kept of ended operations beside the ledger."""

    @abstractmethod
    @activity.defn
    def forget_threads(self, order: RetentionOrder) -> Forgotten:
        """Delete the agents' threads of operations that ended longer ago than ordered."""


class Executing(ABC):
    """The gateway's steps."""

    @abstractmethod
    @activity.defn
    def execute(self, order: EffectOrder) -> EffectResult:
        """Carry out the granted action once."""

    @abstractmethod
    @activity.defn
    def gather(self, order: GatherOrder) -> Gathered:
        """Read outside what the operation rests on; refused for good where there is no such thing."""

    @abstractmethod
    @activity.defn
    def reconcile(self, order: EffectOrder) -> EffectResult:
        """Look up what became of an unknown outcome; fails, to be tried again, for as long as it stays unknown."""
