"""One installation in which many operations go their way step by step, with a model that says what a test tells it.

Apart from the tests, and shared by them, since each text is an operation of its own. Steps, ledger, gateway and the
adapters of the agent framework are the real ones, wired as a worker wires them; the model answers over HTTP. What a run
does between the steps is repeated here in five lines (`Course`); whole runs are in test_runs.py.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.interfaces import (
    Checked,
    Decided,
    DraftWritten,
    EffectOrder,
    Graded,
    Message,
    MessageBatch,
    Proposed,
    ProposeOrder,
    StepOrder,
)
from countersign import bootstrap
from countersign.domain.canonical import canonical_bytes
from countersign.domain.draft import DraftObject, Violation
from countersign.domain.execution import EffectResult
from countersign.domain.identity import workflow_id
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import Answer, Answers
from countersign.domain.report import ColumnSchema
from countersign.domain.rubric import Grade
from tests.support.installation import ROWS, Installation, new_installation
from tests.support.model_server import ModelServer, Turn

LINE = "run-1"
DAY = date(2026, 3, 1)
TOTAL = "SELECT sum(amount) FROM data"
CHANNELS = ("public", "internal")


def draft(**changes: Any) -> DraftObject:
    """A clean draft about the table of sales, with some fields changed."""
    content: dict[str, Any] = {
        "title": "Sales",
        "body": "Sales came to {{total}} in all, summed over all records.",
        "claims": [{"id": "total", "query": TOTAL, "value": "500.50", "unit": "", "shown": "500.50"}],
        "source": "The file sales.csv.",
        "period": "As the data states it.",
        "unit": "The table states none.",
        "limitations": ["Only what the file holds."],
    }
    return content | changes


def cells(*texts: str) -> str:
    """The table of sales with a column of notes, one of these texts on each day from `DAY` on."""
    head, *rows = ROWS.splitlines()
    more = [f"{DAY + timedelta(days=at)},East,0,{_quoted(text)}" for at, text in enumerate(texts)]
    return "\n".join([f"{head},note", *(f"{row},fine" for row in rows), *more]) + "\n"


def columns(*names: str) -> str:
    """The table of sales with further columns of these names."""
    head, *rows = ROWS.splitlines()
    return "\n".join([",".join([head, *map(_quoted, names)]), *(row + ",0" * len(names) for row in rows)]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@dataclass
class House:
    """The installation, its steps by name, and what its model says next."""

    installation: Installation
    server: ModelServer
    turns: list[Turn]
    runner: asyncio.Runner
    """Of the one loop of all steps, as a worker has one: the model's client keeps connections in it."""
    steps: dict[str, Callable[..., Any]]
    answered: int = 0
    """Requests of the model before it was last told what to say."""

    def course(self, data: str = ROWS, *, question: str = "How did sales develop?", sensitive: str = "") -> Course:
        """A new operation, requested by rita; `sensitive` is a column of text that needs a person's word."""
        name = f"op-{secrets.token_hex(6)}"
        columns = {sensitive: ColumnSchema(type="text", sensitive=True)} if sensitive else {}
        self.installation.register(name, data=data, question=question, columns=columns)
        return Course(self, name)

    def says(self, *turns: Turn) -> None:
        """What the model answers from now on, call by call."""
        self.turns[:] = turns
        self.answered = len(self.server.requests)

    @property
    def requests(self) -> Sequence[dict[str, Any]]:
        """What the model was sent since then."""
        return self.server.requests[self.answered :]

    def tools(self) -> set[str]:
        """What tools it was offered with the first of these."""
        return self.server.tools(self.answered)

    def nothing_is_out(self) -> bool:
        """Whether no channel's folder holds anything."""
        return not any(self.installation.published(channel) for channel in CHANNELS)


def new_house(folder: Path, server: ModelServer, turns: list[Turn], runner: asyncio.Runner) -> House:
    """A house under `folder` whose model is that server, which answers by `turns`."""
    installation = new_installation(
        folder, cast(Client, None), openai_api_key=SecretStr("sk-test"), openai_base_url=server.url,
        draft_model="test-model", grade_model="test-model", max_pending=10_000,
    )  # fmt: skip
    settings, ledger = installation.settings, installation.ledger
    wired = [*bootstrap.agent_activities(settings, ledger), *bootstrap.gateway_activities(settings, ledger)]
    return House(installation, server, turns, runner, {step.__name__: step for step in wired})


