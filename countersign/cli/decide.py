"""`approve`, `reject`, `sign`: a person's decision, signed with their own key and sent to the run or kept in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from countersign.cli import options
from countersign.cli.rendering import TEMPORAL, fields, moment, say, say_json
from countersign.cli.session import Session, finished, new_id, now, opened, signing_key
from countersign.domain.decision import Outcome, Ruling, Statement
from countersign.domain.errors import Conflict, InputRefused, NotFound
from countersign.domain.identity import workflow_id
from countersign.domain.policy import DecisionKind
from countersign.domain.proposal import ApprovalStatus, Proposal
from countersign.domain.strict_json import check_text

Comment = Annotated[str, typer.Option("--comment", metavar="TEXT", help="Kept in the ledger; its hash is signed.")]
OutFile = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the message is written.")]
MAX_COMMENT = 4_000

sign = typer.Typer(no_args_is_help=True, help="Sign a decision into a file, to be sent by the temporal CLI.")


def approve(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    comment: Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Approve the pending proposal: sign it, send it.

    Shows what is signed before, and prints the run's answer.
    """
    _decide("approve", operation, tenant, person, comment, key, as_json)


def reject(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    comment: Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Reject the pending proposal: sign that, send it.

    Shows what is signed before, and prints the run's answer.
    """
    _decide("reject", operation, tenant, person, comment, key, as_json)


@sign.command("approve")
def sign_approve(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    comment: Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign an approval of the pending proposal into a file."""
    _sign("approve", operation, tenant, person, out, comment, key)


@sign.command("reject")
def sign_reject(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    comment: Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign a rejection of the pending proposal into a file."""
    _sign("reject", operation, tenant, person, out, comment, key)


def pending(session: Session, tenant: str, operation: str) -> Proposal:
    """The proposal that waits for a decision; Conflict or NotFound say how it stands otherwise."""
    approval = session.ledger.approvals.current(tenant, operation)
    if approval is None:
        state = session.ledger.operations.get(tenant, operation).state
        raise NotFound(f"operation {operation} has no proposal yet; its state is {state}")
    if approval.status != ApprovalStatus.PENDING:
        raise Conflict(f"operation {operation}: its proposal is {approval.status.value}; nothing waits for a decision")
    return approval.proposal


def signed_decision(
    session: Session, proposal: Proposal, decision: DecisionKind, person: str, comment: str, key_file: Path | None
) -> tuple[Statement, str]:
    """The statement and its compact JWS; the comment goes to the ledger, only its hash is signed."""
    from countersign.signing.statements import sign_decision

    key = signing_key(session, proposal.tenant, person, key_file)
    check_text(comment, "--comment")
    if len(comment) > MAX_COMMENT:
        raise InputRefused(f"--comment: {len(comment)} characters, at most {MAX_COMMENT} are allowed")
    statement = Statement(
        installation=session.settings.installation, person=person, key_id=key.id, tenant=proposal.tenant,
        operation=proposal.operation, approval_id=proposal.approval_id, approval_version=proposal.approval_version,
        # From the action itself: what was shown is what is signed, whatever else the ledger says its hash is (G14).
        action_hash=proposal.action.hash(), decision=decision,
        comment_hash=session.ledger.documents.put(proposal.tenant, comment.encode()) if comment else "",
        # Until the grant itself is void: the gateway verifies the statement again when it executes.
        issued_at=now(), expires_at=proposal.execute_by, id=new_id(),
    )  # fmt: skip
    return statement, sign_decision(statement, key.private)


def send(statement: Statement, token: str) -> Outcome | None:
    """Send a signed decision to its run; nothing if it was left as a signal, not ruled on yet."""
    return finished(_sent(statement, token))


async def _sent(statement: Statement, token: str) -> Outcome | None:
    from countersign.cli.temporal_run import send_decision
    from countersign.temporal_client import connect

    return await send_decision(await connect(), statement.tenant, statement.operation, statement.id, token)


def what_is_signed(proposal: Proposal, decision: DecisionKind, person: str) -> str:
    """The lines that a person sees before their key is used."""
    return fields([
        ("you sign", f"{decision} as {person}"),
        ("title", proposal.summary),
        ("target", proposal.action.target),
        ("side effect", f"{proposal.action.side_effect} ({proposal.reversibility})"),
        ("action hash", proposal.action.hash()),
        ("deadline", moment(proposal.deadline)),
    ])  # fmt: skip


def _decide(
    decision: DecisionKind, operation: str, tenant: str, person: str, comment: str, key: Path | None, as_json: bool
) -> None:
    with opened() as session:
        proposal = pending(session, tenant, operation)
        if not as_json:
            say(what_is_signed(proposal, decision, person))
        statement, token = signed_decision(session, proposal, decision, person, comment, key)
        outcome = send(statement, token)
    _say_outcome(outcome, statement, as_json)
    if outcome is not None and outcome.ruling != Ruling.ACCEPTED:
        raise typer.Exit(1)


def _say_outcome(outcome: Outcome | None, statement: Statement, as_json: bool) -> None:
    if as_json:
        say_json({
            "decision": statement.decision, "statement_id": statement.id,
            "sent_as": "update" if outcome else "signal",
            "outcome": outcome.model_dump(mode="json") if outcome else None,
        })  # fmt: skip
    elif outcome is None:
        say("sent as signal; not ruled on yet: no worker answers. It counts if one rules on it before the deadline.")
    elif outcome.ruling != Ruling.ACCEPTED:
        typer.echo(f"error: refused: {outcome.sentence()}", err=True)
    else:
        say(f"{outcome.sentence()}; the proposal is {outcome.status.value if outcome.status else 'settled'}")


def _sign(
    decision: DecisionKind, operation: str, tenant: str, person: str, out: Path, comment: str, key: Path | None
) -> None:
    with opened() as session:
        proposal = pending(session, tenant, operation)
        say(what_is_signed(proposal, decision, person))
        _, token = signed_decision(session, proposal, decision, person, comment, key)
    out.write_text(json.dumps({"statement": token}) + "\n", encoding="utf-8")
    run = workflow_id(tenant, operation)
    say(f"written to {out}; send it with:")
    say(f"  {TEMPORAL} workflow signal --workflow-id {run} --name decide --input-file {out}")
