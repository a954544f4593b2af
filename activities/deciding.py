"""The people's step: raw messages in, one recorded outcome each out. No message makes it fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, ValidationError
from temporalio import activity

from activities.failures import faults
from activities.interfaces import Decided, Deciding, Message, MessageBatch, SettleOrder
from countersign.domain.decision import DECIDE, Outcome, Ruling
from countersign.domain.directory import Person
from countersign.domain.errors import InputRefused, StatementRefused
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.strict_json import parse
from countersign.domain.values import Value
from countersign.ports import Ledger
from countersign.signing.statements import verify_decision

MAX_DETAIL = 300
"""Characters of a refusal's detail that are kept; a sender can make it long."""


class DecisionMessage(Value):
    """The one JSON object of a `decide` message."""

    statement: Annotated[str, Field(min_length=1, max_length=8_000)]
    """The signed statement, a compact JWS."""


class DecidingSteps(Deciding):
    """Reads, verifies, rules, and records, each message for itself."""

    def __init__(self, ledger: Ledger, installation: str) -> None:
        self._ledger = ledger
        self._installation = installation

    @activity.defn
    def decide(self, batch: MessageBatch) -> Decided:
        """See Deciding."""
        with faults("decide"):
            persons = self._ledger.directory.persons(batch.tenant)
            outcomes = tuple(self._ruled(batch, message, persons) for message in batch.messages)
            current = self._ledger.approvals.current(batch.tenant, batch.operation)
        return Decided(outcomes=outcomes, status=current.status if current else None)

    @activity.defn
    def settle(self, order: SettleOrder) -> ApprovalStatus:
        """See Deciding."""
        with faults("settle"):
            return self._ledger.approvals.settle(order.tenant, order.approval_id, order.status, order.now)

    def _ruled(self, batch: MessageBatch, message: Message, persons: Mapping[str, Person]) -> Outcome:
        try:
            token = _statement_of(message)
            statement, signer = verify_decision(
                token, persons, installation=self._installation, now=message.received_at
            )
        except _Unreadable as unreadable:
            return self._refused(batch, message, unreadable.outcome)
        except StatementRefused as refusal:
            detail = f"{refusal.reason}: {refusal.message}"
            return self._refused(batch, message, Outcome(ruling=Ruling.BAD_STATEMENT, detail=detail))
        if (statement.tenant, statement.operation) != (batch.tenant, batch.operation):
            # Sent to many runs at once, or to the wrong one: good at most where it belongs (G20).
            return self._refused(batch, message, Outcome(ruling=Ruling.NOT_THIS_APPROVAL))
        return self._ledger.approvals.decide(
            message.id, token, statement, signer, message.transport, message.received_at
        )

    def _refused(self, batch: MessageBatch, message: Message, outcome: Outcome) -> Outcome:
        short = outcome.model_copy(update={"detail": outcome.detail[:MAX_DETAIL]})
        return self._ledger.approvals.record_refusal(
            batch.tenant, batch.operation, message.id, message.transport, short, message.received_at
        )


class _Unreadable(Exception):
    def __init__(self, ruling: Ruling, detail: str) -> None:
        super().__init__(detail)
        self.outcome = Outcome(ruling=ruling, detail=detail)


def _statement_of(message: Message) -> str:
    if message.name != DECIDE:
        raise _Unreadable(Ruling.UNKNOWN_MESSAGE, f"the run knows the message {DECIDE!r}, not {message.name!r}")
    if message.body is None:
        raise _Unreadable(Ruling.MALFORMED, message.problem)
    try:
        fields = parse(message.body.encode("utf-8", "surrogatepass"), where=DECIDE)
        return DecisionMessage.model_validate(fields).statement
    except InputRefused as refusal:
        raise _Unreadable(Ruling.MALFORMED, refusal.message) from None
    except ValidationError:
        form = f'{DECIDE}: expected {{"statement": "<signed statement>"}} and nothing else'
        raise _Unreadable(Ruling.MALFORMED, form) from None
