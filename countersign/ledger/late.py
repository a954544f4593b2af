"""What turns out to lie outside after the ledger had it otherwise: the outside's word stands, and the alarm is raised.

Apart from executions, where only the newest claim may say how it ended: here somebody was overtaken, and still right.
"""

from __future__ import annotations

from datetime import datetime

from countersign.domain.execution import Execution, ExecutionStatus, Receipt
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.settlement import Settled
from countersign.ledger.approval_rows import set_status
from countersign.ledger.execution_rows import find_execution, landing_of, names_of, receipt_of, write_latest
from countersign.ledger.store import Writing


def record_late(
    writing: Writing, execution: Execution, receipt: Receipt, now: datetime, settled: Settled | None
) -> Execution:
    """EXECUTED over whatever was recorded; what is executed already stays as it is. The caller holds the lock."""
    stored = find_execution(writing.connection, execution.tenant, execution.key)
    if stored is not None and stored.status == ExecutionStatus.EXECUTED:
        return stored
    changes = {"status": ExecutionStatus.EXECUTED, "receipt": receipt, "reason": "", "claimed_until": now}
    found = (stored or execution).model_copy(update=changes)
    write_latest(writing, found, first=stored is None)
    set_status(writing, found.approval_id, ApprovalStatus.CONSUMED, now)
    names = names_of(found)
    if settled is not None:
        by = settled.model_dump(mode="json")
        writing.record("effect.settled", found.operation, "gateway", now, **{**names, **by})
    detail = {**names, **receipt_of(receipt), "found_late": True}
    writing.record("effect.executed", found.operation, "gateway", now, **detail)
    was = stored.status.value if stored is not None else "not known here"
    reason = f"found_late: the outside holds the effect under key {found.key}, which was {was}"
    writing.record("alarm.raised", found.operation, "gateway", now, approval_id=found.approval_id, reason=reason)
    return found


def record_doubt(writing: Writing, execution: Execution, reason: str, now: datetime) -> Execution:
    """UNKNOWN over NOT_SENT, or over nothing, as the operation's latest; what has moved on since stays. The caller
    holds the lock."""
    stored = find_execution(writing.connection, execution.tenant, execution.key)
    if stored is not None and (stored.status, stored.attempt) != (ExecutionStatus.NOT_SENT, execution.attempt):
        return stored
    known = stored or execution.model_copy(update={"claimed_until": now})
    doubted = known.model_copy(update={"status": ExecutionStatus.UNKNOWN, "reason": reason})
    write_latest(writing, doubted, first=stored is None)
    detail = {**names_of(doubted), "reason": reason, **landing_of(doubted)}
    writing.record("effect.unknown", doubted.operation, "gateway", now, **detail)
    return doubted
