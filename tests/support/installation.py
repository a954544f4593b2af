"""A whole installation for tests: settings, ledger, two persons with keys, and runs on a real server.

It signs and starts as the command line does, in this process, so that tests of the run need no subprocess per step.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import ActivityEnvironment

from activities.deciding import DecidingSteps
from activities.interfaces import RunOrder
from activities.runs import Runs
from countersign import bootstrap
from countersign.domain.action import Action
from countersign.domain.administration import (
    ADMINISTRATION,
    SCOPE,
    SIDE_EFFECT,
    AdministrationRequest,
    DirectoryChange,
    KeyAddition,
    PersonChange,
    PolicyChange,
    UnfreezeChange,
    content,
    present,
    target,
    tool,
)
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.command import Command, CommandKind
from countersign.domain.compensation import CompensationRequest, MessageRequest
from countersign.domain.decision import Statement
from countersign.domain.directory import Key, Limit, Standing
from countersign.domain.freeze import Freeze, FreezeOrder
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation, RequestStatement
from countersign.domain.proposal import Proposal, StatementKind, Vote
from countersign.domain.refund import RefundRequest
from countersign.domain.report import ColumnSchema, DatasetRef, DatasetSchema, ReportRequest
from countersign.domain.run import RunResult
from countersign.ports import Clock, Ledger
from countersign.settings import Settings
from countersign.signing.keys import public_text
from countersign.signing.statements import sign_command, sign_decision, sign_freeze, sign_request
from countersign.worker_process import worker
from tests.support.ledgers import with_tables
from workflows.carrying import RunInput
from workflows.governed_action import GovernedAction
from workflows.names import GATEWAY_QUEUE, RUN_QUEUE
from workflows.retention import Retention

ROWS = """date,region,amount
2026-01-05,North,120.50
2026-01-09,South,80.25
2026-02-03,North,99.75
2026-02-20,South,200.00
"""
ROLES = {
    "rita": ("requester",),
    "bob": ("reviewer",),
    "carl": ("reviewer",),
    "lea": ("lead", "operator"),
    "leo": ("lead",),
    "ada": ("admin",),
    "ben": ("admin",),
    "cleo": ("admin",),
}

MAX_PENDING = 500
"""Proposals and questions that may wait at once, where a test is not about that."""

Request = ReportRequest | RefundRequest | AdministrationRequest | CompensationRequest | MessageRequest


@dataclass
class Installation:
    """One installation with tenant `acme`: `rita` (requester), `bob`, `carl` (reviewers), `lea`, `leo` (leads), three
    administrators."""

    settings: Settings
    ledger: Ledger
    client: Client
    tenant: str = "acme"
    keys: dict[str, Ed25519PrivateKey] = field(default_factory=dict)
    clock: Clock = bootstrap.wall_clock
    """What its workers take for the time."""

    def enrol(self, person: str, *roles: str, limits: tuple[Limit, ...] = ()) -> None:
        """Add a person with one key, `PERSON-1`, while the first set-up is open."""
        self._enrol({person: Standing(roles=frozenset(roles), limits=limits)})

    def _enrol(self, standings: Mapping[str, Standing]) -> None:
        now = datetime.now(UTC)
        self.keys.update({person: Ed25519PrivateKey.generate() for person in standings})
        change = DirectoryChange(
            persons=tuple(PersonChange(person=person, standing=standing) for person, standing in standings.items()),
            keys_added=tuple(
                KeyAddition(
                    person=person,
                    key=Key(
                        id=f"{person}-1",
                        public_key=public_text(self.keys[person]),
                        not_before=now - timedelta(minutes=1),
                    ),
                )
                for person in standings
            ),
        )
        self.ledger.directory.set_up(self.tenant, change, "setup", now)

    def enrol_everybody(self) -> None:
        """Add the persons of ROLES."""
        self._enrol({person: Standing(roles=frozenset(roles)) for person, roles in ROLES.items()})

    def demote(self, person: str, *roles: str) -> None:
        """Leave a person these roles alone, as an executed change of the directory does."""
        change = DirectoryChange(persons=(PersonChange(person=person, standing=Standing(roles=frozenset(roles))),))
        self.decree(change)

    def decree(self, change: DirectoryChange | PolicyChange) -> None:
        """Make a change of authority as the gateway makes an executed one; for tests of what such a change does."""
        authority = self.ledger.directory.authority(self.tenant)
        action = Action(
            tenant=self.tenant, operation=f"decree-{secrets.token_hex(4)}", tool=tool(change), tool_version="1",
            args={"change": change.model_dump(mode="json")}, target=target(change), side_effect=SIDE_EFFECT,
            scope=SCOPE, environment=self.settings.environment, content_hash=sha256_hex(content(change)),
            evidence_hash=sha256_hex(present(change, authority)),
            policy_version=authority.policies[ADMINISTRATION].label(),
        )  # fmt: skip
        self.ledger.directory.apply(self.tenant, change, action, datetime.now(UTC))

    def register(
        self,
        operation: str,
        *,
        channel: str = "public",
        data: str = ROWS,
        unique: tuple[str, ...] = (),
        requester: str = "rita",
        question: str = "How did sales develop?",
        columns: Mapping[str, ColumnSchema] | None = None,
    ) -> RunOrder:
        """Store data and request, signed by the requester, and register the operation."""
        source = self.settings.home / "incoming.csv"
        source.write_text(data)
        dataset = DatasetRef(
            sha256=bootstrap.evidence(self.settings).put(self.tenant, source),
            name="sales.csv",
            schema=DatasetSchema(unique=unique, columns=dict(columns or {})),
        )
        request = ReportRequest(question=question, channel=channel, dataset=dataset)
        return self._registered(operation, request, requester)

    def register_change(
        self, operation: str, change: DirectoryChange | PolicyChange | UnfreezeChange, requester: str = "ada"
    ) -> RunOrder:
        """Register a change of authority, signed by an administrator."""
        return self._registered(operation, AdministrationRequest(reason="it is time", change=change), requester)

    def register_refund(
        self, operation: str, *, order: str, channel: str = "payments", message_channel: str = ""
    ) -> RunOrder:
        """Register what a customer asks for who was charged twice for an order, signed by `rita`."""
        request = RefundRequest(
            order=order, complaint="You charged me twice.", channel=channel, message_channel=message_channel
        )
        return self._registered(operation, request, "rita")

    def register_following(self, operation: str, request: CompensationRequest | MessageRequest) -> RunOrder:
        """Register what follows the operation that the request names, signed by `rita`."""
        return self._registered(operation, request, "rita", request.follows)

    def _registered(self, operation: str, request: Request, requester: str, follows: str = "") -> RunOrder:
        now = datetime.now(UTC).replace(microsecond=0)
        if self.ledger.directory.set_up_open(self.tenant):
            policies = tuple(bootstrap.load_policies(self.settings).values())
            self.ledger.directory.adopt(self.tenant, policies, "setup", now)
            self.ledger.directory.close_set_up(self.tenant, "setup", now)
        document = canonical_bytes(request.model_dump(mode="json", by_alias=True))
        request_hash = self.ledger.documents.put(self.tenant, document)
        statement = RequestStatement(
            installation=self.settings.installation,
            person=requester,
            key_id=f"{requester}-1",
            tenant=self.tenant,
            operation=operation,
            request_hash=request_hash,
            issued_at=now,
            id=secrets.token_urlsafe(16),
        )
        self.ledger.operations.register(
            Operation(
                tenant=self.tenant,
                operation=operation,
                case=request.case,
                request_hash=request_hash,
                requester=requester,
                statement=sign_request(statement, self.keys[requester]),
                registered_at=now,
                follows=follows,
            )
        )
        return RunOrder(tenant=self.tenant, operation=operation, case=request.case, request_hash=request_hash)

    async def start(self, operation: str, **request: Any) -> WorkflowHandle[GovernedAction, RunResult]:
        """Register and start a run."""
        return await self.start_unchecked(self.register(operation, **request))

    async def start_unchecked(self, order: RunOrder) -> WorkflowHandle[GovernedAction, RunResult]:
        """Start a run as anyone with access to the namespace can, registered or not."""
        return await self.client.start_workflow(
            GovernedAction.run,
            RunInput(**dict(order)),
            id=workflow_id(order.tenant, order.operation),
            task_queue=RUN_QUEUE,
        )

    def with_policy(self, folder: Path, **need: Any) -> Installation:
        """The same installation with changed windows in its report policy, such as `decide_within="2s"`.

        Its ladder is left out unless one is given: the file's own fits the file's own windows alone.
        """

        def changed(policy: dict[str, Any]) -> None:
            for rule in policy["rules"]:
                rule.get("need", {}).update({"ladder": {}, **need})

        return self._with_report_policy(folder, changed)

    def with_terms(self, folder: Path, **terms: Any) -> Installation:
        """The same installation with other terms in its report policy."""
        return self._with_report_policy(folder, lambda policy: policy["terms"].update(terms))

    def with_fields(self, folder: Path, **fields: Any) -> Installation:
        """The same installation with other top-level fields in its report policy, such as `escalations={}`."""
        return self._with_report_policy(folder, lambda policy: policy.update(fields))

    def _with_report_policy(self, folder: Path, change: Callable[[dict[str, Any]], None]) -> Installation:
        policies = folder / "policies"
        if policies != self.settings.policies:
            shutil.copytree(self.settings.policies, policies)
        policy = yaml.safe_load((policies / "report.yaml").read_text())
        change(policy)
        (policies / "report.yaml").write_text(yaml.safe_dump(policy))
        return replace(self, settings=self.settings.model_copy(update={"policies": policies}))

    def overwrite_document(self, sha256: str, data: bytes) -> None:
        """Change a stored document behind the ledger's back, in a SQLite ledger."""
        path = self.settings.ledger_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE documents SET data = ? WHERE sha256 = ?", (data, sha256))

    def environment(self) -> dict[str, str]:
        """Environment variables for processes of this installation."""
        return {
            "TEMPORAL_ADDRESS": self.client.service_client.config.target_host,
            "COUNTERSIGN_HOME": str(self.settings.home),
            "COUNTERSIGN_POLICIES": str(self.settings.policies.resolve()),
            "DATABASE_URL": self.settings.ledger_url,
        }

    async def after(self, moment: datetime) -> None:
        """Wait until the wall clock is past `moment`."""
        while datetime.now(UTC) <= moment:
            await asyncio.sleep(0.05)

    async def listed(self, query: str, count: int = 1) -> list[str]:
        """Workflow ids that a list query finds, once there are `count`; visibility lags a little."""
        async with asyncio.timeout(10):
            while True:
                found = [run.id async for run in self.client.list_workflows(query)]
                if len(found) == count:
                    return found
                await asyncio.sleep(0.05)

    def proposal(self, operation: str) -> Proposal:
        """The current proposal."""
        approval = self.ledger.approvals.current(self.tenant, operation)
        assert approval is not None
        return approval.proposal

    def votes(self, operation: str) -> tuple[Vote, ...]:
        """The votes on the current proposal."""
        approval = self.ledger.approvals.current(self.tenant, operation)
        assert approval is not None
        return approval.votes

    def edit(self, proposal: Proposal, signer: str, **args: Any) -> dict[str, str]:
        """A signed `decide` message that edits these arguments, with the edited action in the ledger."""
        case = bootstrap.cases(self.settings, self.ledger)[proposal.case]
        operation = self.ledger.operations.get(self.tenant, proposal.operation)
        policy = self.ledger.directory.policies(self.tenant)[proposal.case]
        changed = {**proposal.action.args, **args}
        edited = case.submission(operation, proposal.draft_version, policy.label(), changed).action
        return self.decision(proposal, signer, "edit", edited_action=self.store(edited))

    def store(self, action: Action) -> str:
        """Put an action into the ledger's documents; its hash, under which an edit names it."""
        return self.ledger.documents.put(self.tenant, canonical_bytes(action.model_dump(mode="json")))

    def decision(
        self, proposal: Proposal, signer: str, decision: StatementKind = "approve", **changes: Any
    ) -> dict[str, str]:
        """A signed `decide` message; `changes` replace fields of the statement before it is signed."""
        now = datetime.now(UTC).replace(microsecond=0)
        fields: dict[str, Any] = {
            "installation": self.settings.installation,
            "person": signer,
            "key_id": f"{signer}-1",
            "tenant": proposal.tenant,
            "operation": proposal.operation,
            "approval_id": proposal.approval_id,
            "approval_version": proposal.approval_version,
            "action_hash": proposal.action_hash,
            "decision": decision,
            "issued_at": now,
            "expires_at": proposal.execute_by,
            "id": secrets.token_urlsafe(16),
            **changes,
        }
        return {"statement": sign_decision(Statement(**fields), self.keys[signer])}

    def command(self, operation: str, signer: str, kind: CommandKind, **changes: Any) -> dict[str, str]:
        """A signed message of that name, by the control version that is in force; `changes` as in `decision`."""
        now = datetime.now(UTC).replace(microsecond=0)
        standing = self.ledger.controls.standing(self.tenant, operation)
        fields: dict[str, Any] = {
            "installation": self.settings.installation,
            "person": signer,
            "key_id": f"{signer}-1",
            "tenant": self.tenant,
            "operation": operation,
            "command": kind,
            "control_version": standing.control.version,
            "issued_at": now,
            "expires_at": now + timedelta(days=365),
            "id": secrets.token_urlsafe(16),
            **changes,
        }
        return {"statement": sign_command(Command(**fields), self.keys[signer])}

    def freeze(self, signer: str, tool: str = "", *, tenant: str = "", now: datetime | None = None) -> Freeze:
        """Have effects held by a person's signed order: every one, or those of a tool."""
        moment = (now or datetime.now(UTC)).replace(microsecond=0)
        order = FreezeOrder(
            installation=self.settings.installation, person=signer, key_id=f"{signer}-1", tenant=tenant or self.tenant,
            tool=tool, reason="the feed is wrong", issued_at=moment, id=secrets.token_urlsafe(16),
        )  # fmt: skip
        return self.ledger.freezes.freeze(order.tenant, sign_freeze(order, self.keys[signer]), now or datetime.now(UTC))

    def deciding(self) -> DecidingSteps:
        """The people's step itself, for tests of what it does when it is repeated or comes late."""
        cases = bootstrap.cases(self.settings, self.ledger)
        runs = Runs(self.ledger, self.clock)
        return DecidingSteps(
            self.ledger, runs, self.settings.installation, cases, unsigned=self.settings.takes_unsigned
        )

    def step(self, operation: str, run_id: str = "") -> ActivityEnvironment:
        """Where a step can be called as the operation's own run has it called: the one that asks, if one does."""
        environment = ActivityEnvironment()
        current = self.ledger.approvals.current(self.tenant, operation) if not run_id else None
        if current is not None:
            line = self.ledger.approvals.line(self.tenant, current.proposal.approval_id)
            run_id = self.ledger.operations.present_run(self.tenant, operation, line)
        run_id = run_id or "r"
        own = workflow_id(self.tenant, operation)
        environment.info = replace(environment.info, workflow_id=own, workflow_run_id=run_id)
        return environment

    def published(self, channel: str = "public") -> list[Path]:
        """The reports that lie in the tenant's folder of a file channel."""
        folder = self.settings.reports_folder / channel / self.tenant
        return sorted(path for path in folder.glob("*.md")) if folder.is_dir() else []

    @asynccontextmanager
    async def workers(self, *roles: Literal["agent", "gateway"]) -> AsyncIterator[None]:
        """Workers of these roles (both by default) in this process, for as long as the body runs."""
        async with AsyncExitStack() as stack:
            threads = stack.enter_context(ThreadPoolExecutor(16))
            for role in roles or ("agent", "gateway"):
                await stack.enter_async_context(self._worker(role, threads))
            yield

    def _worker(self, role: str, threads: ThreadPoolExecutor) -> Any:
        if role == "gateway":
            effect = bootstrap.gateway_activities(self.settings, self.ledger, self.clock)
            return worker(self.client, GATEWAY_QUEUE, effect, threads)
        steps: list[Callable[..., Any]] = bootstrap.agent_activities(self.settings, self.ledger, self.clock)
        return worker(self.client, RUN_QUEUE, steps, threads, workflows=[GovernedAction, Retention])


def new_installation(home: Path, client: Client, **settings: Any) -> Installation:
    """An installation under `home` with its persons; `settings` replace single ones."""
    home.mkdir(parents=True, exist_ok=True)
    chosen = Settings(home=home, _env_file=None, **settings)
    if not chosen.database_url:
        with_tables(home / "ledger.db")
    installation = Installation(chosen, bootstrap.open_ledger(chosen), client)
    installation.enrol_everybody()
    return installation
