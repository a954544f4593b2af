"""Valid values to start from: each test changes the one field that it is about.

Apart from the tests because statements, rulings and messages are all about the same action, proposal and persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Statement
from countersign.domain.directory import Person
from countersign.domain.policy import Answer, Assessment, Need
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Vote

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DEADLINE = NOW + timedelta(hours=72)
CONTENT, EVIDENCE = sha256_hex(b"the report"), sha256_hex(b"the data")


def an_action(**changes: Any) -> Action:
    """The publication of one report by tenant `acme`."""
    fields: dict[str, Any] = {
        "tenant": "acme",
        "operation": "report-1",
        "tool": "publish_report",
        "tool_version": "1",
        "args": {"channel": "public", "name": "report-1.md", "title": "Sales"},
        "target": "public:report-1.md",
        "side_effect": "external_publication",
        "scope": "one_document",
        "environment": "dev",
        "content_hash": CONTENT,
        "evidence_hash": EVIDENCE,
        "policy_version": "report/1",
    }
    return Action.model_validate({**fields, **changes})


def a_need(role: str = "reviewer", approvals: int = 1, **changes: Any) -> Need:
    """One approval by a reviewer within 72 hours."""
    fields: dict[str, Any] = {
        "role": role,
        "approvals": approvals,
        "decisions": ("approve", "reject"),
        "decide_within": "72h",
        "execute_within": "1h",
    }
    return Need.model_validate({**fields, **changes})


def a_person(person: str = "bob", *roles: str, **changes: Any) -> Person:
    """A person of `acme`; a reviewer if nothing else is said."""
    return Person.model_validate(
        {"tenant": "acme", "id": person, "roles": frozenset(roles or ("reviewer",)), **changes}
    )


def a_proposal(*needs: Need, **changes: Any) -> Proposal:
    """The action put before people; requested by `rita`."""
    action = changes.pop("action", an_action())
    fields: dict[str, Any] = {
        "approval_id": "apr-1",
        "approval_version": 2,
        "action": action,
        "action_hash": action.hash(),
        "requester": "rita",
        "reason": "How did sales develop?",
        "summary": "Sales",
        "document": CONTENT,
        "evidence": ("sales.csv",),
        "reversibility": "correctable",
        "draft_version": 1,
        "verdict": "satisfied",
        "checks": "all recomputed",
        "rubric_version": "report-rubric/1",
        "model_version": "offline",
        "assessment": Assessment(answer=Answer.PEOPLE, rules=("external",), needs=needs or (a_need(),)),
        "proposed_at": NOW,
        "deadline": DEADLINE,
        "execute_by": DEADLINE + timedelta(hours=1),
    }
    return Proposal.model_validate({**fields, **changes})


def a_vote(person: str, decision: str = "approve") -> Vote:
    """An accepted decision of a person."""
    return Vote.model_validate(
        {
            "person": person,
            "decision": decision,
            "statement_id": f"statement-of-{person}",
            "statement": "a.b.c",
            "decided_at": NOW,
        }
    )


def an_approval(
    proposal: Proposal | None = None,
    status: ApprovalStatus = ApprovalStatus.PENDING,
    votes: Sequence[Vote] = (),
) -> Approval:
    """A pending approval without votes."""
    return Approval(proposal=proposal or a_proposal(), status=status, votes=tuple(votes))


def a_statement(proposal: Proposal | None = None, **changes: Any) -> Statement:
    """Bob's approval of exactly the proposal."""
    about = proposal or a_proposal()
    fields: dict[str, Any] = {
        "installation": "local",
        "person": "bob",
        "key_id": "bob-1",
        "tenant": about.tenant,
        "operation": about.operation,
        "approval_id": about.approval_id,
        "approval_version": about.approval_version,
        "action_hash": about.action_hash,
        "decision": "approve",
        "issued_at": NOW,
        "expires_at": NOW + timedelta(days=4),
        "id": "statement-000001",
    }
    return Statement.model_validate({**fields, **changes})
