"""A house where operations are carried out step by step, as their runs do it, with the real gateway and its channels.

Apart from the tests, since each of them needs a confirmed effect first. No server is needed: the steps are called as
the operation's own run calls them.
"""

from __future__ import annotations

from pathlib import Path
from shutil import copytree
from typing import Any, cast

from temporalio.client import Client

from activities.deciding import DecidingSteps
from activities.interfaces import (
    Message,
    MessageBatch,
    OpenOrder,
    Proposed,
    ProposeOrder,
    RunOrder,
    RunPlan,
    StateRecord,
    StepOrder,
)
from activities.opening import OpeningSteps
from activities.proposing import ProposingSteps
from activities.runs import Runs
from countersign import bootstrap
from countersign.domain.canonical import canonical_bytes
from countersign.domain.compensation import CompensationRequest, MessageRequest, receipt_hash
from countersign.domain.decision import Outcome
from countersign.domain.directory import Limit
from countersign.domain.execution import EffectResult, Receipt
from countersign.domain.operation import Operation
from countersign.domain.proposal import Approval, StatementKind
from countersign.domain.rubric import CriterionResult, GraderAnswer, gate
from countersign.domain.state import State
from countersign.domain.values import Value
from countersign.settings import ROOT
from tests.activities.desk import a_draft
from tests.refund import sample
from tests.support.installation import MAX_PENDING, new_installation
from tests.support.payments import Payments, at_service

TENANT, LINE = "acme", "run-1"
FINANCE = ("fay", "finn")
LIMIT = Limit.model_validate({"each": "20000.00 EUR", "total": "50000.00 EUR", "within": "7d"})


