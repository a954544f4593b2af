"""What the activities need from outside, as protocols; `bootstrap` says which part fulfils each.

Every ledger method is one transaction that holds the state change and its audit record together (G45), is scoped to a
tenant, and gives the same answer when it is repeated: an activity may run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from countersign.domain.action import Action
from countersign.domain.administration import Authority, DirectoryChange, PolicyChange
from countersign.domain.audit import AuditRecord, Checkpoint
from countersign.domain.decision import Outcome, Statement
from countersign.domain.directory import Person
from countersign.domain.draft import DatasetRef, Draft, ReportRequest, Violation
from countersign.domain.edit import Edit
from countersign.domain.execution import EffectResult, Execution, Receipt
from countersign.domain.operation import Operation
from countersign.domain.policy import Policy, Spent, Window
from countersign.domain.proposal import Approval, ApprovalStatus, Assurance, Proposal, Rejection
from countersign.domain.rubric import Grade, GraderAnswer, Rubric
from countersign.domain.state import State
from countersign.domain.values import Instant, Sha256, Value


class Clock(Protocol):
    """The wall clock of the edge; workflows pass their own time instead."""

    def __call__(self) -> datetime:
        """Now, in UTC."""
        ...


class Documents(Protocol):
    """Texts of a tenant under their hash: requests, drafts, rendered documents, reviewer's views, comments."""

    def put(self, tenant: str, data: bytes) -> Sha256:
        """Store once; return the hash."""
        ...

    def get(self, tenant: str, sha256: str) -> bytes:
        """The bytes, checked against their hash again; NotFound where there are none."""
        ...


class Operations(Protocol):
    """The registered operations."""

    def register(self, operation: Operation) -> Operation:
        """Insert, or return the stored one if its request hash and case are the same; else Conflict (both named).

        NotAuthorised while the tenant's first set-up is open: nobody could say yet who may decide.
        """
        ...

    def get(self, tenant: str, operation: str) -> Operation:
        """The stored one, or NotFound."""
        ...

    def list(self, tenant: str) -> Sequence[Operation]:
        """All of a tenant, newest first."""
        ...

    def move(self, tenant: str, operation: str, state: State, reason: str, now: datetime) -> None:
        """Record where the run stands (audit `run.<state>`); a repeat of the same state and reason records nothing.

        Conflict where the operation has ended: nobody moves a terminal state.
        """
        ...


class Drafts(Protocol):
    """Drafts of an operation, v1, v2, ...; kept with what the checks and the grader said of each."""

    def save(self, tenant: str, operation: str, version: int, draft: Draft, model: str, now: datetime) -> Sha256:
        """Store a version once (audit `draft.written`); another content under the same version is a Conflict."""
        ...

    def get(self, tenant: str, operation: str, version: int) -> Draft:
        """That version, or NotFound."""
        ...

    def written(self, tenant: str, operation: str, version: int) -> Written | None:
        """That version with the model that wrote it, or nothing."""
        ...

    def passed(self, tenant: str, operation: str, version: int) -> bool:
        """Whether this version's latest checks found nothing and its latest grade is satisfied; neither may lack."""
        ...

    def grade(self, tenant: str, operation: str, version: int) -> Grade | None:
        """The version's latest grade, or nothing."""
        ...

    def feedback(self, tenant: str, operation: str, version: int) -> tuple[str, ...]:
        """What the checks and the latest grade said of a version, a line each; empty where it was satisfied."""
        ...

    def save_checks(
        self, tenant: str, operation: str, version: int, violations: Sequence[Violation], now: datetime
    ) -> None:
        """Keep what the deterministic checks found (audit `draft.checked` with the codes)."""
        ...

    def save_grade(self, tenant: str, operation: str, version: int, grade: Grade, rubric: str, now: datetime) -> None:
        """Keep the grade and the grader's raw answer (audit `draft.graded` with the verdict)."""
        ...


