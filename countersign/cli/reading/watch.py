"""`watch`: what goes on while a run is drafted and graded, event by event as it comes; never the audit.

From the ledger alone, so that it works without a Temporal server, and goes on from any event after an interruption.
"""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from countersign.cli import options
from countersign.cli.rendering import STARTER, moment, say
from countersign.cli.session import Session, now, opened
from countersign.cli.situation import run_now
from countersign.cli.standing import waits_for
from countersign.domain.operation import Operation
from countersign.domain.progress import Progress
from countersign.domain.state import State

POLL_SECONDS = 0.5
BATCH = 500


def watch(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    start: Annotated[
        int, typer.Option("--from", metavar="N", min=0, help="Only events after this number; 0 for all.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Follow what the agent and the grader do, as it happens, until the operation has ended.

    Each line begins with the event's number: after an interruption go on with --from and the last one that you saw.
    """
    shown, told = start, ""
    with opened() as session:
        try:
            while True:
                # Looked at before the events: those that were written until the end are then all read.
                stored = session.ledger.operations.get(tenant, operation)
                shown = _tell(session, tenant, operation, shown, as_json)
                told = _say_standing(session, stored, shown, told, as_json)
                if stored.state.terminal:
                    return
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            typer.echo(f"go on with: {STARTER} watch {operation} --tenant {tenant} --from {shown}", err=True)
            raise


def _tell(session: Session, tenant: str, operation: str, shown: int, as_json: bool) -> int:
    """Print all events after `shown`; the number of the last one."""
    while events := session.ledger.progress.since(tenant, operation, shown, BATCH):
        for event in events:
            typer.echo(json.dumps(event.model_dump(mode="json"))) if as_json else say(_line(event))
            shown = event.number
    return shown


def _say_standing(session: Session, operation: Operation, shown: int, told: str, as_json: bool) -> str:
    """Tell, once each time, what no event will: that the run waits for people who help it, or that events were deleted.

    Its JSON has the form of an event, with the number of the last one. Returns the state and reason it was told of.
    """
    stands = f"{operation.state.value} {operation.reason}"
    kind, name, detail = "", "", ""
    if operation.state == State.ESCALATED:
        run = run_now(session, operation.tenant, operation.operation)
        kind, name, detail = "escalated", operation.reason, waits_for(session, run, now())
    elif operation.state.terminal and _deleted(session, operation):
        kind, name = "deleted", "what went on was deleted, which it may be after the end; the audit is kept: timeline"
    if kind and stands != told:
        line = {"tenant": operation.tenant, "operation": operation.operation, "number": shown, "at": moment(now()),
                "kind": kind, "draft_version": 0, "name": name, "detail": detail}  # fmt: skip
        typer.echo(json.dumps(line)) if as_json else say(f"{'--':>5}  {line['at']}  --   {kind:<14} {name}  {detail}")
    return stands


def _deleted(session: Session, operation: Operation) -> bool:
    """Whether models were called for it, and no event of that is left."""
    name = (operation.tenant, operation.operation)
    return bool(session.ledger.model_calls.of_operation(*name)) and not session.ledger.progress.since(*name, 0, 1)


def _line(event: Progress) -> str:
    what = event.kind.value.replace("_", " ")
    version = f"v{event.draft_version}" if event.draft_version else "--"
    return f"{event.number:>5}  {moment(event.at)}  {version:<4} {what:<14} {event.name}  {event.detail}".rstrip()
