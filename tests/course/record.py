"""What the record of a course may say, whatever happened in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from countersign.domain.audit import AuditRecord
from tests.course.model import Model
from tests.course.terms import LEADS, REVIEWERS

_TICKS = ("approval.reminded", "approval.escalated")


def problems(records: Iterable[AuditRecord], model: Model) -> list[str]:
    """Whatever in a course's records nothing could have led to; one line each."""
    kept = list(records)
    types = [record.type for record in kept]
    found = [
        f"{record.sequence}: {record.type} by {record.subject}"
        for record in kept
        if record.type in ("approval.expired", *_TICKS, "control.lapsed", "escalation.unanswered")
        and record.subject != "clock"
    ]
    if "effect.intended" in types:
        before = types[: types.index("effect.intended")]
        if "approval.granted" not in before:
            found.append("something was to be sent without a grant")
        if any(type.startswith("run.") and type.removeprefix("run.").upper() in _ENDED for type in before):
            found.append("something was to be sent after the end")
    ends = [type for type in types if type.removeprefix("run.").upper() in _ENDED]
    if len(ends) != int(model.ended):
        found.append(f"ends: {ends}, in the model {model.state}")
    ticks = Counter((r.type, r.detail["approval_id"], r.detail["tick"]) for r in kept if r.type in _TICKS)
    found += [f"{tick} came {count} times" for tick, count in ticks.items() if count > 1]
    found += [
        f"{record.sequence}: {record.subject} decided"
        for record in kept
        if record.type == "decision.accepted" and record.subject not in REVIEWERS + LEADS
    ]
    refused = sum(type in ("decision.refused", "command.refused") for type in types)
    if refused != model.refused:
        found.append(f"{refused} refusals are recorded, in the model {model.refused}")
    return found


_ENDED = {"SUCCEEDED", "REJECTED", "EXPIRED", "WITHDRAWN", "CANCELLED", "FAILED"}
