"""Commands: what a person does with a run as a whole, signed like a decision, and the ruling on it. Pure.

Apart from decisions, which are about one proposal: a command is about the run, and bound to the control version that
its signer saw, so that of two people who act at once one wins and the other learns who (G28, G29).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field

from countersign.domain.control import OPERATOR, Control, Takeover
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.directory import Person, Role
from countersign.domain.identity import OperationId, PersonId, TenantId
from countersign.domain.question import (
    Answer,
    Asked,
    Question,
    QuestionStatus,
    beyond,
    may_answer,
    problem_with_answers,
)
from countersign.domain.settlement import Finding, Unsettled, problem_with
from countersign.domain.state import State
from countersign.domain.values import Instant, Sha256, Value

CommandKind = Literal[
    "take_over",
    "amend",
    "grade",
    "propose",
    "release",
    "hand_over",
    "withdraw",
    "supersede",
    "cancel",
    "settle",
    "answer",
    "raise_budget",
]
COMMANDS: tuple[CommandKind, ...] = get_args(CommandKind)
"""Each is also the name of the signal and update that carries it."""
ENDING: frozenset[CommandKind] = frozenset({"withdraw", "supersede", "cancel"})
"""Those that end the run."""
CHANGES_HANDS: frozenset[CommandKind] = frozenset({"take_over", "hand_over", "release"})
"""Those by which control changes hands."""
CONTENTS = ("draft_version", "content", "to", "successor", "key", "finding", "reference", "question")
"""All that a command can say beside its name."""


class Command(Value):
    """The signed form of a command; each field is bound by the signature."""

    installation: str
    person: PersonId
    key_id: str
    tenant: TenantId
    operation: OperationId
    command: CommandKind
    control_version: Annotated[int, Field(ge=1, le=1_000_000)]
    """The version of control that the signer saw; a command of another one does nothing. Only what ends the run, and
    what says something of the outside, is good whoever is in control by then: neither is to be missed for that."""
    draft_version: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """amend: the version that the new one is made from; grade, propose, release: the version that is meant, exactly.
    0 where the case has no draft, and for all other commands."""
    content: Sha256 | Literal[""] = ""
    """amend: the new draft, propose: the action's arguments where they are to be other ones than the draft comes to,
    answer: the answers (domain.question.Answers), raise_budget: what is added (domain.model_call.Budget); canonical
    JSON in the ledger's documents. Empty for all other commands."""
    to: PersonId | Literal[""] = ""
    """hand_over: who is to be in control."""
    successor: OperationId | Literal[""] = ""
    """supersede: the operation that takes this one's place."""
    key: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    """settle: the idempotency key of the effect whose outcome is unknown."""
    finding: Finding | Literal[""] = ""
    """settle: what became of it, as the signer found outside."""
    reference: Annotated[str, Field(pattern=r"^[\x21-\x7e]{0,500}$")] = ""
    """settle: what the outside calls the effect; empty where it was not executed."""
    question: Sha256 | Literal[""] = ""
    """answer: the question that the signer saw (domain.question.Question.hash)."""
    comment_hash: Sha256 | Literal[""] = ""
    """settle: the evidence, which it cannot do without."""
    issued_at: Instant
    expires_at: Instant
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16,64}$")]
    """Unique per command and decision; a second use is a replay (G17)."""


class Ending(Value):
    """How people ended a run: what its last state and its reason then are."""

    state: Literal[State.WITHDRAWN, State.CANCELLED]
    reason: Literal["withdrawn", "superseded", "cancelled_by_operator"]


ENDS_AS: Mapping[CommandKind, Ending] = {
    "withdraw": Ending(state=State.WITHDRAWN, reason="withdrawn"),
    "supersede": Ending(state=State.CANCELLED, reason="superseded"),
    "cancel": Ending(state=State.CANCELLED, reason="cancelled_by_operator"),
}


