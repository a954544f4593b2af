"""What a demo does at every step: persons with keys, a run's audit as it grows, a person's decision.

Apart from the demos, which each tell a story of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import typer

from countersign.cli.deciding.decision_message import Choice, message_of, send, what_is_signed
from countersign.cli.demos.demo_stage import Stage
from countersign.cli.failure import sentence_of
from countersign.cli.governing.directory import differences, set_up
from countersign.cli.governing.keys import add_keys
from countersign.cli.rendering import detail, one_of, quoted, say
from countersign.cli.reviewing.review import reviewers_view
from countersign.cli.reviewing.show import whole_review
from countersign.cli.session import Session, key_path
from countersign.cli.starting.request_file import Order, RefundOrder
from countersign.cli.starting.start import start_operation
from countersign.domain.errors import InputRefused, Unavailable
from countersign.domain.model_call import ModelCall
from countersign.domain.need import DecisionKind
from countersign.domain.proposal import Approval
from countersign.domain.state import State

POLL_SECONDS = 0.1
SHORT_LINES, SHORT_LINE = 12, 200
"""How much of a document is shown where nobody is asked."""
WORTH_SHOWING = ("version", "model", "code", "codes", "verdict", "reason", "decision", "channel", "reference")
"""Details of a record that tell how the run goes; `audit show` has all of them."""
_AFTERWARDS = {Unavailable.code: "; it will be tried again", "MODEL_REFUSED": "; it is not tried again"}
"""By the error's code: what becomes of the step. An answer in an unusable form is asked for anew within the step."""
ANSWERS: dict[str, DecisionKind] = {"y": "approve", "n": "reject"}


class Progress:
    """Shows the audit of one operation as it grows, and each call of a model that failed."""

    def __init__(self, session: Session, running: Stage, tenant: str, operation: str) -> None:
        self._session = session
        self._running = running
        self._tenant, self._operation = tenant, operation
        self._shown = 0
        self._told: set[int] = set()

    def until_proposed(self) -> Approval:
        """Until there is a proposal; Unavailable if the run ends without."""
        state = self.until(lambda state: state.terminal or state == State.WAITING_APPROVAL)
        approval = self._session.ledger.approvals.current(self._tenant, self._operation)
        if approval is None or state.terminal:
            raise Unavailable(f"the run ended without a proposal: {state}; see {self._running.worker.log}")
        return approval

    def until_ended(self) -> State:
        """Until the run's end."""
        return self.until(lambda state: state.terminal)

    def until(self, reached: Callable[[State], bool]) -> State:
        """Until it has reached a state like that; Unavailable if the worker ends before."""
        while True:
            self._running.worker.require_running()
            state = self._session.ledger.operations.get(self._tenant, self._operation).state
            self._show_failed_calls()
            self._show()
            if reached(state):
                return state
            time.sleep(POLL_SECONDS)

    def _show(self) -> None:
        records = list(self._session.ledger.audit.records(self._tenant, self._operation))
        for record in records[self._shown :]:
            worth = {name: record.detail[name] for name in WORTH_SHOWING if name in record.detail}
            if sentence := sentence_of(self._session, record):
                worth["sentence"] = sentence
            say(f"  {record.recorded_at[11:19]}  {record.type:<23} {record.subject:<8} {detail(worth)}".rstrip())
        self._shown = len(records)

    def _show_failed_calls(self) -> None:
        calls = self._session.ledger.model_calls.of_operation(self._tenant, self._operation)
        for call in calls:
            if call.outcome == "failed" and call.number not in self._told:
                self._told.add(call.number)
                say(failed_call_line(call))


def failed_call_line(call: ModelCall) -> str:
    """`  call 1 of model writer failed: draft v1, attempt 1: UNAVAILABLE, HTTP 503; it will be tried again`."""
    return (
        f"  call {call.number} of model {call.asked} failed: {call.role} v{call.draft_version}, attempt {call.attempt}:"
        f" {call.failure}{_AFTERWARDS.get(call.error, '')}"
    )


class Prompt(NamedTuple):
    """Who is asked at the terminal, and what."""

    person: str
    question: str
    yes: bool
    """Whether that is answered already: the person approves."""


def enrol(session: Session) -> None:
    """Persons as in the directory file, and a key for whoever has none yet: a demo may have been cut short here."""
    for tenant, difference in differences(session, session.settings.policies / "directory.yaml").items():
        set_up(session, tenant, difference)
    for tenant in session.ledger.directory.tenants():
        keyless = [one.id for one in session.ledger.directory.persons(tenant).values() if not one.keys]
        if keyless:
            add_keys(session, tenant, {name: key_path(session.settings, tenant, name) for name in keyless}, None)


def begin(session: Session, order: Order | RefundOrder) -> str:
    """Start the run that is asked for; the operation's name."""
    operation = start_operation(session, order).operation
    say(f"{order.requester} asks: {order.asks}")
    say(f"Operation {operation.operation} is registered and started; it goes on:")
    return operation.operation


def decided(session: Session, approval: Approval, asked: Prompt) -> None:
    """Have a person decide, sign that, send it; Unavailable where nobody answers."""
    if asked.yes:
        say(_in_short(session, approval, asked))
    decision = "approve" if asked.yes else _answered(session, approval, asked)
    proposal = approval.proposal
    choice = Choice(decision, asked.person)
    say(what_is_signed(proposal, choice))
    outcome = send(*message_of(session, proposal, choice))
    say(outcome.sentence() if outcome else "sent as signal; the worker will rule on it")


def _in_short(session: Session, approval: Approval, asked: Prompt) -> str:
    """What is approved where nobody is asked: the beginning of the document, since nobody looks at it before."""
    lines = quoted(reviewers_view(session, approval)["document"])
    more = len(lines) - SHORT_LINES
    shown = [line if len(line) <= SHORT_LINE else f"{line[:SHORT_LINE]}..." for line in lines[:SHORT_LINES]]
    rest = [f"({more} more lines)"] if more > 0 else []
    return "\n".join([f"\n{asked.question} Nobody is asked: {asked.person} approves this.", *shown, *rest, ""])


def _answered(session: Session, approval: Approval, asked: Prompt) -> DecisionKind:
    say(whole_review(session, approval, asked.person))
    while True:
        try:
            answer = one_of(
                typer.prompt(f"\nYou are {asked.person}. {asked.question} y(es), n(o), s(how again)"), "yns"
            )
        except typer.Abort:
            raise _unanswered(session, approval) from None
        except InputRefused as refused:
            say(refused.message)
            continue
        if answer in ANSWERS:
            return ANSWERS[answer]
        say(whole_review(session, approval, asked.person))


def _unanswered(session: Session, approval: Approval) -> Unavailable:
    return Unavailable(
        f"not answered: the proposal of {approval.proposal.operation} stays pending in {session.settings.home} and"
        " nothing went out for it; give --yes where nobody can be asked"
    )
