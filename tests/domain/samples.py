"""Valid values to start from: each test changes the one field that it is about.

Apart from the tests because statements, rulings and messages are all about the same action, proposal and persons.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Statement
from countersign.domain.directory import Key, Person
from countersign.domain.need import Approver, Need
from countersign.domain.policy import Answer, Assessment, Policy, Terms
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Vote
from countersign.signing.keys import public_text

NOW = datetime(2024, 11, 30, 12, 0, tzinfo=UTC)
"""Long past, since a run refuses what lies ahead of its clock."""
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
        "channel": "public",
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
    """A person of `acme`; a reviewer if nothing else is said. `limits` may be written as in a file."""
    return Person.model_validate(
        {"tenant": "acme", "id": person, "roles": frozenset(roles or ("reviewer",)), **changes}
    )


def a_key(name: str) -> Key:
    """The key `NAME-1` of somebody, good from yesterday on; its public half depends on the name alone."""
    private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())
    return Key(id=f"{name}-1", public_key=public_text(private), not_before=NOW - timedelta(days=1))


def approvers(*persons: Person, waited: timedelta = timedelta(0)) -> dict[str, Approver]:
    """These persons as ones who approved, after people had waited so long."""
    return {person.id: Approver(person, waited) for person in persons}


def by_rule(rule: str, when: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A rule of a policy file that asks nobody."""
    return {"id": rule, "when": when, "grant": "by_rule", **more}


def by_people(rule: str, when: dict[str, Any], *, amount: Any = None, **need: Any) -> dict[str, Any]:
    """A rule of a policy file that asks one reviewer, unless `need` says otherwise."""
    return {"id": rule, "when": when, "amount": amount, "need": {**a_need().model_dump(), **need}}


def a_policy(*rules: dict[str, Any], **changes: Any) -> Policy:
    """Version 1 of the policy `report`."""
    return Policy.model_validate({"policy": "report", "version": 1, "rules": rules, **changes})


def administration(version: int = 1, **need: Any) -> Policy:
    """The policy of changes of authority: asked by an admin, approved by two others."""
    rule = by_people("all", {"side_effect": "authority_change"}, **{"role": "admin", "approvals": 2, **need})
    return a_policy(rule, policy="administration", version=version, asked_by="admin")


def a_proposal(*needs: Need, **changes: Any) -> Proposal:
    """The action put before people; requested by `rita`."""
    action = changes.pop("action", an_action())
    fields: dict[str, Any] = {
        "approval_id": "apr-1",
        "approval_version": 2,
        "case": "report",
        "action": action,
        "action_hash": action.hash(),
        "requester": "rita",
        "reason": "How did sales develop?",
        "summary": "Sales",
        "document": CONTENT,
        "evidence": ("sales.csv",),
        "reversibility": "correctable",
        "cost": "none",
        "draft_version": 1,
        "verdict": "satisfied",
        "checks": "all recomputed",
        "rubric_version": "report-rubric/1",
        "model_version": "offline",
        "assessment": Assessment(answer=Answer.PEOPLE, rules=("external",), needs=needs or (a_need(),)),
        "terms": Terms(),
        "proposed_at": NOW,
        "deadline": DEADLINE,
        "execute_by": DEADLINE + timedelta(hours=1),
    }
    return Proposal.model_validate({**fields, **changes})


def a_vote(person: str, decision: str = "approve", **changes: Any) -> Vote:
    """An accepted, signed decision of a person."""
    fields: dict[str, Any] = {
        "person": person,
        "decision": decision,
        "statement_id": f"statement-of-{person}",
        "statement": "a.b.c",
        "decided_at": NOW,
    }
    return Vote.model_validate({**fields, **changes})


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
