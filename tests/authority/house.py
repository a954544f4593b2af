"""A tenant on a real ledger, with the run's real steps and the real gateway: what people, the run and time do to it.

It says when a run proposes, asks again, expires or is cancelled, as the workflow does, and nothing else: every proposal
is the proposing step's, every ruling the deciding step's, every execution the gateway's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import JsonValue
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.deciding import DecidingSteps
from activities.interfaces import Message, MessageBatch, ProposeOrder, StepOrder
from activities.proposing import ProposingSteps
from activities.runs import Runs
from countersign.cases.case import Case
from countersign.domain.action import Action
from countersign.domain.administration import (
    SCOPE,
    SIDE_EFFECT,
    TOOL_VERSION,
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
)  # fmt: skip
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.decision import DECIDE, Outcome, Statement
from countersign.domain.directory import Key, Standing
from countersign.domain.execution import EffectResult
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation, RequestStatement
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.report import DatasetRef, DatasetSchema, ReportRequest
from countersign.evidence.store import EvidenceStore
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.gateway import Gateway
from countersign.ledger import open_ledger
from countersign.signing.keys import public_text
from countersign.signing.statements import sign_request
from countersign.signing.unsigned import UNSIGNED, unsigned_fields
from tests.authority.people import ROLES, administration, standing
from tests.authority.work import DATA, ENVIRONMENT, NAME, SIDE_EFFECTS, ReportOrRefund
from tests.support.installation import MAX_PENDING

INSTALLATION = "house"
START = datetime(2025, 11, 30, 9, 0, tzinfo=UTC)
"""Long ago, since no step takes a time that has not come."""
EMERGENCY = b"the building is on fire"
REPORT = ReportRequest(
    question="How were sales?",
    title="Sales",
    channel="press",
    dataset=DatasetRef(sha256=sha256_hex(DATA), name="sales.csv", schema=DatasetSchema()),
).model_dump(mode="json", by_alias=True)
"""What Rita asks for, where it is no refund."""


def private_key(key_id: str) -> Ed25519PrivateKey:
    """The private half of a key, made from its name."""
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(key_id.encode()).digest())


def public_half(key_id: str, since: datetime) -> Key:
    """The public half, good from `since` on."""
    return Key(id=key_id, public_key=public_text(private_key(key_id)), not_before=since)


class House:
    """One installation: a ledger, evidence and two folders to publish into."""

    def __init__(self, url: str, folder: Path) -> None:
        signing_key = private_key("installation")
        self.ledger = open_ledger(
            url, installation=INSTALLATION, checkpoints=folder / "checkpoints", signing_key=signing_key
        )
        self.evidence = EvidenceStore(folder / "evidence")
        self.folder = folder
        (folder / "data.csv").write_bytes(DATA)
        self.evidence.put(folder / "data.csv")
        self.cases: Mapping[str, Case] = {NAME: ReportOrRefund(self.ledger)}

    def published(self, name: str) -> list[bytes]:
        """What lies under that name, in whichever folder."""
        return [
            (self.folder / each / name).read_bytes() for each in SIDE_EFFECTS if (self.folder / each / name).exists()
        ]

    def gateway(self, tenant: Tenant) -> Gateway:
        """The real one, by the tenant's clock."""
        channels = [FileChannel(name, self.folder / name, effect) for name, effect in SIDE_EFFECTS.items()]
        return Gateway(
            ledger=self.ledger, channels={tenant.name: channels},
            verify_evidence=lambda _, sha256: self.evidence.verify(sha256), installation=INSTALLATION,
            environment=ENVIRONMENT, unsigned=tenant.unsigned, clock=lambda: tenant.now,
        )  # fmt: skip


