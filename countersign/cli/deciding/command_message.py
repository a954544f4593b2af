"""A person's command about a run as a message: what is signed, shown before; the message; and what the run answered.

Apart from decisions (decision_message), which are about one proposal: a command is about the run and its control.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from countersign.cli.deciding.said import lacking
from countersign.cli.rendering import fields, say
from countersign.cli.session import Session, known_person, new_id, now, signing_key
from countersign.cli.signed_message import (
    Answer,
    Message,
    check_comment,
    keep_message,
    require_accepted,
    sent,
    stored_comment,
    tell,
)
from countersign.cli.situation import RunNow, run_now
from countersign.cli.standing import control_line
from countersign.domain.canonical import sha256_hex
from countersign.domain.command import CHANGES_HANDS, ENDING, Command, CommandKind
from countersign.domain.decision import Outcome
from countersign.domain.directory import Person
from countersign.domain.settlement import Finding
from countersign.domain.values import Sha256

GOOD_FOR = timedelta(hours=24)
"""How long a signed command may wait in a file; the control version that it names ends most of them sooner."""


_WITH_CONTENT: frozenset[CommandKind] = frozenset({"amend", "answer", "raise_budget"})
"""What cannot be said without a content."""


_LATER: Mapping[CommandKind, str] = {"answer": "before the deadline, with control as you saw it"}
"""When a command that was left as a signal counts."""


class Order(NamedTuple):
    """What a person wants done with a run."""

    kind: CommandKind
    person: str
    comment: str = ""
    key_file: Path | None = None
    draft_version: int = 0
    content: Sha256 | Literal[""] = ""
    """Hash of the new draft, the arguments, the answers or the budget; they lie in the ledger already."""
    to: str = ""
    successor: str = ""
    key: str = ""
    """Idempotency key of the effect that is settled."""
    finding: Finding | Literal[""] = ""
    reference: str = ""
    question: Sha256 | Literal[""] = ""
    """Hash of the question that is answered."""


def require_open(session: Session, run: RunNow, order: Order) -> None:
    """Refuse, before anything is shown or signed, a command that the run would refuse or that cannot be signed.

    Raises:
        InputRefused: the comment is too long, or no text; or this person may not do so now, with the reason.
        NotFound, NotAuthorised: no such person or key, or a key that is not the person's.
    """
    check_comment(order.comment)
    person = known_person(session, run.operation.tenant, order.person)
    require_accepted(run.operation.operation, order.kind, ruled(session, run, order, person, now()))
    signing_key(session, run.operation.tenant, order.person, order.key_file)


def ruled(session: Session, run: RunNow, order: Order, person: Person, at: datetime) -> Outcome:
    """What the ledger would say of a command now, whatever content it is to bring."""
    content = order.content or (sha256_hex(b"") if order.kind in _WITH_CONTENT else "")
    tried = _command(session, run, order._replace(content=content), "", at)
    return session.ledger.controls.would(tried, person, at)


def command(session: Session, run: RunNow, order: Order, as_json: bool) -> None:
    """Show what is signed, sign it, send it, and say what the run answered; exit code 1 where it was refused."""
    require_open(session, run, order)
    if not as_json:
        say(what_is_signed(run, order))
    signed, message = message_of(session, run, order)
    outcome = sent(message)
    told = accepted(session, signed) if outcome is not None else ""
    later = "within a day" if order.kind in ENDING else _LATER.get(order.kind, "while control is as you saw it")
    more = {"control_version": signed.control_version, "draft_version": signed.draft_version}
    tell(Answer(signed.command, signed.id, "signed", outcome, told, later), as_json, more)


def keep(session: Session, run: RunNow, order: Order, out: Path) -> None:
    """Show what is signed, sign it, and write the message into a file for the temporal CLI."""
    require_open(session, run, order)
    say(what_is_signed(run, order))
    keep_message(message_of(session, run, order)[1], out)


def message_of(session: Session, run: RunNow, order: Order) -> tuple[Command, Message]:
    """The command and the message that carries it; the comment goes to the ledger, only its hash is signed.

    Raises:
        NotFound, NotAuthorised: no key, or one that is not the person's.
    """
    from countersign.signing.statements import sign_command

    key = signing_key(session, run.operation.tenant, order.person, order.key_file)
    signed = _command(session, run, order, key.id, now())
    body = {"statement": sign_command(signed, key.private)}
    return signed, Message(signed.tenant, signed.operation, signed.command, signed.id, body)


def what_is_signed(run: RunNow, order: Order) -> str:
    """The lines that a person sees before their key is used."""
    named = f"v{order.draft_version}, the latest is v{run.standing.draft_version}" if order.draft_version else ""
    return fields([
        ("you sign", f"{order.kind.replace('_', ' ')} as {order.person}"),
        ("operation", f"{run.operation.operation} ({run.operation.case}), {run.state.value}"),
        ("in control", control_line(run.control)),
        ("control version", str(run.control.version)),
        ("draft version", named),
        ("question", order.question),
        ("content", order.content),
        ("handed to", order.to),
        ("superseded by", order.successor),
        ("key", order.key),
        ("finding", order.finding.replace("_", " ")),
        ("reference", order.reference),
        ("pending proposal", _pending_after(run, order.kind)),
        ("evidence" if order.kind == "settle" else "comment", order.comment),
    ])  # fmt: skip


def accepted(session: Session, signed: Command) -> str:
    """What came of a command that was accepted."""
    standing = session.ledger.controls.standing(signed.tenant, signed.operation)
    version = f"version {standing.control.version}"
    what = {
        "take_over": f"you are in control, {version}; the agent does nothing any more",
        "amend": f"your draft is v{standing.draft_version}{_beside(signed)}; have it graded next",
        "grade": f"v{signed.draft_version} goes to the checks and the grader; what they find is shown by: brief",
        "propose": f"{_version(signed)} goes before people, once it has passed; you cannot approve it yourself",
        "release": f"the agent is in control, {version}, and goes on from {_version(signed)}",
        "hand_over": f"{signed.to} is in control, {version}",
        "withdraw": "the request is withdrawn; nothing was executed, and nothing will be",
        "supersede": f"the run ends, superseded by {signed.successor}; nothing was executed, and nothing will be",
        "cancel": "the run is cancelled; nothing was executed, and nothing will be",
        "settle": "the gateway counts what was said so far, looks once more, and records what that comes to",
        "answer": "the agent goes on with exactly these answers",
        "raise_budget": "the agent goes on where it stood; no finished call is made again",
    }
    todo = lacking(session, signed) if signed.command == "settle" else ""
    return f"accepted: {what[signed.command]}{'; ' if todo else ''}{todo}"


def _beside(amended: Command) -> str:
    return f", beside v{amended.draft_version}" if amended.draft_version else ""


def _version(signed: Command) -> str:
    return f"v{signed.draft_version}" if signed.draft_version else "the request"


def _pending_after(run: RunNow, kind: CommandKind) -> str:
    """What becomes of a proposal that waits for people."""
    if run.pending is None:
        return ""
    name = run.pending.proposal.approval_id
    if kind in CHANGES_HANDS or kind in ("amend", "propose"):
        return f"{name} is superseded, its votes void"
    ends = {"withdraw": "withdrawn", "supersede": "superseded", "cancel": "cancelled"}
    return f"{name} is {ends[kind]}, its votes void" if kind in ends else f"{name} stays"


def _command(session: Session, run: RunNow, order: Order, key_id: str, at: datetime) -> Command:
    """The command; without a key it is only to be ruled on, so that nothing is stored."""
    operation = run.operation
    return Command(
        installation=session.settings.installation, person=order.person, key_id=key_id, tenant=operation.tenant,
        operation=operation.operation, command=order.kind, control_version=run.control.version,
        draft_version=order.draft_version, content=order.content, to=order.to, successor=order.successor,
        key=order.key, finding=order.finding, reference=order.reference, question=order.question,
        comment_hash=stored_comment(session, operation.tenant, order.comment) if key_id else _tried(order),
        issued_at=at, expires_at=at + GOOD_FOR, id=new_id(),
    )  # fmt: skip


def _tried(order: Order) -> Sha256 | Literal[""]:
    """What stands for a comment that is not stored yet, where a command cannot do without one."""
    return sha256_hex(order.comment.encode()) if order.kind == "settle" else ""


def commanded(session: Session, tenant: str, operation: str, order: Order, as_json: bool) -> None:
    """Command a run as the ledger has it now."""
    command(session, run_now(session, tenant, operation), order, as_json)
