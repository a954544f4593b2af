"""The real thing that courses are played on: one time-skipping server, one ledger, workers that come and go.

Only the models are stand-ins: an agent that writes one sound sentence when it is let, and a grader that is content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

from pydantic import JsonValue
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.drafting import DraftingSteps
from activities.grading import GradingSteps
from activities.runs import Runs
from countersign import bootstrap
from countersign.domain.administration import PolicyChange
from countersign.domain.draft import DraftObject
from countersign.domain.policy import Policy
from countersign.domain.progress import ProgressKind
from countersign.domain.proposal import Approval
from countersign.domain.question import AnsweredCall
from countersign.domain.report import Claim, Draft
from countersign.domain.rubric import CriterionResult, GraderAnswer, Rubric
from countersign.ports import ReportMaterial, Watching, Written
from tests.course.terms import TERMS, written
from tests.support.installation import MAX_PENDING
from tests.support.skipping import Skipping
from workflows.governed_action import GovernedAction
from workflows.names import GATEWAY_QUEUE, RUN_QUEUE

TENANT = "acme"


def a_draft(title: str, *, sound: bool = True) -> DraftObject:
    """What the data says, or something else."""
    claim = Claim(
        id="c1", query="SELECT sum(amount) FROM data", value="500.50" if sound else "500.51", unit="", shown="500.50"
    )
    written = Draft(
        title=title, body="Sales came to {{c1}}.", claims=(claim,), source="sales.csv", period="none stated",
        unit="none stated", limitations=("Only what the file holds.",),
    )  # fmt: skip
    return written.model_dump(mode="json")


class Agent:
    """Writes when it is let."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.let.set()

    async def draft(
        self, thread: str, attempt: int, material: ReportMaterial, earlier: DraftObject | None,
        feedback: Sequence[str], answers: Mapping[str, AnsweredCall], may_ask: bool, watching: Watching,
    ) -> Written:  # fmt: skip
        """As ports.Drafter."""
        await watching.happened(ProgressKind.TOOL_CALLED, "begins")
        await self.let.wait()
        return Written(draft=a_draft("Sales"), model="stand-in")


class Grader:
    """Is content."""

    async def grade(
        self, document: str, rubric: Rubric, task: Mapping[str, JsonValue], watching: Watching
    ) -> GraderAnswer:
        """As ports.Grader."""
        criteria = tuple(CriterionResult(id=criterion.id, passed=True) for criterion in rubric.criteria)
        return GraderAnswer(verdict="satisfied", criteria=criteria, raw="", model="stand-in")


class Stage:
    """One server with one installation, on which one course after the other is played."""

    def __init__(self, skipping: Skipping) -> None:
        self.skipping = skipping
        self.installation = skipping.installation
        self.ledger = skipping.installation.ledger
        self.agent = Agent()
        self.courses = 0
        self.spent = False
        """Whether a run has ended here before its agent had: the server's clock then never jumps again."""
        self._threads = ThreadPoolExecutor(16)
        self._steps, self._effect = self._made()
        self._working: AsyncExitStack | None = None
        self._adopted = self._successor = ""

    def _made(self) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
        settings, clock = self.installation.settings, self.installation.clock
        runs, cases = Runs(self.ledger, clock), bootstrap.cases(settings, self.ledger, clock)
        rubrics, prices = bootstrap.load_rubrics(settings), bootstrap.load_prices(settings)
        stand_ins = {
            "draft": DraftingSteps(
                self.ledger,
                runs,
                cases,
                {"report": self.agent},
                prices=prices,
                max_pending=MAX_PENDING,
                installation=settings.installation,
            ).draft,
            "grade": GradingSteps(self.ledger, runs, cases, Grader(), rubrics, prices=prices).grade,
        }
        steps = bootstrap.agent_activities(settings, self.ledger, clock)
        made = [stand_ins.get(step.__name__, step) for step in steps]
        return made, bootstrap.gateway_activities(settings, self.ledger, clock)

    async def work(self) -> None:
        """Start the workers; they keep nothing of a run from one task to the next, so each replays all of it.

        Without the sandbox, which looks for what a replay does not allow: other tests have it, and it costs most time.
        """
        self._working = AsyncExitStack()
        client = self.installation.client
        agent = Worker(
            client, task_queue=RUN_QUEUE, workflows=[GovernedAction], activities=self._steps,
            activity_executor=self._threads, max_cached_workflows=0, graceful_shutdown_timeout=timedelta(seconds=1),
            workflow_runner=UnsandboxedWorkflowRunner(),
        )  # fmt: skip
        gateway = Worker(
            client, task_queue=GATEWAY_QUEUE, activities=self._effect, activity_executor=self._threads
        )  # fmt: skip
        await self._working.enter_async_context(agent)
        await self._working.enter_async_context(gateway)

    async def rest(self) -> None:
        """Stop them."""
        if self._working is not None:
            await self._working.aclose()
            self._working = None

    async def close(self) -> None:
        """Stop everything that was started here."""
        self.agent.let.set()
        await self.rest()
        self._threads.shutdown()

    def adopt(self, name: str) -> None:
        """Put the policy of that name in force, as an executed change of authority does."""
        if name == self._adopted:
            return
        in_force = self.ledger.directory.policies(TENANT)["report"]
        changed = in_force.model_dump(mode="json", exclude_none=True)
        said = written(TERMS[name])
        for rule in changed["rules"]:
            if "need" in rule:
                rule["need"] |= said["need"]
        changed |= {"takeover": said["takeover"], "escalations": said["escalations"]}
        changed["version"] += 1
        self.installation.decree(PolicyChange(policy=Policy.model_validate(changed)))
        self._adopted = name

    @property
    def idle(self) -> bool:
        """Whether no worker is there."""
        return self._working is None

    def asks(self, operation: str) -> list[Approval]:
        """All that was put before people, oldest first."""
        return sorted(
            self.ledger.approvals.of_operation(TENANT, operation), key=lambda one: one.proposal.approval_version
        )

    def ticks(self, operation: str) -> int:
        """How many reminders and tiers are recorded."""
        records = self.ledger.audit.records(TENANT, operation)
        return sum(record.type in ("approval.reminded", "approval.escalated") for record in records)

    def successor(self) -> str:
        """An operation that can take the place of another one."""
        if not self._successor:
            self.installation.register("in-its-place")
            self._successor = "in-its-place"
        return self._successor

    async def under_way(self, workflow: str) -> bool:
        """Whether any step of a run has not come to its end; by the raw call, since the client cannot read an attribute
        that was taken back, as the test server shows it."""
        client = self.installation.client
        asked = DescribeWorkflowExecutionRequest(
            namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow)
        )
        return bool((await client.workflow_service.describe_workflow_execution(asked)).pending_activities)

    async def pass_until(self, moment: datetime) -> None:
        """Let time pass until then, if it has not."""
        left = moment - await self.skipping.now()
        if left > timedelta(0):
            await self.skipping.pass_time(left)
