"""`start`: from what somebody asks to a registered, signed operation and its run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countersign.cli import options
from countersign.cli.rendering import STARTER, fields, say, say_json, warn
from countersign.cli.session import Session, opened, signing_key
from countersign.cli.starting.intents import INTENTS
from countersign.cli.starting.registering import Started, register_and_start, require_asker, started_lines
from countersign.cli.starting.request_file import FORMS, Order, RefundOrder, read_order
from countersign.cli.starting.superseding import start_instead
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation
from countersign.domain.refund import REFUND
from countersign.domain.state import State


def start(
    request_file: Annotated[
        Path | None, typer.Argument(metavar="REQUEST_FILE", help="YAML or JSON; options fill in what it leaves out.")
    ] = None,
    tenant: options.OptionalTenant = None,
    requester: options.OptionalSigner = None,
    case: Annotated[
        str | None, typer.Option(help=f"What is asked for; default: {next(iter(FORMS))}.", metavar="|".join(FORMS))
    ] = None,
    question: Annotated[str | None, typer.Option(help="What the report is to say.", metavar="TEXT")] = None,
    data: Annotated[str | None, typer.Option(help="The dataset: a CSV file.", metavar="FILE")] = None,
    schema: Annotated[str | None, typer.Option(help="What its columns hold (YAML or JSON).", metavar="FILE")] = None,
    order: Annotated[str | None, typer.Option(help="The order that a refund is about.", metavar="ORDER")] = None,
    complaint: Annotated[str | None, typer.Option(help="What the customer says of it.", metavar="TEXT")] = None,
    channel: Annotated[str | None, typer.Option(help="Where it is to happen.", metavar="CHANNEL")] = None,
    message_channel: Annotated[
        str | None,
        typer.Option(help="Where the customer is told of a refund, once it is confirmed.", metavar="CHANNEL"),
    ] = None,
    operation: options.OptionalOperation = None,
    title: Annotated[str | None, typer.Option(help="The report's title.", metavar="TEXT")] = None,
    period: Annotated[str | None, typer.Option(help="The time it is about.", metavar="TEXT")] = None,
    language: Annotated[str | None, typer.Option(help="Its language: en or zh.", metavar="en|zh")] = None,
    supersedes: Annotated[
        str | None,
        typer.Option(
            "--supersedes", callback=options.checked, metavar="OLD", help="End this operation of yours first."
        ),
    ] = None,
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Register a signed request and start its run.

    The same request again answers with the first run; another one under the same id is a conflict. With --supersedes
    the run starts only once the old one has ended as superseded by it.
    """
    given = {
        "tenant": tenant, "requester": requester, "case": case, "question": question, "data": data, "schema": schema,
        "order": order, "complaint": complaint, "channel": channel, "message_channel": message_channel,
        "operation": operation, "title": title, "period": period, "language": language,
    }  # fmt: skip
    asked = read_order(request_file, given)
    with opened() as session:
        started = start_operation(session, asked, key, supersedes, quiet=as_json)
    for line in started.warnings:
        warn(line)
    _say_started(started, as_json)


def start_operation(
    session: Session, order: Order | RefundOrder, key_file: Path | None = None, supersedes: str | None = None, *,
    quiet: bool = False,
) -> Started:  # fmt: skip
    """Make the signed request of an order, register it and what is to follow it, start the run.

    With `supersedes` that operation's run is ended first, by a signed command, shown unless `quiet`; see
    `superseding.start_instead`.

    Raises:
        NotAuthorised: whoever asks does not have the role for it; nothing was stored.
        InputRefused: a request or an operation id that nothing can come of, or a first set-up that cannot end yet.
        DataRefused: the data of a report is not as declared, with row, column and value.
        Conflict: the operation id stands for another request already.
        Unavailable: no Temporal server, or one without our search attributes; the registration then stays, and the
            same start again goes on from it.
    """
    key = signing_key(session, order.tenant, order.requester, key_file)
    require_asker(session, order.tenant, order.case, order.requester)
    intent = INTENTS[order.case](session, order)
    if supersedes is not None:
        return start_instead(session, intent, key, supersedes, key_file, quiet=quiet)
    return register_and_start(session, intent, key)


def _say_started(started: Started, as_json: bool) -> None:
    operation = started.operation
    if as_json:
        say_json({
            "operation": operation.operation, "workflow_id": workflow_id(operation.tenant, operation.operation),
            "first": started.first, "run": started.run, "state": operation.state, "reason": operation.reason,
            "request_hash": operation.request_hash, "requester": operation.requester, "warnings": started.warnings,
            "closed_set_up": started.closed_set_up,
        })  # fmt: skip
        return
    say(started_lines(started))
    say(fields(next_lines(operation)))


def next_lines(operation: Operation) -> list[tuple[str, str]]:
    """What to do once it was started, as lines."""
    name = f"{operation.operation} --tenant {operation.tenant}"
    if operation.state.terminal:
        return [("next", f"{STARTER} show {name}")]
    asking = (f"if it says {State.WAITING_ANSWER}", f"the agent asks first: {STARTER} answer {name} --as PERSON")
    if operation.case == REFUND:
        # Whether people are asked is not known before it is drafted: a small one is granted by rule, and never waits.
        return [("next", f"{STARTER} wait {name}"), asking, ("if people are asked", f"{STARTER} show {name} --review")]
    return [
        ("next", f"{STARTER} wait {name} --until {State.WAITING_APPROVAL}"),
        asking,
        ("then", f"{STARTER} show {name} --review"),
    ]
