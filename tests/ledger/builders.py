"""Small true values for tests of the ledger: persons with keys, operations, proposals, signed decisions.

Apart from the fixtures because the programs that tests start as processes of their own build them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.command import Command, CommandKind
from countersign.domain.decision import Outcome, Statement
from countersign.domain.directory import Person
from countersign.domain.draft import DraftObject
from countersign.domain.edit import Edit
from countersign.domain.execution import Execution, Receipt
from countersign.domain.need import Need
from countersign.domain.notice import Notice
from countersign.domain.operation import Operation
from countersign.domain.policy import Answer, Assessment, BreakGlass, Editing, Terms
from countersign.domain.proposal import Approval, Assurance, Proposal
from countersign.domain.report import Claim, Draft
from countersign.domain.values import Sha256
from countersign.ledger import SqlLedger, open_ledger
from countersign.ports import Amendment, Received, ReceivedCommand, Standing
from countersign.signing.statements import sign_decision

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
DEADLINE = NOW + timedelta(hours=1)
INSTALLATION = "house"
TENANT = "acme"
OPERATION = "report-7"
VIEW = sha256_hex(b"view")
ROOM = 1_000
"""More than any test has waiting at once."""
SIGNING_KEY = Ed25519PrivateKey.from_private_bytes(b"i" * 32)
PERSON_KEY = Ed25519PrivateKey.from_private_bytes(b"p" * 32)
TERMS = Terms(
    editing=Editing(fields=("channel",), raises_risk=(), counts="unless_risk_raised"),
    break_glass=BreakGlass(role="reviewer", approvals=2),
)
"""All that a policy can allow is allowed."""


def opened(url: str, checkpoints: Path) -> SqlLedger:
    """The ledger of the test installation."""
    return open_ledger(url, installation=INSTALLATION, checkpoints=checkpoints, signing_key=SIGNING_KEY)


def person(id: str, *roles: str, tenant: str = TENANT, **changes: Any) -> Person:
    """A person without keys, a reviewer if nothing else is said."""
    return Person(**{"tenant": tenant, "id": id, "roles": frozenset(roles or ("reviewer",)), **changes})


def operation(id: str = OPERATION, *, tenant: str = TENANT, request: bytes = b"request", **changes: Any) -> Operation:
    """An operation asked for by rita."""
    fields: dict[str, Any] = {
        "tenant": tenant,
        "operation": id,
        "case": "report",
        "request_hash": sha256_hex(request),
        "requester": "rita",
        "statement": "a.b.c",
        "registered_at": NOW,
    }
    return Operation(**{**fields, **changes})


def draft(body: str = "Sales were {{c1}}.") -> DraftObject:
    """A draft with one claim, as the ledger keeps it."""
    claim = Claim(id="c1", query="SELECT sum(amount) FROM data", value="42", unit="USD", shown="$42")
    written = Draft(
        title="Sales", body=body, claims=(claim,), source="sales.csv", period="2026", unit="USD", limitations=("none",)
    )
    return written.model_dump(mode="json")


def action(content: bytes = b"text", **changes: Any) -> Action:
    """The publication of `content`."""
    fields: dict[str, Any] = {
        "tenant": TENANT,
        "operation": OPERATION,
        "tool": "publish_report",
        "tool_version": "1",
        "args": {"channel": "public"},
        "target": "public/report",
        "side_effect": "external_publication",
        "scope": "one_document",
        "environment": "test",
        "content_hash": sha256_hex(content),
        "evidence_hash": sha256_hex(b"evidence"),
        "policy_version": "report/1",
    }
    return Action(**{**fields, **changes})


def need(approvals: int = 1, role: str = "reviewer") -> Need:
    """So many persons of a role, who may take every kind of decision."""
    return Need(
        role=role,
        approvals=approvals,
        decisions=("approve", "edit", "reject"),
        decide_within="1h",
        execute_within="1h",
    )


def proposal(
    approval_id: str = "approval-1",
    *,
    version: int = 1,
    content: bytes = b"text",
    approvals: int = 1,
    by_rule: bool = False,
    tenant: str = TENANT,
    operation: str = OPERATION,
    acting: Mapping[str, Any] = MappingProxyType({}),
    **changes: Any,
) -> Proposal:
    """A proposal to publish `content`, decided by `approvals` reviewers until DEADLINE; `acting` changes the action."""
    proposed = action(content, **{"tenant": tenant, "operation": operation, **acting})
    answer = Answer.BY_RULE if by_rule else Answer.PEOPLE
    needs = () if by_rule else (need(approvals),)
    fields: dict[str, Any] = {
        "approval_id": approval_id,
        "approval_version": version,
        "case": "report",
        "action": proposed,
        "action_hash": proposed.hash(),
        "requester": "rita",
        "reason": "how did sales develop?",
        "summary": "Sales",
        "document": sha256_hex(content),
        "evidence": ("sales.csv",),
        "reversibility": "correctable",
        "cost": "none",
        "draft_version": 1,
        "verdict": "satisfied",
        "checks": "no findings",
        "rubric_version": "report/1",
        "model_version": "offline",
        "assessment": Assessment(answer=answer, rules=("rule-1",), needs=needs),
        "terms": TERMS,
        "proposed_at": NOW,
        "deadline": DEADLINE,
        "execute_by": DEADLINE + timedelta(hours=1),
    }
    return Proposal(**{**fields, **changes})


def statement(proposed: Proposal, by: str, *, id: str | None = None, **changes: Any) -> Statement:
    """A decision about a proposal, approve unless changed."""
    fields: dict[str, Any] = {
        "installation": INSTALLATION,
        "person": by,
        "key_id": f"{by}-1",
        "tenant": proposed.tenant,
        "operation": proposed.operation,
        "approval_id": proposed.approval_id,
        "approval_version": proposed.approval_version,
        "action_hash": proposed.action_hash,
        "decision": "approve",
        "issued_at": NOW,
        "expires_at": DEADLINE,
        "id": id or f"statement-of-{by}",
    }
    return Statement(**{**fields, **changes})


def decide(
    ledger: SqlLedger, said: Statement, *, message_id: str = "m-1", signer: Person | None = None,
    now: datetime = NOW + timedelta(minutes=1), token: str | None = None, assurance: Assurance = "signed",
    edit: Edit | None = None,
) -> Outcome:  # fmt: skip
    """Send a decision to the ledger as the deciding activity does after it has verified it."""
    received = Received(
        message_id=message_id,
        transport="signal",
        statement=said,
        token=token or sign_decision(said, PERSON_KEY),
        assurance=assurance,
        at=now,
    )
    signer = signer or ledger.directory.person(said.tenant, said.person) or person(said.person)
    return ledger.approvals.decide(received, signer, edit)


def command(kind: CommandKind, by: str, *, id: str | None = None, **changes: Any) -> Command:
    """What a person commands about OPERATION, who saw the agent in control."""
    fields: dict[str, Any] = {
        "installation": INSTALLATION,
        "person": by,
        "key_id": f"{by}-1",
        "tenant": TENANT,
        "operation": OPERATION,
        "command": kind,
        "control_version": 1,
        "issued_at": NOW,
        "expires_at": DEADLINE,
        "id": id or f"{kind}-by-{by}-0000",
    }
    return Command(**{**fields, **changes})


class Commanded(NamedTuple):
    """What became of a command, and how the run stands after it."""

    outcome: Outcome
    standing: Standing


def send(
    ledger: SqlLedger, said: Command, *, message_id: str | None = None, now: datetime = NOW + timedelta(minutes=1),
    amendment: Amendment | None = None, signer: Person | None = None,
) -> Commanded:  # fmt: skip
    """Send a command to the ledger as the deciding activity does after it has verified it."""
    # The form of a token is no matter of the ledger's, which only holds that another body is another token.
    token = said.model_dump_json()
    received = ReceivedCommand(
        message_id=message_id or f"m-{said.id}", transport="signal", command=said, token=token, at=now
    )
    signer = signer or ledger.directory.person(said.tenant, said.person) or person(said.person)
    outcome = ledger.controls.command(received, signer, amendment or Amendment())
    return Commanded(outcome, ledger.controls.standing(said.tenant, said.operation))


def notices(ledger: SqlLedger, tenant: str = TENANT) -> list[Notice]:
    """What people are told, in its order."""
    return [notice for _, notice in ledger.outbox.unaddressed(tenant, 1_000)]


def receipt(execution: Execution, content: bytes = b"text") -> Receipt:
    """What a channel answers."""
    return Receipt(channel="file", key=execution.key, reference="out/report.md", content_hash=sha256_hex(content))


def granted(ledger: SqlLedger, proposed: Proposal | None = None, run_id: str = "run-1") -> Approval:
    """A registered operation of a founded tenant, with an approval that bob has granted."""
    proposed = proposed or proposal()
    ledger.operations.register(operation(proposed.operation, tenant=proposed.tenant))
    ledger.approvals.open(proposed, run_id, VIEW, NOW, ROOM)
    if not proposed.decisions:
        return ledger.approvals.get(proposed.tenant, proposed.approval_id)
    said = statement(proposed, "bob", id=f"statement-{proposed.approval_id}")
    decide(ledger, said, message_id=f"m-{proposed.approval_id}")
    return ledger.approvals.get(proposed.tenant, proposed.approval_id)


def claim(ledger: SqlLedger, approval: Approval, now: datetime = NOW, *, minutes: int = 5) -> Execution:
    """Claim the approval's action as the gateway does."""
    key = approval.proposal.action.idempotency_key()
    return ledger.executions.claim(approval, key, now, now + timedelta(minutes=minutes))


def audit_types(ledger: SqlLedger, tenant: str = TENANT) -> list[str]:
    """What happened to a tenant since its first set-up, in order."""
    return [
        record.type for record in ledger.audit.records(tenant)
        if record.detail.get("basis") != "first_set_up"
    ]  # fmt: skip


OTHER_HASH: Sha256 = sha256_hex(b"other")
