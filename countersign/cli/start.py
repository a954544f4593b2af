"""`start`: from a question and a file to a registered, signed operation and its run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countersign.cli import options
from countersign.cli.registering import Intent, Started, derived_id, register_and_start, require_asker, started_lines
from countersign.cli.rendering import STARTER, fields, say, say_json, warn
from countersign.cli.request_file import Order, read_order, read_schema, request_of
from countersign.cli.session import Session, opened, signing_key
from countersign.cli.superseding import start_instead
from countersign.domain.canonical import canonical_bytes
from countersign.domain.draft import DatasetSchema, ReportRequest
from countersign.domain.errors import DataRefused
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation
from countersign.domain.state import State


def start(
    request_file: Annotated[
        Path | None, typer.Argument(metavar="REQUEST_FILE", help="YAML or JSON; options fill in what it leaves out.")
    ] = None,
    tenant: options.OptionalTenant = None,
    requester: options.OptionalSigner = None,
    question: Annotated[str | None, typer.Option(help="What the report is to say.", metavar="TEXT")] = None,
    data: Annotated[str | None, typer.Option(help="The dataset: a CSV file.", metavar="FILE")] = None,
    schema: Annotated[str | None, typer.Option(help="What its columns hold (YAML or JSON).", metavar="FILE")] = None,
    channel: Annotated[str | None, typer.Option(help="Where it is to be published.", metavar="CHANNEL")] = None,
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
        "tenant": tenant, "requester": requester, "question": question, "data": data, "schema": schema,
        "channel": channel, "operation": operation, "title": title, "period": period, "language": language,
    }  # fmt: skip
    order = read_order(request_file, given)
    with opened() as session:
        started = start_operation(session, order, key, supersedes, quiet=as_json)
    for line in started.warnings:
        warn(line)
    _say_started(started, as_json)


def start_operation(
    session: Session, order: Order, key_file: Path | None = None, supersedes: str | None = None, *, quiet: bool = False
) -> Started:
    """Read the data strictly, store it, sign and register the request, start the run.

    With `supersedes` that operation's run is ended first, by a signed command, shown unless `quiet`; see
    `superseding.start_instead`.

    Raises:
        NotAuthorised: whoever asks does not have the role for it; nothing was stored.
        InputRefused: a request or an operation id that no report can be published under, or a first set-up that cannot
            end yet.
        DataRefused: the data is not as declared, with row, column and value.
        Conflict: the operation id stands for another request already.
        Unavailable: no Temporal server, or one without our search attributes; the registration then stays, and the
            same start again goes on from it.
    """
    from countersign.cases.report.case import REPORT, document_name

    key = signing_key(session, order.tenant, order.requester, key_file)
    require_asker(session, order.tenant, REPORT, order.requester)
    request = _request(session, order)
    document = canonical_bytes(request.model_dump(mode="json", by_alias=True))
    operation = order.operation or derived_id(REPORT, document)
    document_name(operation)  # an id that no report can be published under is refused before anyone is asked
    intent = Intent(order.tenant, order.requester, REPORT, operation, document)
    if supersedes is not None:
        return start_instead(session, intent, key, supersedes, key_file, quiet=quiet)
    return register_and_start(session, intent, key)


def _request(session: Session, order: Order) -> ReportRequest:
    """The request on exactly the data as it lies there now: read strictly, stored, pinned by its hash."""
    from countersign.bootstrap import evidence, load_channels
    from countersign.cases.report.case import channel_of

    request = request_of(order, read_schema(Path(order.schema_)) if order.schema_ else DatasetSchema())
    channel_of(request.channel, order.tenant, load_channels(session.settings))
    data = evidence(session.settings)
    dataset = request.dataset.model_copy(update={"sha256": data.put(order.tenant, Path(order.data))})
    try:
        data.open(order.tenant, dataset).close()
    except DataRefused as refused:
        raise DataRefused(f"{order.data}: {refused.message}") from None
    return request.model_copy(update={"dataset": dataset})


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
    say(fields(_next(operation)))


def _next(operation: Operation) -> list[tuple[str, str]]:
    name = f"{operation.operation} --tenant {operation.tenant}"
    if operation.state.terminal:
        return [("next", f"{STARTER} show {name}")]
    return [
        ("next", f"{STARTER} wait {name} --until {State.WAITING_APPROVAL}"),
        ("then", f"{STARTER} show {name} --review"),
    ]
