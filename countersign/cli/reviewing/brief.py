"""`brief`: what whoever takes a run over must see: all that the ledger knows of it, and what is open to them now.

Apart from its text: the same facts are the JSON of `brief --json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from countersign.cli import options
from countersign.cli.deciding.said import words_on
from countersign.cli.failure import failure_of, sentence_of
from countersign.cli.rendering import STARTER, document, say, say_json
from countersign.cli.reviewing.brief_text import brief_text
from countersign.cli.reviewing.possible import possible
from countersign.cli.reviewing.questions import question_json
from countersign.cli.reviewing.review_votes import cast_votes, comment_of
from countersign.cli.session import Session, known_person, now, opened
from countersign.cli.situation import RunNow, is_drafted, run_now, shown_draft
from countersign.cli.standing import control_now, ended_as, good_until, not_known, waits_for
from countersign.cli.starting.following import links
from countersign.cli.starting.successors import predecessors_of, successor_of
from countersign.domain.audit import AuditRecord
from countersign.domain.compensation import COMPENSATION
from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import Approval, ApprovalStatus

_FAILURES = ("step.failed", "effect.", "alarm.")
_FINE = frozenset({"effect.intended", "effect.executed"})
_PEOPLE = ("command.", "control.", "run.ended_by_person")
_REPEATED = "command.repeated"
"""The same statement once more, which its client sent by itself: the person did it once."""
_AGREED = (ApprovalStatus.GRANTED, ApprovalStatus.CONSUMED)


def brief(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Viewer = None,
    as_json: options.AsJson = False,
) -> None:
    """Show all that whoever takes a run over must know, from plan and drafts to failures and what is open to them."""
    with opened() as session:
        told = brief_of(session, tenant, operation, person or "")
    if as_json:
        say_json(told)
    else:
        say(brief_text(told))


def brief_of(session: Session, tenant: str, operation: str, person: str) -> dict[str, Any]:
    """All of it as its JSON document; NotFound for an operation or a person that is not there."""
    run, at = run_now(session, tenant, operation), now()
    ledger = session.ledger
    records = list(ledger.audit.records(tenant, operation))
    approvals = ledger.approvals.of_operation(tenant, operation)
    drafts = _drafts(session, run)
    open_to = possible(session, run, known_person(session, tenant, person), at) if person else ()
    return {
        "operation": run.operation.model_dump(mode="json"),
        "ended": ended_as(run.operation),
        "failure": failure_of(session, run.operation),
        "superseded_by": successor_of(session, tenant, operation),
        "supersedes": predecessors_of(session, run.operation),
        "links": links(session, run.operation),
        "waits_for": waits_for(session, run, at),
        "in_control": control_now(run, drafted=is_drafted(session, run)),
        "control": run.control.model_dump(mode="json"),
        "control_history": [one.model_dump(mode="json") for one in ledger.controls.history(tenant, operation)],
        "commands": [_record(session, one) for one in records
                     if one.type.startswith(_PEOPLE) and one.type != _REPEATED],
        "plan": _plan(session, run),
        "drafts": drafts,
        "questions": [question_json(session, run.operation, one, at)
                      for one in ledger.questions.of_operation(tenant, operation)],
        "proposals": [_proposal(session, one) for one in approvals],
        "execution": _execution(session, run),
        "tool_calls": [{"version": one["version"], **call} for one in drafts for call in one["queries"]],
        "evidence": _evidence(session, run, approvals),
        "versions": _versions(run, drafts, records),
        "failures": [_record(session, one) for one in records
                     if one.type.startswith(_FAILURES) and one.type not in _FINE],
        "escalations": [one.model_dump(mode="json") for one in ledger.escalations.of_operation(tenant, operation)],
        "compensation": _compensation(session, run),
        "person": person,
        "open": [one.model_dump(mode="json") for one in open_to],
    }  # fmt: skip


def _plan(session: Session, run: RunNow) -> list[dict[str, Any]]:
    """The steps in their order, for the latest draft version, and which of them are done."""
    latest, approval = run.standing.draft_version, run.approval
    name = (run.operation.tenant, run.operation.operation, latest)
    graded = session.ledger.drafts.grade(*name) if latest else None
    current = approval if approval is not None and approval.proposal.draft_version == latest else None
    executed = run.execution is not None and run.execution.status == ExecutionStatus.EXECUTED
    passed = bool(latest) and session.ledger.drafts.passed(*name)
    drafting = [
        ("draft", latest > 0, f"v{latest}" if latest else ""),
        ("check and grade", passed, graded.verdict.value if graded else ""),
    ]  # fmt: skip
    steps = [
        *(drafting if is_drafted(session, run) else []),
        ("propose", current is not None, current.proposal.approval_id if current else ""),
        ("approve", current is not None and current.status in _AGREED, current.status.value if current else ""),
        ("execute", executed, run.execution.status.value if run.execution else ""),
    ]
    return [{"step": step, "done": done, "detail": detail} for step, done, detail in steps]


def _drafts(session: Session, run: RunNow) -> list[dict[str, Any]]:
    return [_draft(session, run, version) for version in range(1, run.standing.draft_version + 1)]


def _draft(session: Session, run: RunNow, version: int) -> dict[str, Any]:
    drafts, name = session.ledger.drafts, (run.operation.tenant, run.operation.operation, version)
    written, grade = drafts.written(*name), drafts.grade(*name)
    shown = shown_draft(session, run, drafts.get(*name))
    return {
        "version": version, "author": written.author if written else "agent",
        "model": written.model if written else "", "title": shown.title, "passed": drafts.passed(*name),
        "verdict": grade.verdict.value if grade else "", "grader": grade.answer.model if grade else "",
        "findings": [*drafts.feedback(*name)],
        "queries": [query._asdict() for query in shown.queries],
    }  # fmt: skip


def _proposal(session: Session, approval: Approval) -> dict[str, Any]:
    proposal = approval.proposal
    votes = cast_votes(session, approval, session.ledger.directory.persons(proposal.tenant), now())
    return {
        "approval_id": proposal.approval_id, "approval_version": proposal.approval_version,
        "status": approval.status.value, "proposed_by": proposal.proposed_by,
        "control_version": proposal.control_version, "draft_version": proposal.draft_version,
        "summary": proposal.summary, "target": proposal.action.target, "action_hash": proposal.action_hash,
        "deadline": proposal.deadline, "good_until": good_until(approval),
        "votes": [vote.model_dump(mode="json") for vote in votes],
        "void_reason": session.ledger.approvals.void_reason(proposal.tenant, proposal.approval_id),
    }  # fmt: skip


def _execution(session: Session, run: RunNow) -> dict[str, Any] | None:
    """The latest, with what is not known and what people said of it: the ledger has one at a time (G32)."""
    one = run.execution
    if one is None:
        return None
    said = [word.model_dump(mode="json") for word in words_on(session, run.unknown)]
    return {**one.model_dump(mode="json"), "unknown": not_known(one), "said": said}


def _evidence(session: Session, run: RunNow, approvals: Sequence[Approval]) -> list[str]:
    if approvals:
        return [*approvals[-1].proposal.evidence]
    request: Mapping[str, Any] = document(session.ledger.documents, run.operation.tenant, run.operation.request_hash)
    dataset = request.get("dataset")
    return [f"{dataset['name']} {dataset['sha256']}"] if isinstance(dataset, Mapping) else []


def _versions(run: RunNow, drafts: Sequence[Mapping[str, Any]], records: Sequence[AuditRecord]) -> dict[str, Any]:
    """Policy, rubric and models by which the run went so far; empty where none was used yet."""
    rubrics = [str(one.detail["rubric"]) for one in records if one.type == "draft.graded" and "rubric" in one.detail]
    pinned = run.approval.proposal.action.policy_version if run.approval is not None else ""
    models = [model for one in drafts for model in (one["model"], one["grader"]) if model]
    return {
        "policy": pinned, "policy_in_force": run.policy.label() if run.policy is not None else "",
        "rubric": rubrics[-1] if rubrics else "", "models": [*dict.fromkeys(models)],
    }  # fmt: skip


def _compensation(session: Session, run: RunNow) -> str:
    """What could be done about an effect: nothing takes one back by itself, which is said plainly."""
    if run.approval is None or not run.on_its_way:
        return "none needed: nothing was sent"
    kind, name = run.approval.proposal.reversibility, run.operation.operation
    if run.execution is not None and run.execution.status == ExecutionStatus.EXECUTED:
        behind = session.ledger.operations.followers(run.operation.tenant, name)
        asked = [f"{one.operation} is {one.state.value}" for one in behind if one.case == COMPENSATION]
        if asked:
            return f"asked for: {', '.join(asked)}; until one has SUCCEEDED the effect, which is {kind}, stands"
        how = f"{STARTER} compensate {name} --tenant {run.operation.tenant} --as PERSON --reason TEXT"
        return f"none that is made by itself: the effect is {kind}; where it can be taken back, ask for that: {how}"
    return f"none yet: whether it took effect is not known; if it did, it is {kind}"


def _record(session: Session, record: AuditRecord) -> dict[str, Any]:
    comment = str(record.detail.get("comment_hash", ""))
    return {
        "at": record.recorded_at, "type": record.type, "subject": record.subject, "detail": record.detail,
        "sentence": sentence_of(session, record),
        "comment": comment_of(session, record.tenant, comment) if comment else "",
    }  # fmt: skip
