"""`list`, `status`, `timeline`, `wait`: how operations stand, from the ledger, with or without a Temporal server."""

from __future__ import annotations

import operator
import time
from datetime import datetime
from typing import Annotated, Any

import typer

from countersign.cli import options
from countersign.cli.deciding.said import word_line, words_on
from countersign.cli.failure import cause_of, failure_of, refusal_of, sentence_of
from countersign.cli.reading.live import Live, look
from countersign.cli.rendering import detail, fields, moment, say, say_json, table, visible_line, warn
from countersign.cli.reviewing.questions import question_json
from countersign.cli.session import Session, finished, now, opened, require_tenant
from countersign.cli.situation import RunNow, is_drafted, run_now
from countersign.cli.standing import (
    broken_glass,
    control_now,
    effect,
    ended_as,
    escalation_lines,
    good_until,
    next_tick,
    tick_line,
    time_left,
    waits_for,
)
from countersign.cli.starting.following import link_lines, links
from countersign.domain.audit import AuditRecord
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.state import State

EXIT_CODES = {
    State.SUCCEEDED: 0,
    State.REJECTED: 3,
    State.EXPIRED: 4,
    State.CANCELLED: 5,
    State.FAILED: 6,
    State.WITHDRAWN: 8,
}
TIMED_OUT = 7
POLL_SECONDS = 0.2
LOOK_SECONDS = 15.0
"""How often `wait` asks the server what keeps a run from going on."""


