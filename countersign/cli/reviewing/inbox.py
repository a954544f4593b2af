"""`inbox` and `next`: what waits for a person, the nearest deadline first.

Apart from the commands about one operation: this looks at all that is open in a tenant, and asks of each what this
person may do about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.governing.frozen import Hold, holds
from countersign.cli.rendering import STARTER, moment, say, say_json, table
from countersign.cli.reviewing.brief import brief_of
from countersign.cli.reviewing.brief_text import brief_text
from countersign.cli.reviewing.possible import commands_open, decisions_open
from countersign.cli.reviewing.questions import question_text
from countersign.cli.reviewing.show import whole_review
from countersign.cli.session import Session, known_person, now, opened
from countersign.cli.situation import RunNow, run_now
from countersign.cli.standing import not_known
from countersign.domain.administration import ADMINISTRATION
from countersign.domain.control import OPERATOR
from countersign.domain.directory import Person
from countersign.domain.proposal import Approval
from countersign.domain.question import Asked
from countersign.domain.state import State
from countersign.ports.control import Delivery

_NEVER = datetime.max.replace(tzinfo=UTC)
_TAKING = ("take-over", "cancel", "settle", "raise-budget")
"""What whoever an escalation is open to is offered; the rest follows from taking over."""
_ANSWERING = ("answer",)
_SETTLING = ("settle",)
"""What whoever may say what became of an effect is offered, before anybody was called."""


class Waiting(NamedTuple):
    """Something that waits for the person who asks."""

    kind: Literal["decision", "question", "escalation", "in_control", "outcome_unknown", "freeze", "delivery_failed"]
    operation: str
    deadline: datetime | None
    summary: str
    target: str
    may: tuple[str, ...]
    """What they may do about it, in a word each."""
    commands: tuple[str, ...]
    """The lines that do it."""
    approval: Approval | None = None
    asked: Asked | None = None
    """What the agent asks."""


def inbox(tenant: options.Tenant, person: options.Signer, as_json: options.AsJson = False) -> None:
    """List what waits for a person: decisions, questions, escalations, runs in their hands; nearest deadline first."""
    with opened() as session:
        waiting = waiting_for(session, tenant, person)
    if as_json:
        say_json([_json(one) for one in waiting])
    elif waiting:
        say(table(["OPERATION", "UNTIL", "WHAT", "TARGET", "YOU MAY"], [_cells(one) for one in waiting]))
    else:
        say(f"nothing waits for {person} in tenant {tenant}")


def next_waiting(tenant: options.Tenant, person: options.Signer) -> None:
    """Show all that a person has to know about what waits for them next, and the commands to deal with it."""
    with opened() as session:
        waiting = waiting_for(session, tenant, person)
        if not waiting:
            say(f"nothing waits for {person} in tenant {tenant}")
            raise typer.Exit(0)
        first = waiting[0]
        say(_whole(session, tenant, first, person))
    for line in first.commands:
        say(f"  {line}")
    say(f"{len(waiting) - 1} more after this")


def waiting_for(session: Session, tenant: str, name: str) -> list[Waiting]:
    """All that `name` may act on now; NotFound for somebody who is not there."""
    person, at = known_person(session, tenant, name), now()
    found = [
        *_decisions(session, person, at),
        *_questions(session, person, at),
        *_runs(session, person, at),
        *_freezes(session, person),
        *_deliveries(session, person),
    ]
    return sorted(found, key=lambda one: one.deadline or _NEVER)


def _decisions(session: Session, person: Person, at: datetime) -> Iterator[Waiting]:
    for approval in session.ledger.approvals.pending(person.tenant):
        proposal, kinds = approval.proposal, decisions_open(session, person, approval, at)
        if kinds:
            name = f"{proposal.operation} --tenant {proposal.tenant} --as {person.id}"
            lines = tuple(f"{STARTER} {kind} {name}" for kind in kinds)
            yield Waiting("decision", proposal.operation, proposal.deadline, proposal.summary, proposal.action.target,
                          kinds, lines, approval)  # fmt: skip


def _questions(session: Session, person: Person, at: datetime) -> Iterator[Waiting]:
    """What agents ask while they draft, where this person may answer it."""
    for question in session.ledger.questions.pending(person.tenant):
        run = run_now(session, question.tenant, question.operation)
        lines = tuple(one for one in commands_open(session, run, person, at) if _word(one) in _ANSWERING)
        if lines:
            told = f"the agent asks: {', '.join(call.tool for call in question.calls)}"
            yield Waiting("question", question.operation, question.deadline, told, "", _words(lines), lines,
                          asked=run.asked)  # fmt: skip


def _runs(session: Session, person: Person, at: datetime) -> Iterator[Waiting]:
    """Runs that were brought before this person, and those that they are in control of."""
    for operation in session.ledger.operations.list(person.tenant):
        if operation.state.terminal:
            continue
        run = run_now(session, operation.tenant, operation.operation)
        if run.control.held_by(person.id, at):
            lines = commands_open(session, run, person, at)
            told = f"you are in control since {moment(run.control.since)}: {operation.state.value}"
            yield Waiting("in_control", operation.operation, run.control.lease_until, told, "", _words(lines), lines)
        elif _escalated(run) or run.operation.state == State.OUTCOME_UNKNOWN:
            offered = _TAKING if _escalated(run) else _SETTLING
            lines = tuple(one for one in commands_open(session, run, person, at) if _word(one) in offered)
            if lines:
                yield _escalation(run, lines) if _escalated(run) else _unknown(run, lines)


def _escalated(run: RunNow) -> bool:
    """Whether it is held until somebody takes it over or ends it, rather than waiting for a decision."""
    waits = run.pending is not None or run.question is not None
    return run.escalation is not None or (run.operation.state == State.ESCALATED and not waits)


def _escalation(run: RunNow, lines: tuple[str, ...]) -> Waiting:
    raised, operation = run.escalation, run.operation
    told = f"{raised.reason.value}, {raised.severity.value}: {raised.suggested_action}" if raised else operation.reason
    deadline = raised.deadline if raised else None
    return Waiting("escalation", operation.operation, deadline, told, "", _words(lines), lines)


def _unknown(run: RunNow, lines: tuple[str, ...]) -> Waiting:
    told = f"not known: {not_known(run.execution)}"
    return Waiting("outcome_unknown", run.operation.operation, None, told, "", _words(lines), lines)


def _freezes(session: Session, person: Person) -> Iterator[Waiting]:
    """Freezes in force, for operators and for whoever may ask for their end."""
    policy = session.ledger.directory.policies(person.tenant).get(ADMINISTRATION)
    asks = policy is not None and person.may(policy.asked_by)
    if asks or person.may(OPERATOR):
        yield from (_freeze(one, person, asks=asks) for one in holds(session, person.tenant) if one.freeze.in_force)


def _freeze(hold: Hold, person: Person, *, asks: bool) -> Waiting:
    lines = [f"{STARTER} freezes --tenant {person.tenant}"]
    if asks and not hold.lifting:
        lines.append(f"{STARTER} unfreeze {hold.freeze.number} --tenant {person.tenant} --as {person.id}")
    return Waiting("freeze", "", None, hold.told(), hold.what, _words(tuple(lines)), tuple(lines))


def _deliveries(session: Session, person: Person) -> Iterator[Waiting]:
    if not person.may(OPERATOR):
        return
    for one in session.ledger.outbox.deliveries(person.tenant):
        if one.status == "failed":
            yield Waiting("delivery_failed", one.notice.operation, None, _undelivered(one), one.target, ("see",),
                          (f"{STARTER} outbox --tenant {person.tenant}",))  # fmt: skip


def _undelivered(one: Delivery) -> str:
    return f"notice {one.number} ({one.notice.kind.value}) did not arrive after {one.attempts} attempts: {one.error}"


def _whole(session: Session, tenant: str, first: Waiting, person: str) -> str:
    if first.approval is not None:
        return whole_review(session, first.approval, person)
    if first.asked is not None:
        return question_text(session, session.ledger.operations.get(tenant, first.operation), first.asked, now())
    if first.kind in ("freeze", "delivery_failed"):
        return first.summary
    return brief_text(brief_of(session, tenant, first.operation, person))


def _word(line: str) -> str:
    """The command's name in its line."""
    return line.removeprefix(f"{STARTER} ").partition(" ")[0]


def _words(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_word, lines))


def _cells(waiting: Waiting) -> list[str]:
    until = moment(waiting.deadline) if waiting.deadline is not None else "no end"
    return [waiting.operation, until, waiting.summary, waiting.target, ", ".join(waiting.may)]


def _json(waiting: Waiting) -> dict[str, Any]:
    proposal = waiting.approval.proposal if waiting.approval is not None else None
    return {
        "kind": waiting.kind, "operation": waiting.operation,
        "approval_id": proposal.approval_id if proposal else None,
        "approval_version": proposal.approval_version if proposal else None,
        "action_hash": proposal.action_hash if proposal else None,
        "deadline": waiting.deadline, "summary": waiting.summary, "target": waiting.target,
        "decisions": [*waiting.may] if proposal else [], "commands": [*waiting.commands],
    }  # fmt: skip
