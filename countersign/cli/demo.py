"""`demo`: the main job from a table of figures to a published report, with everything it needs started for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer

from countersign.cli.decision_message import Choice, message_of, send, what_is_signed
from countersign.cli.demo_stage import Stage, stage
from countersign.cli.directory import differences, set_up
from countersign.cli.keys import add_keys
from countersign.cli.rendering import detail, fields, one_of, say
from countersign.cli.request_file import Order, read_order
from countersign.cli.session import Session, key_path, now, opened
from countersign.cli.show import whole_review
from countersign.cli.start import start_operation
from countersign.domain.errors import InputRefused, Unavailable
from countersign.domain.need import DecisionKind
from countersign.domain.proposal import Approval
from countersign.domain.state import State
from countersign.settings import ROOT

REVIEWER = "bob"
POLL_SECONDS = 0.1
WORTH_SHOWING = ("version", "model", "codes", "verdict", "reason", "decision", "channel", "reference")
"""Details of a record that tell how the run goes; `audit show` has all of them."""
ANSWERS: dict[str, DecisionKind] = {"y": "approve", "n": "reject"}


def demo(yes: Annotated[bool, typer.Option("--yes", help="Approve without asking.")] = False) -> None:
    """Run the main job on examples/, and ask you.

    Starts a Temporal server and a worker; drafts, checks, grades, publishes what you approve, verifies the audit.
    """
    say("Starting a Temporal server and a worker ...")
    with stage() as running, opened(running.settings) as session:
        say(fields([("Temporal", running.address), ("web UI", running.web), ("folder", str(running.settings.home))]))
        order = _prepared(session)
        _started(session, order)
        progress = Progress(session, running, order)
        approval = progress.until_proposed()
        _decided(session, approval, yes)
        _told(session, order, progress.until_ended())


class Progress:
    """Shows the audit of one operation as it grows."""

    def __init__(self, session: Session, running: Stage, order: Order) -> None:
        self._session = session
        self._running = running
        self._tenant, self._operation = order.tenant, str(order.operation)
        self._shown = 0

    def until_proposed(self) -> Approval:
        """Until there is a proposal; Unavailable if the run ends without."""
        state = self._until(lambda state: state.terminal or state == State.WAITING_APPROVAL)
        approval = self._session.ledger.approvals.current(self._tenant, self._operation)
        if approval is None or state.terminal:
            raise Unavailable(f"the run ended without a proposal: {state}; see {self._running.worker.log}")
        return approval

    def until_ended(self) -> State:
        """Until the run's end."""
        return self._until(lambda state: state.terminal)

    def _until(self, reached: Callable[[State], bool]) -> State:
        while True:
            self._running.worker.require_running()
            state = self._session.ledger.operations.get(self._tenant, self._operation).state
            self._show()
            if reached(state):
                return state
            time.sleep(POLL_SECONDS)

    def _show(self) -> None:
        records = list(self._session.ledger.audit.records(self._tenant, self._operation))
        for record in records[self._shown :]:
            worth = {name: record.detail[name] for name in WORTH_SHOWING if name in record.detail}
            say(f"  {record.recorded_at[11:19]}  {record.type:<21} {record.subject:<8} {detail(worth)}".rstrip())
        self._shown = len(records)


def _prepared(session: Session) -> Order:
    """The example's request under a new operation id; in the first demo of a folder also persons and keys."""
    request = read_order(ROOT / "examples" / "request.yaml", {"operation": f"demo-{now():%Y%m%d-%H%M%S}"})
    if session.ledger.directory.set_up_open(request.tenant):
        _set_up(session)
    return request


def _set_up(session: Session) -> None:
    """Persons as in the directory file, and a key for whoever has none yet: a demo may have been cut short here."""
    for tenant, difference in differences(session, session.settings.policies / "directory.yaml").items():
        set_up(session, tenant, difference)
    for tenant in session.ledger.directory.tenants():
        keyless = [one.id for one in session.ledger.directory.persons(tenant).values() if not one.keys]
        if keyless:
            add_keys(session, tenant, {name: key_path(session.settings, tenant, name) for name in keyless}, None)


def _started(session: Session, order: Order) -> None:
    operation = start_operation(session, order).operation
    say(f"{order.requester} asks: {order.question}")
    say(f"Operation {operation.operation} is registered and started; it goes on:")


def _decided(session: Session, approval: Approval, yes: bool) -> None:
    decision = "approve" if yes else _asked(session, approval)
    proposal = approval.proposal
    choice = Choice(decision, REVIEWER)
    say(what_is_signed(proposal, choice))
    outcome = send(*message_of(session, proposal, choice))
    say(outcome.sentence() if outcome else "sent as signal; the worker will rule on it")


def _asked(session: Session, approval: Approval) -> DecisionKind:
    say(whole_review(session, approval, REVIEWER))
    while True:
        try:
            answer = one_of(typer.prompt(f"\nYou are {REVIEWER}. Publish this? y(es), n(o), s(how again)"), "yns")
        except typer.Abort:
            raise _unanswered(session, approval) from None
        except InputRefused as refused:
            say(refused.message)
            continue
        if answer in ANSWERS:
            return ANSWERS[answer]
        say(whole_review(session, approval, REVIEWER))


def _unanswered(session: Session, approval: Approval) -> Unavailable:
    return Unavailable(
        f"not answered: the proposal of {approval.proposal.operation} stays pending in {session.settings.home} and"
        " nothing was published; give --yes where nobody can be asked"
    )


def _told(session: Session, order: Order, state: State) -> None:
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
