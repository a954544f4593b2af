"""`show`: an operation, and with --review everything that a reviewer decides about, whole.

The view is the very document whose hash the ledger recorded when the proposal was opened (G15); what it says is checked
against the hashes again here, so that a reviewer need not trust the worker that wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from countersign.cli import options
from countersign.cli.rendering import document, fields, moment, say, say_json, visible, visible_line
from countersign.cli.session import Session, opened
from countersign.domain.canonical import sha256_hex
from countersign.domain.draft import Claim
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.execution import Execution
from countersign.domain.operation import Operation
from countersign.domain.proposal import Approval, Proposal, Vote

RULE = "-" * 72


def show(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    review: Annotated[bool, typer.Option("--review", help="The whole reviewer's view.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show an operation, or all that a reviewer decides about."""
    with opened() as session:
        stored = session.ledger.operations.get(tenant, operation)
        approval = session.ledger.approvals.current(tenant, operation)
        execution = session.ledger.executions.get(tenant, operation)
        request = document(session.ledger.documents, tenant, stored.request_hash)
        comments = _comments(session, approval)
        view = reviewers_view(session, approval) if review and approval is not None else None
    if as_json:
        say_json({
            "operation": stored.model_dump(mode="json"), "request": request,
            "approval": _approval_json(approval, comments) if approval else None,
            "execution": execution.model_dump(mode="json") if execution else None, "view": view,
        })  # fmt: skip
        return
    say(_overview(stored, request, approval, comments, execution))
    if approval is not None and view is not None:
        say(review_text(approval, view))


def reviewers_view(session: Session, approval: Approval) -> dict[str, Any]:
    """The recorded view of an approval: `{"proposal": ..., "document": text, "claims": [...]}`.

    Raises:
        Conflict: it does not fit the hashes of the proposal that is to be signed.
    """
    proposal = approval.proposal
    opened_records = (
        record for record in session.ledger.audit.records(proposal.tenant, proposal.operation)
        if record.detail.get("approval_id") == proposal.approval_id and record.detail.get("view")
    )  # fmt: skip
    record = next(opened_records, None)
    if record is None:
        raise Conflict(f"approval {proposal.approval_id}: the audit has no record of its view; run: audit verify")
    view: dict[str, Any] = document(session.ledger.documents, proposal.tenant, str(record.detail["view"]))
    _check(view, proposal)
    return view


def _check(view: Mapping[str, Any], proposal: Proposal) -> None:
    shown = Proposal.model_validate_json(json.dumps(view["proposal"]))
    hashes = (shown.action.hash(), sha256_hex(view["document"].encode("utf-8")))
    if shown != proposal or hashes != (proposal.action_hash, proposal.action.content_hash):
        raise Conflict(
            f"approval {proposal.approval_id}: its view does not fit its hashes; sign nothing, run: audit verify"
        )


def review_text(approval: Approval, view: Mapping[str, Any]) -> str:
    """The view as text: every field of the proposal, the document whole, every claim with its query."""
    claims = [Claim.model_validate(claim) for claim in view["claims"]]
    return "\n".join([
        "", "PROPOSAL", fields(_proposal_lines(approval.proposal), "  "),
        "", "ACTION (all of it is covered by the action hash)", fields(_action_lines(approval.proposal), "  "),
        "", f"DOCUMENT ({approval.proposal.action.content_hash})", RULE, visible(view["document"]), RULE,
        "", "CLAIMS (each recomputed on the data)", *(_claim_text(claim) for claim in claims),
    ])  # fmt: skip


