"""What happens while nobody decides: reminders, further lines of people, and what is told of a run that is held.

Apart from settling because none of it changes how an approval stands.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from countersign.domain.errors import InputRefused
from countersign.domain.escalation import Severity
from countersign.domain.need import Tick, ticks
from countersign.domain.notice import Notice, NoticeKind
from countersign.domain.proposal import Proposal
from countersign.ledger.approval_rows import names
from countersign.ledger.columns import moment_text
from countersign.ledger.store import Writing
from countersign.ledger.tables import ticks as marked


def mark(writing: Writing, proposal: Proposal, number: int, now: datetime) -> None:
    """Record and tell, once, that a tick of a pending approval came; the caller holds its operation's lock."""
    tick = _tick(proposal, number, now)
    if not writing.insert_once(marked, approval_id=proposal.approval_id, number=number, marked_at=now):
        return
    escalates = tick.kind == "tier"
    due: dict[str, JsonValue] = {"tick": number, "due_at": moment_text(tick.at), "roles": [*tick.roles]}
    kind = "approval.escalated" if escalates else "approval.reminded"
    writing.record(kind, proposal.operation, "clock", now, **names(proposal), **due)
    told = NoticeKind.APPROVAL_ESCALATED if escalates else NoticeKind.APPROVAL_REMINDER
    severity = Severity.HIGH if escalates else Severity.MEDIUM
    writing.notify(_told(proposal, told, tick.roles, severity, now))


def frozen_told(proposal: Proposal, now: datetime) -> Notice:
    """What the last lines of people are told when nobody decided and the run is held."""
    roles = tuple(dict.fromkeys(need.lines(need.open_for())[-1][0] for need in proposal.assessment.needs))
    return _told(proposal, NoticeKind.APPROVAL_FROZEN, roles, Severity.HIGH, now)


def _tick(proposal: Proposal, number: int, now: datetime) -> Tick:
    due = ticks(proposal.assessment.needs, proposal.proposed_at, proposal.deadline)
    if not 0 <= number < len(due):
        raise InputRefused(f"approval {proposal.approval_id} has {len(due)} ticks, counted from 0; {number} is none")
    if now < due[number].at:
        raise InputRefused(
            f"tick {number} of approval {proposal.approval_id} is due at {due[number].at.isoformat()}, not yet"
        )
    return due[number]


def _told(proposal: Proposal, kind: NoticeKind, roles: tuple[str, ...], severity: Severity, now: datetime) -> Notice:
    return Notice(
        kind=kind,
        tenant=proposal.tenant,
        operation=proposal.operation,
        roles=roles,
        severity=severity,
        code=proposal.approval_id,
        deadline=proposal.deadline,
        at=now,
    )