class Situation(NamedTuple):
    """What a ruling needs to know beside the command and its signer."""

    control: Control
    state: State
    takeover: Takeover | None
    """What the policy in force says of taking over."""
    escalated_to: Role | None
    """The role of an open escalation, which may take over as well."""
    requester: PersonId
    requester_may_withdraw: bool
    on_its_way: bool
    """Whether something may have been sent, or was; nobody can turn that back."""
    draft_version: int
    """The latest version; 0 where there is none."""
    receiver: Person | None
    """hand_over: the person named, as the directory has them."""
    successor: str
    """supersede: what is wrong with the operation named, in a sentence; empty if it may take this one's place."""
    problem: str
    """What is wrong with the content, in a sentence; empty if nothing."""
    now: datetime
    """When the server recorded it, or the run took it in."""
    unsettled: Unsettled | None = None
    """The effect whose outcome is not known, where there is one."""
    asked: Asked | None = None
    """The agent's newest question, where it ever asked."""
    answers: tuple[Answer, ...] | None = ()
    """What the command's content says, where it answers; nothing: it is not given yet, and taken to be in order."""
    out_of_budget: bool = False
    """Whether the run waits, before `escalated_to`, since its budget is used up."""


_Refusal = tuple[Ruling, str]


def rule_on_command(command: Command, signer: Person, situation: Situation) -> Outcome:
    """Rule on a command that was verified and not seen before."""
    refused = (
        _too_late(situation)
        or _gone(signer)
        or _RULES[command.command](command, signer, situation)
        or _wrong_content(command, situation)
    )
    return Outcome(ruling=refused[0], detail=refused[1]) if refused else Outcome(ruling=Ruling.ACCEPTED)


def _too_late(situation: Situation) -> _Refusal | None:
    if situation.state.terminal:
        return Ruling.ENDED, f"the run has ended as {situation.state.value}; nothing was changed"
    return None


def _gone(signer: Person) -> _Refusal | None:
    return None if signer.active else (Ruling.ROLE_MISSING, "you are no longer active in the directory")


def _wrong_content(command: Command, situation: Situation) -> _Refusal | None:
    """A command says all that it needs, and nothing that another one would mean."""
    said = {name for name in CONTENTS if getattr(command, name)}
    strange = sorted(said - _SAYS.get(command.command, frozenset()))
    if strange:
        return Ruling.CONTENT_REFUSED, f"{command.command} says nothing of {', '.join(strange)}; leave it out"
    if command.command == "amend" and not command.content:
        return Ruling.CONTENT_REFUSED, "amend names the new draft by its hash; give it"
    return (Ruling.CONTENT_REFUSED, situation.problem) if situation.problem else None


def _stale(command: Command, situation: Situation) -> _Refusal | None:
    control = situation.control
    if command.control_version == control.version:
        return None
    since = control.since.isoformat()
    return Ruling.STALE_CONTROL, (
        f"control is with {control.holder()} since {since}, version {control.version}; you saw version "
        f"{command.control_version}; look at the run and sign again"
    )


def _takers(situation: Situation) -> list[Role]:
    """The roles that may take the run over now."""
    roles = [situation.takeover.role] if situation.takeover is not None else []
    return roles + ([situation.escalated_to] if situation.escalated_to is not None else [])


def _take_over(command: Command, signer: Person, situation: Situation) -> _Refusal | None:
    control, roles = situation.control, _takers(situation)
    if not any(signer.may(role) for role in roles):
        allowed = f"the role {' or '.join(dict.fromkeys(roles))} is needed" if roles else "the policy lets nobody"
        return Ruling.ROLE_MISSING, f"taking over: {allowed}"
    stale = _stale(command, situation)
    if stale is not None:
        return stale
    if control.by == "person" and not control.lapsed(situation.now):
        whose = "you are" if control.person == signer.id else f"{control.holder()} is"
        return Ruling.HELD, f"{whose} in control since {control.since.isoformat()}, version {control.version}"
    return None