def list_operations(tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """List a tenant's operations, newest first."""
    with opened() as session:
        require_tenant(session, tenant)
        operations = session.ledger.operations.list(tenant)
    if as_json:
        say_json([_operation_json(operation) for operation in operations])
    elif operations:
        rows = [[one.operation, one.state, one.reason, one.requester, moment(one.registered_at)] for one in operations]
        say(table(["OPERATION", "STATE", "REASON", "REQUESTER", "REGISTERED"], rows))
    else:
        say(f"tenant {tenant} has no operations")


def status(operation: options.OperationArgument, tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """Show where a run stands, and what it waits for."""
    with opened() as session:
        run, at = run_now(session, tenant, operation), now()
        void = _void_reason(session, run.approval)
        waiting = waits_for(session, run, at)
        failure, refusal = failure_of(session, run.operation), refusal_of(session, run.operation)
        cause = cause_of(session, run.operation, run.escalation)
        question = question_json(session, run.operation, run.asked, at) if run.asked and run.question else None
        in_control, said = control_now(run, drafted=is_drafted(session, run)), words_on(session, run.unknown)
    live = finished(look(run.operation))
    if as_json:
        say_json({
            **_operation_json(run.operation),
            "failure": failure,
            "waits_for": waiting,
            "control": run.control.model_dump(mode="json"),
            "escalation": run.escalation.model_dump(mode="json") if run.escalation else None,
            "question": question,
            "proposal": _approval_json(run.approval, void, at) if run.approval else None,
            "execution": run.execution.model_dump(mode="json") if run.execution else None,
            "said": [one.model_dump(mode="json") for one in said],
            "temporal": live.model_dump(mode="json"),
        })  # fmt: skip
        return
    say(fields([
        *_operation_lines(run.operation), ("failure", failure), ("refused", refusal), ("waits for", waiting),
        *[("said so far", word_line(one)) for one in said],
        *_control_lines(run, in_control, cause), *_approval_lines(run.approval, void, at), *_live_lines(live),
    ]))  # fmt: skip


def timeline(operation: options.OperationArgument, tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """Show all that happened to an operation, in order."""
    with opened() as session:
        linked = link_lines(links(session, session.ledger.operations.get(tenant, operation)))
        records = [(one, sentence_of(session, one)) for one in session.ledger.audit.records(tenant, operation)]
    if as_json:
        say_json([_record_json(record, sentence) for record, sentence in records])
    else:
        say(table(["AT", "WHAT", "BY", "DETAIL"], [record_cells(record, sentence) for record, sentence in records]))
        if any(value for _, value in linked):
            say(fields(linked))


def wait(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Give up after this long, such as 90s or 15m (exit code 7).")
    ] = None,
    until: Annotated[
        State | None, typer.Option(metavar="STATE", help="A state that is enough, such as WAITING_APPROVAL.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Wait for the end; the exit code tells which.

    0 SUCCEEDED, 3 REJECTED, 4 EXPIRED, 5 CANCELLED, 6 FAILED, 8 WITHDRAWN; 7 when the time of --timeout is up.
    """
    limit = None if timeout is None else options.period("--timeout", timeout, "90s").total_seconds()
    with opened() as session:
        stored = _waited(session, tenant, operation, limit, until, quiet=as_json)
        run = run_now(session, tenant, operation)._replace(operation=stored)
        waiting = waits_for(session, run, now())
        failure = failure_of(session, stored)
    code = 0 if stored.state == until else EXIT_CODES.get(stored.state, TIMED_OUT)
    if as_json:
        told = run.execution.model_dump(mode="json") if run.execution else None
        say_json({**_operation_json(stored), "failure": failure, "waits_for": waiting, "execution": told})
    elif code == TIMED_OUT:
        say(f"time is up; waits for: {waiting}")
        _noted(stored, "")
    else:
        told_of = [("ended", ended_as(stored)), ("failure", failure), *effect(run.execution, run.approval)]
        for name, value in filter(operator.itemgetter(1), told_of):
            say(f"{name}: {visible_line(value)}")
    raise typer.Exit(code)


def record_cells(record: AuditRecord, sentence: str) -> list[str]:
    """One audit record as the cells of a line, with the sentence that it stands for in place of its hash."""
    told = {**record.detail, "sentence": sentence} if sentence else record.detail
    return [record.recorded_at[:19] + "Z", record.type, record.subject, detail(told)]


def _waited(
    session: Session, tenant: str, operation: str, limit: float | None, until: State | None, *, quiet: bool
) -> Operation:
    end = None if limit is None else time.monotonic() + limit
    told, noted, looked = "", "", time.monotonic()
    while True:
        stored = session.ledger.operations.get(tenant, operation)
        line = f"{stored.state} {stored.reason}".rstrip()
        if line != told and not quiet:
            say(line)
        told = line
        if stored.state.terminal or stored.state == until or (end is not None and time.monotonic() >= end):
            return stored
        if not quiet and time.monotonic() - looked >= LOOK_SECONDS:
            noted, looked = _noted(stored, noted), time.monotonic()
        time.sleep(POLL_SECONDS)


def _noted(operation: Operation, before: str) -> str:
    """Tell what keeps the run from going on, such as a missing worker, where that was not told before."""
    note = finished(look(operation)).note
    if note and note != before:
        warn(note)
    return note


def _operation_json(operation: Operation) -> dict[str, Any]:
    return {
        "tenant": operation.tenant, "operation": operation.operation, "case": operation.case,
        "workflow_id": workflow_id(operation.tenant, operation.operation), "state": operation.state,
        "reason": operation.reason, "terminal": operation.state.terminal, "requester": operation.requester,
        "request_hash": operation.request_hash, "registered_at": operation.registered_at,
    }  # fmt: skip


def _void_reason(session: Session, approval: Approval | None) -> str:
    if approval is None:
        return ""
    return session.ledger.approvals.void_reason(approval.proposal.tenant, approval.proposal.approval_id)


def _approval_json(approval: Approval, void: str, at: datetime) -> dict[str, Any]:
    proposal, tick = approval.proposal, next_tick(approval, at)
    return {
        "approval_id": proposal.approval_id, "approval_version": proposal.approval_version,
        "status": approval.status, "action_hash": proposal.action_hash, "deadline": proposal.deadline,
        "good_until": good_until(approval),
        "roles": [*proposal.asked(at)] if approval.status == ApprovalStatus.PENDING else [],
        "next_tick": tick._asdict() if tick else None,
        "votes": [
            {"person": vote.person, "decision": vote.decision, "assurance": vote.assurance} for vote in approval.votes
        ],
        "asked_again": proposal.asked_again, "void_reason": void,
    }  # fmt: skip


def _record_json(record: AuditRecord, sentence: str) -> dict[str, Any]:
    kept = {"sequence", "recorded_at", "type", "subject", "detail"}
    return {**record.model_dump(mode="json", include=kept), "sentence": sentence}


def _operation_lines(operation: Operation) -> list[tuple[str, str]]:
    return [
        ("operation", f"{operation.operation} ({operation.case}, asked by {operation.requester})"),
        ("state", operation.state),
        ("reason", operation.reason),
        ("ended", ended_as(operation)),
        ("registered", moment(operation.registered_at)),
    ]


def _control_lines(run: RunNow, in_control: str, cause: str) -> list[tuple[str, str]]:
    return [("in control", in_control), *escalation_lines(run.escalation, cause)]


def _approval_lines(approval: Approval | None, void: str, at: datetime) -> list[tuple[str, str]]:
    if approval is None:
        return []
    proposal = approval.proposal
    needs = ", ".join(map(str, proposal.assessment.needs))
    return [
        ("proposal", f"{proposal.summary} -> {proposal.action.target}: {approval.status.value}"),
        ("needs", needs or "nobody: granted by rule"),
        *[("vote", f"{vote.decision} by {vote.person}, {vote.assurance}") for vote in approval.votes],
        ("break glass", broken_glass(approval)),
        ("asked again", proposal.asked_again),
        ("void", void),
        ("next", tick_line(next_tick(approval, at))),
        time_left(approval),
    ]


def _live_lines(live: Live) -> list[tuple[str, str]]:
    if not live.reachable:
        return [("temporal", f"not there, shown from the ledger: {live.note}")]
    counted = "" if live.messages is None else f", {live.messages} messages, {live.refused} refused"
    steps = [("step", f"{one.step}, attempt {one.attempt} {one.last_failure}".rstrip()) for one in live.steps]
    return [("temporal", f"{live.execution} run {live.run_id}{counted}".strip()), ("note", live.note), *steps]