class House:
    """Tenant `acme` with its channels; fay and finn are of finance."""

    def __init__(self, folder: Path, payments: Payments | None = None) -> None:
        """`payments`: the service in place of the one that channels.yaml names; its token must be in PAYMENTS_TOKEN."""
        policies = _policies(folder / "policies", payments)
        self.installation = new_installation(folder / "home", cast(Client, None), policies=policies)
        for person in FINANCE:
            self.installation.enrol(person, "finance", limits=(LIMIT,))
        self.ledger, self.settings = self.installation.ledger, self.installation.settings
        self.clock = bootstrap.wall_clock
        runs, self.cases = Runs(self.ledger, self.clock), bootstrap.cases(self.settings, self.ledger)
        house = (self.ledger, runs, self.settings.installation, self.cases)
        self.opening = OpeningSteps(*house, max_rounds=2, max_grader_tries=2)
        self.deciding = DecidingSteps(*house, unsigned=False)
        self.rubrics = bootstrap.load_rubrics(self.settings)
        self.proposing = ProposingSteps(self.ledger, runs, self.cases, self.rubrics, max_pending=MAX_PENDING)
        self.gateway = bootstrap.gateway(self.settings, self.ledger, self.clock)

    def open(self, order: RunOrder) -> RunPlan:
        """Begin its run."""
        opened = OpenOrder(run=order, now=self.clock())
        return self.installation.step(order.operation, LINE).run(self.opening.open_run, opened)

    def propose(self, operation: str, *, draft: bool = False) -> Proposed:
        """Put its action before people, or have it granted by rule."""
        step = StepOrder(tenant=TENANT, operation=operation, line=LINE, draft_version=int(draft), control_version=1)
        order = ProposeOrder(step=step, approval_version=1, now=self.clock())
        return self.installation.step(operation, LINE).run(self.proposing.propose, order)

    def decide(self, operation: str, person: str, kind: StatementKind = "approve", **changes: Any) -> Outcome:
        """Have a person decide about the proposal that waits."""
        made = self.installation.decision(self.installation.proposal(operation), person, kind, **changes)
        message = Message(
            id=f"{LINE}:{person}", name="decide", transport="signal", body=canonical_bytes(made).decode(),
            received_at=self.clock(),
        )  # fmt: skip
        batch = MessageBatch(tenant=TENANT, operation=operation, messages=(message,))
        return self.installation.step(operation, LINE).run(self.deciding.decide, batch).outcomes[0]

    def execute(self, operation: str) -> EffectResult:
        """Have the gateway execute what was granted."""
        return self.gateway.execute(TENANT, self.approval(operation).proposal.approval_id)

    def ends(self, operation: str, state: State, reason: str = "") -> None:
        """Have its run say how it ended."""
        record = StateRecord(tenant=TENANT, operation=operation, state=state, reason=reason, now=self.clock())
        self.installation.step(operation, LINE).run(self.opening.record_state, record)

    def published(self, operation: str = "report-7", channel: str = "public") -> Path:
        """A report that bob let out; where it lies."""
        self.open(self.installation.register(operation, channel=channel))
        self._passed(operation, a_draft(), "report")
        self.propose(operation, draft=True)
        if channel == "public":
            self.decide(operation, "bob")
        self.execute(operation)
        self.ends(operation, State.SUCCEEDED)
        return Path(self.receipt(operation).reference)

    def refund_proposed(self, operation: str = "refund-7", facts: bytes = b"", **changes: Any) -> RunOrder:
        """A refund whose customer is to be told, before people or granted by rule; `changes` are its draft's.

        Without `facts` they are what the payment service says.
        """
        order = self.installation.register_refund(operation, order="o-1001", message_channel="messages")
        self.message_about(operation)
        self.open(order)
        if facts:
            stored = self.ledger.documents.put(TENANT, facts)
            self.ledger.operations.gathered(TENANT, operation, stored, self.clock())
        else:
            self.gateway.gather(TENANT, operation)
        self._passed(operation, sample.draft(**changes), "refund")
        self.propose(operation, draft=True)
        return order

    def refund_confirmed(self, operation: str = "refund-7") -> Receipt:
        """What the payment service confirmed of a refund; recorded as the gateway records it."""
        approval = self.approval(operation)
        key, now = approval.proposal.action.idempotency_key(), self.clock()
        execution = self.ledger.executions.claim(approval, key, now, now)
        receipt = Receipt(
            channel="payments", key=key, reference="re_81", content_hash=approval.proposal.action.content_hash
        )
        self.ledger.executions.finish(execution, receipt, now)
        return receipt

    def message_about(self, operation: str) -> RunOrder:
        """A registered message about an operation's effect."""
        request = MessageRequest(follows=operation, channel="messages")
        return self.installation.register_following(f"{operation}.message", request)

    def message(self) -> RunOrder:
        """The message of refund-7, as its run is started."""
        one = self.operation("refund-7.message")
        return RunOrder(tenant=TENANT, operation=one.operation, case=one.case, request_hash=one.request_hash)

    def undo(self, operation: str, name: str = "", **changes: Any) -> RunOrder:
        """A registered compensation of an operation."""
        request = CompensationRequest(
            follows=operation, receipt_hash=receipt_hash(self.receipt(operation)), reason="a wrong figure"
        )
        request = request.model_copy(update=changes)
        return self.installation.register_following(name or f"{operation}.undo", request)

    def asked_back(self, operation: str = "report-7") -> str:
        """A compensation that people are asked about; its id."""
        order = self.undo(operation)
        self.open(order)
        self.propose(order.operation)
        return order.operation

    def approval(self, operation: str) -> Approval:
        """Its latest approval."""
        approval = self.ledger.approvals.current(TENANT, operation)
        assert approval is not None
        return approval

    def receipt(self, operation: str) -> Receipt:
        """What the outside confirmed of it."""
        execution = self.ledger.executions.get(TENANT, operation)
        assert execution is not None
        assert execution.receipt is not None
        return execution.receipt

    def operation(self, operation: str) -> Operation:
        """It as it is registered."""
        return self.ledger.operations.get(TENANT, operation)

    def document(self, operation: str) -> bytes:
        """The bytes that its proposal would have go out."""
        return self.ledger.documents.get(TENANT, self.approval(operation).proposal.document)

    def folder(self, channel: str) -> Path:
        """Where a file channel publishes."""
        return self.settings.reports_folder / channel / TENANT

    def _passed(self, operation: str, draft: Any, case: str) -> None:
        written = draft.model_dump(mode="json") if isinstance(draft, Value) else draft
        which, now, rubric = (TENANT, operation, 1), self.clock(), self.rubrics[case]
        self.ledger.drafts.save(*which, written, "a-model", 1, now)
        self.ledger.drafts.save_checks(*which, (), 1, now)
        results = tuple(CriterionResult(id=criterion.id, passed=True) for criterion in rubric.criteria)
        grade = gate(rubric, GraderAnswer(verdict="satisfied", criteria=results, raw="", model="a-grader"))
        self.ledger.drafts.save_grade(*which, grade, rubric.label(), 1, now)


def _policies(folder: Path, payments: Payments | None) -> Path:
    copytree(ROOT / "policies", folder)
    if payments is not None:
        at_service(folder, payments)
    return folder