class Tenant:
    """One tenant under one policy, and the newest approval of its operation `report-1`."""

    def __init__(self, house: House, name: str, policy: Policy, *, unsigned: bool = False) -> None:
        self.house, self.ledger, self.name, self.unsigned = house, house.ledger, name, unsigned
        self.now = START
        runs = Runs(self.ledger, lambda: self.now)
        self.proposing = ProposingSteps(self.ledger, runs, house.cases, rubrics={}, max_pending=MAX_PENDING)
        self.deciding = DecidingSteps(self.ledger, runs, INSTALLATION, house.cases, unsigned=unsigned)
        self.run = 1
        self.changes = 0
        self._numbers = count(1)
        self._set_up(policy)
        self.asked: list[Approval] = []
        """Every version that the run opened, as it was then."""

    def _set_up(self, policy: Policy) -> None:
        persons = tuple(PersonChange(person=name, standing=standing(name)) for name in ROLES)
        since = START - timedelta(days=1)
        keys = tuple(KeyAddition(person=name, key=public_half(f"{name}-1", since)) for name in ROLES)
        self.ledger.directory.set_up(self.name, DirectoryChange(persons=persons, keys_added=keys), "test", START)
        self.ledger.directory.adopt(self.name, [policy, administration()], "test", START)
        self.ledger.directory.close_set_up(self.name, "test", START)

    @property
    def policy(self) -> Policy:
        """The one in force."""
        return self.ledger.directory.policies(self.name)["report"]

    @property
    def current(self) -> Approval:
        """The newest version as it stands."""
        return self.ledger.approvals.get(self.name, self.asked[-1].proposal.approval_id)

    def ask(self, money: str = "", operation: str = "report-1") -> str:
        """Rita asks for a report in the press, or for a refund of so much, and the run proposes it; as `_propose`."""
        self._register(operation, {"amount": money, "title": "Refund"} if money else REPORT)
        return self._propose(operation, 1)

    def ask_again(self) -> str:
        """The next version, as the run proposes it after an edit or a void grant; answers as `_propose`."""
        return self._propose("report-1", self.current.proposal.approval_version + 1)

    def ask_anew(self) -> str:
        """The first version of another run of the same operation; answers as `_propose`."""
        self.run += 1
        return self._propose("report-1", 1)

    def _propose(self, operation: str, version: int) -> str:
        """How the proposal stands, or else the code of the refusal to propose anything."""
        step = StepOrder(
            tenant=self.name, operation=operation, line=f"run-{self.run}", draft_version=0, control_version=1
        )
        try:
            order = ProposeOrder(step=step, approval_version=version, now=self.now)
            proposed = self._as_run(operation).run(self.proposing.propose, order)
        except ApplicationError as refused:
            return str(refused.type).lower()
        if operation == "report-1":
            self.asked.append(self.ledger.approvals.get(self.name, proposed.approval_id))
        return proposed.status.value

    def statement(self, person: str, decision: str, about: Approval | None = None, **changes: Any) -> Statement:
        """What somebody would sign about an approval, the newest one if no other is given."""
        proposal = (about or self.current).proposal
        fields = {
            "installation": INSTALLATION, "person": person, "key_id": f"{person}-1", "tenant": self.name,
            "operation": proposal.operation, "approval_id": proposal.approval_id,
            "approval_version": proposal.approval_version, "action_hash": proposal.action_hash, "decision": decision,
            "comment_hash": self._reason() if decision == "break_glass" else "", "issued_at": self.now,
            "expires_at": proposal.execute_by + timedelta(days=30),
            "id": f"statement-{next(self._numbers):08}",
        }  # fmt: skip
        return Statement(**{**fields, **changes})

    def _reason(self) -> str:
        return self.ledger.documents.put(self.name, EMERGENCY)

    def receive(self, token: str, message: str, *, operation: str = "report-1") -> Outcome:
        """A token as it comes to a run, in the message of that id."""
        return self._decide({"statement": token}, message, operation)

    def receive_unsigned(self, said: Statement, message: str) -> Outcome:
        """The same for a decision that nobody signed."""
        return self._decide({UNSIGNED: unsigned_fields(said)}, message, "report-1")

    def _decide(self, body: Mapping[str, JsonValue], message_id: str, operation: str) -> Outcome:
        message = Message(
            id=message_id, name=DECIDE, transport="signal", body=canonical_bytes(body).decode(), received_at=self.now
        )
        batch = MessageBatch(tenant=self.name, operation=operation, messages=(message,))
        return self._as_run(operation).run(self.deciding.decide, batch).outcomes[0]

    def _as_run(self, operation: str) -> ActivityEnvironment:
        """Where a step is carried out for the operation's own run."""
        environment = ActivityEnvironment()
        environment.info = replace(
            environment.info, workflow_id=workflow_id(self.name, operation), workflow_run_id=f"run-{self.run}"
        )
        return environment

    def edited(self, **changed: str) -> Action:
        """What the newest proposal's action becomes with changed arguments, by the policy in force; not kept yet."""
        before = self.current.proposal
        operation = self.ledger.operations.get(self.name, before.operation)
        args = {**before.action.args, **changed}
        case = self.house.cases[before.case]
        return case.submission(operation, before.draft_version, self.policy.label(), args).action

    def keep(self, action: Action) -> None:
        """Put an edited action where the run looks for it."""
        self.ledger.documents.put(self.name, canonical_bytes(action.model_dump(mode="json")))

    def execute(self, approval: Approval | None = None) -> EffectResult:
        """Ask the gateway for the newest approval, or for that one."""
        proposal = (approval or self.current).proposal
        return self.house.gateway(self).execute(self.name, proposal.approval_id)

    def settle(self, status: ApprovalStatus) -> ApprovalStatus:
        """Expire or cancel, as the run does."""
        return self.ledger.approvals.settle(self.name, self.current.proposal.approval_id, status, self.now)

    def move(self, person: str, **changes: Any) -> None:
        """Change somebody's roles, activity or limits."""
        now = self.ledger.directory.persons(self.name)[person].standing
        to_be = Standing.model_validate({**now.model_dump(), **changes})
        self.make(DirectoryChange(persons=(PersonChange(person=person, standing=to_be),)))

    def revoke(self, key_id: str) -> None:
        """Revoke a key."""
        self.make(DirectoryChange(keys_revoked=(KeyRevocation(person=key_id.rpartition("-")[0], key_id=key_id),)))

    def add_key(self, key_id: str) -> None:
        """Give somebody another key."""
        key = public_half(key_id, self.now)
        self.make(DirectoryChange(keys_added=(KeyAddition(person=key_id.rpartition("-")[0], key=key),)))

    def adopt(self, policy: Policy) -> None:
        """Put another policy in force, as its next version."""
        self.make(PolicyChange(policy=policy.model_copy(update={"version": self.policy.version + 1})))

    def make(self, change: Change) -> None:
        """Change authority, as the gateway does with an executed action."""
        self.changes += 1
        authority = self.ledger.directory.authority(self.name)
        action = Action(
            tenant=self.name, operation=f"change-{self.changes}", tool=tool(change), tool_version=TOOL_VERSION,
            args={"change": change.model_dump(mode="json")}, target=target(change), side_effect=SIDE_EFFECT,
            scope=SCOPE, environment=ENVIRONMENT, content_hash=sha256_hex(content(change)),
            evidence_hash=sha256_hex(present(change, authority)),
            policy_version=authority.policies["administration"].label(),
        )  # fmt: skip
        self.ledger.directory.apply(self.name, change, action, self.now)

    def _register(self, operation: str, wanted: Mapping[str, JsonValue]) -> None:
        request = RequestStatement(
            installation=INSTALLATION, person="rita", key_id="rita-1", tenant=self.name, operation=operation,
            request_hash=self.ledger.documents.put(self.name, canonical_bytes(dict(wanted))), issued_at=START,
            id=f"request-of-{operation:0>8}",
        )  # fmt: skip
        self.ledger.operations.register(
            Operation(
                tenant=self.name, operation=operation, case=NAME, request_hash=request.request_hash,
                requester="rita", statement=sign_request(request, private_key("rita-1")), registered_at=START,
            )
        )  # fmt: skip
