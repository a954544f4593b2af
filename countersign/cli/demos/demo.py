"""`demo`: the main job from a table of figures to a published report, with everything it needs started for it."""

from __future__ import annotations

from typing import Annotated

import typer

from countersign.cli.demos.demo_stage import alone, demo_settings, stage
from countersign.cli.demos.demo_steps import Progress, Prompt, begin, decided, enrol
from countersign.cli.rendering import fields, say
from countersign.cli.session import Session, now, opened
from countersign.cli.starting.request_file import Order, RefundOrder, read_order
from countersign.domain.errors import Unavailable
from countersign.domain.state import State
from countersign.settings import ROOT

REVIEWER = "bob"


def demo(yes: Annotated[bool, typer.Option("--yes", help="Approve without asking.")] = False) -> None:
    """Run the main job on examples/, and ask you.

    Starts a Temporal server and a worker; drafts, checks, grades, publishes what you approve, verifies the audit.
    """
    settings = demo_settings("demo")
    with alone(settings.home), opened(settings) as session:
        order = _prepared(session)
        say("Starting a Temporal server and a worker ...")
        with stage(settings) as running:
            say(fields([("Temporal", running.address), ("web UI", running.web), ("folder", str(settings.home))]))
            progress = Progress(session, running, order.tenant, begin(session, order))
            decided(session, progress.until_proposed(), Prompt(REVIEWER, "Publish this?", yes))
            _told(session, order, progress.until_ended())


def _prepared(session: Session) -> Order | RefundOrder:
    """The example's request under a new operation id; in the first demo of a folder also persons and keys."""
    request = read_order(ROOT / "examples" / "request.yaml", {"operation": f"demo-{now():%Y%m%d-%H%M%S}"})
    if session.ledger.directory.set_up_open(request.tenant):
        enrol(session)
    return request


def _told(session: Session, order: Order | RefundOrder, state: State) -> None:
    tenant, operation = order.tenant, str(order.operation)
    stored = session.ledger.operations.get(tenant, operation)
    execution = session.ledger.executions.get(tenant, operation)
    receipt = execution.receipt if execution else None
    checkpoint = session.ledger.audit.verify(tenant)
    say(fields([
        ("result", f"{state} {stored.reason}".rstrip()),
        ("report", receipt.reference if receipt else ""),
        ("receipt", f"channel {receipt.channel}, key {receipt.key}, content {receipt.content_hash}" if receipt else ""),
        ("audit", f"{checkpoint.count} records of {tenant} verified, head {checkpoint.head}"),
    ]))  # fmt: skip
    if state not in (State.SUCCEEDED, State.REJECTED):
        raise Unavailable(f"the demo ended in {state}; the lines above and the logs in {session.settings.home} say why")
