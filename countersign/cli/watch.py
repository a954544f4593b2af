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
from countersign.cli.session import Session, opened
from countersign.domain.progress import Progress

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
    shown = start
    with opened() as session:
        try:
            while True:
                # Looked at before the events: those that were written until the end are then all read.
                ended = session.ledger.operations.get(tenant, operation).state.terminal
                shown = _tell(session, tenant, operation, shown, as_json)
                if ended:
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


def _line(event: Progress) -> str:
    what = event.kind.value.replace("_", " ")
    version = f"v{event.draft_version}" if event.draft_version else "--"
    return f"{event.number:>5}  {moment(event.at)}  {version:<4} {what:<14} {event.name}  {event.detail}".rstrip()
