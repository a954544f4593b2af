"""`take-over`, `release`, `hand-over`, `grade`, `withdraw`, `cancel`: commands about a run that carry no content.

Apart from `amend` and `propose`, which make something first that is then signed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countersign.cli import options
from countersign.cli.deciding.command_message import Order, commanded, keep
from countersign.cli.deciding.decide import OutFile, sign
from countersign.cli.session import opened
from countersign.cli.situation import run_now


def take_over(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Take a run over from the agent, or where nobody is in control: sign that, send it.

    From then on the agent does nothing, and a pending proposal falls. The role that the policy names under `takeover`
    is needed, or the role to which the run was escalated.
    """
    _command(operation, tenant, Order("take_over", person, comment, key), as_json)


def release(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    version: options.Version,
    person: options.Signer,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Give a run that you are in control of back to the agent, which goes on from exactly this draft version."""
    _command(operation, tenant, Order("release", person, comment, key, draft_version=version), as_json)


def hand_over(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    to: Annotated[
        str, typer.Option("--to", callback=options.checked, metavar="PERSON", help="Who is to be in control.")
    ],
    person: options.Signer,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Give a run that you are in control of to another person who may take runs over."""
    _command(operation, tenant, Order("hand_over", person, comment, key, to=to), as_json)


def grade(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    version: options.Version,
    person: options.Signer,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Have a draft version checked and graded, in a run that you are in control of."""
    _command(operation, tenant, Order("grade", person, comment, key, draft_version=version), as_json)


def withdraw(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Take your own request back, as long as nothing may be on its way.

    Only whoever asked for it can, and only where the policy lets them; others reject it.
    """
    _command(operation, tenant, Order("withdraw", person, comment, key), as_json)


def cancel(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """End a run, as an operator or whoever may take it over, as long as nothing may be on its way."""
    _command(operation, tenant, Order("cancel", person, comment, key), as_json)


@sign.command("take-over")
def sign_take_over(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    comment: options.Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign a takeover of a run into a file."""
    _keep(operation, tenant, Order("take_over", person, comment, key), out)


@sign.command("release")
def sign_release(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    version: options.Version,
    person: options.Signer,
    out: OutFile,
    comment: options.Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign the release of a run to the agent into a file."""
    _keep(operation, tenant, Order("release", person, comment, key, draft_version=version), out)


@sign.command("withdraw")
def sign_withdraw(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    comment: options.Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign the withdrawal of your own request into a file."""
    _keep(operation, tenant, Order("withdraw", person, comment, key), out)


@sign.command("cancel")
def sign_cancel(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    comment: options.Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign the cancellation of a run into a file."""
    _keep(operation, tenant, Order("cancel", person, comment, key), out)


def _command(operation: str, tenant: str, order: Order, as_json: bool) -> None:
    with opened() as session:
        commanded(session, tenant, operation, order, as_json)


def _keep(operation: str, tenant: str, order: Order, out: Path) -> None:
    with opened() as session:
        keep(session, run_now(session, tenant, operation), order, out)
