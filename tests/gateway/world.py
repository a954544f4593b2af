"""A small installation for gateway tests: a real ledger, real evidence, real signatures; only the time is given.

It stands apart because programs that tests kill open the same installation again from its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.cases.assessing import assessed
from countersign.domain.action import Action
from countersign.domain.administration import (
    SCOPE,
    SIDE_EFFECT,
    TOOL_VERSION,
    AdministrationRequest,
    Change,
    DirectoryChange,
    KeyAddition,
    KeyRevocation,
    PersonChange,
    PolicyChange,
    content,
    present,
    target,
    tool,
)
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.command import Command, CommandKind
from countersign.domain.decision import Outcome, Ruling, Statement
from countersign.domain.directory import Key, Standing
from countersign.domain.edit import Edit
from countersign.domain.freeze import Freeze, FreezeOrder
from countersign.domain.operation import Operation, RequestStatement
from countersign.domain.policy import Policy, assess
from countersign.domain.proposal import Approval, ApprovalStatus, Assurance, Proposal
from countersign.domain.report import DatasetRef, DatasetSchema, ReportRequest
from countersign.domain.values import Value
from countersign.evidence.store import EvidenceStore
from countersign.gateway.acting import Step
from countersign.gateway.channels import Channel
from countersign.gateway.gateway import Gateway
from countersign.gateway.grant import Grant, Grants
from countersign.gateway.tools import Tools
from countersign.ledger import open_ledger
from countersign.ports import Amendment, Received, ReceivedCommand
from countersign.signing.keys import new_key_file, public_text, read_key_file
from countersign.signing.statements import sign_decision, sign_freeze, sign_request
from countersign.signing.unsigned import unsigned_fields
from tests.gateway.rules import LIMITS, PERSONS, administration, policy
from tests.gateway.tampering import Database
from tests.support.ledgers import with_tables

TENANT, INSTALLATION, ENVIRONMENT = "acme", "test", "dev"
START = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
DOCUMENT = b"# Sales\n\nNorth sold for $35.2M.\n"
DATA = b"region,amount\nNorth,35200000\n"


class World(Database):
    """One tenant of an installation in a folder; opened again, it is the same one."""

    def __init__(self, folder: Path, database_url: str = "", *, tenant: str = TENANT) -> None:
        self.folder = folder
        self.tenant = tenant
        self.now = START
        self.keys = {name: _key(folder / f"{name}.pem") for name in PERSONS}
        self.ledger = open_ledger(
            database_url or with_tables(folder / "ledger.sqlite"),
            installation=INSTALLATION,
            checkpoints=folder / "checkpoints",
            signing_key=_key(folder / "installation.pem"),
        )
        self.evidence = EvidenceStore(folder / "evidence")
        self.evidence_hash = sha256_hex(DATA)

    def populate(self) -> None:
        """Bring persons, keys, policies and the dataset in, and end the first set-up."""
        persons = tuple(PersonChange(person=name, standing=standing(name)) for name in PERSONS)
        keys = tuple(KeyAddition(person=name, key=a_key(f"{name}-1", self.keys[name])) for name in PERSONS)
        self.ledger.directory.set_up(self.tenant, DirectoryChange(persons=persons, keys_added=keys), "test", START)
        self.ledger.directory.adopt(self.tenant, [policy(), administration()], "test", START)
        self.ledger.directory.close_set_up(self.tenant, "test", START)
        data = self.folder / "sales.csv"
        data.write_bytes(DATA)
        self.evidence.put(data)

    def make(self, change: Change) -> None:
        """Have a change of authority made as an executed action makes it."""
        action = self.change_action(f"change-{sha256_hex(content(change))[-8:]}", change)
        self.ledger.directory.apply(self.tenant, change, action, self.now)

    def adopt(self, rules: Policy) -> None:
        """Put a policy in force, unless it is."""
        in_force = self.ledger.directory.policies(self.tenant)
        if in_force.get(rules.policy) != rules:
            self.make(PolicyChange(policy=rules))

    def move(self, person: str, **changes: Any) -> None:
        """Change a person's roles, activity or limits."""
        to_be = standing(person).model_copy(update=changes)
        self.make(DirectoryChange(persons=(PersonChange(person=person, standing=to_be),)))

    def revoke_key(self, person: str) -> None:
        """Revoke a person's first key."""
        self.make(DirectoryChange(keys_revoked=(KeyRevocation(person=person, key_id=f"{person}-1"),)))

    def propose(
        self,
        operation: str = "q2-report",
        *,
        channel: str = "press",
        by: Policy | None = None,
        wanted: ReportRequest | None = None,
        **changes: Any,
    ) -> Approval:
        """Open an approval of a publication under the policy in force, `by` from now on where it is given.

        `wanted` is what Rita has signed for, in place of this very publication; `changes` replace fields of its action.
        """
        self.adopt(by or self.in_force("report"))
        self._register(operation, wanted or self.wanted(channel))
        return self._open(self._action(operation, channel).model_copy(update=changes), self.in_force("report"))

    def command(self, person: str, kind: CommandKind, operation: str = "q2-report", **said: Any) -> Outcome:
        """Have a person's command ruled on and done by the ledger."""
        version = self.ledger.controls.standing(self.tenant, operation).control.version
        command = Command(
            installation=INSTALLATION, person=person, key_id=f"{person}-1", tenant=self.tenant, operation=operation,
            command=kind, control_version=version, issued_at=self.now, expires_at=self.now + timedelta(hours=1),
            id=f"command-{person}-{kind}-{version:08}", **said,
        )  # fmt: skip
        received = ReceivedCommand(
            message_id=command.id, transport="signal", command=command, token=command.id, at=self.now
        )
        signer = self.ledger.directory.persons(self.tenant)[person]
        return self.ledger.controls.command(received, signer, Amendment())

    def propose_change(self, change: Change, **changes: Any) -> Approval:
        """Open an approval of a change of authority that Ann asks for."""
        self._register("a-change", AdministrationRequest(reason="it is time", change=change), "ann")
        action = self.change_action("a-change", change).model_copy(update=changes)
        return self._open(action, self.in_force("administration"), requester="ann")

    def propose_again(self, before: Approval, action: Action | None = None, **fields: Any) -> Approval:
        """Open the next version, as a run does of an edited or voided one; `fields` replace the proposal's own."""
        was, rules = before.proposal, self.in_force(before.proposal.case)
        same = was.action.model_copy(update={"policy_version": rules.label()})
        is_edit = before.status == ApprovalStatus.EDITED
        editors = tuple(vote.person for vote in before.votes if vote.decision == "edit")
        follows: dict[str, Any] = {
            "approval_version": was.approval_version + 1, "authors": tuple(dict.fromkeys((*was.authors, *editors))),
            "edited_from": was.approval_id if is_edit else "",
        }  # fmt: skip
        return self._open(action or same, rules, before, **{**follows, **fields})

    def edited(self, approval: Approval, person: str = "bob", title: str = "Sales, edited", **fields: Any) -> Approval:
        """The next version of a proposal, which this person's signed edit makes."""
        was = approval.proposal
        action = was.action.model_copy(update={"args": {**was.action.args, "title": title}})
        edited_action = self.ledger.documents.put(self.tenant, canonical_bytes(action.model_dump(mode="json")))
        rules = self.in_force(was.case)
        assessment = assessed(self.ledger, rules, action, approval, self.now).assessment
        edit = Edit(action, assessment)
        outcome = self.decide(approval, person, "edit", edited_action=edited_action, edit=edit)
        assert outcome.ruling == Ruling.ACCEPTED, outcome.sentence()
        return self.propose_again(self.approval(approval), action, **fields)

    def granted(self, operation: str = "q2-report", *, by_persons: Iterable[str] = ("bob",), **more: Any) -> Approval:
        """An approval that these persons have granted."""
        approval = self.propose(operation, **more)
        for person in by_persons:
            self.decide(approval, person)
        return self.approval(approval)

    def decide(
        self, approval: Approval, person: str, decision: str = "approve", /, *, signed: bool = True,
        edit: Edit | None = None, **said: Any,
    ) -> Outcome:  # fmt: skip
        """Have a person's decision ruled on and recorded by the ledger."""
        statement = self.statement(approval, person, decision, **said)
        token = sign_decision(statement, self.keys[person]) if signed else unsigned_text(statement)
        assurance: Assurance = "signed" if signed else "namespace-only"
        received = Received(
            message_id=statement.id, transport="signal", statement=statement, token=token, assurance=assurance,
            at=self.now,
        )  # fmt: skip
        return self.ledger.approvals.decide(received, self.ledger.directory.persons(self.tenant)[person], edit)

    def freeze(self, person: str, tool: str = "", id: str = "an-order-of-freezing") -> Freeze:
        """Have effects held by a person's signed order."""
        order = FreezeOrder(
            installation=INSTALLATION, person=person, key_id=f"{person}-1", tenant=self.tenant, tool=tool,
            reason="a leak", issued_at=self.now, id=id,
        )  # fmt: skip
        return self.ledger.freezes.freeze(self.tenant, sign_freeze(order, self.keys[person]), self.now)

    def statement(self, approval: Approval, person: str, decision: str = "approve", /, **changes: Any) -> Statement:
        """What a person would sign about an approval."""
        proposal = approval.proposal
        fields = {
            "installation": INSTALLATION, "person": person, "key_id": f"{person}-1", "tenant": self.tenant,
            "operation": proposal.operation, "approval_id": proposal.approval_id,
            "approval_version": proposal.approval_version, "action_hash": proposal.action_hash, "decision": decision,
            "issued_at": self.now, "expires_at": proposal.execute_by,
            "id": f"{proposal.approval_id}-{person}-{decision}",
        }  # fmt: skip
        return Statement(**{**fields, **changes})

    def approval(self, approval: Approval) -> Approval:
        """The approval as the ledger has it now."""
        return self.ledger.approvals.get(self.tenant, approval.proposal.approval_id)

    def in_force(self, name: str) -> Policy:
        """The policy of that name in force."""
        return self.ledger.directory.policies(self.tenant)[name]

    def gateway(self, *channels: Channel, on_step: Callable[[Step], None] | None = None, **changes: Any) -> Gateway:
        """A gateway where these channels are the tenant's."""
        wiring: dict[str, Any] = {
            "ledger": self.ledger, "channels": {self.tenant: channels}, "verify_evidence": self.verify_evidence,
            "installation": INSTALLATION, "environment": ENVIRONMENT, "unsigned": False, "clock": lambda: self.now,
        }  # fmt: skip
        return Gateway(**{**wiring, **changes, **({"on_step": on_step} if on_step else {})})

    def verified(self, approval: Approval) -> Grant:
        """What the gateway makes of a grant before it looks at the tool's words."""
        tools = Tools({}, self.ledger, self.verify_evidence, lambda: self.now)
        wiring = {"installation": INSTALLATION, "environment": ENVIRONMENT}
        return Grants(self.ledger, tools, unsigned=False, **wiring).verify(approval, self.now)

    def verify_evidence(self, tenant: str, sha256: str) -> None:
        """As the gateway asks for it."""
        assert tenant == self.tenant
        self.evidence.verify(sha256)

    def audit_types(self, operation: str = "q2-report") -> list[str]:
        """The types of the operation's audit records about its effect, in order."""
        records = self.ledger.audit.records(self.tenant, operation)
        return [record.type for record in records if record.type.startswith("effect.")]

    def close(self) -> None:
        """Give back the ledger."""
        self.ledger.close()

    def wanted(self, channel: str = "press") -> ReportRequest:
        """What Rita asks for."""
        dataset = DatasetRef(sha256=self.evidence_hash, name="sales.csv", schema=DatasetSchema())
        return ReportRequest(question="How were sales?", channel=channel, dataset=dataset)

    def request(self, operation: str, person: str = "rita", request: Value | None = None) -> RequestStatement:
        """What a requester signs to start an operation."""
        document = self.ledger.documents.put(self.tenant, _written(request or self.wanted()))
        return RequestStatement(
            installation=INSTALLATION, person=person, key_id=f"{person}-1", tenant=self.tenant, operation=operation,
            request_hash=document, issued_at=START, id=f"request-of-{operation:0>8}",
        )  # fmt: skip

    def change_action(self, operation: str, change: Change) -> Action:
        """The action that makes a change of authority, resting on what is in force now."""
        authority = self.ledger.directory.authority(self.tenant)
        return Action(
            tenant=self.tenant, operation=operation, tool=tool(change), tool_version=TOOL_VERSION,
            args={"change": change.model_dump(mode="json")}, target=target(change), side_effect=SIDE_EFFECT,
            scope=SCOPE, environment=ENVIRONMENT, content_hash=self.ledger.documents.put(self.tenant, content(change)),
            evidence_hash=sha256_hex(present(change, authority)),
            policy_version=authority.policies["administration"].label(),
        )  # fmt: skip

    def _register(self, operation: str, wanted: ReportRequest | AdministrationRequest, requester: str = "rita") -> None:
        request = self.request(operation, requester, wanted)
        statement = sign_request(request, self.keys[requester])
        self.ledger.operations.register(
            Operation(
                tenant=self.tenant, operation=operation, case=wanted.case, request_hash=request.request_hash,
                requester=requester, statement=statement, registered_at=START,
            )
        )  # fmt: skip

    def _action(self, operation: str, channel: str) -> Action:
        side_effect = "internal_publication" if channel == "internal" else "external_publication"
        name = f"{operation}.md"
        return Action(
            tenant=self.tenant, operation=operation, tool="publish_report", tool_version="1",
            args={"channel": channel, "name": name, "title": "Sales"}, channel=channel, target=f"{channel}:{name}",
            side_effect=side_effect, scope="one_document", environment=ENVIRONMENT,
            content_hash=self.ledger.documents.put(self.tenant, DOCUMENT), evidence_hash=self.evidence_hash,
            policy_version=self.in_force("report").label(),
        )  # fmt: skip

    def _open(self, action: Action, rules: Policy, before: Approval | None = None, **fields: Any) -> Approval:
        self.ledger.documents.put(self.tenant, canonical_bytes(rules.model_dump(mode="json")))
        _, spent, floor = assessed(self.ledger, rules, action, before, self.now)
        version, floor = fields.get("approval_version", 1), fields.get("floor", floor)
        assessment = assess(rules, action, spent).and_also(floor)
        base: dict[str, Any] = {
            "approval_id": f"apr-{action.operation}-{version}-{action.hash()[-8:]}", "approval_version": version,
            "case": rules.policy, "action": action, "action_hash": action.hash(), "requester": "rita",
            "reason": "How were sales?", "summary": "Sales", "document": action.content_hash,
            "evidence": ("sales.csv",), "reversibility": "correctable", "cost": "none", "draft_version": 1,
            "verdict": "satisfied", "checks": "all recomputed", "rubric_version": "r/1", "model_version": "m",
            "spent": spent, "floor": floor, "assessment": assessment,
            "terms": rules.terms.after(before.proposal.terms) if before is not None else rules.terms,
            "proposed_at": self.now,
        }  # fmt: skip
        proposed_at = fields.get("proposed_at", self.now)
        base["deadline"], base["execute_by"] = fields.get("assessment", assessment).times(proposed_at)
        view = self.ledger.documents.put(self.tenant, b"the view")
        run_id = f"run-{action.content_hash[-8:]}"
        return self.ledger.approvals.open(Proposal(**{**base, **fields}), run_id, view, self.now, room=1_000)


def standing(person: str) -> Standing:
    """What a person may do at first."""
    limits = (LIMITS[person],) if person in LIMITS else ()
    return Standing(roles=frozenset(PERSONS[person]), limits=limits)


def a_key(key_id: str, key: Ed25519PrivateKey) -> Key:
    """A public key that is good since yesterday."""
    return Key(id=key_id, public_key=public_text(key), not_before=START - timedelta(days=1))


def _written(request: Value) -> bytes:
    return canonical_bytes(request.model_dump(mode="json", by_alias=True))


def unsigned_text(statement: Statement) -> str:
    """A decision as it is kept where nobody signed it."""
    return canonical_bytes(unsigned_fields(statement)).decode()


def _key(path: Path) -> Ed25519PrivateKey:
    return read_key_file(path) if path.exists() else new_key_file(path)
