"""Executions: the intent is written down before anything is sent, and only the newest claim may say how it ended.

Apart from approvals because an execution outlives its approval: it is keyed on what is done, not on who allowed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import select

from countersign.domain.errors import Conflict, Frozen, NotYet, Unavailable
from countersign.domain.execution import MAY_BE_THERE, Execution, ExecutionStatus, Receipt
from countersign.domain.freeze import Freeze
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.settlement import Settled
from countersign.ledger.approval_rows import find, set_status
from countersign.ledger.columns import moment_text
from countersign.ledger.control_rows import check_control
from countersign.ledger.execution_rows import (
    claimed_of,
    find_execution,
    landing_of,
    names_of,
    receipt_of,
    write,
    write_latest,
)
from countersign.ledger.following import as_execution, taken_back
from countersign.ledger.freezes import held
from countersign.ledger.late import record_doubt, record_late
from countersign.ledger.settlements import said_of, spend
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import approvals, executions
from countersign.ports import SignedSettlement


class SqlExecutions:
    """ports.Executions on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self, approval: Approval, key: str, now: datetime, until: datetime, *, to_send: bool = True) -> Execution:
        """Record the intent and take the sole right to send; as in ports.Executions.

        The row then says INTENDED, whatever is returned: a holder that is killed leaves something to be looked up.

        Raises:
            Conflict: also where the approval, as the ledger has it now, is not granted, or the operation has ended.
        """
        claimed = self._claimed(approval, key, now, until, to_send=to_send)
        if isinstance(claimed, Freeze):
            tool = f"tool {claimed.tool}" if claimed.tool else "all effects"
            raise Frozen(
                f"freeze {claimed.number} of {claimed.person} holds {tool} since {claimed.since.isoformat()}; nothing "
                "was sent, and it is tried again until two persons lift it"
            )
        return claimed

    def _claimed(
        self, approval: Approval, key: str, now: datetime, until: datetime, *, to_send: bool
    ) -> Execution | Freeze:
        """The claim, or what holds it; not raised in here, since its record has to stay."""
        proposal = approval.proposal
        with self._store.writing(proposal.tenant) as writing:
            writing.lock_known_operation(proposal.operation)
            stored = find_execution(writing.connection, proposal.tenant, key)
            if stored is not None and stored.status == ExecutionStatus.EXECUTED:
                return stored
            writing.check_running(proposal.operation)
            _check_grant(writing, approval)
            _check_no_other(writing, proposal.operation, key)
            if stored is not None:
                _check_free(stored, now)
            if to_send:
                _check_nothing_on_its_way(writing, proposal.operation, key, now)
            if to_send and (stored is None or _nothing_on_its_way(stored, now)):
                # What may be on its way is looked up whoever is in control, and whatever is frozen.
                check_control(writing, proposal.operation, proposal.control_version)
                freeze = held(writing, proposal, now)
                if freeze is not None:
                    return freeze
            claimed = claimed_of(approval, key, stored, until)
            intended = claimed.model_copy(update={"status": ExecutionStatus.INTENDED})
            write_latest(writing, intended, first=stored is None)
            names = names_of(claimed)
            writing.record(
                "effect.intended", claimed.operation, "gateway", now, **names, claimed_until=moment_text(until)
            )
        return claimed

    def sending(self, execution: Execution, may_land_until: datetime) -> Execution:
        """Note that something goes out by this claim; as in ports.Executions."""
        with self._store.writing(execution.tenant) as writing:
            writing.lock_known_operation(execution.operation)
            stored = find_execution(writing.connection, execution.tenant, execution.key)
            if stored is None:
                raise absent("execution", execution.key)
            _check_current(stored, execution)
            sent = execution.model_copy(update={"may_land_until": may_land_until})
            write(writing, sent.model_copy(update={"status": stored.status}))
        return sent

    def finish(
        self, execution: Execution, receipt: Receipt, now: datetime, settled: Settled | None = None
    ) -> Execution:
        """EXECUTED with its receipt, the approval CONSUMED; a repeat of the same ending records nothing."""
        changes = {"status": ExecutionStatus.EXECUTED, "receipt": receipt, "reason": ""}
        return self._end(execution.model_copy(update=changes), "effect.executed", receipt_of(receipt), now, settled)

    def not_sent(self, execution: Execution, reason: str, now: datetime, settled: Settled | None = None) -> Execution:
        """NOT_SENT; the key stays usable, and what people said of it until now is spent."""
        changes = {"status": ExecutionStatus.NOT_SENT, "reason": reason}
        return self._end(execution.model_copy(update=changes), "effect.not_sent", {"reason": reason}, now, settled)

    def unknown(self, execution: Execution, reason: str, now: datetime) -> Execution:
        """UNKNOWN; the claim is given up, so that somebody can look up what became of it."""
        changes = {"status": ExecutionStatus.UNKNOWN, "reason": reason}
        return self._end(execution.model_copy(update=changes), "effect.unknown", {"reason": reason}, now)

    def found_late(
        self, execution: Execution, receipt: Receipt, now: datetime, settled: Settled | None = None
    ) -> Execution:
        """EXECUTED whatever was recorded of it; as in ports.Executions."""
        with self._store.writing(execution.tenant) as writing:
            writing.lock_known_operation(execution.operation)
            return record_late(writing, execution, receipt, now, settled)

    def doubted(self, execution: Execution, reason: str, now: datetime) -> Execution:
        """UNKNOWN once more; as in ports.Executions."""
        with self._store.writing(execution.tenant) as writing:
            writing.lock_known_operation(execution.operation)
            return record_doubt(writing, execution, reason, now)

    def refused(
        self, tenant: str, operation: str, approval_id: str, reason: str, now: datetime, *, alarm: bool
    ) -> None:
        """Record that the gateway refused; each attempt that is refused leaves its own record (G47)."""
        with self._store.writing(tenant) as writing:
            for kind in ("effect.refused", "alarm.raised") if alarm else ("effect.refused",):
                writing.record(kind, operation, "gateway", now, approval_id=approval_id, reason=reason)

    def get(self, tenant: str, operation: str) -> Execution | None:
        """The operation's latest execution: the one that was claimed last."""
        query = select(executions).where(executions.c.tenant == tenant, executions.c.operation == operation)
        with self._store.reading(tenant) as connection:
            row = connection.execute(query.order_by(executions.c.number.desc()).limit(1)).first()
        return None if row is None else as_execution(row)

    def of_operation(self, tenant: str, operation: str) -> Sequence[Execution]:
        """All executions of the operation; as in ports.Executions."""
        query = select(executions).where(executions.c.tenant == tenant, executions.c.operation == operation)
        with self._store.reading(tenant) as connection:
            return [as_execution(row) for row in connection.execute(query.order_by(executions.c.number))]

    def settlements(self, tenant: str, key: str) -> Sequence[SignedSettlement]:
        """All that people ever said of the key's effect; as in ports.Executions."""
        with self._store.reading(tenant) as connection:
            return said_of(connection, tenant, key)

    def at_target(self, tenant: str, target: str) -> Receipt | None:
        """What was executed last at an action's target; as in ports.Executions."""
        its = (executions.c.tenant == approvals.c.tenant) & (executions.c.approval_id == approvals.c.approval_id)
        query = select(executions.c.receipt, executions.c.operation).join(approvals, its).where(
            approvals.c.tenant == tenant,
            approvals.c.target == target,
            executions.c.status == ExecutionStatus.EXECUTED.value,
        )  # fmt: skip
        latest = query.order_by(approvals.c.changed_at.desc(), approvals.c.approval_id.desc()).limit(1)
        with self._store.reading(tenant) as connection:
            row = connection.execute(latest).first()
            if row is None or taken_back(connection, tenant, row.operation):
                return None
        receipt: Receipt | None = row.receipt
        return receipt

    def _end(
        self, ended: Execution, kind: str, detail: dict[str, JsonValue], now: datetime, settled: Settled | None = None
    ) -> Execution:
        with self._store.writing(ended.tenant) as writing:
            writing.lock_known_operation(ended.operation)
            stored = find_execution(writing.connection, ended.tenant, ended.key)
            if stored is None:
                raise absent("execution", ended.key)
            if _same_ending(stored, ended):
                return stored
            _check_current(stored, ended)
            ended = ended.model_copy(update={"claimed_until": min(now, stored.claimed_until)})
            write(writing, ended)
            if ended.status == ExecutionStatus.EXECUTED:
                set_status(writing, stored.approval_id, ApprovalStatus.CONSUMED, now)
            elif ended.status == ExecutionStatus.NOT_SENT:
                spend(writing, ended.key)
            if settled is not None:
                by = settled.model_dump(mode="json")
                writing.record("effect.settled", ended.operation, "gateway", now, **{**names_of(ended), **by})
            if ended.status in (ExecutionStatus.UNKNOWN, ExecutionStatus.NOT_SENT):
                detail = {**detail, **landing_of(ended)}
            writing.record(kind, ended.operation, "gateway", now, **{**names_of(ended), **detail})
        return ended