class Received(Value):
    """A verified statement as it came to a run."""

    message_id: str
    """The run's own id of the message."""
    transport: str
    statement: Statement
    token: str
    """The compact JWS, or the canonical JSON of a decision that nobody signed."""
    assurance: Assurance
    at: Instant
    """When the run took it in."""


class Adopted(Value):
    """A policy in force."""

    policy: Policy
    since: Instant
    basis: str
    """By what right it came in force: `first_set_up`, or the operation."""


class Approvals(Protocol):
    """Proposals and the decisions about them."""

    def open(self, proposal: Proposal, run_id: str, view: Sha256, now: datetime) -> Approval:
        """Store a pending (or by rule granted) proposal once per run and approval version (audit `approval.opened` or
        `approval.granted_by_rule`, with the hash of the reviewer's view); a repeat returns the stored one.

        One that was edited from an approval carries the editor's vote over where the edit counts as an approval
        (domain.edit.edit_counts), and is then GRANTED at once if nothing is unmet.
        """
        ...

    def get(self, tenant: str, approval_id: str) -> Approval:
        """That approval with its votes, or NotFound."""
        ...

    def current(self, tenant: str, operation: str) -> Approval | None:
        """The operation's latest approval."""
        ...

    def pending(self, tenant: str) -> Sequence[Approval]:
        """All that wait for people, the nearest deadline first."""
        ...

    def of_operation(self, tenant: str, operation: str) -> Sequence[Approval]:
        """All approvals that the operation ever had, oldest first."""
        ...

    def targets(self, tenant: str) -> Sequence[str]:
        """Every target that anything was ever proposed for in the tenant, each once, by name."""
        ...

    def decide(self, received: Received, signer: Person, edit: Edit | None = None) -> Outcome:
        """Rule (domain.decision.rule_on) on a verified statement and record the outcome, all in one transaction.

        A statement id that was seen before is a replay, or a conflict if its body differs; a repeat of the same
        message id returns the recorded outcome. Exactly one of many concurrent callers settles an approval.
        """
        ...

    def record_refusal(
        self, tenant: str, operation: str, message_id: str, transport: str, outcome: Outcome, now: datetime
    ) -> Outcome:
        """Record a message that never became a verified statement (audit `decision.refused`); once per message id."""
        ...

    def settle(self, tenant: str, approval_id: str, status: ApprovalStatus, now: datetime) -> ApprovalStatus:
        """Move a pending approval to EXPIRED or CANCELLED, or a grant under which nothing was sent to CANCELLED.

        No decider is named. Returns how it stands now, which is what a vote that came first has made of it.
        """
        ...

    def void(
        self, tenant: str, approval_id: str, reason: str, expected: str, found: str, now: datetime
    ) -> ApprovalStatus:
        """Void a grant under which nothing was sent (audit `approval.voided` with what was expected and found).

        Returns how it stands now.
        """
        ...

    def void_reason(self, tenant: str, approval_id: str) -> str:
        """Why that approval was voided, as a sentence; empty if it was not."""
        ...

    def spent(
        self, action: Action, windows: Sequence[Window], before: Approval | None, now: datetime
    ) -> tuple[Spent, ...]:
        """What other operations' actions of the same tenant, tool and currency come to in each window (G08).

        Counted: what is pending or granted, and what was executed within the window. `before`: only approvals opened
        earlier than the one of this id; of two that were opened at once, at least one then sees the other.
        """
        ...

    def approved_by(self, person: Person, action: Action, now: datetime) -> int:
        """Minor units in the action's currency that the person approved within their limit's window, other operations'
        actions only; 0 where the action has no amount or the person's limit no window."""
        ...

    def rejection_like(self, action: Action, since: datetime) -> Rejection | None:
        """The tenant's latest rejection of an action of the same likeness at or after `since`."""
        ...


