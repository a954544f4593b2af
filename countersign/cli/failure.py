"""Why a step of a run failed, as a sentence: the audit keeps its hash, the ledger's documents the words (G46).

Apart from the commands, because each of them that tells how a run stands has to say it.
"""

from __future__ import annotations

from countersign.cli.rendering import STARTER
from countersign.cli.session import Session
from countersign.domain.audit import AuditRecord
from countersign.domain.escalation import Escalation
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


def cause_of(session: Session, operation: Operation, escalation: Escalation | None) -> str:
    """Why the run was brought before people, such as which budget is used up; empty where the code says all."""
    if escalation is None:
        return ""
    records = session.ledger.audit.records(operation.tenant, operation.operation)
    failed = [one for one in records if one.type == STEP_FAILED and one.detail.get("code") == escalation.code]
    return sentence_of(session, failed[-1]) if failed else ""


def refusal_of(session: Session, operation: Operation) -> str:
    """Why what a person in control asked for last was refused, by the run's reason; empty if it was not."""
    if operation.state != State.HUMAN_TAKEOVER:
        return ""
    records = session.ledger.audit.records(operation.tenant, operation.operation)
    failed = [
        one
        for one in records
        if one.type == STEP_FAILED and one.detail.get("code") == operation.reason.partition(":")[0]
    ]
    if not failed:
        return ""
    name = f"{operation.operation} --tenant {operation.tenant}"
    return f"what was asked for last: {sentence_of(session, failed[-1])}; all of it: {STARTER} brief {name}"
