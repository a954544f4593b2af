"""`approve`, `reject`, `break-glass`, `sign`: a person's decision, sent to the run or kept in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countersign.cli import options
from countersign.cli.deciding.decision_message import Choice, decide, keep, pending, pending_or_expired
from countersign.cli.session import opened
from countersign.domain.errors import InputRefused

OutFile = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the message is written.")]
Emergency = Annotated[str, typer.Option("--comment", metavar="TEXT", help="Why; shown to everyone and kept for good.")]

sign = typer.Typer(
    no_args_is_help=True, help="Sign a decision or a command into a file, to be sent by the temporal CLI."
)


def approve(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    unsigned: options.Unsigned = False,
    as_json: options.AsJson = False,
) -> None:
    """Approve the pending proposal: sign it, send it.

    Shows what is signed before, and prints the run's answer.
    """
    _decide(operation, tenant, Choice("approve", person, comment, key, unsigned=unsigned), as_json)


def reject(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    unsigned: options.Unsigned = False,
    as_json: options.AsJson = False,
) -> None:
    """Reject the pending proposal: sign that, send it.

    Shows what is signed before, and prints the run's answer.
    """
    _decide(operation, tenant, Choice("reject", person, comment, key, unsigned=unsigned), as_json)


def break_glass(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    comment: Emergency,
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """In an emergency, let the pending proposal through past its rules, where the policy provides for that.

    It takes two persons or more of the role that the policy names, each with a reason, and has records of its own.
    """
    _decide(operation, tenant, _emergency(person, comment, key), as_json)


@sign.command("approve")
def sign_approve(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    comment: options.Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign an approval of the pending proposal into a file."""
    _keep(operation, tenant, Choice("approve", person, comment, key), out)


@sign.command("reject")
def sign_reject(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    comment: options.Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign a rejection of the pending proposal into a file."""
    _keep(operation, tenant, Choice("reject", person, comment, key), out)


@sign.command("break-glass")
def sign_break_glass(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    comment: Emergency,
    key: options.KeyFile = None,
) -> None:
    """Sign a break-glass approval into a file."""
    _keep(operation, tenant, _emergency(person, comment, key), out)


def _emergency(person: str, comment: str, key: Path | None) -> Choice:
    if not comment.strip():
        raise InputRefused("--comment: breaking the glass needs a reason; say what the emergency is")
    return Choice("break_glass", person, comment, key)


def _decide(operation: str, tenant: str, choice: Choice, as_json: bool) -> None:
    with opened() as session:
        decide(session, pending_or_expired(session, tenant, operation), choice, as_json)


def _keep(operation: str, tenant: str, choice: Choice, out: Path) -> None:
    with opened() as session:
        keep(session, pending(session, tenant, operation), choice, out)
