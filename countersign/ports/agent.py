"""The agent and the grader, what they tell while they work, and what is kept of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

from pydantic import JsonValue

from countersign.domain.draft import DraftObject
from countersign.domain.model_call import Budget, CallEnd, ModelCall
from countersign.domain.progress import Progress, ProgressKind
from countersign.domain.question import AnsweredCall, Asked, PendingCall, Question
from countersign.domain.retention import Forgotten, RetentionOrder
from countersign.domain.rubric import GraderAnswer, Rubric
from countersign.domain.values import Instant
from countersign.ports.records import Written

M = TypeVar("M", contravariant=True)


class Watching(Protocol):
    """Told what an agent or a grader does, before and after; whatever it raises ends the work at once."""

    async def calling(self, model: str) -> int:
        """Before each call of a model: its number. The call is not made where this raises (budget, control, cancel)."""
        ...

    async def called(self, number: int, end: CallEnd) -> None:
        """After it, however it ended."""
        ...

    async def happened(self, kind: ProgressKind, name: str = "", detail: str = "") -> None:
        """Anything else that a watcher would want to see; before each tool call, which is not made where it raises."""
        ...


class Waiting(NamedTuple):
    """The agent cannot go on until people have answered; nothing was written."""

    calls: tuple[PendingCall, ...]
    model: str


class Drafter(Protocol[M]):
    """The deep agent that drafts for one case, from that case's material (ports.material)."""

    async def draft(
        self,
        thread: str,
        attempt: int,
        material: M,
        earlier: DraftObject | None,
        feedback: Sequence[str],
        answers: Mapping[str, AnsweredCall],
        may_ask: bool,
        watching: Watching,
    ) -> Written | Waiting:
        """Write a draft, or go on with the one that an earlier attempt, or a pause, left unfinished.

        Args:
            thread: what the durable checkpoint is keyed on: tenant, operation, run and draft version.
            attempt: rising with every attempt, and after every pause; an older attempt's checkpoint writes are refused.
            material: what was asked, and all that the tools read.
            earlier: the version before, where there is one.
            feedback: what the checks and the grader said of that version.
            answers: all that people ever answered in this thread, by the id of the call, each with the call that they
                saw. A call that waits and has no answer here goes on waiting, also where another call of its id has
                one; an answer to a call that does not wait changes nothing.
            may_ask: whether the agent may bring anything more before people; else what would ask is refused to it.
            watching: told of every model and tool call.
        """
        ...


class Grader(Protocol):
    """Grades a whole draft against a rubric, with one model call."""

    async def grade(
        self, document: str, rubric: Rubric, task: Mapping[str, JsonValue], watching: Watching
    ) -> GraderAnswer:
        """The grader's answer as it came; an answer that cannot be read has verdict `grader_error`.

        Args:
            document: the text that is graded, whole.
            rubric: what it is graded by.
            task: what was to be written, with the texts of people and data in it as plain values.
            watching: told of the model call.
        """
        ...


class Questions(Protocol):
    """What agents asked of people; people's answers come by `Controls.command` (`answer`)."""

    def ask(self, question: Question, room: int) -> Asked:
        """Put it before people (audit `question.asked`, a notice to its roles), under the operation's next number (the
        given one says nothing); the same calls of the same line, version and control give the stored one, pending or
        not. What another line of the operation still asks is SUPERSEDED.

        Conflict where another one of the line is pending, where control has another version by now, or where the
        operation has ended. TooManyPending (domain.errors) where so many approvals and questions of the tenant wait
        already as there is `room` for (G41).
        """
        ...

    def mark(self, tenant: str, operation: str, number: int, tick: int, now: datetime) -> Asked:
        """A reminder or further people are due (audit `question.reminded` or `question.escalated`, a notice), once."""
        ...

    def expire(self, tenant: str, operation: str, number: int, now: datetime) -> Asked:
        """Close it where nobody answered by its deadline (audit `question.expired`); one that is closed stays so."""
        ...

    def current(self, tenant: str, operation: str) -> Asked | None:
        """The newest one of the operation."""
        ...

    def of_operation(self, tenant: str, operation: str) -> Sequence[Asked]:
        """All of an operation, oldest first."""
        ...

    def pending(self, tenant: str) -> Sequence[Question]:
        """All of a tenant that wait, the nearest deadline first."""
        ...

    def signed(self, tenant: str, statement_id: str) -> str:
        """The command by which one was answered (Answered.statement_id), as it was signed; NotFound where none is."""
        ...


class ModelCalls(Protocol):
    """Every call of a model, failed and repeated ones too."""

    def begin(self, call: ModelCall) -> ModelCall:
        """Write down a call before it is made, under the operation's next number (the given one says nothing); also
        what it may cost at the most is not known yet.

        BudgetExceeded (domain.errors) where the run's or the tenant's budget by the policy in force has no room for it;
        of a run that people gave more only its own is asked. Decided under the tenant's lock, so that two runs cannot
        both take the last call.
        """
        ...

    def end(self, tenant: str, operation: str, number: int, end: CallEnd, nano: int | None, currency: str) -> None:
        """What became of it; a repeat changes nothing."""
        ...

    def of_operation(self, tenant: str, operation: str) -> Sequence[ModelCall]:
        """All of an operation, in their order."""
        ...

    def of_tenant(self, tenant: str, since: datetime | None = None) -> Sequence[ModelCall]:
        """All of a tenant, or those that began since then."""
        ...

    def raises(self, tenant: str, operation: str) -> Sequence[tuple[Instant, Budget]]:
        """What people added to the run's budget (`raise_budget`), and to no other, oldest first."""
        ...


class ProgressLog(Protocol):
    """What goes on while a run is drafted and graded; not part of the audit."""

    def add(
        self, tenant: str, operation: str, kind: ProgressKind, draft_version: int, name: str, detail: str, now: datetime
    ) -> None:
        """Append one event."""
        ...

    def since(self, tenant: str, operation: str, offset: int, limit: int = 500) -> Sequence[Progress]:
        """Those with a number above `offset`, in order."""
        ...

    def forget(self, tenant: str, operation: str) -> int:
        """Delete all of an operation; how many there were."""
        ...


class Retainer(Protocol):
    """Deletes what agents kept beside the ledger: their threads, and what they told of their progress."""

    def forget(self, order: RetentionOrder, by: str, now: datetime) -> Forgotten:
        """Delete it of the operations that ended longer ago than ordered, and of no other (audit `threads.deleted`).

        `by` is who or what has it done, for the audit. NotFound where there is no such tenant.
        """
        ...
