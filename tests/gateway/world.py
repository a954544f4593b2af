"""A small installation for gateway tests: a real ledger, real evidence, real signatures; only the time is given.

It stands apart because programs that tests kill open the same installation again from its folder.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Outcome, Statement
from countersign.domain.directory import Key, Person
from countersign.domain.operation import Operation, RequestStatement
from countersign.domain.policy import DecisionKind, Need, Policy, Rule, assess
from countersign.domain.proposal import Approval, Proposal, Vote
from countersign.domain.values import Sha256
from countersign.evidence.store import EvidenceStore
from countersign.gateway.channels import Channel
from countersign.gateway.gateway import Gateway, Step
from countersign.ledger import open_ledger
from countersign.signing.keys import new_key_file, public_text, read_key_file
from countersign.signing.statements import sign_decision, sign_request

TENANT, INSTALLATION, ENVIRONMENT = "acme", "test", "dev"
START = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
DOCUMENT = b"# Sales\n\nNorth sold for $35.2M.\n"
DATA = b"region,amount\nNorth,35200000\n"
PERSONS = {"rita": {"requester", "reviewer"}, "bob": {"reviewer"}, "ben": {"reviewer"}, "eve": {"clerk"}}
"""Rita could review, too: only the rule that a requester may not approve stops her."""


def policy(
    version: int = 1,
    *,
    approvals: int = 1,
    role: str = "reviewer",
    internal: str = "by_rule",
    decisions: tuple[DecisionKind, ...] = ("approve", "reject"),
) -> Policy:
    """Internal reports by rule (or, with `internal="people"`, not), external ones by `approvals` persons."""
    need = Need(role=role, approvals=approvals, decisions=decisions, decide_within="72h", execute_within="1h")
    by_rule = Rule(id="internal", when={"side_effect": "internal_publication"}, grant="by_rule")
    by_people = Rule(id="internal", when={"side_effect": "internal_publication"}, need=need)
    external = Rule(id="external", when={"side_effect": "external_publication"}, need=need)
    return Policy(policy="report", version=version, rules=(by_rule if internal == "by_rule" else by_people, external))


class World:
    """One installation in a folder; opened again, it is the same one."""

    def __init__(self, folder: Path, database_url: str = "") -> None:
        self.folder = folder
        self.now = START
        self.keys = {name: _key(folder / f"{name}.pem") for name in PERSONS}
        self.ledger = open_ledger(
            database_url or f"sqlite:///{folder / 'ledger.sqlite'}",
            installation=INSTALLATION,
            checkpoints=folder / "checkpoints",
            signing_key=_key(folder / "installation.pem"),
        )
        self.evidence = EvidenceStore(folder / "evidence")
        self.evidence_hash = sha256_hex(DATA)

    def populate(self) -> None:
        """Bring persons, keys and the dataset in."""
        for name, roles in PERSONS.items():
            self.ledger.directory.put_person(Person(tenant=TENANT, id=name, roles=frozenset(roles)), "test", START)
            key = Key(id=f"{name}-1", public_key=public_text(self.keys[name]), not_before=START - timedelta(days=1))
            self.ledger.directory.add_key(TENANT, name, key, "test", START)
        data = self.folder / "sales.csv"
        data.write_bytes(DATA)
        self.evidence.put(data)

    def propose(
        self, operation: str = "q2-report", *, channel: str = "press", by: Policy | None = None, **changes: Any
    ) -> Approval:
        """Open an approval of a publication; `changes` replace fields of its action."""
        rules = by or policy()
        self._register(operation)
        action = self._action(operation, channel, rules).model_copy(update=changes)
        proposal = self._proposal(action, rules, approval_id=f"apr-{operation}-{action.hash()[-8:]}")
        view = self.ledger.documents.put(TENANT, b"the view")
        return self.ledger.approvals.open(proposal, f"run-{action.hash()[-8:]}", view, self.now)

    def granted(self, operation: str = "q2-report", *, by_persons: Iterable[str] = ("bob",), **more: Any) -> Approval:
        """An approval that these persons have granted."""
        approval = self.propose(operation, **more)
        for person in by_persons:
            self.decide(approval, person)
        return self.ledger.approvals.get(TENANT, approval.proposal.approval_id)

    def decide(self, approval: Approval, person: str, decision: str = "approve") -> Outcome:
        """Have a person's signed decision ruled on and recorded by the ledger."""
        statement = self.statement(approval, person, decision)
        token = sign_decision(statement, self.keys[person])
        signer = self.ledger.directory.persons(TENANT)[person]
        return self.ledger.approvals.decide(statement.id, token, statement, signer, "signal", self.now)

    def statement(self, approval: Approval, person: str, decision: str = "approve", /, **changes: Any) -> Statement:
        """What a person would sign about an approval."""
        proposal = approval.proposal
        fields = {
            "installation": INSTALLATION, "person": person, "key_id": f"{person}-1", "tenant": TENANT,
            "operation": proposal.operation, "approval_id": proposal.approval_id,
            "approval_version": proposal.approval_version, "action_hash": proposal.action_hash, "decision": decision,
            "issued_at": self.now, "expires_at": proposal.execute_by,
            "id": f"{proposal.approval_id}-{person}-{decision}",
        }  # fmt: skip
        return Statement(**{**fields, **changes})

    def gateway(self, *channels: Channel, on_step: Callable[[Step], None] | None = None, **changes: Any) -> Gateway:
        """A gateway over these channels."""
        wiring: dict[str, Any] = {
            "ledger": self.ledger, "channels": channels, "policies": [policy()],
            "verify_evidence": self.verify_evidence, "installation": INSTALLATION, "environment": ENVIRONMENT,
            "clock": lambda: self.now,
        }  # fmt: skip
        return Gateway(**{**wiring, **changes, **({"on_step": on_step} if on_step else {})})

    def verify_evidence(self, tenant: str, sha256: str) -> None:
        """As the gateway asks for it."""
        assert tenant == TENANT
        self.evidence.verify(sha256)

    def audit_types(self, operation: str = "q2-report") -> list[str]:
        """The types of the operation's audit records about its effect, in order."""
        records = self.ledger.audit.records(TENANT, operation)
        return [record.type for record in records if record.type.startswith("effect.")]

    def tamper(self, table: str, column: str, change: Callable[[Any], Any], where: str = "1 = 1") -> None:
        """Change a column of all (or some) rows directly in the database, behind the ledger's back."""
        with closing(sqlite3.connect(self.folder / "ledger.sqlite")) as connection, connection:
            rows = connection.execute(f"SELECT rowid, {column} FROM {table} WHERE {where}").fetchall()
            assert rows, f"no row of {table} to change"
            for rowid, value in rows:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (change(value), rowid))

    def close(self) -> None:
        """Give back the ledger."""
        self.ledger.close()

    def request(self, operation: str, person: str = "rita") -> RequestStatement:
        """What a requester signs to start an operation."""
        return RequestStatement(
            installation=INSTALLATION, person=person, key_id=f"{person}-1", tenant=TENANT, operation=operation,
            request_hash=Sha256("sha256:" + "5" * 64), issued_at=START, id=f"request-of-{operation:0>8}",
        )  # fmt: skip

    def insert_vote(self, approval: Approval, vote: Vote) -> None:
        """Add a vote directly in the database."""
        row = (TENANT, approval.proposal.approval_id, vote.person, 9, vote.model_dump_json())
        with closing(sqlite3.connect(self.folder / "ledger.sqlite")) as connection, connection:
            sql = "INSERT INTO votes (tenant, approval_id, person, number, vote) VALUES (?, ?, ?, ?, ?)"
            connection.execute(sql, row)

    def _register(self, operation: str) -> None:
        request = self.request(operation)
        statement = sign_request(request, self.keys["rita"])
        self.ledger.operations.register(
            Operation(
                tenant=TENANT, operation=operation, case="report", request_hash=request.request_hash, requester="rita",
                statement=statement, registered_at=START,
            )
        )  # fmt: skip

    def _action(self, operation: str, channel: str, rules: Policy) -> Action:
        side_effect = "internal_publication" if channel == "internal" else "external_publication"
        name = f"{operation}.md"
        return Action(
            tenant=TENANT, operation=operation, tool="publish_report", tool_version="1",
            args={"channel": channel, "name": name, "title": "Sales"}, target=f"{channel}:{name}",
            side_effect=side_effect, scope="one_document", environment=ENVIRONMENT,
            content_hash=self.ledger.documents.put(TENANT, DOCUMENT), evidence_hash=self.evidence_hash,
            policy_version=rules.label(),
        )  # fmt: skip

    def _proposal(self, action: Action, rules: Policy, approval_id: str) -> Proposal:
        return Proposal(
            approval_id=approval_id, approval_version=1, action=action, action_hash=action.hash(), requester="rita",
            reason="How were sales?", summary="Sales", document=action.content_hash, evidence=("sales.csv",),
            reversibility="correctable", draft_version=1, verdict="satisfied", checks="all recomputed",
            rubric_version="r/1", model_version="m", assessment=assess(rules, action), proposed_at=self.now,
            deadline=self.now + timedelta(hours=72), execute_by=self.now + timedelta(hours=73),
        )  # fmt: skip


def changed_json(*path: str | int, to: Any) -> Callable[[str], str]:
    """A change of one value inside a column of JSON text."""

    def change(text: str) -> str:
        document = json.loads(text)
        inner = document
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = to(inner[path[-1]]) if callable(to) else to
        return json.dumps(document)

    return change


def merged_json(told: dict[str, Any]) -> Callable[[str], str]:
    """A change of several values of a JSON object in a column."""

    def change(text: str) -> str:
        for name, value in told.items():
            text = changed_json(name, to=value)(text)
        return text

    return change


def _key(path: Path) -> Ed25519PrivateKey:
    return read_key_file(path) if path.exists() else new_key_file(path)
