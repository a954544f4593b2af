"""What people command: ruled on, done in the same transaction, recorded with its outcome like every decision (G47)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import Connection

from countersign.domain.command import (
    CHANGES_HANDS,
    CONTENTS,
    ENDING,
    ENDS_AS,
    Command,
    CommandKind,
    rule_on_command,
)
from countersign.domain.control import Control
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.directory import Person
from countersign.domain.draft import DraftObject
from countersign.domain.escalation import Severity
from countersign.domain.notice import Notice, NoticeKind
from countersign.domain.operation import Operation
from countersign.domain.proposal import ApprovalStatus
from countersign.ledger.approval_rows import close, of_operation
from countersign.ledger.budgets import add as add_to_budget
from countersign.ledger.control_rows import add_control, control_of, renew_lease
from countersign.ledger.drafts import add_version
from countersign.ledger.escalations import answer
from countersign.ledger.messages import Sent, keep, keep_statement, recall, seen_before
from countersign.ledger.operations import stored_operation
from countersign.ledger.question_rows import answer as answer_question
from countersign.ledger.question_rows import supersede
from countersign.ledger.settlements import keep as keep_settlement
from countersign.ledger.situations import Heard, heard
from countersign.ledger.store import Writing
from countersign.ledger.tables import endings
from countersign.ports import Amendment, ReceivedCommand

_CLOSED_AS: Mapping[CommandKind, ApprovalStatus] = {
    "withdraw": ApprovalStatus.WITHDRAWN,
    "supersede": ApprovalStatus.SUPERSEDED,
    "cancel": ApprovalStatus.CANCELLED,
}


def command(writing: Writing, received: ReceivedCommand, signer: Person, amendment: Amendment) -> Outcome:
    """Rule on a verified command in this transaction, and do it where it is accepted; as in ports.Controls."""
    said, now = received.command, received.at
    token_hash = keep_statement(writing, received.token)
    sent = Sent(said.operation, received.message_id, received.transport, token_hash, now)
    writing.lock_known_operation(said.operation)
    recorded = recall(writing, sent)
    if recorded is not None:
        return recorded
    found = heard(writing.connection, writing.tenant, said, signer, amendment, now)
    outcome = seen_before(writing, sent, said.id) or rule_on_command(said, found.signer, found.situation)
    keep(writing, sent, outcome)
    accepted = outcome.ruling == Ruling.ACCEPTED
    ruled = {"ruling": outcome.ruling.value, "reason": outcome.sentence()}
    kind = outcome.record_type("command")
    writing.record(kind, said.operation, signer.id, now, **_said(received, token_hash), **ruled)
    if accepted and said.command == "settle":
        # It settles nothing by itself: the gateway counts what was said.
        keep_settlement(writing, said, received.token, now)
    elif accepted and said.command == "answer":
        _answer(writing, said, found, amendment, now)
    elif accepted and said.command == "raise_budget":
        _raise_budget(writing, said, amendment, now)
    elif accepted:
        _do(writing, said, found, amendment.draft, now)
    return outcome


def would(connection: Connection, said: Command, signer: Person, now: datetime) -> Outcome:
    """The ruling alone; as in ports.Controls."""
    found = heard(connection, said.tenant, said, signer, None, now)
    return rule_on_command(said, found.signer, found.situation)


def lapse(writing: Writing, operation: str, version: int, now: datetime) -> Control:
    """Take control from a person whose lease is over; as in ports.Controls."""
    writing.lock_known_operation(operation)
    before = control_of(writing.connection, writing.tenant, operation)
    if before.version != version or not before.lapsed(now) or writing.ending_of(operation) is not None:
        return before
    after = Control(by="nobody", version=before.version + 1, since=now)
    stored = stored_operation(writing.connection, writing.tenant, operation)
    _change_hands(writing, stored, before, after, "clock", "control.lapsed", "lease_over")
    return after


def _do(writing: Writing, said: Command, found: Heard, draft: DraftObject | None, now: datetime) -> None:
    kind, before = said.command, found.situation.control
    if kind in ENDING:
        _end(writing, said, now)
    elif kind in CHANGES_HANDS:
        after = _next_control(said, found, now)
        code, by = said.command, {"by": said.id}
        _change_hands(writing, found.operation, before, after, said.person, "control.changed", code, **by)
        answer(writing, said.operation, "taken_over", said.person, now)
    else:
        if draft is not None:
            add_version(writing, said.operation, draft, said.person, now)
        # Whatever they go on with, what waited for others is taken back by it, and nobody else need come.
        _close_all(writing, said.operation, ApprovalStatus.SUPERSEDED, said.person, now, by=said.id)
        answer(writing, said.operation, "taken_over", said.person, now)
        renew_lease(writing, said.operation, before, found.lease_until(now))


def _answer(writing: Writing, said: Command, found: Heard, amendment: Amendment, now: datetime) -> None:
    asked = found.situation.asked
    assert asked is not None, "an answer is accepted only where something was asked"
    answer_question(writing, asked.question, said, amendment.answers, now)


def _raise_budget(writing: Writing, said: Command, amendment: Amendment, now: datetime) -> None:
    assert amendment.budget is not None, "a command without its content is not accepted"
    add_to_budget(writing, said, amendment.budget, now)
    answer(writing, said.operation, "went_on", said.person, now)


def _next_control(said: Command, found: Heard, now: datetime) -> Control:
    version = found.situation.control.version + 1
    if said.command == "release":
        return Control(by="agent", version=version, since=now)
    person = said.to if said.command == "hand_over" else said.person
    return Control(by="person", person=person, version=version, since=now, lease_until=found.lease_until(now))


def _change_hands(
    writing: Writing, operation: Operation, before: Control, after: Control, subject: str, kind: str, code: str,
    **by: JsonValue,
) -> None:  # fmt: skip
    """Put somebody else in control, void what waits under the one before, and tell whoever it concerns."""
    add_control(writing, operation.operation, after)
    hands: dict[str, JsonValue] = {
        "from": before.person or before.by,
        "to": after.person or after.by,
        "version": after.version,
        "previous_version": before.version,
    }
    writing.record(kind, operation.operation, subject, after.since, **hands, **by)
    _close_all(writing, operation.operation, ApprovalStatus.SUPERSEDED, subject, after.since, **by)
    concerned = (operation.requester, before.person, after.person)
    told = Notice(
        kind=NoticeKind.CONTROL_CHANGED,
        tenant=operation.tenant,
        operation=operation.operation,
        persons=tuple(dict.fromkeys(person for person in concerned if person is not None)),
        severity=Severity.MEDIUM,
        code=code,
        deadline=after.lease_until,
        at=after.since,
    )
    writing.notify(told)


def _end(writing: Writing, said: Command, now: datetime) -> None:
    ending = ENDS_AS[said.command]
    writing.insert_once(endings, operation=said.operation, ending=ending)
    detail: dict[str, JsonValue] = {"state": ending.state.value, "reason": ending.reason, "by": said.id}
    if said.successor:
        detail["successor"] = said.successor
    writing.record("run.ended_by_person", said.operation, said.person, now, **detail)
    _close_all(writing, said.operation, _CLOSED_AS[said.command], said.person, now, by=said.id)
    answer(writing, said.operation, "ended", said.person, now)


def _close_all(
    writing: Writing, operation: str, status: ApprovalStatus, subject: str, now: datetime, **by: JsonValue
) -> None:
    """Close whatever waits for people: proposals as `status`, and what the agent asked."""
    for approval in of_operation(writing.connection, writing.tenant, operation):
        close(writing, approval, status, subject, now, **by)
    supersede(writing, operation, subject, now, **by)


def _said(received: ReceivedCommand, token_hash: str) -> dict[str, JsonValue]:
    said = received.command
    names: dict[str, JsonValue] = {
        "message_id": received.message_id, "transport": received.transport, "statement_id": said.id,
        "statement_hash": token_hash, "command": said.command, "control_version": said.control_version,
        "comment_hash": said.comment_hash,
    }  # fmt: skip
    named = {name: getattr(said, name) for name in CONTENTS}
    return {**names, **{name: value for name, value in named.items() if value}}