class Executions(Protocol):
    """Executions; one row per idempotency key."""

    def claim(self, approval: Approval, key: str, now: datetime, until: datetime) -> Execution:
        """Record the intent and take the sole right to send until `until` (audit `effect.intended`), all in one go.

        Returns the stored execution unchanged if it is EXECUTED. Raises Conflict with a reason if another action hash
        of the same operation has an execution that is not settled as NOT_SENT (G32), Unavailable if somebody else
        holds an unexpired claim (G31). The returned execution's status says how the attempt before ended: INTENDED
        with attempt > 1 and UNKNOWN both mean: look up before sending.
        """
        ...

    def finish(self, execution: Execution, receipt: Receipt, now: datetime) -> Execution:
        """EXECUTED with its receipt, the approval CONSUMED (audit `effect.executed`); Conflict for a stale attempt."""
        ...

    def not_sent(self, execution: Execution, reason: str, now: datetime) -> Execution:
        """NOT_SENT (audit `effect.not_sent`); the key stays usable (G34)."""
        ...

    def unknown(self, execution: Execution, reason: str, now: datetime) -> Execution:
        """UNKNOWN (audit `effect.unknown`)."""
        ...

    def refused(
        self, tenant: str, operation: str, approval_id: str, reason: str, now: datetime, *, alarm: bool
    ) -> None:
        """Record that the gateway refused (audit `effect.refused`), and with `alarm` that no honest course leads there
        (audit `alarm.raised`), in one go."""
        ...

    def get(self, tenant: str, operation: str) -> Execution | None:
        """The operation's latest execution."""
        ...

    def at_target(self, tenant: str, target: str) -> Receipt | None:
        """What was executed last at an action's target, whichever operation it was; nothing if nothing was."""
        ...


class Directory(Protocol):
    """Persons and keys of tenants, and the policies in force there.

    Changed in two ways only: directly while the first set-up of a tenant is open (every record then says
    `basis: first_set_up`), and afterwards by `apply`, which the gateway calls with an executed action (G13).
    """

    def person(self, tenant: str, person: str) -> Person | None:
        """The person, or nothing; tenants never see each other's."""
        ...

    def persons(self, tenant: str) -> dict[str, Person]:
        """All of a tenant by id."""
        ...

    def policies(self, tenant: str) -> dict[str, Policy]:
        """The policies in force by name."""
        ...

    def adopted(self, tenant: str) -> Mapping[str, Adopted]:
        """The same, with since when and by what right."""
        ...

    def authority(self, tenant: str) -> Authority:
        """Persons and policies as they are at one moment."""
        ...

    def tenants(self) -> Sequence[str]:
        """Every tenant with persons, operations, audit records or a checkpoint."""
        ...

    def set_up_open(self, tenant: str) -> bool:
        """Whether the tenant's first set-up is still open; also for a tenant that nobody knows."""
        ...

    def set_up(self, tenant: str, change: DirectoryChange, subject: str, now: datetime) -> None:
        """Make a change directly (audit `directory.person_changed`, `.key_added`, `.key_revoked`).

        NotAuthorised once the set-up is closed; InputRefused for a change with problems other than a lock-out.
        """
        ...

    def adopt(self, tenant: str, policies: Sequence[Policy], subject: str, now: datetime) -> None:
        """Put policies in force while the first set-up is open, in place of those of their names (audit
        `policy.adopted`); NotAuthorised once it is closed."""
        ...

    def close_set_up(self, tenant: str, subject: str, now: datetime) -> bool:
        """End the first set-up (audit `set_up.closed`); from then on only governed actions change anything. False, and
        nothing done, where it is closed already.

        InputRefused where the tenant could then never change its own directory (domain.administration.lockout).
        """
        ...

    def apply(self, tenant: str, change: DirectoryChange | PolicyChange, action: Action, now: datetime) -> None:
        """Make a governed change once (audit as in `set_up`, or `policy.adopted`, each with `basis: OPERATION`), keyed
        on the action's idempotency key.

        Drifted where what it is about is no longer what the action's evidence hash says; InputRefused for problems.
        """
        ...

    def applied(self, tenant: str, key: str) -> bool:
        """Whether the change of that idempotency key was made."""
        ...


