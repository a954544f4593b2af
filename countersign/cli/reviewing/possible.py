"""What is open to a person about a run at this moment, decision by decision and command by command, or why it is not.

Apart from the commands themselves: `inbox`, `next` and `brief` only tell of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from countersign.cli.deciding.command_message import Order, ruled
from countersign.cli.rendering import STARTER
from countersign.cli.reviewing.review_votes import why_not
from countersign.cli.session import Session
from countersign.cli.situation import RunNow
from countersign.cli.standing import no_question
from countersign.domain.command import COMMANDS, CommandKind
from countersign.domain.decision import Ruling, may
from countersign.domain.directory import Person
from countersign.domain.need import DecisionKind
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.values import Value

_ABOUT_LATEST = frozenset({"amend", "grade", "propose", "release"})


class Possible(Value):
    """One thing that a person could do with a run."""

    what: str
    """A decision, or a command by its kind."""
    allowed: bool
    why: str
    """Why not; empty if it is allowed."""
    command: str
    """The line that does it."""


def decisions_open(
    session: Session, person: Person, approval: Approval | None, at: datetime
) -> tuple[DecisionKind, ...]:
    """The decisions that `person` may take about an approval now; none where nothing waits for any."""
    if approval is None or approval.status != ApprovalStatus.PENDING or at >= approval.proposal.deadline:
        return ()
    action = approval.proposal.action
    used = 0 if action.amount is None else session.ledger.approvals.approved_by(person, action, at)
    kinds: tuple[DecisionKind, ...] = get_args(DecisionKind)
    return tuple(kind for kind in kinds if may(kind, person, approval, at, used).ruling == Ruling.ACCEPTED)


def commands_open(session: Session, run: RunNow, person: Person, at: datetime) -> tuple[str, ...]:
    """The lines of the commands that `person` may give now."""
    return tuple(one.command for one in _commands(session, run, person, at) if one.allowed)


def possible(session: Session, run: RunNow, person: Person, at: datetime) -> tuple[Possible, ...]:
    """Everything that `person` may do with a run now: decisions that are open, and each command with why not."""
    decided = decisions_open(session, person, run.approval, at)
    lines = [
        Possible(what=kind, allowed=True, why="", command=f"{STARTER} {kind} {_named(run, person)}") for kind in decided
    ]
    return (*lines, *_commands(session, run, person, at))


def _commands(session: Session, run: RunNow, person: Person, at: datetime) -> list[Possible]:
    return [_command(session, run, person, kind, at) for kind in COMMANDS]


def _command(session: Session, run: RunNow, person: Person, kind: CommandKind, at: datetime) -> Possible:
    version = run.standing.draft_version if kind in _ABOUT_LATEST else 0
    to = _receiver(session, run, person) if kind == "hand_over" else ""
    order = Order(kind, person.id, draft_version=version, to=to)
    if kind == "settle" and run.unknown is not None:
        # As whoever says so could: what they find is theirs to say.
        order = order._replace(key=run.unknown.key, finding="not_executed")
    if kind == "answer" and run.asked is not None:
        order = order._replace(question=run.asked.question.hash())
    # Which operation would supersede it is not known yet; whoever may withdraw it may also put another in its place.
    tried = order._replace(kind="withdraw") if kind == "supersede" else order
    outcome = ruled(session, run, tried, person, at)
    alone = outcome.ruling == Ruling.RECEIVER_REFUSED and not to
    why = "there is nobody else who could be handed control" if alone else why_not(outcome)
    if outcome.ruling == Ruling.NOTHING_ASKED:
        why = f"{outcome.ruling.value}: {no_question(run)}"
    return Possible(what=kind, allowed=not why, why=why, command=_line(run, order, person))


def _line(run: RunNow, order: Order, person: Person) -> str:
    if order.kind == "supersede":
        return f"{STARTER} start REQUEST_FILE --operation ID --supersedes {run.operation.operation}"
    about = order.kind in _ABOUT_LATEST and order.kind != "amend"
    version = f" --version {order.draft_version}" if about else ""
    to = f" --to {order.to or 'PERSON'}" if order.kind == "hand_over" else ""
    more = " --calls N" if order.kind == "raise_budget" else ""
    return f"{STARTER} {order.kind.replace('_', '-')} {_named(run, person)}{version}{to}{more}"


def _named(run: RunNow, person: Person) -> str:
    return f"{run.operation.operation} --tenant {run.operation.tenant} --as {person.id}"


def _receiver(session: Session, run: RunNow, person: Person) -> str:
    """Somebody else who may be in control; empty where there is nobody."""
    takeover = run.policy.takeover if run.policy is not None else None
    persons = session.ledger.directory.persons(run.operation.tenant)
    fit = [one.id for one in persons.values() if takeover and one.id != person.id and one.may(takeover.role)]
    return fit[0] if fit else ""