@dataclass
class Course:
    """One operation on its way."""

    house: House
    operation: str
    control_version: int = 1

    def step(self, draft_version: int = 1, **changes: Any) -> StepOrder:
        """A step as the operation's own run orders it."""
        fields = {"line": LINE, "draft_version": draft_version, "control_version": self.control_version, **changes}
        return StepOrder(tenant="acme", operation=self.operation, **fields)

    def asked(self, name: str, order: Any) -> Any:
        """What a step answers the operation's own run; ApplicationError where it refuses."""
        environment = ActivityEnvironment()
        own = workflow_id("acme", self.operation)
        environment.info = replace(environment.info, workflow_id=own, workflow_run_id=LINE)
        result = environment.run(self.house.steps[name], order)
        return self.house.runner.run(_awaited(result)) if inspect.isawaitable(result) else result

    def drafts(self, *turns: Turn, version: int = 1, resumed: int = 0) -> DraftWritten:
        """The agent writes a version, or asks, while its model answers so."""
        self.house.says(*turns)
        written: DraftWritten = self.asked("draft", self.step(version, resumed=resumed))
        return written

    def wrote(self, **changes: Any) -> Course:
        """As if the agent had written this."""
        now = bootstrap.wall_clock()
        self.ledger.drafts.save("acme", self.operation, 1, draft(**changes), "test-model", self.control_version, now)
        return self

    def checked(self, version: int = 1) -> Checked:
        """What the checks say."""
        found: Checked = self.asked("validate", self.step(version))
        return found

    def graded(self, answer: Turn, version: int = 1) -> Graded:
        """What the grader's answer comes to."""
        self.house.says(answer)
        found: Graded = self.asked("grade", self.step(version))
        return found

    def proposed(self, version: int = 1) -> Proposed | None:
        """What is put before people; None where the step refuses to."""
        order = ProposeOrder(step=self.step(version), approval_version=1, now=bootstrap.wall_clock())
        try:
            proposed: Proposed = self.asked("propose", order)
        except ApplicationError:
            return None
        return proposed

    def decided(self, person: str, decision: Any, comment: str) -> Decided:
        """What becomes of a person's signed decision with these words."""
        proposal = self.house.installation.proposal(self.operation)
        words = self.ledger.documents.put("acme", comment.encode())
        body = self.house.installation.decision(proposal, person, decision, comment_hash=words)
        return self._told("decide", body)

    def _told(self, name: str, body: Mapping[str, str]) -> Decided:
        message = Message(
            id=f"{LINE}:{secrets.token_hex(4)}", name=name, transport="signal", problem="",
            body=canonical_bytes(dict(body)).decode(), received_at=bootstrap.wall_clock(),
        )  # fmt: skip
        batch = MessageBatch(tenant="acme", operation=self.operation, messages=(message,))
        decided: Decided = self.asked("decide", batch)
        return decided

    def answered(self, person: str, *words: str) -> Decided:
        """What becomes of a person's signed answers to the calls that wait, in their order."""
        asked = self.ledger.questions.current("acme", self.operation)
        waiting = zip(asked.question.calls, words, strict=True)
        answers = Answers(
            answers=tuple(Answer(call=call.id, decision="respond", message=said) for call, said in waiting)
        )
        content = self.ledger.documents.put("acme", canonical_bytes(answers.model_dump(mode="json")))
        body = self.house.installation.command(
            self.operation, person, "answer", question=asked.question.hash(), content=content
        )
        return self._told("answer", body)

    def executed(self) -> EffectResult:
        """What the gateway answers whoever asks it to act, granted or not."""
        current = self.ledger.approvals.current("acme", self.operation)
        approval = current.proposal.approval_id if current else "apr-" + "0" * 32
        order = EffectOrder(tenant="acme", operation=self.operation, approval_id=approval)
        result: EffectResult = self.asked("execute", order)
        return result

    def stays_inside(self) -> bool:
        """Whether nothing of it went out, and nothing will: even where the gateway is asked to, without a grant."""
        try:
            effect: EffectResult | None = self.executed()
        except ApplicationError:
            effect = None
        not_sent = effect is None or (effect.receipt is None and effect.status is None)
        execution = self.ledger.executions.get("acme", self.operation)
        return not_sent and execution is None and self.house.nothing_is_out()

    @property
    def ledger(self) -> Any:
        """The real one."""
        return self.house.installation.ledger

    @property
    def status(self) -> ApprovalStatus | None:
        """How its approval stands, if people are asked."""
        current = self.ledger.approvals.current("acme", self.operation)
        return current.status if current else None

    @property
    def findings(self) -> Sequence[Violation]:
        """What the checks wrote down of the first version."""
        (found,) = self.ledger.drafts.findings("acme", self.operation, 1).checks.values()
        return tuple(found)

    @property
    def grade(self) -> Grade:
        """What was written down of the grading."""
        grade = self.ledger.drafts.grade("acme", self.operation, 1)
        assert isinstance(grade, Grade)
        return grade


async def _awaited(result: Any) -> Any:
    return await result


CRITERIA = ("source-period-unit", "calculation-path", "verified-figures", "limitation", "clear-conclusion")


def grade(
    result: str = "satisfied",
    *,
    explanation: str = "Because.",
    gap: str = "",
    prose: str = "",
    criteria: Sequence[Mapping[str, Any]] | None = None,
) -> Turn:
    """A grader's structured answer, with prose beside it; with `gap`, the last criterion is not met."""
    named: list[dict[str, Any]] = [{"name": name, "passed": True} for name in CRITERIA]
    if gap:
        named[-1] |= {"passed": False, "gap": gap}
    given = named if criteria is None else [dict(each) for each in criteria]
    arguments = {"result": result, "explanation": explanation, "criteria": given}
    return Turn(text=prose, calls=(("GraderResponse", arguments),))