class AuditLog(Protocol):
    """The append-only record."""

    def append(
        self, tenant: str, type: str, operation: str, subject: str, detail: dict[str, JsonValue], now: datetime
    ) -> AuditRecord:
        """Append one record in a transaction of its own, for facts that change no other table."""
        ...

    def records(self, tenant: str, operation: str | None = None) -> Iterator[AuditRecord]:
        """The records in order of sequence, all or one operation's."""
        ...

    def verify(self, tenant: str) -> Checkpoint:
        """Recompute the chain against the checkpoint outside; ChainBroken names the first bad record."""
        ...


class Ledger(Protocol):
    """The business database, one object with its parts."""

    documents: Documents
    operations: Operations
    drafts: Drafts
    approvals: Approvals
    executions: Executions
    directory: Directory
    audit: AuditLog

    def check_writable(self) -> None:
        """Unavailable, with the reason, where nothing could be written now; leaves nothing behind."""
        ...

    def tenants_walled(self) -> bool:
        """Whether row level security holds for the database's user as whom we are connected.

        False for a PostgreSQL superuser, or one with BYPASSRLS: then only the program's own queries keep tenants apart.
        True on SQLite, whose file is guarded by its file rights alone.
        """
        ...

    def close(self) -> None:
        """Give back all connections."""
        ...


class Cell(Protocol):
    """The one value that a query yielded."""

    @property
    def text(self) -> str:
        """Exact text."""
        ...

    @property
    def kind(self) -> str:
        """`number`, `date` or `text`."""
        ...

    @property
    def unit(self) -> str | None:
        """The unit or currency it surely has; empty: surely none; None: it cannot be told."""
        ...


class DatasetReader(Protocol):
    """One dataset, read strictly and open for queries."""

    def describe(self) -> Value:
        """Columns, types, counts, ranges; as a frozen value."""
        ...

    def query(self, sql: str) -> Value:
        """The rows of one bounded read-only SELECT on table `data`; QueryRefused otherwise."""
        ...

    def single_value(self, sql: str) -> Cell:
        """The value of a query with one row and one column; QueryRefused otherwise."""
        ...

    def close(self) -> None:
        """Give the reading back."""
        ...


class Evidence(Protocol):
    """Datasets of a tenant under the hash of their bytes."""

    def put(self, tenant: str, source: Path) -> Sha256:
        """Store a file once; return its hash."""
        ...

    def open(self, tenant: str, dataset: DatasetRef) -> DatasetReader:
        """Read it as declared; DataRefused names row, column and value; NotFound where the tenant has no such data."""
        ...

    def verify(self, tenant: str, sha256: str) -> None:
        """Hash the stored bytes again; DataRefused where they are no longer the pinned ones."""
        ...


class Written(Value):
    """A finished draft and the model that wrote it."""

    draft: Draft
    model: str


class Drafter(Protocol):
    """The deep agent that drafts."""

    async def draft(
        self,
        thread: str,
        attempt: int,
        request: ReportRequest,
        dataset: DatasetReader,
        earlier: Draft | None,
        feedback: Sequence[str],
        on_progress: Callable[[str], None],
    ) -> Written:
        """Write a draft.

        Args:
            thread: what the durable checkpoint is keyed on: tenant, operation, run and draft version.
            attempt: the activity attempt; an older attempt's checkpoint writes are refused.
            request: what was asked.
            dataset: the pinned data that the tools read.
            earlier: the version before, where there is one.
            feedback: what the checks and the grader said of that version.
            on_progress: called with a few words at every model and tool call.
        """
        ...


class Grader(Protocol):
    """Grades a whole draft against a rubric, with one model call."""

    async def grade(self, document: str, rubric: Rubric, request: ReportRequest) -> GraderAnswer:
        """The grader's answer as it came; an answer that cannot be read has verdict `grader_error`."""
        ...


class Effects(Protocol):
    """The gateway: verifies the grant for itself, then acts once."""

    def execute(self, tenant: str, approval_id: str) -> EffectResult:
        """Verify, claim, send or look up, record."""
        ...

    def reconcile(self, tenant: str, approval_id: str) -> EffectResult:
        """Only look up what became of an unknown outcome; never sends."""
        ...
