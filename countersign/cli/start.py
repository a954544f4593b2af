"""`start`: from a question and a file to a registered, signed operation and its run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.errors import in_plain_words
from countersign.cli.rendering import STARTER, fields, moment, say, say_json, warn
from countersign.cli.request_file import Order, read_order, read_schema, request_of
from countersign.cli.session import Session, SigningKey, finished, new_id, now, opened, signing_key
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.directory import REQUESTER
from countersign.domain.draft import DatasetSchema, ReportRequest
from countersign.domain.errors import DataRefused, NotAuthorised, Unavailable
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation, RequestStatement
from countersign.domain.state import State

Run = Literal["started", "already running", "finished"]
"""What this call found or did: the run started by it, one that goes on, or an operation that has its end."""


class Started(NamedTuple):
    """What became of a start."""

    operation: Operation
    first: bool
    """Whether this call registered the operation; else it stands as the first start left it."""
    run: Run
    warnings: list[str]


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
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Register a signed request and start its run.

    The same request again answers with the first run; another one under the same id is a conflict.
    """
    given = {
        "tenant": tenant, "requester": requester, "question": question, "data": data, "schema": schema,
        "channel": channel, "operation": operation, "title": title, "period": period, "language": language,
    }  # fmt: skip
    order = read_order(request_file, given)
    with opened() as session:
        started = start_operation(session, order, key)
    for line in started.warnings:
        warn(line)
    _say_started(started, as_json)


def start_operation(session: Session, order: Order, key_file: Path | None = None) -> Started:
    """Read the data strictly, store it, sign and register the request, start the run.

    Raises:
        NotAuthorised: whoever asks does not have the role for it; nothing was stored.
        InputRefused: a request or an operation id that no report can be published under.
        DataRefused: the data is not as declared, with row, column and value.
        Conflict: the operation id stands for another request already.
        Unavailable: no Temporal server, or one without our search attributes; the registration then stays, and the
            same start again goes on from it.
    """
    from countersign.cases.report.case import document_name

    key = signing_key(session, order.tenant, order.requester, key_file)
    _check_requester(session, order)
    request = _request(session, order)
    document = canonical_bytes(request.model_dump(mode="json", by_alias=True))
    request_hash = sha256_hex(document)
    mine = Operation(
        tenant=order.tenant,
        operation=order.operation or f"report-{request_hash.removeprefix('sha256:')[:12]}",
        case=request.case,
        request_hash=session.ledger.documents.put(order.tenant, document),
        requester=order.requester,
        statement="",
        registered_at=now(),
    )
    document_name(mine.operation)  # an id that no report can be published under is refused before anyone is asked
    signed = mine.model_copy(update={"statement": _signed(session, mine, key)})
    registered = session.ledger.operations.register(signed)
    # The ledger remembers an end for longer than Temporal keeps a closed run's id from being used again.
    run, warnings = ("finished", []) if registered.state.terminal else _running(registered)
    current = session.ledger.operations.get(registered.tenant, registered.operation)
    return Started(current, registered.statement == signed.statement, run, warnings)


def _check_requester(session: Session, order: Order) -> None:
    """Refuse at once what the run would refuse: an operation id that stands registered cannot be used again."""
    person = session.ledger.directory.person(order.tenant, order.requester)
    if person is None or not person.may_request:
        raise NotAuthorised(
            "requester",
            f"person {order.requester} may not ask for operations in tenant {order.tenant}: an active person with the"
            f" role {REQUESTER} may; see: {STARTER} directory show --tenant {order.tenant}",
        )


def _request(session: Session, order: Order) -> ReportRequest:
    """The request on exactly the data as it lies there now: read strictly, stored, pinned by its hash."""
    from countersign.bootstrap import evidence, load_channels
    from countersign.cases.report.case import channel_of

    request = request_of(order, read_schema(Path(order.schema_)) if order.schema_ else DatasetSchema())
    channel_of(request, load_channels(session.settings))
    data = evidence(session.settings)
    dataset = request.dataset.model_copy(update={"sha256": data.put(order.tenant, Path(order.data))})
    try:
        data.open(order.tenant, dataset).close()
    except DataRefused as refused:
        raise DataRefused(f"{order.data}: {refused.message}") from None
    return request.model_copy(update={"dataset": dataset})


def _signed(session: Session, operation: Operation, key: SigningKey) -> str:
    from countersign.signing.statements import sign_request

    statement = RequestStatement(
        installation=session.settings.installation, person=operation.requester, key_id=key.id,
        tenant=operation.tenant, operation=operation.operation, request_hash=operation.request_hash,
        issued_at=operation.registered_at, id=new_id(),
    )  # fmt: skip
    return sign_request(statement, key.private)


def _running(operation: Operation) -> tuple[Run, list[str]]:
    """See that the operation's run goes on, and what keeps it from that; whatever fails leaves it registered."""
    try:
        return finished(_run(operation))
    except Exception as error:
        sentence = in_plain_words(error)
        if sentence is None:
            raise
        raise Unavailable(f"{sentence}; the operation is registered; give the same command again") from None


async def _run(operation: Operation) -> tuple[Run, list[str]]:
    from countersign.cli.temporal_run import start_run, unattended
    from countersign.temporal_client import connect

    client = await connect()
    started = await start_run(client, operation)
    return "started" if started else "already running", list(await unattended(client))


def _say_started(started: Started, as_json: bool) -> None:
    operation = started.operation
    run = workflow_id(operation.tenant, operation.operation)
    if as_json:
        say_json({
            "operation": operation.operation, "workflow_id": run, "first": started.first, "run": started.run,
            "state": operation.state, "reason": operation.reason, "request_hash": operation.request_hash,
            "requester": operation.requester, "warnings": started.warnings,
        })  # fmt: skip
        return
    say(fields([
        ("operation", operation.operation),
        ("workflow id", run),
        ("state", _stands(started)),
        *_next(operation),
    ]))  # fmt: skip


def _stands(started: Started) -> str:
    operation = started.operation
    before = f" (the same request was registered before, at {moment(operation.registered_at)})"
    return f"{started.run}: {operation.state}{'' if started.first else before}"


def _next(operation: Operation) -> list[tuple[str, str]]:
    name = f"{operation.operation} --tenant {operation.tenant}"
    if operation.state.terminal:
        return [("next", f"{STARTER} show {name}")]
    return [
        ("next", f"{STARTER} wait {name} --until {State.WAITING_APPROVAL}"),
        ("then", f"{STARTER} show {name} --review"),
    ]
