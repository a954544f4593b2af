"""`show`: an operation, and with --review everything that a person is shown before they decide, whole.

The view is the very document whose hash the ledger recorded when the proposal was opened (G15); what it says is checked
against the hashes again here, so that a reviewer need not trust the worker that wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from countersign.cli import options
from countersign.cli.failure import cause_of, failure_of
from countersign.cli.reading.live import look
from countersign.cli.rendering import STARTER, document, fields, say, say_json, warn
from countersign.cli.reviewing.questions import question_json, question_line, question_text
from countersign.cli.reviewing.review import review_of, reviewers_view
from countersign.cli.reviewing.review_text import review_text, vote_line
from countersign.cli.reviewing.review_votes import CastVote, cast_votes
from countersign.cli.session import Session, finished, now, opened
from countersign.cli.situation import RunNow, run_now
from countersign.cli.standing import effect, escalation_lines, not_known, time_left, waits_for
from countersign.cli.starting.following import link_lines, links
from countersign.cli.starting.successors import predecessors_of, successor_of
from countersign.domain.escalation import Escalation
from countersign.domain.execution import Execution
from countersign.domain.operation import Operation
from countersign.domain.proposal import Approval
from countersign.domain.question import Asked, QuestionStatus


def show(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    review: Annotated[bool, typer.Option("--review", help="All that a person is shown before they decide.")] = False,
    person: options.Viewer = None,
    as_json: options.AsJson = False,
) -> None:
    """Show an operation, or all that a reviewer decides about; --as asks for that too."""
    reviewing = review or person is not None
    with opened() as session:
        stored = session.ledger.operations.get(tenant, operation)
        approval = session.ledger.approvals.current(tenant, operation)
        execution = session.ledger.executions.get(tenant, operation)
        request = document(session.ledger.documents, tenant, stored.request_hash)
        votes = _votes(session, approval)
        asked, at = session.ledger.questions.of_operation(tenant, operation), now()
        questions = [question_json(session, stored, one, at) for one in asked]
        pending = [question_text(session, stored, one, at) for one in asked if one.status == QuestionStatus.PENDING]
        failure = failure_of(session, stored)
        run = run_now(session, tenant, operation)
        waiting, cause = waits_for(session, run, at), cause_of(session, stored, run.escalation)
        after, instead_of = successor_of(session, tenant, operation), predecessors_of(session, stored)
        linked = links(session, stored)
        view = reviewers_view(session, approval) if reviewing and approval is not None else None
        facts = review_of(session, approval, view, person or "") if approval is not None and view is not None else None
    if as_json:
        say_json({
            "operation": stored.model_dump(mode="json"), "failure": failure,
            "superseded_by": after, "supersedes": instead_of, "links": linked, "request": request,
            "approval": _approval_json(approval, votes) if approval else None,
            "execution": execution.model_dump(mode="json") if execution else None, "questions": questions, "view": view,
            "review": facts.model_dump(mode="json") if facts else None,
        })  # fmt: skip
        return
    live = None if stored.state.terminal else finished(look(stored))
    raised = [("waits for", waiting), *escalation_lines(run.escalation, cause)] if run.escalation is not None else []
    others = [*raised, ("superseded by", after), ("supersedes", ", ".join(instead_of)), *link_lines(linked)]
    say(_overview(stored, others, failure, request, asked, approval, votes, execution))
    for text in pending:
        say(f"\n{text}\n\nanswer with:\n  {STARTER} answer {operation} --tenant {tenant} --as PERSON")
    if run.escalation is not None:
        say("\n".join(["\nanswer it with:", *(f"  {line}" for line in _ways_out(run, run.escalation))]))
    if approval is not None and view is not None and facts is not None:
        say(review_text(approval.proposal, view, facts))
    if live is not None and live.reachable and live.note:
        # Without a server all of it is shown as well: it comes from the ledger.
        warn(live.note)


def _ways_out(run: RunNow, escalation: Escalation) -> Sequence[str]:
    """The commands by which whoever is asked deals with an escalation."""
    name = f"{run.operation.operation} --tenant {run.operation.tenant} --as PERSON"
    raising = [f"{STARTER} raise-budget {name} --calls N"] if escalation.out_of_budget else []
    return [*raising, *(f"{STARTER} {command} {name}" for command in ("take-over", "cancel"))]


def whole_review(session: Session, approval: Approval, person: str) -> str:
    """All that a person is shown before they decide, as text."""
    view = reviewers_view(session, approval)
    return review_text(approval.proposal, view, review_of(session, approval, view, person))


def _votes(session: Session, approval: Approval | None) -> tuple[CastVote, ...]:
    if approval is None:
        return ()
    persons = session.ledger.directory.persons(approval.proposal.tenant)
    return cast_votes(session, approval, persons, now())


def _approval_json(approval: Approval, votes: tuple[CastVote, ...]) -> dict[str, Any]:
    value = approval.model_dump(mode="json")
    for vote, cast in zip(value["votes"], votes, strict=True):
        vote |= {"comment": cast.comment, "void": cast.void}
    return value


def _overview(
    operation: Operation,
    others: Sequence[tuple[str, str]],
    failure: str,
    request: Mapping[str, Any],
    asked: Sequence[Asked],
    approval: Approval | None,
    votes: tuple[CastVote, ...],
    execution: Execution | None,
) -> str:
    return fields([
        ("operation", f"{operation.operation} ({operation.case})"),
        ("state", f"{operation.state} {operation.reason}".rstrip()),
        *others,
        ("failure", failure),
        ("requester", operation.requester),
        *_request_lines(request),
        *[("question", question_line(one)) for one in asked],
        *([] if approval is None else _approval_overview(approval, votes)),
        *([] if execution is None else _execution_overview(execution)),
        *effect(execution, approval),
    ])  # fmt: skip


def _request_lines(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Its own texts and those of its parts, whatever the case; all of it is in --json."""
    parts = {"": request, **{f"{name}.": part for name, part in request.items() if isinstance(part, Mapping)}}
    return [
        (f"{prefix}{name}", value)
        for prefix, part in parts.items()
        for name, value in part.items()
        if isinstance(value, str)
    ]


def _approval_overview(approval: Approval, votes: tuple[CastVote, ...]) -> list[tuple[str, str]]:
    proposal = approval.proposal
    return [
        ("proposal", f"{proposal.summary}: {approval.status.value}"),
        ("asked again", proposal.asked_again),
        ("action hash", proposal.action_hash),
        time_left(approval),
        *[line for vote in votes for line in (("vote", vote_line(vote)), ("comment", vote.comment))],
    ]


def _execution_overview(execution: Execution) -> list[tuple[str, str]]:
    return [
        ("execution", f"{execution.status.value} {execution.reason}".rstrip()),
        ("key", execution.key),
        ("not known", not_known(execution)),
    ]
