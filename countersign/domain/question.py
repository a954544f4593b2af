"""What the agent asks of people while it drafts, and what they may answer. Pure.

Apart from approvals, which are about an outward action: an answer lets the agent read or know something, and nothing
goes out by it. Everything that the agent waits for at one moment is one question, answered whole, call by call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field, JsonValue, model_validator

from countersign.domain.canonical import digest
from countersign.domain.directory import Person, Role
from countersign.domain.durations import Duration
from countersign.domain.identity import OperationId, PersonId, TenantId
from countersign.domain.need import Ladder, Need, Tick, ticks
from countersign.domain.values import Instant, Sha256, Value
from countersign.domain.visible import is_hidden

AnswerKind = Literal["approve", "edit", "reject", "respond"]
ANSWERS: tuple[AnswerKind, ...] = get_args(AnswerKind)
NOT_EXECUTED = "not executed: a person refused this call; do not try it again"
"""What the model is told of a refusal for which nobody gave a reason."""
MAX_CALLS = 20
"""Calls of one question."""
MAX_MESSAGE = 4_000
"""Characters of what a person tells the agent."""


class QuestionStatus(StrEnum):
    """How a question stands."""

    PENDING = "pending"
    ANSWERED = "answered"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"  # control changed hands, or the run ended


class PendingCall(Value):
    """One call of the agent's that waits for a person."""

    id: Annotated[str, Field(min_length=1, max_length=200)]
    """The model's own id of the call."""
    tool: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    args: dict[str, JsonValue]
    description: Annotated[str, Field(min_length=1, max_length=8_000)]
    """Why a person is asked, in the case's own words; it may quote the model."""
    decisions: Annotated[tuple[AnswerKind, ...], Field(strict=False, min_length=1)]
    """What may be answered."""

    @property
    def only_asks(self) -> bool:
        """Whether it wants to know something, rather than to be allowed to do something."""
        return self.decisions == ("respond",)


class Answering(Value):
    """Who a policy lets answer the agent, and how long they have."""

    role: Role
    requester: bool = False
    """Whether whoever asked for the operation may answer what only asks; they never allow a guarded call."""
    within: Duration
    at_most: Annotated[int, Field(ge=1, le=100)]
    """How many questions of one run are brought before people; further ones are refused to the agent. Never left out: a
    lost line would make the policy laxer in silence."""
    ladder: Ladder = Ladder()

    @property
    def need(self) -> Need:
        """The same as a need of one person, by which reminders, further people and the deadline are reckoned."""
        return Need(
            role=self.role,
            approvals=1,
            decisions=("approve", "edit", "reject"),
            decide_within=self.within,
            execute_within=self.within,
            ladder=self.ladder,
        )


class Question(Value):
    """All that the agent waits for at one moment; bound by its hash."""

    tenant: TenantId
    operation: OperationId
    number: Annotated[int, Field(ge=1)]
    """Counted per operation."""
    line: str
    """The run that asks (activities.interfaces.HandOnOrder)."""
    draft_version: Annotated[int, Field(ge=1)]
    control_version: Annotated[int, Field(ge=1)]
    calls: Annotated[tuple[PendingCall, ...], Field(strict=False, min_length=1, max_length=MAX_CALLS)]
    answering: Answering
    """By the policy that was in force when it was asked."""
    asked_at: Instant
    deadline: Instant

    @model_validator(mode="after")
    def _one_call_per_id(self) -> Question:
        """An answer names a call by its id; of two of one id, the second would be answered unseen."""
        if len({call.id for call in self.calls}) < len(self.calls):
            raise ValueError("two calls have the same id; each needs one of its own")
        return self

    def hash(self) -> Sha256:
        """What an answer is bound to."""
        return digest(self.model_dump(mode="json"))

    def asked(self, now: datetime) -> tuple[Role, ...]:
        """The roles that are asked by `now`."""
        return self.answering.need.roles(now - self.asked_at)

    def ticks(self) -> tuple[Tick, ...]:
        """Reminders and further people, in their order."""
        return ticks([self.answering.need], self.asked_at, self.deadline)

    @property
    def requester_may_answer(self) -> bool:
        """Whether whoever asked for the operation may answer: no guarded call (G02), else as the policy says."""
        return self.answering.requester and all(call.only_asks for call in self.calls)

    @property
    def freezes(self) -> bool:
        """Whether a run that nobody answers is held at the deadline instead of ending."""
        return self.answering.ladder.then == "freeze"