def _holders(command: Command, signer: Person, situation: Situation) -> _Refusal | None:
    """What only the person in control may do, and only while nothing may be on its way."""
    stale = _stale(command, situation)
    if stale is not None:
        return stale
    control = situation.control
    if control.person != signer.id:
        return Ruling.NOT_IN_CONTROL, f"{control.holder()} is in control, version {control.version}; take over first"
    if control.lapsed(situation.now):
        until = control.lease_until.isoformat() if control.lease_until is not None else ""
        return Ruling.NOT_IN_CONTROL, f"your control was over at {until}; take over again"
    return _on_its_way(situation)


def _on_its_way(situation: Situation) -> _Refusal | None:
    if situation.on_its_way:
        return Ruling.TOO_LATE, "its effect may be on its way, or is there; look at the run"
    return None


def _on_latest(command: Command, signer: Person, situation: Situation) -> _Refusal | None:
    refused = _holders(command, signer, situation)
    if refused is None and command.draft_version != situation.draft_version:
        return Ruling.NOT_THIS_VERSION, (
            f"the latest version is v{situation.draft_version}, you named v{command.draft_version}; look at it first"
        )
    return refused


def _on_a_version(command: Command, signer: Person, situation: Situation) -> _Refusal | None:
    # A case without drafts is proposed as version 0; there is none to grade.
    lowest = 1 if command.command == "grade" else min(1, situation.draft_version)
    refused = _holders(command, signer, situation)
    if refused is None and not lowest <= command.draft_version <= situation.draft_version:
        latest = f"the latest is v{situation.draft_version}" if situation.draft_version else "nothing was drafted yet"
        return Ruling.NOT_THIS_VERSION, f"there is no version v{command.draft_version}; {latest}"
    return refused


def _hand_over(command: Command, signer: Person, situation: Situation) -> _Refusal | None:
    refused = _holders(command, signer, situation)
    if refused is not None:
        return refused
    receiver, takeover = situation.receiver, situation.takeover
    if receiver is None or not receiver.active or receiver.id == signer.id:
        return Ruling.RECEIVER_REFUSED, f"{command.to or 'nobody'} cannot be handed control; name another active person"
    if takeover is None or not receiver.may(takeover.role):
        needed = takeover.role if takeover is not None else "that a policy names"
        return Ruling.RECEIVER_REFUSED, f"{receiver.id} lacks the role {needed}"
    return None


def _withdraw(_: Command, signer: Person, situation: Situation) -> _Refusal | None:
    if signer.id != situation.requester:
        return Ruling.ONLY_REQUESTER_WITHDRAWS, ""
    if not situation.requester_may_withdraw:
        return Ruling.DECISION_NOT_ALLOWED, "the policy does not let a requester withdraw"
    return _on_its_way(situation)


def _supersede(command: Command, signer: Person, situation: Situation) -> _Refusal | None:
    refused = _withdraw(command, signer, situation)
    if refused is not None:
        return refused
    if not command.successor:
        return Ruling.SUCCESSOR_REFUSED, "name the operation that takes this one's place"
    return (Ruling.SUCCESSOR_REFUSED, situation.successor) if situation.successor else None


def _cancel(_: Command, signer: Person, situation: Situation) -> _Refusal | None:
    roles = [OPERATOR, *_takers(situation)]
    # Whoever was brought in by an escalation can be in control without any of these roles.
    if not any(signer.may(role) for role in roles) and not situation.control.held_by(signer.id, situation.now):
        return Ruling.ROLE_MISSING, f"ending a run: the role {' or '.join(dict.fromkeys(roles))} is needed"
    return _on_its_way(situation)