def _proposal_lines(proposal: Proposal) -> list[tuple[str, str]]:
    return [
        ("approval", f"{proposal.approval_id} version {proposal.approval_version}"),
        ("action hash", proposal.action_hash),
        ("summary", proposal.summary),
        ("reason", proposal.reason),
        ("requester", f"{proposal.requester} (may not decide)"),
        *[("evidence", reference) for reference in proposal.evidence],
        ("reversibility", proposal.reversibility),
        ("draft", f"version {proposal.draft_version}"),
        ("checks", proposal.checks),
        ("verdict", f"{proposal.verdict} by rubric {proposal.rubric_version}"),
        ("models", proposal.model_version),
        ("policy", f"{proposal.action.policy_version}, rules {', '.join(proposal.assessment.rules)}"),
        *[("needs", f"{need.approvals} of role {need.role}") for need in proposal.assessment.needs],
        ("decisions", ", ".join(sorted(proposal.decisions)) or "none: granted by rule"),
        ("proposed", moment(proposal.proposed_at)),
        ("deadline", moment(proposal.deadline)),
        ("execute by", moment(proposal.execute_by)),
    ]


def _action_lines(proposal: Proposal) -> list[tuple[str, str]]:
    action = proposal.action.model_dump(mode="json")
    args = action.pop("args")
    return [*((name, str(value)) for name, value in action.items()), *((f"args.{k}", str(v)) for k, v in args.items())]


def _claim_text(claim: Claim) -> str:
    value = visible_line(f"{claim.value} {claim.unit}".rstrip())
    return f"  {claim.id}: {visible_line(claim.shown)} = {value}\n    {visible_line(claim.query)}"


def _overview(
    operation: Operation,
    request: Mapping[str, Any],
    approval: Approval | None,
    comments: Mapping[str, str],
    execution: Execution | None,
) -> str:
    dataset = request["dataset"]
    return fields([
        ("operation", f"{operation.operation} ({operation.case})"),
        ("state", f"{operation.state} {operation.reason}".rstrip()),
        ("requester", operation.requester),
        ("question", request["question"]),
        ("title", request["title"]),
        ("channel", request["channel"]),
        ("dataset", f"{dataset['name']} {dataset['sha256']}"),
        *([] if approval is None else _approval_overview(approval, comments)),
        *([] if execution is None else _execution_overview(execution)),
    ])  # fmt: skip


def _comments(session: Session, approval: Approval | None) -> dict[str, str]:
    """What the voters wrote, by statement; the ledger has checked each text against the hash that was signed."""
    if approval is None:
        return {}
    tenant = approval.proposal.tenant
    return {v.statement_id: _comment(session, tenant, v.comment_hash) for v in approval.votes if v.comment_hash}


def _comment(session: Session, tenant: str, sha256: str) -> str:
    try:
        return session.ledger.documents.get(tenant, sha256).decode("utf-8", "backslashreplace")
    except NotFound:
        # Whoever signs elsewhere can sign the hash of a text that they never gave to the ledger.
        return f"(not in the ledger: {sha256})"


def _approval_json(approval: Approval, comments: Mapping[str, str]) -> dict[str, Any]:
    value = approval.model_dump(mode="json")
    for vote in value["votes"]:
        vote["comment"] = comments.get(vote["statement_id"], "")
    return value


def _approval_overview(approval: Approval, comments: Mapping[str, str]) -> list[tuple[str, str]]:
    votes = [line for vote in approval.votes for line in _vote_lines(vote, comments.get(vote.statement_id, ""))]
    return [
        ("proposal", f"{approval.proposal.summary}: {approval.status.value}"),
        ("action hash", approval.proposal.action_hash),
        ("deadline", moment(approval.proposal.deadline)),
        *votes,
    ]


def _vote_lines(vote: Vote, comment: str) -> list[tuple[str, str]]:
    told = f"{vote.decision} by {vote.person} at {moment(vote.decided_at)}, statement {vote.statement_id}"
    return [("vote", told), ("comment", comment)]


def _execution_overview(execution: Execution) -> list[tuple[str, str]]:
    receipt = execution.receipt
    return [
        ("execution", f"{execution.status.value} {execution.reason}".rstrip()),
        ("key", execution.key),
        ("published", receipt.reference if receipt else ""),
    ]
