"""The people's step: raw messages in, one recorded outcome each out. No message makes it fail."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from pydantic import Field, model_validator
from temporalio import activity
from temporalio.api.enums.v1 import EventType

from activities.commanding import Commanding
from activities.edits import edit_of
from activities.failures import faults, refusals
from activities.interfaces import (
    Decided,
    Deciding,
    Marked,
    MarkOrder,
    Message,
    MessageBatch,
    SettleOrder,
    SignalTimes,
    TimesOrder,
    Told,
)
from activities.messages import MAX_STATEMENT, Unreadable, check_key_now, read, record_refusal
from activities.runs import Runs
from countersign.cases.case import Case
from countersign.domain.command import COMMANDS
from countersign.domain.decision import DECIDE, Outcome, Ruling, Statement
from countersign.domain.directory import Person
from countersign.domain.errors import Conflict, CountersignError, NotFound, StatementRefused, Unavailable
from countersign.domain.need import ticks
from countersign.domain.proposal import ApprovalStatus, Proposal
from countersign.domain.values import Value
from countersign.ports import Ledger, Received
from countersign.signing.statements import verify_decision
from countersign.signing.unsigned import read_unsigned, unsigned_text


class DecisionMessage(Value):
    """The one JSON object of a `decide` message: exactly one of the two."""

    statement: Annotated[str, Field(min_length=1, max_length=MAX_STATEMENT)] = ""
    """The signed statement, a compact JWS."""
    unsigned: dict[str, Any] | None = None
    """A decision that nobody signed, for the `dev` profile alone."""

    @model_validator(mode="after")
    def _one_of_two(self) -> DecisionMessage:
        if bool(self.statement) == (self.unsigned is not None):
            raise ValueError("give exactly one of 'statement' and 'unsigned'")
        return self


class _Ruled(NamedTuple):
    """What became of one message."""

    outcome: Outcome
    told: Told | None = None


class DecidingSteps(Deciding):
    """Reads, verifies, rules, and records, each message for itself."""

    def __init__(
        self, ledger: Ledger, runs: Runs, installation: str, cases: Mapping[str, Case], *, unsigned: bool
    ) -> None:
        """
        Args:
            ledger: where decisions and commands are recorded.
            runs: whose step it is, and when.
            installation: the audience that statements must name.
            cases: what an edit is worked out by, by name.
            unsigned: whether the installation takes decisions that nobody signed (profile `dev`).
        """
        self._ledger = ledger
        self._runs = runs
        self._installation = installation
        self._cases = cases
        self._commanding = Commanding(ledger, runs, installation, cases)
        self._unsigned = unsigned

    @activity.defn
    def decide(self, batch: MessageBatch) -> Decided:
        """See Deciding."""
        with refusals(self._runs, batch.tenant, batch.operation, "decide"):
            self._runs.check_run(batch.tenant, batch.operation)
        with faults("decide"):
            for message in batch.messages:
                self._runs.check_now(message.received_at)
            persons = self._ledger.directory.persons(batch.tenant)
            ruled = [self._ruled(batch, message, persons) for message in batch.messages]
            current = self._ledger.approvals.current(batch.tenant, batch.operation)
            decided = Decided(
                outcomes=tuple(one.outcome for one in ruled),
                status=current.status if current else None,
                told=tuple(one.told for one in ruled if one.told is not None),
            )
            return self._with_standing(batch, decided)

    def _with_standing(self, batch: MessageBatch, decided: Decided) -> Decided:
        """With how the run stands now, where a command was among the messages."""
        if not any(message.name in COMMANDS for message in batch.messages):
            return decided
        try:
            standing = self._ledger.controls.standing(batch.tenant, batch.operation)
            asked = self._ledger.questions.current(batch.tenant, batch.operation)
        except NotFound:
            # A run that anybody started for an operation that nobody registered must come to its end too.
            return decided
        stands = {"control": standing.control, "ending": standing.ending, "draft_version": standing.draft_version}
        return decided.model_copy(update={**stands, "question": asked.status if asked is not None else None})

    @activity.defn
    async def signal_times(self, order: TimesOrder) -> SignalTimes:
        """See Deciding."""
        with refusals(self._runs, order.tenant, order.operation, "signal_times"):
            self._runs.check_run(order.tenant, order.operation)
            history = await _recorded()
            if not all(1 <= signal <= len(history.signals) for signal in order.signals):
                raise Unavailable(f"operation {order.operation}: history has {len(history.signals)} signals so far")
        times = tuple(history.signals[signal - 1] for signal in order.signals)
        return SignalTimes(times=times, cancelled_at=history.cancelled_at)

    @activity.defn
    def mark(self, order: MarkOrder) -> Marked:
        """See Deciding."""
        with refusals(self._runs, order.tenant, order.operation, "mark"):
            self._runs.check_run(order.tenant, order.operation)
            self._runs.check_now(order.now)
            proposal = self._own(order)
            status = self._ledger.approvals.mark(order.tenant, order.approval_id, order.tick, order.now)
        tick = ticks(proposal.assessment.needs, proposal.proposed_at, proposal.deadline)[order.tick]
        return Marked(status=status, escalated=tick.kind == "tier", roles=proposal.asked(tick.at))

    @activity.defn
    def settle(self, order: SettleOrder) -> ApprovalStatus:
        """See Deciding."""
        with refusals(self._runs, order.tenant, order.operation, "settle"):
            self._runs.check_run(order.tenant, order.operation)
            self._own(order)
        with faults("settle"):
            self._runs.check_now(order.now)
            return self._ledger.approvals.settle(order.tenant, order.approval_id, order.status, order.now)

    def _own(self, order: MarkOrder | SettleOrder) -> Proposal:
        """The proposal that is meant; Conflict where it is another operation's, or another run asks about it."""
        proposal = self._ledger.approvals.get(order.tenant, order.approval_id).proposal
        if proposal.operation != order.operation:
            raise Conflict(f"approval {order.approval_id[:80]} is not of operation {order.operation}")
        if not self._runs.carries(order.tenant, order.operation, order.approval_id):
            raise Conflict(f"approval {order.approval_id[:80]} is asked about by another run")
        return proposal

    def _ruled(self, batch: MessageBatch, message: Message, persons: Mapping[str, Person]) -> _Ruled:
        try:
            if message.name in COMMANDS:
                return _Ruled(*self._commanding.ruled(batch, message, persons))
            return _Ruled(self._decision(batch, message, persons))
        except Unavailable:
            raise
        except Unreadable as unreadable:
            refused = unreadable.outcome
        except StatementRefused as refusal:
            refused = Outcome(ruling=Ruling.BAD_STATEMENT, detail=f"{refusal.reason}: {refusal.message}")
        except CountersignError as refusal:
            # Whatever one message makes go wrong must not keep the others, and the deadline, waiting.
            refused = Outcome(ruling=Ruling.BAD_STATEMENT, detail=refusal.message)
        return _Ruled(record_refusal(self._ledger, batch, message, refused))

    def _decision(self, batch: MessageBatch, message: Message, persons: Mapping[str, Person]) -> Outcome:
        if message.name != DECIDE:
            known = ", ".join((DECIDE, *COMMANDS))
            raise Unreadable(Ruling.UNKNOWN_MESSAGE, f"the run knows no message {message.name[:60]!r}; known: {known}")
        received, signer = self._received(batch, message, persons)
        statement = received.statement
        if (statement.tenant, statement.operation) != (batch.tenant, batch.operation):
            # Sent to many runs at once, or to the wrong one: good at most where it belongs (G20).
            raise Unreadable(Ruling.NOT_THIS_APPROVAL)
        if not self._asks(batch):
            raise Unreadable(Ruling.NOTHING_PENDING, "another run asks about this proposal; start the operation again")
        if statement.decision == "break_glass" and not self._gives_reason(statement):
            raise Unreadable(Ruling.REASON_MISSING)
        edit = edit_of(self._ledger, self._cases, statement, message.received_at)
        return self._ledger.approvals.decide(received, signer, edit)

    def _asks(self, batch: MessageBatch) -> bool:
        """Whether what waits for people, if anything does, is the asking run's own."""
        current = self._ledger.approvals.current(batch.tenant, batch.operation)
        if current is None or current.status != ApprovalStatus.PENDING:
            return True
        return self._runs.carries(batch.tenant, batch.operation, current.proposal.approval_id)

    def _gives_reason(self, statement: Statement) -> bool:
        """Whether the comment that is signed by its hash can be read in the ledger, by whoever asks later."""
        try:
            return bool(self._ledger.documents.get(statement.tenant, statement.comment_hash).strip())
        except (NotFound, Conflict):
            return False

    def _received(
        self, batch: MessageBatch, message: Message, persons: Mapping[str, Person]
    ) -> tuple[Received, Person]:
        sent, at = read(message, DecisionMessage), message.received_at
        if sent.unsigned is None:
            token = sent.statement
            statement, signer = verify_decision(token, persons, installation=self._installation, now=at)
            check_key_now(signer, statement.key_id, self._runs.now())
            return _as_received(message, statement, token), signer
        if not self._unsigned:
            raise StatementRefused("unsigned", "decisions must be signed here; use starter.py approve, edit or reject")
        token = unsigned_text(sent.unsigned)
        statement, signer = read_unsigned(
            token, batch.tenant, batch.operation, persons, installation=self._installation, now=at
        )
        return _as_received(message, statement, token), signer


class _History(NamedTuple):
    """What the server recorded for the asking run, and when; its own history says so, and no sender can."""

    signals: list[datetime]
    cancelled_at: datetime | None


async def _recorded() -> _History:
    info = activity.info()
    run = activity.client().get_workflow_handle(str(info.workflow_id), run_id=info.workflow_run_id)
    signals: list[datetime] = []
    cancelled_at: datetime | None = None
    async for event in run.fetch_history_events():
        at = event.event_time.ToDatetime(UTC)
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
            signals.append(at)
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
            cancelled_at = cancelled_at or at
    return _History(signals, cancelled_at)


def _as_received(message: Message, statement: Statement, token: str) -> Received:
    return Received(
        message_id=message.id, transport=message.transport, statement=statement, token=token,
        assurance="signed" if statement.key_id else "namespace-only", at=message.received_at,
    )  # fmt: skip
