"""Executions: the intent is written down before anything is sent, and only the newest claim may say how it ended.

Apart from approvals because an execution outlives its approval: it is keyed on what is done, not on who allowed it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, Row, func, select, update

from countersign.domain.errors import Conflict, Frozen, Unavailable
from countersign.domain.execution import Execution, ExecutionStatus, Receipt
from countersign.domain.freeze import Freeze
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.ledger.approval_rows import find, set_status
from countersign.ledger.columns import moment_text
from countersign.ledger.control_rows import check_control
from countersign.ledger.freezes import held
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import approvals, executions


class SqlExecutions:
    """ports.Executions on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self, approval: Approval, key: str, now: datetime, until: datetime) -> Execution:
        """Record the intent and take the sole right to send; as in ports.Executions.

        The row then says INTENDED, whatever is returned: a holder that is killed leaves something to be looked up.

        Raises:
            Conflict: also where the approval, as the ledger has it now, is not granted, or the operation has ended.
        """
        claimed = self._claimed(approval, key, now, until)
        if isinstance(claimed, Freeze):
            tool = f"tool {claimed.tool}" if claimed.tool else "all effects"
            raise Frozen(
                f"freeze {claimed.number} of {claimed.person} holds {tool} since {claimed.since.isoformat()}; nothing "
                "was sent, and it is tried again until two persons lift it"
            )
        return claimed

    def _claimed(self, approval: Approval, key: str, now: datetime, until: datetime) -> Execution | Freeze:
        """The claim, or what holds it; not raised in here, since its record has to stay."""
        proposal = approval.proposal
        with self._store.writing(proposal.tenant) as writing:
            writing.lock_known_operation(proposal.operation)
            stored = _find(writing.connection, proposal.tenant, key)
            if stored is not None and stored.status == ExecutionStatus.EXECUTED:
                return stored
            writing.check_running(proposal.operation)
            _check_grant(writing, approval)
            _check_no_other(writing, proposal.operation, key)
            if stored is not None:
                _check_free(stored, now)
            if stored is None or stored.status == ExecutionStatus.NOT_SENT:
                # What may be on its way is looked up whoever is in control, and whatever is frozen.
                check_control(writing, proposal.operation, proposal.control_version)
                freeze = held(writing, proposal, now)
                if freeze is not None:
                    return freeze
            claimed = _claimed(approval, key, stored, until)
            _write_claim(writing, claimed, first=stored is None)
            names = _names(claimed)
            writing.record(
                "effect.intended", claimed.operation, "gateway", now, **names, claimed_until=moment_text(until)
            )
        return claimed

    def finish(self, execution: Execution, receipt: Receipt, now: datetime) -> Execution:
        """EXECUTED with its receipt, the approval CONSUMED; a repeat of the same ending records nothing."""
        changes = {"status": ExecutionStatus.EXECUTED, "receipt": receipt, "reason": ""}
        detail = receipt.model_dump(mode="json", exclude={"detail"})
        return self._end(execution.model_copy(update=changes), "effect.executed", detail, now)

    def not_sent(self, execution: Execution, reason: str, now: datetime) -> Execution:
        """NOT_SENT; the key stays usable."""
        changes = {"status": ExecutionStatus.NOT_SENT, "reason": reason}
        return self._end(execution.model_copy(update=changes), "effect.not_sent", {"reason": reason}, now)

    def unknown(self, execution: Execution, reason: str, now: datetime) -> Execution:
        """UNKNOWN; the claim is given up, so that somebody can look up what became of it."""
        changes = {"status": ExecutionStatus.UNKNOWN, "reason": reason}
        return self._end(execution.model_copy(update=changes), "effect.unknown", {"reason": reason}, now)

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
        return None if row is None else _execution(row)

    def at_target(self, tenant: str, target: str) -> Receipt | None:
        """What was executed last at an action's target; as in ports.Executions."""
        its = (executions.c.tenant == approvals.c.tenant) & (executions.c.approval_id == approvals.c.approval_id)
        query = select(executions.c.receipt).join(approvals, its).where(
            approvals.c.tenant == tenant,
            approvals.c.target == target,
            executions.c.status == ExecutionStatus.EXECUTED.value,
        )  # fmt: skip
        latest = query.order_by(approvals.c.changed_at.desc(), approvals.c.approval_id.desc()).limit(1)
        with self._store.reading(tenant) as connection:
            receipt: Receipt | None = connection.execute(latest).scalar()
        return receipt

    def _end(self, ended: Execution, kind: str, detail: dict[str, JsonValue], now: datetime) -> Execution:
        with self._store.writing(ended.tenant) as writing:
            writing.lock_known_operation(ended.operation)
            stored = _find(writing.connection, ended.tenant, ended.key)
            if stored is None:
                raise absent("execution", ended.key)
            if _same_ending(stored, ended):
                return stored
            _check_current(stored, ended)
            ended = ended.model_copy(update={"claimed_until": min(now, stored.claimed_until)})
            _write(writing, ended)
            if ended.status == ExecutionStatus.EXECUTED:
                set_status(writing, stored.approval_id, ApprovalStatus.CONSUMED, now)
            writing.record(kind, ended.operation, "gateway", now, **{**_names(ended), **detail})
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


