"""Why a step of a run failed, as a sentence: the audit keeps its hash, the ledger's documents the words (G46).

Apart from the commands, because each of them that tells how a run stands has to say it.
"""

from __future__ import annotations

from countersign.cli.session import Session
from countersign.domain.audit import AuditRecord
from countersign.domain.operation import Operation
from countersign.domain.state import State

STEP_FAILED = "step.failed"
"""The audit's type for a refusal that ended a step; its detail `sentence` is a hash."""


def sentence_of(session: Session, record: AuditRecord) -> str:
    """The sentence that a record stands for; empty for a record without one."""
    if record.type != STEP_FAILED:
        return ""
    return session.ledger.documents.get(record.tenant, str(record.detail["sentence"])).decode()


def failure_of(session: Session, operation: Operation) -> str:
    """Why a failed operation failed; empty where it did not fail, or where its reason code says all."""
    if operation.state != State.FAILED:
        return ""
    records = session.ledger.audit.records(operation.tenant, operation.operation)
    sentences = [sentence_of(session, record) for record in records if record.type == STEP_FAILED]
    return sentences[-1] if sentences else ""
