"""What the ledger keeps of an operation: documents, drafts, executions, and the audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue

from countersign.domain.audit import AuditRecord, Checkpoint
from countersign.domain.draft import Draft, Violation
from countersign.domain.execution import Execution, Receipt
from countersign.domain.operation import Operation
from countersign.domain.proposal import Approval
from countersign.domain.rubric import Grade
from countersign.domain.state import State
from countersign.domain.values import Sha256, Value


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

        An end is told to the requester (a notice). Conflict where the operation has ended: nobody moves a terminal
        state.
        """
        ...

    def hand_on(self, tenant: str, operation: str, line: str, run_id: str, now: datetime) -> None:
        """Record that run `run_id` of this line goes on in a next run (audit `run.handed_on`).

        A line is named by the id of the run that began it; a run that nobody handed anything on to begins its own.
        Conflict where `run_id` is not the line's present run.
        """
        ...

    def take_on(self, tenant: str, operation: str, line: str, run_id: str, now: datetime) -> None:
        """Make `run_id` the present run of a line that was handed on (audit `run.taken_on`); a repeat by the same run
        does nothing.

        Conflict where nothing was handed on, or another run took it on: a run that was reset or started anew reuses no
        vote of another (G23).
        """
        ...

    def present_run(self, tenant: str, operation: str, line: str) -> str:
        """The run that carries the line now: the one that began it where it was never handed on, and between two the
        one that handed it on."""
        ...


class Written(Value):
    """A finished draft and the model that wrote it."""

    draft: Draft
    model: str
    """Empty where a person wrote it."""
    author: str = "agent"
    """`agent`, or the person."""


class Drafts(Protocol):
    """Drafts of an operation, v1, v2, ...; kept with what the checks and the grader said of each."""

    def save(
        self, tenant: str, operation: str, version: int, draft: Draft, model: str, control_version: int, now: datetime
    ) -> Sha256:
        """Store the agent's version once (audit `draft.written`); another content under the same version is a Conflict.

        Here, and in `save_checks` and `save_grade`: Conflict where control has another version by now (G30), or where
        the operation has ended.
        """
        ...

    def authors(self, tenant: str, operation: str) -> tuple[str, ...]:
        """The persons who wrote any version, each once, in order of their first."""
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
        self,
        tenant: str,
        operation: str,
        version: int,
        violations: Sequence[Violation],
        control_version: int,
        now: datetime,
    ) -> None:
        """Keep what the deterministic checks found (audit `draft.checked` with the codes)."""
        ...

    def save_grade(
        self,
        tenant: str,
        operation: str,
        version: int,
        grade: Grade,
        rubric: str,
        control_version: int,
        now: datetime,
    ) -> None:
        """Keep the grade and the grader's raw answer (audit `draft.graded` with the verdict)."""
        ...


class Executions(Protocol):
    """Executions; one row per idempotency key."""

    def claim(self, approval: Approval, key: str, now: datetime, until: datetime) -> Execution:
        """Record the intent and take the sole right to send until `until` (audit `effect.intended`), all in one go.

        Returns the stored execution unchanged if it is EXECUTED. Raises Conflict with a reason if another action hash
        of the same operation has an execution that is not settled as NOT_SENT (G32), Unavailable if somebody else
        holds an unexpired claim (G31). Frozen where a freeze holds the action's tool (audit `effect.held`, once per
        freeze and approval), and ControlChanged where control has another version than the proposal's (G29): both are
        looked at under the lock under which they are changed, and for a first or repeated sending alike; an effect that
        may be on its way is claimed all the same, since it must be looked up. The returned execution's status says how
        the attempt before ended: INTENDED with attempt > 1 and UNKNOWN both mean: look up before sending.
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
