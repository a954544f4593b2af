"""Who is asked about a proposal and why, who could approve it at this moment, and what is still missing.

Apart from `policy`, whose other commands are about policies that nobody was asked under yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from countersign.cases.assessing import pinned_policy
from countersign.cli.rendering import fields
from countersign.cli.reviewing.reasons import ANSWERS, Reason, answered, asked_for, in_words
from countersign.cli.session import Session, now
from countersign.cli.standing import asked_of, broken_glass, counted, missing, next_tick, tick_line
from countersign.domain.decision import Ruling, may
from countersign.domain.need import Need, Tick
from countersign.domain.policy import Policy, assess
from countersign.domain.proposal import Approval, ApprovalStatus


def explanation(session: Session, approval: Approval) -> dict[str, Any]:
    """All that `policy explain` tells about a proposal, as its JSON document."""
    proposal, at = approval.proposal, now()
    tick = next_tick(approval, at)
    pinned = pinned_policy(session.ledger, approval.proposal)
    today = session.ledger.directory.policies(proposal.tenant).get(proposal.case)
    return {
        "operation": proposal.operation, "approval_id": proposal.approval_id,
        "approval_version": proposal.approval_version, "status": approval.status,
        "pinned_policy": pinned.label(), "policy_in_force": today.label() if today else None,
        "answer": proposal.assessment.answer,
        "rules": [one._asdict() for one in answered(pinned, proposal.action, proposal.spent).reasons],
        "needs": [asked_for(need) for need in proposal.assessment.needs],
        "also_needed_today": [asked_for(need) for need in _stricter(today, approval)],
        "approved": sorted(counted(session, approval)),
        "missing": [asked_for(need) for need in missing(session, approval)],
        "asked_now": [asked_of(need, proposal, at) for need in missing(session, approval)],
        "next_tick": tick._asdict() if tick else None,
        "break_glass": broken_glass(approval),
        **_deciders(session, approval),
    }  # fmt: skip


def _stricter(today: Policy | None, approval: Approval) -> Sequence[Need]:
    """What the policy in force asks beyond what was pinned."""
    proposal = approval.proposal
    if today is None or today.label() == proposal.action.policy_version:
        return ()
    known = set(proposal.assessment.needs)
    return [need for need in assess(today, proposal.action, proposal.spent).needs if need not in known]


def _deciders(session: Session, approval: Approval) -> dict[str, Any]:
    """Who could approve at this moment, and why each of the others cannot."""
    if approval.status != ApprovalStatus.PENDING:
        return {"can_approve": [], "cannot_approve": []}
    moment, able, others = now(), [], []
    for name, person in session.ledger.directory.persons(approval.proposal.tenant).items():
        used = session.ledger.approvals.approved_by(person, approval.proposal.action, moment)
        outcome = may("approve", person, approval, moment, used)
        if outcome.ruling != Ruling.ACCEPTED:
            others.append({"person": name, "why": outcome.sentence()})
        elif not person.has_good_key(moment):
            others.append({"person": name, "why": "no_good_key: has no key that is good now, so cannot sign"})
        else:
            able.append(name)
    return {"can_approve": able, "cannot_approve": others}


def explanation_text(explained: Mapping[str, Any]) -> str:
    """The same in lines for people."""
    rules = [("rule", in_words(Reason(**reason))) for reason in explained["rules"]]
    others = [("cannot", f"{other['person']}: {other['why']}") for other in explained["cannot_approve"]]
    return fields([
        ("proposal", _stands(explained)),
        ("pinned policy", explained["pinned_policy"]),
        ("in force now", _now_in_force(explained)),
        ("answer", ANSWERS[explained["answer"]]),
        *rules,
        *(("needs", need) for need in explained["needs"]),
        *(("needs today", f"{need}; asked anew for it before anything happens")
          for need in explained["also_needed_today"]),
        ("approved by", ", ".join(explained["approved"])),
        *(("missing", need) for need in explained["missing"]),
        *(("asked now", need) for need in explained["asked_now"]),
        ("next", tick_line(Tick(**explained["next_tick"])) if explained["next_tick"] else ""),
        ("break glass", explained["break_glass"]),
        ("can approve", _able(explained)),
        *others,
    ])  # fmt: skip


def _stands(explained: Mapping[str, Any]) -> str:
    return f"{explained['approval_id']} version {explained['approval_version']}: {explained['status'].value}"


def _able(explained: Mapping[str, Any]) -> str:
    if explained["status"] != ApprovalStatus.PENDING or explained["can_approve"]:
        return ", ".join(explained["can_approve"])
    return "nobody; somebody has to be given role and key for it: see starter.py directory apply, keys new"


def _now_in_force(explained: Mapping[str, Any]) -> str:
    label = explained["policy_in_force"]
    return "the same" if label == explained["pinned_policy"] else label or "none, so nothing can be executed"
