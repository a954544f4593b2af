"""The people's step: raw messages in, one recorded outcome each out. No message makes it fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator
from temporalio import activity

from activities.edits import edit_of
from activities.failures import faults, refusals
from activities.interfaces import Decided, Deciding, Message, MessageBatch, SettleOrder
from activities.runs import check_now, check_run
from countersign.cases.case import Case
from countersign.domain.decision import DECIDE, Outcome, Ruling, Statement
from countersign.domain.directory import Person
from countersign.domain.errors import (
    Conflict,
    CountersignError,
    InputRefused,
    NotFound,
    StatementRefused,
    Unavailable,
)
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.strict_json import parse
from countersign.domain.values import Value
from countersign.ports import Ledger, Received
from countersign.signing.statements import verify_decision
from countersign.signing.unsigned import read_unsigned, unsigned_text

MAX_DETAIL = 300
"""Characters of a refusal's detail that are kept; a sender can make it long."""


class DecisionMessage(Value):
    """The one JSON object of a `decide` message: exactly one of the two."""

    statement: Annotated[str, Field(min_length=1, max_length=8_000)] = ""
    """The signed statement, a compact JWS."""
    unsigned: dict[str, Any] | None = None
    """A decision that nobody signed, for the `dev` profile alone."""

    @model_validator(mode="after")
    def _one_of_two(self) -> DecisionMessage:
        if bool(self.statement) == (self.unsigned is not None):
            raise ValueError("give exactly one of 'statement' and 'unsigned'")
        return self


class DecidingSteps(Deciding):
    """Reads, verifies, rules, and records, each message for itself."""

    def __init__(self, ledger: Ledger, installation: str, cases: Mapping[str, Case], *, unsigned: bool) -> None:
        """
        Args:
            ledger: where decisions are recorded.
            installation: the audience that statements must name.
            cases: what an edit is worked out by, by name.
            unsigned: whether the installation takes decisions that nobody signed (profile `dev`).
        """
        self._ledger = ledger
        self._installation = installation
        self._cases = cases
        self._unsigned = unsigned

    @activity.defn
    def decide(self, batch: MessageBatch) -> Decided:
        """See Deciding."""
        with refusals(self._ledger, batch.tenant, batch.operation, "decide"):
            check_run(batch.tenant, batch.operation)
        with faults("decide"):
            for message in batch.messages:
                check_now(message.received_at)
            persons = self._ledger.directory.persons(batch.tenant)
            outcomes = tuple(self._ruled(batch, message, persons) for message in batch.messages)
            current = self._ledger.approvals.current(batch.tenant, batch.operation)
        return Decided(outcomes=outcomes, status=current.status if current else None)

    @activity.defn
    def settle(self, order: SettleOrder) -> ApprovalStatus:
        """See Deciding."""
        with refusals(self._ledger, order.tenant, order.operation, "settle"):
            check_run(order.tenant, order.operation)
            if self._ledger.approvals.get(order.tenant, order.approval_id).proposal.operation != order.operation:
                raise Conflict(f"approval {order.approval_id[:80]} is not of operation {order.operation}")
        with faults("settle"):
            check_now(order.now)
            return self._ledger.approvals.settle(order.tenant, order.approval_id, order.status, order.now)

    def _ruled(self, batch: MessageBatch, message: Message, persons: Mapping[str, Person]) -> Outcome:
        try:
            received, signer = self._received(batch, message, persons)
        except _Unreadable as unreadable:
            return self._refused(batch, message, unreadable.outcome)
        except StatementRefused as refusal:
            detail = f"{refusal.reason}: {refusal.message}"
            return self._refused(batch, message, Outcome(ruling=Ruling.BAD_STATEMENT, detail=detail))
        statement = received.statement
        if (statement.tenant, statement.operation) != (batch.tenant, batch.operation):
            # Sent to many runs at once, or to the wrong one: good at most where it belongs (G20).
            return self._refused(batch, message, Outcome(ruling=Ruling.NOT_THIS_APPROVAL))
        if statement.decision == "break_glass" and not self._gives_reason(statement):
            return self._refused(batch, message, Outcome(ruling=Ruling.REASON_MISSING))
        try:
            edit = edit_of(self._ledger, self._cases, statement, message.received_at)
            return self._ledger.approvals.decide(received, signer, edit)
        except Unavailable:
            raise
        except CountersignError as refusal:
            # Whatever one message makes go wrong must not keep the others, and the deadline, waiting.
            return self._refused(batch, message, Outcome(ruling=Ruling.BAD_STATEMENT, detail=refusal.message))

    def _gives_reason(self, statement: Statement) -> bool:
        """Whether the comment that is signed by its hash can be read in the ledger, by whoever asks later."""
        try:
            return bool(self._ledger.documents.get(statement.tenant, statement.comment_hash).strip())
        except (NotFound, Conflict):
            return False

    def _received(
        self, batch: MessageBatch, message: Message, persons: Mapping[str, Person]
    ) -> tuple[Received, Person]:
        read, at = _message_of(message), message.received_at
        if read.unsigned is None:
            token = read.statement
            statement, signer = verify_decision(token, persons, installation=self._installation, now=at)
            return self._as_received(message, statement, token), signer
        if not self._unsigned:
            raise StatementRefused("unsigned", "decisions must be signed here; use starter.py approve, edit or reject")
        token = unsigned_text(read.unsigned)
        statement, signer = read_unsigned(
            token, batch.tenant, batch.operation, persons, installation=self._installation, now=at
        )
        return self._as_received(message, statement, token), signer

    def _as_received(self, message: Message, statement: Statement, token: str) -> Received:
        return Received(
            message_id=message.id, transport=message.transport, statement=statement, token=token,
            assurance="signed" if statement.key_id else "namespace-only", at=message.received_at,
        )  # fmt: skip

    def _refused(self, batch: MessageBatch, message: Message, outcome: Outcome) -> Outcome:
        short = outcome.model_copy(update={"detail": outcome.detail[:MAX_DETAIL]})
        return self._ledger.approvals.record_refusal(
            batch.tenant, batch.operation, message.id, message.transport, short, message.received_at
        )


class _Unreadable(Exception):
    def __init__(self, ruling: Ruling, detail: str) -> None:
        super().__init__(detail)
        self.outcome = Outcome(ruling=ruling, detail=detail)


def _message_of(message: Message) -> DecisionMessage:
    if message.name != DECIDE:
        raise _Unreadable(Ruling.UNKNOWN_MESSAGE, f"the run knows the message {DECIDE!r}, not {message.name!r}")
    if message.body is None:
        raise _Unreadable(Ruling.MALFORMED, message.problem)
    try:
        fields = parse(message.body.encode("utf-8", "surrogatepass"), where=DECIDE)
        return DecisionMessage.model_validate(fields)
    except InputRefused as refusal:
        raise _Unreadable(Ruling.MALFORMED, refusal.message) from None
    except ValidationError:
        form = f'{DECIDE}: expected {{"statement": "<signed statement>"}} and nothing else'
        raise _Unreadable(Ruling.MALFORMED, form) from None