def _check_grant(writing: Writing, approval: Approval) -> None:
    approval_id = approval.proposal.approval_id
    stored = find(writing.connection, writing.tenant, approval_id)
    if stored is None:
        raise absent("approval", approval_id)
    if stored.proposal != approval.proposal:
        raise Conflict(f"approval {approval_id} stands for another proposal in the ledger; nothing may be sent")
    if stored.status != ApprovalStatus.GRANTED:
        raise Conflict(f"approval {approval_id} is {stored.status.value}, not granted; nothing may be sent")


def _check_no_other(writing: Writing, operation: str, key: str) -> None:
    """One operation has one effect: until another one is settled as not sent, this one may not begin (G32)."""
    other = select(executions).where(
        executions.c.tenant == writing.tenant,
        executions.c.operation == operation,
        executions.c.key != key,
        executions.c.status != ExecutionStatus.NOT_SENT.value,
    )
    row = writing.connection.execute(other).first()
    if row is not None:
        raise Conflict(
            f"operation {operation} has an execution of action {row.action_hash} that is {row.status}; another action "
            "may be executed only once that one is settled as not sent"
        )


def _nothing_on_its_way(stored: Execution, now: datetime) -> bool:
    landed = stored.may_land_until is not None and stored.may_land_until <= now
    return stored.status == ExecutionStatus.NOT_SENT and (stored.surely_not_sent or landed)


