"""A person's decision as a message: what is signed, shown before; the message itself; and what the run answered.

Apart from the commands, because each kind of decision is signed, sent and kept in a file in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from countersign.cli.rendering import STARTER, fields, moment, say
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
from countersign.domain.decision import DECIDE, Outcome, Statement, may
from countersign.domain.errors import ConfigurationRefused, Conflict, NotFound
from countersign.domain.proposal import Approval, ApprovalStatus, Assurance, Proposal, StatementKind
from countersign.domain.values import Sha256
from countersign.ports import Received


class Choice(NamedTuple):
    """What a person has decided."""

    decision: StatementKind
    person: str
    comment: str = ""
    key_file: Path | None = None
    edited_action: Sha256 | Literal[""] = ""
    """Hash of the action as edited; the action lies in the ledger already."""
    unsigned: bool = False
    edited_summary: str = ""
    """What the edited action is called; empty where nothing is edited."""


def proposed(session: Session, tenant: str, operation: str) -> Approval:
    """The operation's latest approval, however it stands; NotFound where nothing was proposed yet."""
    approval = session.ledger.approvals.current(tenant, operation)
    if approval is None:
        state = session.ledger.operations.get(tenant, operation).state
        raise NotFound(f"operation {operation} has no proposal yet; its state is {state}")
    return approval


def pending(session: Session, tenant: str, operation: str) -> Approval:
    """The approval that waits for a decision; Conflict or NotFound say how it stands otherwise."""
    return _standing_as(session, tenant, operation, (ApprovalStatus.PENDING,))


def pending_or_expired(session: Session, tenant: str, operation: str) -> Approval:
    """The same, or one that has expired: a decision about that is recorded as late."""
    return _standing_as(session, tenant, operation, (ApprovalStatus.PENDING, ApprovalStatus.EXPIRED))


def _standing_as(session: Session, tenant: str, operation: str, taken: Collection[ApprovalStatus]) -> Approval:
    approval = proposed(session, tenant, operation)
    if approval.status not in taken:
        stored = session.ledger.operations.get(tenant, operation)
        run = f"its run is {stored.state}{f' ({stored.reason})' if stored.reason else ''}"
        raise Conflict(
            f"operation {operation}: {run}, its proposal {approval.status.value}; nothing waits for a decision"
        )
    return approval


def require_open_to(session: Session, approval: Approval, choice: Choice) -> None:
    """Refuse, before anything is shown or signed, a decision that the run would refuse or that cannot be signed.

    Raises:
        InputRefused: the comment is too long, or no text; or this person may not decide so, with the reason.
        NotFound, NotAuthorised: no such person or key, or a key that is not the person's.
        ConfigurationRefused: unsigned, where the installation takes no such decision.
    """
    proposal = approval.proposal
    check_comment(choice.comment)
    person, at = known_person(session, proposal.tenant, choice.person), now()
    used = session.ledger.approvals.approved_by(person, proposal.action, at)
    require_accepted(proposal.operation, choice.decision, may(choice.decision, person, approval, at, used))
    if choice.unsigned:
        _require_unsigned_taken(session)
    else:
        signing_key(session, proposal.tenant, choice.person, choice.key_file)


def message_of(session: Session, proposal: Proposal, choice: Choice) -> tuple[Statement, dict[str, Any]]:
    """The statement and the message that carries it; the comment goes to the ledger, only its hash is signed.

    Raises:
        NotFound, NotAuthorised: no key, or one that is not the person's.
    """
    if choice.unsigned:
        return _unsigned(session, proposal, choice)
    from countersign.signing.statements import sign_decision

    key = signing_key(session, proposal.tenant, choice.person, choice.key_file)
    statement = _statement(session, proposal, choice, key.id)
    return statement, {"statement": sign_decision(statement, key.private)}


def send(statement: Statement, message: dict[str, Any]) -> Outcome | None:
    """Send a decision to its run; nothing if it was left as a signal, not ruled on yet."""
    return sent(_message(statement, message))


def what_is_signed(proposal: Proposal, choice: Choice) -> str:
    """The lines that a person sees before their key is used."""
    verb = "you state, unsigned" if choice.unsigned else "you sign"
    return fields([
        (verb, f"{choice.decision.replace('_', ' ')} as {choice.person}"),
        ("title", choice.edited_summary or proposal.summary),
        ("instead of", proposal.summary if choice.edited_summary not in ("", proposal.summary) else ""),
        ("target", proposal.action.target),
        ("side effect", f"{proposal.action.side_effect} ({proposal.reversibility})"),
        ("action hash", proposal.action.hash()),
        ("edited into", choice.edited_action),
        ("deadline", moment(proposal.deadline)),
    ])  # fmt: skip


