"""What the ledger keeps of an operation: documents, drafts, executions, and the audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue

from countersign.domain.audit import AuditRecord, Checkpoint, Loss, Restore
from countersign.domain.draft import DraftObject, Violation
from countersign.domain.execution import Execution, Receipt
from countersign.domain.operation import Operation
from countersign.domain.proposal import Approval
from countersign.domain.rubric import Grade
from countersign.domain.settlement import Settled, Settlement
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

        NotAuthorised while the tenant's first set-up is open: nobody could say yet who may decide. Where it follows
        another operation: NotFound without that one, and Conflict where that one ended without an effect, or where
        another of the same case follows it already and has not ended otherwise than SUCCEEDED (an effect is
        compensated, and told of, once).
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
        state. An end other than SUCCEEDED ends those that follow and were not begun, too: CANCELLED,
        `nothing_to_follow`.
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

    def followers(self, tenant: str, operation: str) -> Sequence[Operation]:
        """The operations that follow this one, in the order in which they were registered."""
        ...

    def gathered(self, tenant: str, operation: str, sha256: Sha256, now: datetime) -> None:
        """Record the document of facts that the operation rests on from now on (audit `facts.gathered` with its hash);
        a repeat of the latest one records nothing. Conflict where the operation has ended."""
        ...

    def facts(self, tenant: str, operation: str) -> Sha256:
        """The hash of the facts that were gathered last, or NotFound."""
        ...

    def has_gathered(self, tenant: str, operation: str, sha256: Sha256) -> bool:
        """Whether these facts were ever gathered for this very operation."""
        ...


class Written(Value):
    """A finished draft and the model that wrote it; its case reads it by its form (cases.case.read_draft)."""

    draft: DraftObject
    model: str
    """Empty where a person wrote it."""
    author: str = "agent"
    """`agent`, or the person."""


class Findings(Value):
    """A version's hash and all that was ever said of it, by the hash that its audit record names.

    Each hash is made anew from what is stored, so that what was changed since is under no hash of a record.
    """

    draft: Sha256
    checks: dict[Sha256, tuple[Violation, ...]]
    grades: dict[Sha256, Grade]


class Drafts(Protocol):
    """Drafts of an operation, v1, v2, ...; kept with what the checks and the grader said of each."""

    def save(
        self,
        tenant: str,
        operation: str,
        version: int,
        draft: DraftObject,
        model: str,
        control_version: int,
        now: datetime,
    ) -> Sha256:
        """Store the agent's version once (audit `draft.written`); another content under the same version is a Conflict.

        Here, and in `save_checks` and `save_grade`: Conflict where control has another version by now (G30), or where
        the operation has ended.
        """
        ...

    def authors(self, tenant: str, operation: str) -> tuple[str, ...]:
        """The persons who wrote any version, each once, in order of their first."""
        ...

    def get(self, tenant: str, operation: str, version: int) -> DraftObject:
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

    def findings(self, tenant: str, operation: str, version: int) -> Findings:
        """All that the checks and the graders ever said of a version; NotFound without that version."""
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


class SignedSettlement(Value):
    """What a person said of an effect whose outcome was unknown, with the command that they signed."""

    settlement: Settlement
    statement: str
    """The signed command, as it came."""
    spent: bool
    """Whether the effect was found not to be there since: what was said before says nothing of a later sending."""


class Executions(Protocol):
    """Executions; one row per idempotency key."""

    def claim(self, approval: Approval, key: str, now: datetime, until: datetime, *, to_send: bool = True) -> Execution:
        """Record the intent and take the sole right to send until `until` (audit `effect.intended`), all in one go.

        Returns the stored execution unchanged if it is EXECUTED. Raises Conflict with a reason if another action hash
        of the same operation has an execution that is not settled as NOT_SENT (G32), Unavailable if somebody else
        holds an unexpired claim (G31). Frozen where a freeze holds the action's tool (audit `effect.held`, once per
        freeze and approval), and ControlChanged where control has another version than the proposal's (G29): both are
        looked at under the lock under which they are changed, and for a first or repeated sending alike; an effect that
        may be on its way is claimed all the same, since it must be looked up. The returned execution's status says how
        the attempt before ended, and until when something of it may land; unless it is `surely_not_sent`, it is looked
        up before anything is sent. NotYet where something that was sent under another key of the operation may still
        land. A claim that is not `to_send` but to look up is held by nothing of that.
        """
        ...

    def sending(self, execution: Execution, may_land_until: datetime) -> Execution:
        """Note, before anything of it leaves, until when it may land; Conflict for a stale attempt.

        The returned execution says so, the given one still what was sent before: what it is ended with is kept.
        """
        ...

    def finish(
        self, execution: Execution, receipt: Receipt, now: datetime, settled: Settled | None = None
    ) -> Execution:
        """EXECUTED with its receipt, the approval CONSUMED (audit `effect.executed`); Conflict for a stale attempt.

        `settled`: what people agree on, where that is what it rests on (audit `effect.settled`); so in `not_sent`.
        """
        ...

    def not_sent(self, execution: Execution, reason: str, now: datetime, settled: Settled | None = None) -> Execution:
        """NOT_SENT (audit `effect.not_sent`); the key stays usable (G34), and what people said of it is spent."""
        ...

    def unknown(self, execution: Execution, reason: str, now: datetime) -> Execution:
        """UNKNOWN (audit `effect.unknown`)."""
        ...

    def found_late(
        self, execution: Execution, receipt: Receipt, now: datetime, settled: Settled | None = None
    ) -> Execution:
        """EXECUTED over whatever else was recorded, a newer claim or a void grant too, and the operation's latest
        (audit `effect.executed` with `found_late`, and `alarm.raised`). What is EXECUTED already is returned as it is;
        an execution that the ledger has lost is entered."""
        ...

    def doubted(self, execution: Execution, reason: str, now: datetime) -> Execution:
        """UNKNOWN where it was NOT_SENT, or not known to a restored ledger (audit `effect.unknown`), and the
        operation's latest, so that people can settle it; what has moved on since is returned as it stands."""
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

    def of_operation(self, tenant: str, operation: str) -> Sequence[Execution]:
        """All executions of the operation, one for each action that was ever claimed, the latest claim last."""
        ...

    def settlements(self, tenant: str, key: str) -> Sequence[SignedSettlement]:
        """All that people ever said of the key's effect, oldest first; nothing of it settles it by itself."""
        ...

    def at_target(self, tenant: str, target: str) -> Receipt | None:
        """What was executed last at an action's target, whichever operation it was; nothing if nothing was, or
        if it was taken back since."""
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

    def lost(self, tenant: str) -> Loss | None:
        """What the chain lacks of what the checkpoint outside counts, as after a restore from a backup; nothing if it
        lacks nothing.

        ChainBroken where what is there does not hold by itself; NotFound where nothing is there at all.
        """
        ...

    def restored(self, tenant: str, token: str, now: datetime) -> Restore:
        """Let the chain go on behind its loss, as the signed order `token` (domain.audit.RestoreOrder) says (audit
        `ledger.restored`), and the checkpoint outside with it; a repeat finishes what was begun.

        By the same order every effect of the tenant is frozen (audit `effects.frozen` and a notice, as for any
        freeze): what was done outside in the lost time is not known, so nothing goes out until two persons lift it.

        Raises:
            StatementRefused: it is no order for this installation by a person of the tenant with a good key.
            NotAuthorised: the signer does not have the role `operator`.
            Conflict: nothing is missing, or something else than the order says.
        """
        ...

    def restores(self, tenant: str) -> Sequence[Restore]:
        """The times of which this ledger knows nothing since it was restored from a backup, oldest first."""
        ...

    def rows(self, tenant: str, operation: str) -> Mapping[str, Sequence[Mapping[str, JsonValue]]]:
        """What the tables hold of an operation, and the tenant's freezes and restores, by table; for comparing with the
        records, so nothing of it is believed: a row need not have the form that the program gives it."""
        ...
