"""`retention`: delete what the agents kept of operations that ended long enough ago, once."""

from __future__ import annotations

from typing import Annotated

import typer

from countersign.cli import options
from countersign.cli.rendering import say, say_json
from countersign.cli.session import OPERATOR, now, opened
from countersign.domain.retention import RetentionOrder


def retention(
    keep: Annotated[
        str, typer.Option("--keep", metavar="TIME", help="How long they are kept after the end, such as 30d.")
    ],
    tenant: options.OptionalTenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Delete the agents' stored threads and progress of operations that ended longer ago; of a tenant, or of all.

    What has not ended keeps them, however long it waits. Ledger and audit keep everything.
    """
    from countersign.bootstrap import retention as retainer

    options.period("--keep", keep, "72h or 30d")
    with opened() as session:
        order = RetentionOrder(keep=keep, tenant=tenant or "")
        forgotten = retainer(session.settings, session.ledger).forget(order, OPERATOR, now())
    if as_json:
        say_json(forgotten.model_dump())
        return
    say(f"deleted {forgotten.threads} threads of {forgotten.operations} operations that ended over {keep} ago")
