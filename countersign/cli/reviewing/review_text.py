"""The review as text for a terminal: every fact on a line of its own, whole, with what cannot be seen written out.

Apart from the facts themselves: here it is only said how they look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countersign.cli.rendering import difference_lines, escaped_lines, fields, moment, quoted, visible_line
from countersign.cli.reviewing.review import Review, Version
from countersign.cli.reviewing.review_votes import CastVote
from countersign.cli.tool_words import BUSINESS_NAMES
from countersign.domain.decision import break_glass_needs
from countersign.domain.differences import facts
from countersign.domain.money import Amount
from countersign.domain.need import Need
from countersign.domain.proposal import ApprovalStatus, Proposal
from countersign.domain.report import Claim
from countersign.domain.rubric import CriterionResult


def review_text(proposal: Proposal, view: Mapping[str, Any], review: Review) -> str:
    """All of it: warnings first, then what is asked, what differs, the document, who may decide, who decided what."""
    claims = [Claim.model_validate(claim) for claim in view["claims"]]
    grades = [CriterionResult.model_validate(grade) for grade in view["grades"]]
    return "\n".join([
        *_section("WARNINGS", [f"  ! {visible_line(one)}" for one in review.warnings]),
        *_section("PROPOSAL", [fields(_proposal_lines(proposal, review), "  ")]),
        *_section("ACTION (all of it is covered by the action hash)", [fields(_action_lines(proposal), "  ")]),
        *_change_sections(view, review),
        *_section(f"DOCUMENT ({proposal.action.content_hash})", quoted(view["document"])),
        *(line for heading, text in view.get("words", ()) for line in _section(heading.upper(), quoted(text))),
        *_section("GRADES BY THE RUBRIC", [line for one in grades for line in _grade_lines(one)]),
        *_section("CLAIMS (each recomputed on the data)", [_claim_text(claim) for claim in claims]),
        *_section("YOUR DECISION" if review.person else "WHO MAY DECIDE", _decision_lines(proposal, review)),
        *_section("EARLIER REJECTION OF AN ACTION LIKE THIS ONE", _rejection_lines(proposal, review)),
        *_section("VERSIONS AND VOTES", [line for one in review.versions for line in _version_lines(one)]),
    ])  # fmt: skip


def vote_line(vote: CastVote) -> str:
    """Who decided what, when, on what it rests, and why it counts no longer where that is so."""
    unsigned = " [namespace-only: nobody signed it]" if vote.assurance == "namespace-only" else ""
    void = f" -- counts no longer: {vote.void}" if vote.void else ""
    what = vote.decision.replace("_", " ")
    return f"{what} by {vote.person} at {moment(vote.decided_at)}{unsigned}, statement {vote.statement_id}{void}"


def _section(head: str, lines: list[str]) -> list[str]:
    return ["", head, *lines] if lines else []


def _proposal_lines(proposal: Proposal, review: Review) -> list[tuple[str, str]]:
    action = proposal.action
    return [
        ("what", BUSINESS_NAMES.get(action.tool, "unknown: this installation has no such tool, so nothing can happen")),
        ("tool", f"{action.tool} version {action.tool_version}"),
        ("tenant", action.tenant),
        ("environment", action.environment),
        ("target", action.target),
        ("channel", action.channel),
        ("effect", f"{action.side_effect}, {action.scope}"),
        ("amount", str(action.amount) if action.amount is not None else "none"),
        ("cost", proposal.cost),
        ("reversibility", proposal.reversibility),
        ("summary", proposal.summary),
        ("reason", proposal.reason),
        ("requester", f"{proposal.requester} (may not decide)"),
        *[("author", f"{author} (may not approve it beside an edit of theirs)") for author in proposal.authors],
        ("asked again", proposal.asked_again),
        *[("evidence", reference) for reference in proposal.evidence],
        ("draft", f"version {proposal.draft_version}" if proposal.draft_version else "none"),
        ("checks", proposal.checks),
        ("verdict", _verdict(proposal)),
        ("models", proposal.model_version),
        *_rule_lines(proposal),
        ("proposed", moment(proposal.proposed_at)),
        ("in control", review.control),
        ("asked now", ", ".join(review.asked_now)),
        ("next", review.next_tick),
        ("deadline", moment(proposal.deadline)),
        ("execute by", moment(proposal.execute_by)),
        ("action hash", proposal.action_hash),
        ("content hash", action.content_hash),
        ("evidence hash", action.evidence_hash),
        ("view hash", review.view),
        ("operation", proposal.operation),
        ("approval", f"{proposal.approval_id} version {proposal.approval_version}"),
        ("workflow", f"{review.workflow_id}, run {review.run_id}"),
    ]


def _verdict(proposal: Proposal) -> str:
    graded = f"{proposal.verdict} by rubric {proposal.rubric_version}"
    return graded if proposal.draft_version else "nothing was drafted or graded"


def _rule_lines(proposal: Proposal) -> list[tuple[str, str]]:
    assessment = proposal.assessment
    return [
        ("policy", f"{proposal.action.policy_version}, rules {', '.join(assessment.rules)}"),
        *[("needs", _need_text(need)) for need in assessment.needs],
        *[("kept need", f"{_need_text(need)}, from the version before") for need in proposal.floor],
        *_spent_lines(proposal),
    ]


def _spent_lines(proposal: Proposal) -> list[tuple[str, str]]:
    """Earlier amounts, which are in the action's own currency; an action without an amount is compared with none."""
    money = proposal.action.amount
    if money is None:
        return []
    sums = [(one.window, Amount(currency=money.currency, minor=one.minor)) for one in proposal.spent]
    return [("spent before", f"{total} within {window.within} per {window.per}") for window, total in sums]