class Answer(Value):
    """What a person says of one call."""

    call: Annotated[str, Field(min_length=1, max_length=200)]
    """Its id."""
    decision: AnswerKind
    args: dict[str, JsonValue] | None = None
    """edit: the arguments that are run instead, whole; nothing for all others."""
    message: Annotated[str, Field(max_length=MAX_MESSAGE)] = ""
    """respond: the answer; reject: why, in words for the agent; empty for the others."""


class Answers(Value):
    """The document that an answer names by its hash: one answer for each call, in any order."""

    answers: Annotated[tuple[Answer, ...], Field(strict=False, min_length=1, max_length=MAX_CALLS)]


class Answered(Value):
    """What was answered, by whom."""

    person: PersonId
    statement_id: str
    """Of the signed command (domain.command.Command)."""
    answers: Annotated[tuple[Answer, ...], Field(strict=False)]
    at: Instant


class Asked(NamedTuple):
    """A question as the ledger has it."""

    question: Question
    status: QuestionStatus
    answered: Answered | None


def problem_with_answers(question: Question, answers: Sequence[Answer]) -> str:
    """What is wrong with these answers, in a sentence; empty if each call has exactly one that it allows.

    Arguments of an edit are looked at by the case (cases.case.DraftedCase.edit_problem), not here.
    """
    waiting = {call.id: call for call in question.calls}
    given = Counter(answer.call for answer in answers)
    unknown = sorted(set(given) - set(waiting))
    if unknown:
        return f"no call {unknown[0][:60]!r} waits; those that do: {', '.join(waiting)}"
    # Two answers to one call make up the number, and leave another one without any.
    lacking = sorted(set(waiting) - set(given)) or sorted(call for call, count in given.items() if count > 1)
    if lacking:
        return f"{len(waiting)} calls wait, {len(answers)} answers were given; look at {lacking[0][:60]!r}"
    problems = (_problem(waiting[answer.call], answer) for answer in answers)
    return next((problem for problem in problems if problem), "")


def _problem(call: PendingCall, answer: Answer) -> str:
    kind = answer.decision
    if kind not in call.decisions:
        return f"call {call.id!r} of {call.tool} cannot be answered by {kind}; allowed: {', '.join(call.decisions)}"
    if (answer.args is not None) != (kind == "edit"):
        return f"call {call.id!r}: arguments are given exactly where a call is edited"
    if kind == "respond" and not _says_something(answer.message):
        return f"call {call.id!r}: the agent is answered in words; give some"
    if kind == "reject" and answer.message and not _says_something(answer.message):
        return f"call {call.id!r}: a reader sees nothing of the reason; write one, or leave it out"
    if answer.message and kind not in ("respond", "reject"):
        return f"call {call.id!r}: {kind} takes no words for the agent"
    return ""


def _says_something(text: str) -> bool:
    """Whether a reader sees anything of it."""
    return any(not character.isspace() and not is_hidden(character) for character in text)


def may_answer(question: Question, person: Person, requester: PersonId, now: datetime) -> bool:
    """Whether a person may answer a question as a whole at `now`."""
    if person.id == requester:
        return person.active and question.requester_may_answer
    waited: timedelta = now - question.asked_at
    return any(person.may(role) for role in question.answering.need.roles(waited))


def beyond(question: Question, person: Person, answers: Sequence[Answer], now: datetime) -> str:
    """Which of these answers about guarded calls is not the person's to give by the line they belong to; empty if none.

    A tier of the policy may be let refuse, say, and not allow. What only asks is answered by whoever may answer at all.
    """
    allowed = question.answering.need.allowed(person, now - question.asked_at)
    given = (answer.decision for answer in answers if answer.decision != "respond")
    return next((decision for decision in given if decision not in allowed), "")


class AnsweredCall(NamedTuple):
    """A call as people saw it, and what they said of it."""

    call: PendingCall
    answer: Answer

    def is_about(self, tool: str, args: Mapping[str, JsonValue]) -> bool:
        """Whether it was said of such a call: a model can use an id again, and nobody has allowed what it then asks."""
        return (self.call.tool, self.call.args) == (tool, dict(args))


def answered_calls(asked: Asked) -> Mapping[str, AnsweredCall]:
    """The calls of a question that people have answered, by their id."""
    given = by_call(asked.answered) if asked.answered is not None else {}
    return {call.id: AnsweredCall(call, given[call.id]) for call in asked.question.calls if call.id in given}


def by_call(answered: Answered) -> Mapping[str, Answer]:
    """The answers by the id of their call."""
    return {answer.call: answer for answer in answered.answers}