def _check_nothing_on_its_way(writing: Writing, operation: str, key: str, now: datetime) -> None:
    """What was sent under another key and not found is waited for: found or not, it may land only until then."""
    other = select(executions).where(
        executions.c.tenant == writing.tenant,
        executions.c.operation == operation,
        executions.c.key != key,
        executions.c.may_land_until > now,
    )
    row = writing.connection.execute(other.order_by(executions.c.may_land_until.desc())).first()
    if row is not None:
        raise NotYet(
            f"what was sent for action {row.action_hash} of operation {operation} was not found, but may take effect "
            f"until {row.may_land_until.isoformat()}; another action is sent only after that"
        )


def _check_free(stored: Execution, now: datetime) -> None:
    if stored.status == ExecutionStatus.INTENDED and now < stored.claimed_until:
        raise Unavailable(
            f"operation {stored.operation} is being executed by attempt {stored.attempt} until "
            f"{stored.claimed_until.isoformat()}; try again after that"
        )


def _same_ending(stored: Execution, ended: Execution) -> bool:
    return (stored.attempt, stored.status, stored.receipt, stored.reason) == (
        ended.attempt, ended.status, ended.receipt, ended.reason
    )  # fmt: skip


def _check_current(stored: Execution, ended: Execution) -> None:
    if stored.attempt != ended.attempt or stored.status not in MAY_BE_THERE:
        raise Conflict(
            f"attempt {ended.attempt} of operation {ended.operation} may record nothing any more: attempt "
            f"{stored.attempt} is {stored.status.value}"
        )
