"""`resume`: start the run of a registered operation that Temporal has lost, or that was cut short.

Apart from `start`, which needs the request and the requester's key: what was asked for was signed when it was
registered, and whoever brings an installation back has neither.
"""

from __future__ import annotations

from countersign.cli import options
from countersign.cli.rendering import STARTER, fields, say, say_json, warn
from countersign.cli.session import opened
from countersign.cli.starting.registering import see_running
from countersign.domain.errors import Conflict
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation
from countersign.ports import Ledger

ENDED = "nothing was started: the run has ended, and what came of it stands; to ask again takes a new operation id"


def resume(operation: options.OperationArgument, tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """Start the run of a registered operation again, where Temporal has none that is open.

    What the ledger has executed is not executed again: the run ends at once, or looks up what became of it. People are
    asked anew for what they were asked for before.
    """
    with opened() as session:
        stored = session.ledger.operations.get(tenant, operation)
        _check_followed(session.ledger, stored)
        run, warnings = see_running(stored)
        state = session.ledger.operations.get(tenant, operation).state
    for line in warnings:
        warn(line)
    if as_json:
        name = workflow_id(tenant, operation)
        say_json({"operation": operation, "workflow_id": name, "run": run, "state": state, "warnings": warnings})
        return
    say(
        fields(
            [
                ("operation", operation),
                ("state", f"{run}: {state}"),
                ("note", ENDED if run == "finished" else ""),
                ("next", f"{STARTER} status {operation} --tenant {tenant}"),
            ]
        )
    )


def _check_followed(ledger: Ledger, stored: Operation) -> None:
    """Conflict where nothing is confirmed of what it follows: the other one's run starts it then, if ever."""
    from countersign.cases.followed import confirmed

    if not stored.follows or stored.state.terminal:
        return
    try:
        confirmed(ledger, stored.tenant, stored.follows)
    except Conflict as unconfirmed:
        at = f"{stored.follows} --tenant {stored.tenant}"
        if ledger.operations.get(stored.tenant, stored.follows).state.terminal:
            todo = f"it has ended, so nothing ever can; what came of it: {STARTER} rebuild {at}"
        else:
            todo = f"its run starts what follows it; resume that one: {STARTER} resume {at}"
        raise Conflict(f"{unconfirmed.message}; {todo}") from None
