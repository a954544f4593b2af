"""A person's decision as a message: what is signed, shown before; the message itself; and what the run answered.

Apart from the commands, because each kind of decision is signed, sent and kept in a file in the same way.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

import typer

from countersign.cli.rendering import TEMPORAL, complain, fields, moment, say, say_json
from countersign.cli.session import Session, finished, known_person, new_id, now, signing_key
from countersign.domain.decision import DECIDE, Outcome, Ruling, Statement, may
from countersign.domain.errors import ConfigurationRefused, Conflict, InputRefused, NotFound
from countersign.domain.identity import workflow_id
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, StatementKind
from countersign.domain.strict_json import check_text
from countersign.domain.values import Sha256

MAX_COMMENT = 4_000


class Choice(NamedTuple):
    """What a person has decided."""

    decision: StatementKind
    person: str
    comment: str = ""
    key_file: Path | None = None
    edited_action: Sha256 | Literal[""] = ""
    """Hash of the action as edited; the action lies in the ledger already."""
    unsigned: bool = False


def proposed(session: Session, tenant: str, operation: str) -> Approval:
    """The operation's latest approval, however it stands; NotFound where nothing was proposed yet."""
    approval = session.ledger.approvals.current(tenant, operation)
    if approval is None:
        state = session.ledger.operations.get(tenant, operation).state
        raise NotFound(f"operation {operation} has no proposal yet; its state is {state}")
    return approval


def pending(session: Session, tenant: str, operation: str) -> Approval:
    """The approval that waits for a decision; Conflict or NotFound say how it stands otherwise."""
    approval = proposed(session, tenant, operation)
    if approval.status != ApprovalStatus.PENDING:
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
    check_text(choice.comment, "--comment")
    if len(choice.comment) > MAX_COMMENT:
        raise InputRefused(f"--comment: {len(choice.comment)} characters, at most {MAX_COMMENT} are allowed")
    person = known_person(session, proposal.tenant, choice.person)
    used = session.ledger.approvals.approved_by(person, proposal.action, now())
    require_accepted(proposal, choice.decision, may(choice.decision, person, approval, used))
    if choice.unsigned:
        _require_unsigned_taken(session)
    else:
        signing_key(session, proposal.tenant, choice.person, choice.key_file)


def require_accepted(proposal: Proposal, decision: StatementKind, outcome: Outcome) -> None:
    """InputRefused with the reason, where the outcome is a refusal."""
    if outcome.ruling != Ruling.ACCEPTED:
        what = decision.replace("_", " ")
        raise InputRefused(f"operation {proposal.operation}: this {what} would be refused: {outcome.sentence()}")


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
    return finished(_sent(statement, message))


def what_is_signed(proposal: Proposal, choice: Choice) -> str:
    """The lines that a person sees before their key is used."""
    verb = "you state, unsigned" if choice.unsigned else "you sign"
    return fields([
        (verb, f"{choice.decision.replace('_', ' ')} as {choice.person}"),
        ("title", proposal.summary),
        ("target", proposal.action.target),
        ("side effect", f"{proposal.action.side_effect} ({proposal.reversibility})"),
        ("action hash", proposal.action.hash()),
        ("edited into", choice.edited_action),
        ("deadline", moment(proposal.deadline)),
    ])  # fmt: skip


def decide(session: Session, approval: Approval, choice: Choice, as_json: bool, follows: str = "") -> None:
    """Show what is signed, sign it, send it, and say what the run answered; exit code 1 where it was refused.

    Args:
        session: the open ledger.
        approval: what is decided about, pending.
        choice: the decision.
        as_json: whether the answer is for a program.
        follows: what comes of it beyond the approval's new status, once it is accepted.
    """
    proposal = approval.proposal
    require_open_to(session, approval, choice)
    if not as_json:
        say(what_is_signed(proposal, choice))
    statement, message = message_of(session, proposal, choice)
    outcome = send(statement, message)
    _say_outcome(outcome, statement, as_json, follows)
    if outcome is not None and outcome.ruling != Ruling.ACCEPTED:
        raise typer.Exit(1)


def keep(session: Session, approval: Approval, choice: Choice, out: Path) -> None:
    """Show what is signed, sign it, and write the message into a file for the temporal CLI."""
    proposal = approval.proposal
    require_open_to(session, approval, choice)
    say(what_is_signed(proposal, choice))
    _, message = message_of(session, proposal, choice)
    out.write_text(json.dumps(message) + "\n", encoding="utf-8")
    run = workflow_id(proposal.tenant, proposal.operation)
    say(f"written to {out}; send it with:")
    say(f"  {TEMPORAL} workflow signal --workflow-id {run} --name {DECIDE} --input-file {out}")


def _statement(session: Session, proposal: Proposal, choice: Choice, key_id: str) -> Statement:
    comment = choice.comment.encode()
    return Statement(
        installation=session.settings.installation, person=choice.person, key_id=key_id, tenant=proposal.tenant,
        operation=proposal.operation, approval_id=proposal.approval_id, approval_version=proposal.approval_version,
        # From the action itself: what was shown is what is signed, whatever else the ledger says its hash is (G14).
        action_hash=proposal.action.hash(), decision=choice.decision, edited_action=choice.edited_action,
        comment_hash=session.ledger.documents.put(proposal.tenant, comment) if comment else "",
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


async def _sent(statement: Statement, message: dict[str, Any]) -> Outcome | None:
    from countersign.cli.temporal_run import send_decision
    from countersign.temporal_client import connect

    return await send_decision(await connect(), statement.tenant, statement.operation, statement.id, message)


def _say_outcome(outcome: Outcome | None, statement: Statement, as_json: bool, follows: str) -> None:
    if as_json:
        say_json({
            "decision": statement.decision, "statement_id": statement.id,
            "assurance": "signed" if statement.key_id else "namespace-only",
            "sent_as": "update" if outcome else "signal",
            "outcome": outcome.model_dump(mode="json") if outcome else None,
        })  # fmt: skip
    elif outcome is None:
        say("sent as signal; not ruled on yet: no worker answers. It counts if one rules on it before the deadline.")
    elif outcome.ruling != Ruling.ACCEPTED:
        complain(f"refused: {outcome.sentence()}")
    else:
        status = outcome.status.value if outcome.status else "settled"
        worth = "" if statement.key_id else "; namespace-only: nobody signed it"
        say(f"{outcome.sentence()}; the proposal is {status}{follows}{worth}")
