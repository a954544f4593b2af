"""What the ledger knows of an operation at one moment, for whoever is asked to help with it.

By ids, hashes, codes and times: the texts lie in the ledger under their hashes, and are shown to whoever may see them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from countersign.domain.audit import AuditRecord
from countersign.domain.canonical import canonical_bytes
from countersign.domain.escalation import Reason, suggested
from countersign.domain.question import QuestionStatus
from countersign.domain.rubric import Verdict
from countersign.ports import Ledger

ERRORS = frozenset({"step.failed", "effect.refused", "effect.not_sent", "effect.unknown"})
"""Audit records of what went wrong."""
MAX_ERRORS = 10
"""The newest ones that are shown."""


def snapshot(ledger: Ledger, tenant: str, operation: str, reason: Reason, code: str) -> bytes:
    """The canonical JSON of state, control, drafts, approvals, the open question, execution and last errors, with what
    to do first."""
    registered, standing = ledger.operations.get(tenant, operation), ledger.controls.standing(tenant, operation)
    records = tuple(ledger.audit.records(tenant, operation))
    execution = ledger.executions.get(tenant, operation)
    return canonical_bytes(
        {
            "operation": operation,
            "case": registered.case,
            "request": registered.request_hash,
            "state": registered.state.value,
            "reason": registered.reason,
            "control": standing.control.model_dump(mode="json"),
            "drafts": [
                _draft(ledger, tenant, operation, version, records) for version in range(1, standing.draft_version + 1)
            ],
            "approvals": _approvals(ledger, tenant, operation),
            "question": _open_question(ledger, tenant, operation),
            "execution": execution.model_dump(mode="json") if execution is not None else None,
            "last_errors": [_error(record) for record in records if record.type in ERRORS][-MAX_ERRORS:],
            "suggested_action": suggested(reason, code),
        }
    )


def last_error(records: Sequence[AuditRecord]) -> str:
    """The code of the last step that failed, or of the last finding of checks or grader; empty where there was none."""
    codes = (_code(record) for record in reversed(records))
    return next((code for code in codes if code), "")


def _code(record: AuditRecord) -> str:
    detail = record.detail
    if record.type in ERRORS:
        return str(detail.get("code") or detail.get("reason", "")).partition(":")[0]
    if record.type == "draft.checked":
        found = detail.get("codes")
        return str(found[-1]) if isinstance(found, list) and found else ""
    is_finding = record.type == "draft.graded" and detail.get("verdict") != Verdict.SATISFIED.value
    return str(detail.get("verdict", "")) if is_finding else ""


def _draft(
    ledger: Ledger, tenant: str, operation: str, version: int, records: Sequence[AuditRecord]
) -> dict[str, JsonValue]:
    """One version: who wrote it, and what checks and grader said of it last."""
    written = ledger.drafts.written(tenant, operation, version)
    grade = ledger.drafts.grade(tenant, operation, version)
    checked = [one for one in records if one.type == "draft.checked" and one.detail.get("version") == version]
    return {
        "version": version,
        "author": written.author if written is not None else "",
        "model": written.model if written is not None else "",
        "codes": checked[-1].detail.get("codes") if checked else None,
        "verdict": grade.verdict.value if grade is not None else None,
    }


def _approvals(ledger: Ledger, tenant: str, operation: str) -> list[JsonValue]:
    return [
        {
            "approval_id": approval.proposal.approval_id,
            "version": approval.proposal.approval_version,
            "action_hash": approval.proposal.action_hash,
            "status": approval.status.value,
            "votes": [{"person": vote.person, "decision": vote.decision} for vote in approval.votes],
            "deadline": approval.proposal.deadline.isoformat(),
        }
        for approval in ledger.approvals.of_operation(tenant, operation)
    ]


def _open_question(ledger: Ledger, tenant: str, operation: str) -> JsonValue:
    """What the agent waits for: which calls of which tools, and whom it asks; nothing where nothing waits."""
    asked = ledger.questions.current(tenant, operation)
    if asked is None or asked.status != QuestionStatus.PENDING:
        return None
    question = asked.question
    return {
        "number": question.number,
        "question": question.hash(),
        "calls": [{"call": call.id, "tool": call.tool} for call in question.calls],
        "role": question.answering.role,
        "deadline": question.deadline.isoformat(),
    }


def _error(record: AuditRecord) -> JsonValue:
    return {"type": record.type, "subject": record.subject, "at": record.recorded_at, "detail": record.detail}