def _need_text(need: Need) -> str:
    later = "".join(f", after {tier.after} role {tier.role} too" for tier in need.ladder.tiers)
    return f"{need}{', who count for no other need' if need.distinct else ''}{later}"


def _action_lines(proposal: Proposal) -> list[tuple[str, str]]:
    return [(place, value or '""') for place, value in facts(proposal.action.model_dump(mode="json")).items()]


def _change_sections(view: Mapping[str, Any], review: Review) -> list[str]:
    since = f"CHANGES SINCE {review.changed_since}"
    live = "WHAT LIES AT THE TARGET NOW"
    if review.authority_changes:
        against_live = _section("CHANGES OF WHAT IS IN FORCE NOW", difference_lines(review.authority_changes))
    elif view["live"] is None:
        against_live = _section(live, ["  nothing"])
    else:
        changes = escaped_lines(review.live_changes)
        against_live = _section(live, changes or ["  the very same document"])
    return [
        *(_section(since, difference_lines(review.action_changes) or ["  none"]) if review.changed_since else []),
        *_section("CHANGES OF THE DOCUMENT SINCE THEN", escaped_lines(review.document_changes)),
        *against_live,
    ]


def _grade_lines(result: CriterionResult) -> list[str]:
    told = f"  {visible_line(result.id)}: {'met' if result.passed else 'not met'}"
    return [told, *([f"    {visible_line(result.gap)}"] if result.gap else [])]


def _claim_text(claim: Claim) -> str:
    value = visible_line(f"{claim.value} {claim.unit}".rstrip())
    return f"  {claim.id}: {visible_line(claim.shown)} = {value}\n    {visible_line(claim.query)}"


def _decision_lines(proposal: Proposal, review: Review) -> list[str]:
    if not review.person:
        roles, kinds = ", ".join(review.asked_now), ", ".join(review.decisions_now)
        glass = "".join(f"; in an emergency {_need_text(need)}" for need in break_glass_needs(proposal))
        open_now = f"{kinds} by {roles}{glass}; see what you may do with --as PERSON"
        return [f"  {open_now if kinds else _nobody(review)}"]
    width = max(len(one.decision) for one in review.options)
    said = ((one.decision.replace("_", " "), "yes" if one.allowed else f"no: {one.why}") for one in review.options)
    return [f"  {name:<{width}}  {visible_line(answer)}" for name, answer in said]


def _nobody(review: Review) -> str:
    """Why nobody is asked about the latest version."""
    status = review.versions[-1].status
    by_rule = status in (ApprovalStatus.GRANTED, ApprovalStatus.CONSUMED) and not review.versions[-1].votes
    return "nobody: by rule" if by_rule else f"nobody any more: the proposal is {status.value}"


def _rejection_lines(proposal: Proposal, review: Review) -> list[str]:
    rejection = proposal.earlier_rejection
    if rejection is None:
        return []
    told = f"  by {rejection.person} at {moment(rejection.at)}, operation {rejection.operation}"
    return [told, f"  reason: {visible_line(review.rejection_comment) or 'none given'}"]


def _version_lines(version: Version) -> list[str]:
    lines = [f"  version {version.approval_version} ({version.approval_id}): {version.status.value}"]
    if version.asked_again:
        lines.append(f"    asked again: {visible_line(version.asked_again)}")
    if version.void_reason:
        lines.append(f"    void: {visible_line(version.void_reason)}")
    for vote in version.votes:
        lines.append(f"    {visible_line(vote_line(vote))}")
        lines += [f"      comment: {visible_line(vote.comment)}"] if vote.comment else []
    return lines if version.votes else [*lines, "    no votes"]
