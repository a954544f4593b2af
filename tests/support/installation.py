"""A whole installation for tests: settings, ledger, two persons with keys, and runs on a real server.

It signs and starts as the command line does, in this process, so that tests of the run need no subprocess per step.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from temporalio.client import Client, WorkflowHandle

from activities.interfaces import RunOrder
from countersign import bootstrap
from countersign.domain.canonical import canonical_bytes
from countersign.domain.decision import Statement
from countersign.domain.directory import Key, Person
from countersign.domain.draft import DatasetRef, DatasetSchema, ReportRequest
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation, RequestStatement
from countersign.domain.proposal import Proposal
from countersign.domain.run import RunResult
from countersign.ports import Ledger
from countersign.settings import Settings
from countersign.signing.keys import public_text
from countersign.signing.statements import sign_decision, sign_request
from countersign.worker_process import worker
from workflows.governed_action import GovernedAction
from workflows.names import GATEWAY_QUEUE, RUN_QUEUE

ROWS = """date,region,amount
2026-01-05,North,120.50
2026-01-09,South,80.25
2026-02-03,North,99.75
2026-02-20,South,200.00
"""
ROLES = {"rita": "requester", "bob": "reviewer", "carl": "reviewer"}


@dataclass
class Installation:
    """One installation with tenant `acme`, persons `rita` (requester), `bob` and `carl` (reviewers)."""

    settings: Settings
    ledger: Ledger
    client: Client
    tenant: str = "acme"
    keys: dict[str, Ed25519PrivateKey] = field(default_factory=dict)

    def enrol(self, person: str, *roles: str) -> None:
        """Add a person with one key, `PERSON-1`."""
        now = datetime.now(UTC)
        self.keys[person] = Ed25519PrivateKey.generate()
        self.ledger.directory.put_person(Person(tenant=self.tenant, id=person, roles=frozenset(roles)), "setup", now)
        key = Key(id=f"{person}-1", public_key=public_text(self.keys[person]), not_before=now - timedelta(minutes=1))
        self.ledger.directory.add_key(self.tenant, person, key, "setup", now)

    def register(
        self, operation: str, *, channel: str = "public", data: str = ROWS, requester: str = "rita"
    ) -> RunOrder:
        """Store data and request, signed by the requester, and register the operation."""
        source = self.settings.home / "incoming.csv"
        source.write_text(data)
        dataset = DatasetRef(
            sha256=bootstrap.evidence(self.settings).put(self.tenant, source), name="sales.csv", schema=DatasetSchema()
        )
        request = ReportRequest(question="How did sales develop?", channel=channel, dataset=dataset)
        request_hash = self.ledger.documents.put(
            self.tenant, canonical_bytes(request.model_dump(mode="json", by_alias=True))
        )
        now = datetime.now(UTC).replace(microsecond=0)
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
                case="report",
                request_hash=request_hash,
                requester=requester,
                statement=sign_request(statement, self.keys[requester]),
                registered_at=now,
            )
        )
        return RunOrder(tenant=self.tenant, operation=operation, case="report", request_hash=request_hash)

    async def start(self, operation: str, **request: Any) -> WorkflowHandle[GovernedAction, RunResult]:
        """Register and start a run."""
        return await self.start_unchecked(self.register(operation, **request))

    async def start_unchecked(self, order: RunOrder) -> WorkflowHandle[GovernedAction, RunResult]:
        """Start a run as anyone with access to the namespace can, registered or not."""
        return await self.client.start_workflow(
            GovernedAction.run, order, id=workflow_id(order.tenant, order.operation), task_queue=RUN_QUEUE
        )

    def with_policy(self, folder: Path, **need: Any) -> Installation:
        """The same installation with changed windows in its policy, such as `decide_within="2s"`."""
        policies = folder / "policies"
        shutil.copytree(self.settings.policies, policies)
        text = (policies / "report.yaml").read_text()
        for name, value in need.items():
            text, changed = re.subn(rf"{name}: \S+", f"{name}: {value}", text)
            assert changed, f"the policy has no {name}"
        (policies / "report.yaml").write_text(text)
        return replace(self, settings=self.settings.model_copy(update={"policies": policies}))

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

    def decision(
        self, proposal: Proposal, signer: str, decision: Literal["approve", "reject"] = "approve", **changes: Any
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

    def published(self, channel: str = "public") -> list[Path]:
        """The reports that lie in a file channel's folder."""
        folder = self.settings.reports_folder / channel
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
            return worker(self.client, GATEWAY_QUEUE, bootstrap.gateway_activities(self.settings, self.ledger), threads)
        steps: list[Callable[..., Any]] = bootstrap.agent_activities(self.settings, self.ledger)
        return worker(self.client, RUN_QUEUE, steps, threads, workflows=[GovernedAction])


def new_installation(home: Path, client: Client, **settings: Any) -> Installation:
    """An installation under `home` with its persons; `settings` replace single ones."""
    home.mkdir(parents=True, exist_ok=True)
    chosen = Settings(home=home, _env_file=None, **settings)
    installation = Installation(chosen, bootstrap.open_ledger(chosen), client)
    for person, role in ROLES.items():
        installation.enrol(person, role)
    return installation
