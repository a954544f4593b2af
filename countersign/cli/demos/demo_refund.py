"""`demo-refund`: money back by rule and by a person's word, an answer that is lost, and the same taken back again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from countersign.cases.followed import confirmed
from countersign.cli.deciding.decision_message import proposed
from countersign.cli.demos.demo_payments import PaymentService, payment_service
from countersign.cli.demos.demo_stage import Stage, alone, demo_settings, stage
from countersign.cli.demos.demo_steps import Progress, Prompt, begin, decided, enrol
from countersign.cli.proving.rebuild import story_of
from countersign.cli.proving.reconcile import compare, lines_of
from countersign.cli.rendering import fields, quoted, say
from countersign.cli.session import Session, now, opened
from countersign.cli.starting.compensate import Wish, start_compensation
from countersign.cli.starting.request_file import read_order
from countersign.domain.compensation import MESSAGE
from countersign.domain.errors import Unavailable
from countersign.domain.execution import Receipt
from countersign.domain.money import Amount
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from countersign.settings import ROOT, Settings

TENANT = "acme"
SMALL, LARGE = "charged-twice", "machine-paid-twice"
FINANCE = ("fay", "finn")
"""Who is asked: the first about a refund, both about taking it back."""
REASON = "The second payment was for a second machine."
EXAMPLES = ROOT / "examples" / "refund"


def demo_refund(yes: Annotated[bool, typer.Option("--yes", help="Approve without asking.")] = False) -> None:
    """Run the refund case on examples/refund, and ask you.

    Starts a payment service, a Temporal server and a worker; refunds by rule, and by your approval with an answer that
    is lost; takes that back; compares all that is recorded with what the service holds.
    """
    say("Starting a payment service, a Temporal server and a worker ...")
    settings = _settings()
    service = payment_service(settings, TENANT)
    with (
        alone(settings.home),
        opened(settings) as session,
        stage(settings, service.program(settings.home)) as running,
    ):
        say(fields([
            ("payments", service.address), ("Temporal", running.address), ("web UI", running.web),
            ("folder", str(settings.home)),
        ]))  # fmt: skip
        enrol(session)
        told = Telling(session, running, service, yes)
        told.by_rule()
        told.answer_lost()
        told.taken_back()
        told.compared()
        told.counted()


def _settings() -> Settings:
    """A folder and a ledger of each demo's own: the example's orders are refunded once, and add up per account."""
    settings = demo_settings(f"demo-refund/{now():%Y%m%d-%H%M%S}")
    own = {"policies": settings.home / "policies", "database_url": f"sqlite:///{settings.home / 'ledger.db'}"}
    return settings.model_copy(update=own)


class Telling(NamedTuple):
    """The story, part by part."""

    session: Session
    running: Stage
    service: PaymentService
    yes: bool

    def by_rule(self) -> None:
        """A small refund, and the customer's message behind it."""
        say("\n1. A customer was charged 249.00 EUR twice. Up to 1000.00 EUR nobody is asked: a rule grants it.")
        self._require(self._asked_for(SMALL, "by-rule.yaml").until_ended(), SMALL)
        self._message(SMALL)

    def answer_lost(self) -> None:
        """A larger one, of which nobody knows at first whether it happened."""
        say(
            "\n2. Another one 4800.00 EUR twice: one person of finance has to agree. The service will refund it, and"
            "\n   its answer gets lost. Whether it happened is unknown then, until the key was looked up there."
        )
        progress = self._asked_for(LARGE, "one-approver.yaml")
        approval = progress.until_proposed()
        self.service.lose_next_answer()
        decided(self.session, approval, Prompt(FINANCE[0], "Refund this?", self.yes))
        if self._require(progress.until_ended(), LARGE) == State.SUCCEEDED:
            receipt = self._receipt(LARGE)
            say(f"Found as {receipt.reference} under key {receipt.key}.")
            self._message(LARGE)

    def taken_back(self) -> None:
        """The larger one again, by a new operation."""
        if self.session.ledger.operations.get(TENANT, LARGE).state != State.SUCCEEDED:
            say("\n3. Nothing was refunded, so nothing is to be taken back.")
            return
        say(
            "\n3. It was right after all. Taking it back is an action of its own, with its own key; two persons decide."
        )
        undo = start_compensation(self.session, Wish(TENANT, LARGE, "rita", REASON)).operation.operation
        progress = self._progress(undo)
        progress.until_proposed()
        for person in FINANCE:
            approval = self.session.ledger.approvals.current(TENANT, undo)
            if approval is not None and approval.status == ApprovalStatus.PENDING:
                decided(self.session, approval, Prompt(person, "Take it back?", self.yes))
        self._require(progress.until_ended(), undo)

    def compared(self) -> None:
        """Ledger, Temporal and service side by side; one operation's story; the audit."""
        say("\n4. Does the ledger say what Temporal and the payment service say? (reconcile, rebuild, audit verify)")
        found = compare(self.session, TENANT)
        for line in lines_of(found, TENANT):
            say(f"  {line}")
        story = story_of(self.session, TENANT, LARGE)
        say(f"  {LARGE} told from the ledger alone: {len(story.entries)} records, {len(story.wrong)} things do not fit")
        for entry in (one for one in story.entries if one.proof):
            say(f"    {entry.type} by {entry.subject}: {entry.proof}")
        checkpoint = self.session.ledger.audit.verify(TENANT)
        say(f"  {checkpoint.count} records of {TENANT} verified, head {checkpoint.head}")
        if found.code or story.wrong:
            raise Unavailable(f"the records disagree, see above; all of it is kept in {self.session.settings.home}")

    def counted(self) -> None:
        """What really happened outside, as the service itself and the folder of messages have it."""
        say("\nOutside, by the payment service's own word:")
        refunds, reversals = (len(self.service.keys(one)) for one in ("refunds", "refunds/reversals"))
        messages = sum(1 for one in self.session.settings.reports_folder.glob(f"messages/{TENANT}/*.txt"))
        lines = [("refunds", str(refunds)), ("taken back", str(reversals)), ("messages", str(messages))]
        say(fields([*lines, *(self._balance(name) for name in (SMALL, LARGE))], indent="  "))

    def _asked_for(self, name: str, example: str) -> Progress:
        begin(self.session, read_order(EXAMPLES / example, {"operation": name}))
        return self._progress(name)

    def _progress(self, name: str) -> Progress:
        return Progress(self.session, self.running, TENANT, name)

    def _message(self, name: str) -> None:
        """What the customer was told, once the service had confirmed the refund."""
        message = f"{name}.{MESSAGE}"
        say(f"Confirmed, so the customer can be told: operation {message} goes on:")
        self._require(self._progress(message).until_ended(), message)
        for line in quoted(Path(self._receipt(message).reference).read_text(encoding="utf-8").rstrip()):
            say(f"  {line}")

    def _receipt(self, name: str) -> Receipt:
        """What the outside confirmed to an operation that has succeeded."""
        return confirmed(self.session.ledger, TENANT, name).receipt

    def _require(self, state: State, name: str) -> State:
        """The state of a run that has ended as it can in this story; Unavailable for any other end."""
        if state not in (State.SUCCEEDED, State.REJECTED):
            where = f"the lines above and the logs in {self.session.settings.home} say why"
            raise Unavailable(f"{name} ended in {state}; {where}")
        return state

    def _balance(self, name: str) -> tuple[str, str]:
        """The payment that an operation was about, as the service has it now."""
        args = proposed(self.session, TENANT, name).proposal.action.args
        (found,) = (one for one in self.service.payments(str(args["order"])) if one["id"] == args["payment"])
        amounts = (Amount(currency=found["currency"], minor=found[one]) for one in ("refunded", "amount"))
        return f"{found['order']}, {found['id']}", "{} of {} refunded".format(*amounts)