def _check_free(stored: Execution, now: datetime) -> None:
    if stored.status == ExecutionStatus.INTENDED and now < stored.claimed_until:
        raise Unavailable(
            f"operation {stored.operation} is being executed by attempt {stored.attempt} until "
            f"{stored.claimed_until.isoformat()}; try again after that"
        )


def _claimed(approval: Approval, key: str, before: Execution | None, until: datetime) -> Execution:
    proposal = approval.proposal
    return Execution(
        tenant=proposal.tenant,
        operation=proposal.operation,
        approval_id=proposal.approval_id,
        action_hash=proposal.action_hash,
        key=key,
        status=ExecutionStatus.INTENDED if before is None else before.status,
        attempt=1 if before is None else before.attempt + 1,
        claimed_until=until,
        reason="" if before is None else before.reason,
    )


def _write_claim(writing: Writing, claimed: Execution, *, first: bool) -> None:
    of_operation = (executions.c.tenant == claimed.tenant) & (executions.c.operation == claimed.operation)
    latest = writing.connection.execute(select(func.max(executions.c.number)).where(of_operation)).scalar() or 0
    intended = claimed.model_copy(update={"status": ExecutionStatus.INTENDED})
    if not first:
        _write(writing, intended, number=latest + 1)
    elif not writing.insert_once(executions, **_columns(intended), number=latest + 1):
        raise Conflict(f"action {claimed.action_hash} of operation {claimed.operation} has another key already")


def _write(writing: Writing, execution: Execution, **more: int) -> None:
    is_it = (executions.c.tenant == execution.tenant) & (executions.c.key == execution.key)
    writing.connection.execute(update(executions).where(is_it).values(**_columns(execution), **more))


def _columns(execution: Execution) -> dict[str, Any]:
    columns = {name: getattr(execution, name) for name in Execution.model_fields if name != "tenant"}
    return {**columns, "status": execution.status.value}


def _same_ending(stored: Execution, ended: Execution) -> bool:
    return (stored.attempt, stored.status, stored.receipt, stored.reason) == (
        ended.attempt, ended.status, ended.receipt, ended.reason
    )  # fmt: skip


def _check_current(stored: Execution, ended: Execution) -> None:
    settled = stored.status in (ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT)
    if stored.attempt != ended.attempt or settled:
        raise Conflict(
            f"attempt {ended.attempt} of operation {ended.operation} may record nothing any more: attempt "
            f"{stored.attempt} is {stored.status.value}"
        )


def _names(execution: Execution) -> dict[str, JsonValue]:
    return {
        "key": execution.key,
        "attempt": execution.attempt,
        "approval_id": execution.approval_id,
        "action_hash": execution.action_hash,
    }


def _find(connection: Connection, tenant: str, key: str) -> Execution | None:
    is_it = (executions.c.tenant == tenant) & (executions.c.key == key)
    row = connection.execute(select(executions).where(is_it)).first()
    return None if row is None else _execution(row)


def _execution(row: Row[Any]) -> Execution:
    fields = {name: value for name, value in row._mapping.items() if name != "number"}
    return Execution.model_validate({**fields, "status": ExecutionStatus(row.status)})