def _settle(command: Command, signer: Person, situation: Situation) -> _Refusal | None:
    unsettled = situation.unsettled
    if unsettled is None or unsettled.key != command.key:
        return Ruling.NOTHING_UNKNOWN, "" if unsettled is None else f"the key of what is unknown is {unsettled.key}"
    if unsettled.busy:
        return Ruling.BEING_LOOKED_UP, ""
    role = unsettled.settling.role if unsettled.settling is not None else None
    if role is None or not signer.may(role):
        nobody = unsettled.unreadable or "the policy that it was proposed by lets nobody"
        allowed = f"the role {role} is needed" if role is not None else nobody
        return Ruling.ROLE_MISSING, f"settling an outcome: {allowed}"
    if signer.id == situation.requester or signer.id in unsettled.authors:
        return Ruling.NOT_INDEPENDENT, ""
    if not command.comment_hash:
        return Ruling.REASON_MISSING, "what was found outside has to be said; give the evidence"
    problem = problem_with(command.finding, command.reference)
    return (Ruling.CONTENT_REFUSED, problem) if problem else None


def _answer(command: Command, signer: Person, situation: Situation) -> _Refusal | None:
    asked = situation.asked
    if asked is None:
        return Ruling.NOTHING_ASKED, ""
    question = asked.question
    if question.hash() != command.question:
        return Ruling.STALE_QUESTION, f"the newest question is {question.hash()}"
    if asked.status != QuestionStatus.PENDING:
        return Ruling.NOTHING_ASKED, f"the question is {asked.status.value}"
    if situation.now >= question.deadline:
        return Ruling.LATE, f"the question was to be answered by {question.deadline.isoformat()}"
    stale = _stale(command, situation)
    if stale is not None:
        return stale
    if not may_answer(question, signer, situation.requester, situation.now):
        roles = " or ".join(question.asked(situation.now))
        return Ruling.ROLE_MISSING, f"answering: the role {roles} is needed, and not whoever asked for the operation"
    refused = beyond(question, signer, situation.answers or (), situation.now)
    if refused:
        return Ruling.DECISION_NOT_ALLOWED, f"the policy does not let you answer by {refused}"
    problem = _wrong_answers(command, question, situation)
    return (Ruling.CONTENT_REFUSED, problem) if problem else None


def _wrong_answers(command: Command, question: Question, situation: Situation) -> str:
    if not command.content:
        return "answer names the answers by their hash; give it"
    if situation.problem or situation.answers is None:
        return situation.problem
    return problem_with_answers(question, situation.answers)


def _raise_budget(command: Command, signer: Person, situation: Situation) -> _Refusal | None:
    if not situation.out_of_budget or situation.escalated_to is None:
        return Ruling.BUDGET_NOT_EXCEEDED, ""
    stale = _stale(command, situation)
    if stale is not None:
        return stale
    if not signer.may(situation.escalated_to):
        return Ruling.ROLE_MISSING, f"raising the budget: the role {situation.escalated_to} is needed"
    if signer.id == situation.requester:
        return Ruling.ROLE_MISSING, "whoever asked for the operation cannot raise its budget; others must"
    return None if command.content else (Ruling.CONTENT_REFUSED, "name what is added to the budget by its hash")


_SAYS: Mapping[CommandKind, frozenset[str]] = {
    "amend": frozenset({"draft_version", "content"}),
    "grade": frozenset({"draft_version"}),
    "propose": frozenset({"draft_version", "content"}),
    "release": frozenset({"draft_version"}),
    "hand_over": frozenset({"to"}),
    "supersede": frozenset({"successor"}),
    "settle": frozenset({"key", "finding", "reference"}),
    "answer": frozenset({"question", "content"}),
    "raise_budget": frozenset({"content"}),
}
"""What each of them says."""

_RULES: Mapping[CommandKind, Callable[[Command, Person, Situation], _Refusal | None]] = {
    "take_over": _take_over,
    "amend": _on_latest,
    "grade": _on_a_version,
    "propose": _on_a_version,
    "release": _on_latest,
    "hand_over": _hand_over,
    "withdraw": _withdraw,
    "supersede": _supersede,
    "cancel": _cancel,
    "settle": _settle,
    "answer": _answer,
    "raise_budget": _raise_budget,
}
