"""All steps of one operation over a real ledger, with a clock to turn, and people who sign; no server is needed.

Apart from the tests because each step is asked in the same way: as the operation's own run, or as some other workflow.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import yaml
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.deciding import DecidingSteps
from activities.drafting import DraftingSteps
from activities.escalating import EscalatingSteps
from activities.grading import GradingSteps
from activities.interfaces import Decided, Message, MessageBatch, Proposed, ProposeOrder, StepOrder
from activities.opening import OpeningSteps
from activities.proposing import ProposingSteps
from activities.questioning import QuestioningSteps
from activities.runs import Runs
from activities.validating import ValidatingSteps
from countersign import bootstrap
from countersign.domain.canonical import canonical_bytes
from countersign.domain.command import Command, CommandKind
from countersign.domain.decision import Outcome
from countersign.domain.draft import DraftObject
from countersign.domain.identity import workflow_id
from countersign.domain.proposal import Approval, Proposal
from countersign.domain.report import Claim, ColumnSchema, Draft
from countersign.domain.rubric import CriterionResult, GraderAnswer, gate
from countersign.domain.values import Sha256
from countersign.ports import Standing
from countersign.settings import ROOT
from countersign.signing.statements import sign_command
from tests.support.installation import MAX_PENDING, ROWS, new_installation

LINE = "run-1"
OPERATION = "op-1"
STAFF = {"lena": ("lead", "reviewer"), "liam": ("lead",), "olga": ("operator",)}


def a_draft(title: str = "Sales") -> DraftObject:
    """A well-formed draft about the dataset that every operation here rests on, as the ledger keeps it."""
    claim = Claim(id="c1", query="SELECT sum(amount) FROM data", value="500.50", unit="", shown="500.50")
    written = Draft(
        title=title, body="Sales came to {{c1}}.", claims=(claim,), source="sales.csv", period="none stated",
        unit="none stated", limitations=("Only what the file holds.",),
    )  # fmt: skip
    return written.model_dump(mode="json")


def called(environment: ActivityEnvironment, step: Any, order: Any) -> Any:
    """What a step answers, whether it is a function or a coroutine."""
    result = environment.run(step, order)
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(result: Any) -> Any:
    return await result


class Nobody:
    """A drafter and grader that must not be asked."""

    async def draft(self, *asked: Any, **more: Any) -> Any:
        raise AssertionError("the agent was asked")

    async def grade(self, *asked: Any, **more: Any) -> Any:
        raise AssertionError("the grader was asked")


class Desk:
    """Operation `op-1` of tenant `acme`, requested by rita; lena and liam may take over, olga may end it."""

    def __init__(self, folder: Path, data: str = ROWS, columns: Mapping[str, ColumnSchema] | None = None) -> None:
        policies = folder / "policies"
        _write_policies(policies)
        self.installation = new_installation(folder / "home", cast(Client, None), policies=policies)
        for person, roles in STAFF.items():
            self.installation.enrol(person, *roles)
        self.later = timedelta(0)
        self.ledger, self.settings = self.installation.ledger, self.installation.settings
        self.order = self.installation.register(OPERATION, data=data, columns=columns)
        self.runs = Runs(self.ledger, self.now)
        self.rubrics = bootstrap.load_rubrics(self.settings)
        self.rubric = self.rubrics["report"]
        self.cases = cases = bootstrap.cases(self.settings, self.ledger, self.now)
        bounds = {"max_rounds": 2, "max_grader_tries": 2}
        self.opening = OpeningSteps(self.ledger, self.runs, self.settings.installation, cases, **bounds)
        self.deciding = DecidingSteps(self.ledger, self.runs, self.settings.installation, cases, unsigned=True)
        self.proposing = ProposingSteps(self.ledger, self.runs, cases, self.rubrics, max_pending=MAX_PENDING)
        self.escalating = EscalatingSteps(self.ledger, self.runs)
        self.validating = ValidatingSteps(self.ledger, self.runs, cases, self.settings.installation)
        self.questioning = QuestioningSteps(self.ledger, self.runs)
        self.drafting, self.grading = self.drafted_by(Nobody()), self.graded_by(Nobody())

    def drafted_by(self, agent: Any, *, max_pending: int = MAX_PENDING) -> DraftingSteps:
        """The agent's step with this agent."""
        prices = bootstrap.load_prices(self.settings)
        return DraftingSteps(
            self.ledger,
            self.runs,
            self.cases,
            {"report": agent},
            prices=prices,
            max_pending=max_pending,
            installation=self.settings.installation,
        )

    def graded_by(self, grader: Any) -> GradingSteps:
        """The rubric's step with this grader."""
        prices = bootstrap.load_prices(self.settings)
        return GradingSteps(self.ledger, self.runs, self.cases, grader, self.rubrics, prices=prices)

    def now(self) -> datetime:
        """The clock that the steps have."""
        return bootstrap.wall_clock() + self.later

    def as_run(self, run_id: str = LINE, *, workflow: str = "", client: Client | None = None) -> ActivityEnvironment:
        """Where a step is asked by this run of the operation, or of another workflow."""
        environment = ActivityEnvironment(client)
        named = workflow or workflow_id("acme", OPERATION)
        environment.info = replace(environment.info, workflow_id=named, workflow_run_id=run_id)
        return environment

    def step(self, draft_version: int = 1, control_version: int = 1, **changes: Any) -> StepOrder:
        """A step as the run orders it."""
        fields = {"line": LINE, "draft_version": draft_version, "control_version": control_version, **changes}
        return StepOrder(tenant="acme", operation=OPERATION, **fields)

    def passed(self, version: int = 1, control_version: int = 1, draft: DraftObject | None = None) -> None:
        """A version, by the agent unless it is there already, that checks and grader found nothing against."""
        now, which = self.now(), ("acme", OPERATION, version)
        if draft is not None or version > self.standing().draft_version:
            self.ledger.drafts.save(*which, draft or a_draft(), "a-model", control_version, now)
        self.ledger.drafts.save_checks(*which, (), control_version, now)
        results = tuple(CriterionResult(id=criterion.id, passed=True) for criterion in self.rubric.criteria)
        grade = gate(self.rubric, GraderAnswer(verdict="satisfied", criteria=results, raw="", model="a-grader"))
        self.ledger.drafts.save_grade(*which, grade, self.rubric.label(), control_version, now)

    def propose(self, approval_version: int = 1, step: StepOrder | None = None, **changes: Any) -> Proposed:
        """Ask people, as the run does."""
        order = ProposeOrder(
            step=step or self.step(), approval_version=approval_version,
            now=self.now(), **changes,
        )  # fmt: skip
        return self.as_run().run(self.proposing.propose, order)

    def signed(self, person: str, kind: CommandKind, **changes: Any) -> str:
        """The body of a command's message, good for the control version that is in force."""
        now = self.now().replace(microsecond=0)
        fields: dict[str, Any] = {
            "installation": self.settings.installation, "person": person, "key_id": f"{person}-1", "tenant": "acme",
            "operation": OPERATION, "command": kind, "control_version": self.standing().control.version,
            "issued_at": now, "expires_at": now + timedelta(hours=1), "id": secrets.token_urlsafe(16), **changes,
        }  # fmt: skip
        token = sign_command(Command(**fields), self.installation.keys[person])
        return canonical_bytes({"statement": token}).decode()

    def message(self, name: str, body: str | None, **changes: Any) -> Message:
        """A message as the run took it in."""
        fields: dict[str, Any] = {"id": f"{LINE}:{secrets.token_hex(4)}", "received_at": self.now(), **changes}
        return Message(name=name, transport="signal", body=body, problem="" if body else "no input", **fields)

    def decide(self, *messages: Message) -> Decided:
        """What the run is told of these messages."""
        batch = MessageBatch(tenant="acme", operation=OPERATION, messages=messages)
        return self.as_run().run(self.deciding.decide, batch)

    def command(self, person: str, kind: CommandKind, **changes: Any) -> Outcome:
        """What becomes of one command."""
        (outcome,) = self.decide(self.message(kind, self.signed(person, kind, **changes))).outcomes
        return outcome

    def put(self, value: Any) -> Sha256:
        """A document in canonical form; its hash."""
        return self.ledger.documents.put("acme", canonical_bytes(value))

    def standing(self) -> Standing:
        """How the operation stands."""
        return self.ledger.controls.standing("acme", OPERATION)

    def current(self) -> Approval:
        """The latest approval."""
        approval = self.ledger.approvals.current("acme", OPERATION)
        assert approval is not None
        return approval

    @property
    def proposal(self) -> Proposal:
        """The latest proposal."""
        return self.current().proposal

    def records(self, *types: str) -> list[dict[str, Any]]:
        """Details of the operation's audit records of these types."""
        return [one.detail for one in self.ledger.audit.records("acme", OPERATION) if one.type in types]


def _write_policies(folder: Path) -> None:
    """The shipped ones, with people who may take over, routes for escalations, and a ladder."""
    folder.mkdir(parents=True)
    for path in (ROOT / "policies").glob("*.yaml"):
        (folder / path.name).write_text(path.read_text())
    policy = yaml.safe_load((folder / "report.yaml").read_text())
    policy["takeover"] = {"role": "lead", "lease": "1h"}
    policy["escalations"] = {"LOW_CONFIDENCE": {"role": "lead", "severity": "high", "within": "2h"}}
    for rule in policy["rules"]:
        if "need" in rule:
            tier = {"after": "2h", "role": "lead", "decisions": ["approve", "reject"]}
            rule["need"]["decide_within"] = "4h"
            rule["need"]["ladder"] = {"remind": ["1h"], "tiers": [tier], "then": "freeze"}
    (folder / "report.yaml").write_text(yaml.safe_dump(policy))