def decide(session: Session, approval: Approval, choice: Choice, as_json: bool, follows: str = "") -> None:
    """Show what is signed, sign it, send it, and say what the run answered; exit code 1 where it was refused.

    About what has expired nobody is asked: its run may be closed, so the ledger itself rules, and records that it came
    late.

    Args:
        session: the open ledger.
        approval: what is decided about, pending or expired.
        choice: the decision.
        as_json: whether the answer is for a program.
        follows: what comes of it beyond the approval's new status, once it is accepted.
    """
    proposal = approval.proposal
    require_open_to(session, approval, choice)
    if not as_json:
        say(what_is_signed(proposal, choice))
    statement, message = message_of(session, proposal, choice)
    if approval.status == ApprovalStatus.EXPIRED:
        outcome, todo = _recorded(session, statement, message), _instead(session, proposal)
        tell(_answer(statement, outcome, follows)._replace(sent_as="cli", todo=todo), as_json)
    else:
        tell(_answer(statement, send(statement, message), follows), as_json)


def keep(session: Session, approval: Approval, choice: Choice, out: Path) -> None:
    """Show what is signed, sign it, and write the message into a file for the temporal CLI."""
    proposal = approval.proposal
    require_open_to(session, approval, choice)
    say(what_is_signed(proposal, choice))
    keep_message(_message(*message_of(session, proposal, choice)), out)


def _recorded(session: Session, statement: Statement, body: Mapping[str, Any]) -> Outcome:
    """The ledger's own ruling on a decision that was signed here just now."""
    from countersign.signing.unsigned import UNSIGNED, unsigned_text

    assurance = _assurance(statement)
    received = Received(
        message_id=f"cli:{statement.id}", transport="cli", statement=statement, assurance=assurance, at=now(),
        token=body["statement"] if assurance == "signed" else unsigned_text(body[UNSIGNED]),
    )  # fmt: skip
    return session.ledger.approvals.decide(received, known_person(session, statement.tenant, statement.person))


def _instead(session: Session, proposal: Proposal) -> str:
    """What to do where a decision came too late."""
    if session.ledger.operations.get(proposal.tenant, proposal.operation).state.terminal:
        return "this was recorded; to have it done after all, ask again under a new operation id"
    name = f"{proposal.operation} --tenant {proposal.tenant}"
    return f"this was recorded; the run is held until somebody takes it over or ends it, see: {STARTER} brief {name}"


def _assurance(statement: Statement) -> Assurance:
    return "signed" if statement.key_id else "namespace-only"


def _message(statement: Statement, body: dict[str, Any]) -> Message:
    return Message(statement.tenant, statement.operation, DECIDE, statement.id, body)


def _answer(statement: Statement, outcome: Outcome | None, follows: str) -> Answer:
    worth = "" if statement.key_id else "; namespace-only: nobody signed it"
    status = outcome.status.value if outcome is not None and outcome.status else "settled"
    accepted = f"{outcome.sentence()}; the proposal is {status}{follows}{worth}" if outcome is not None else ""
    return Answer(statement.decision, statement.id, _assurance(statement), outcome, accepted, "before the deadline")


def _statement(session: Session, proposal: Proposal, choice: Choice, key_id: str) -> Statement:
    return Statement(
        installation=session.settings.installation, person=choice.person, key_id=key_id, tenant=proposal.tenant,
        operation=proposal.operation, approval_id=proposal.approval_id, approval_version=proposal.approval_version,
        # From the action itself: what was shown is what is signed, whatever else the ledger says its hash is (G14).
        action_hash=proposal.action.hash(), decision=choice.decision, edited_action=choice.edited_action,
        comment_hash=stored_comment(session, proposal.tenant, choice.comment),
        # Until the grant itself is void: the gateway verifies the statement again when it executes.
        issued_at=now(), expires_at=proposal.execute_by, id=new_id(),
    )  # fmt: skip


def _unsigned(session: Session, proposal: Proposal, choice: Choice) -> tuple[Statement, dict[str, Any]]:
    from countersign.signing.unsigned import UNSIGNED, unsigned_fields

    statement = _statement(session, proposal, choice, key_id="")
    return statement, {UNSIGNED: unsigned_fields(statement)}


def _require_unsigned_taken(session: Session) -> None:
    from countersign.bootstrap import load_channels
    from countersign.domain.loopback import require_loopback
    from countersign.temporal_client import server_address

    settings = session.settings
    if not settings.takes_unsigned:
        raise ConfigurationRefused(
            "--unsigned: decisions must be signed here; for a trial on this machine set COUNTERSIGN_PROFILE=dev, for "
            "the worker too"
        )
    require_loopback(server_address(), settings.ledger_url, load_channels(settings))
