"""Runs whose agent asks people while it drafts: a stand-in for agent and grader, and what people answer.

Apart from the real agent, since here only the run's part is tried: like a real one it goes on from where its thread
stopped, wherever that is, and counts the calls that a model would get.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from pydantic import JsonValue

from countersign import bootstrap
from countersign.domain.draft import DraftObject
from countersign.domain.model_call import CallEnd
from countersign.domain.question import AnsweredCall, Asked, PendingCall
from countersign.domain.rubric import CriterionResult, GraderAnswer, Rubric
from countersign.domain.run import QuestionView
from countersign.domain.state import State
from countersign.ports import ReportMaterial, Waiting, Watching, Written
from tests.course.stage import a_draft
from tests.support.installation import Installation
from tests.support.waiting import until_state
from tests.workflow.acting import Run, stored

MODEL = "stand-in"
PERIOD = PendingCall(
    id="call-1", tool="ask_user", args={"question": "Which period?"}, description="The agent asks.",
    decisions=("respond",),
)  # fmt: skip
READ = PendingCall(
    id="call-2", tool="query_dataset", args={"sql": "SELECT sum(amount) FROM data"},
    description="A guarded column is to be read.", decisions=("approve", "edit", "reject"),
)  # fmt: skip
AGAIN = PERIOD.model_copy(update={"id": "call-3", "args": {"question": "And which region?"}})
END = CallEnd(answered=MODEL, input_tokens=10, output_tokens=5, milliseconds=20)


@dataclass
class Agent:
    """Asks what it is to ask, one question after the other, a model call before each, and then hands in a draft."""

    asks: Sequence[tuple[PendingCall, ...]] = ((PERIOD,),)
    threads: dict[str, int] = field(default_factory=dict)
    """How many model calls each thread has behind it; kept elsewhere than in a worker, as checkpoints are."""
    begun: list[tuple[str, int]] = field(default_factory=list)
    """Thread and attempt of each time it was asked to draft."""
    given: list[Mapping[str, AnsweredCall]] = field(default_factory=list)
    """The answers that it had then."""

    @property
    def calls(self) -> int:
        """Model calls in all."""
        return sum(self.threads.values())

    async def draft(
        self, thread: str, attempt: int, material: ReportMaterial, earlier: DraftObject | None,
        feedback: Sequence[str], answers: Mapping[str, AnsweredCall], may_ask: bool, watching: Watching,
    ) -> Written | Waiting:  # fmt: skip
        """As ports.Drafter."""
        self.begun.append((thread, attempt))
        self.given.append(answers)
        made = self.threads.get(thread, 0)
        while True:
            waits = self.asks[made - 1] if 1 <= made <= len(self.asks) else ()
            if may_ask and any(call.id not in answers for call in waits):
                return Waiting(waits, MODEL)
            if made > len(self.asks):
                return Written(draft=a_draft("Sales"), model=MODEL)
            await watching.called(await watching.calling(MODEL), END)
            made += 1
            self.threads[thread] = made


@dataclass
class Grader:
    """Is content, after one model call."""

    calls: int = 0

    async def grade(
        self, document: str, rubric: Rubric, task: Mapping[str, JsonValue], watching: Watching
    ) -> GraderAnswer:
        """As ports.Grader."""
        number = await watching.calling(MODEL)
        self.calls += 1
        await watching.called(number, END)
        criteria = tuple(CriterionResult(id=criterion.id, passed=True) for criterion in rubric.criteria)
        return GraderAnswer(verdict="satisfied", criteria=criteria, raw="", model=MODEL)


@dataclass
class Models:
    """Whatever a model would be asked, by stand-ins."""

    agent: Agent = field(default_factory=Agent)
    grader: Grader = field(default_factory=Grader)


@contextmanager
def stand_ins() -> Iterator[Models]:
    """Stand-ins for every model of the workers that are started in this process meanwhile."""
    models = Models()
    with patch.multiple(bootstrap, _drafters=lambda *_: {"report": models.agent}, _grader=lambda *_: models.grader):
        yield models


async def waiting_for_answer(installation: Installation, operation: str = "op-1") -> Run:
    """A run whose agent waits for people; its report needs no approval."""
    run = await installation.start(operation, channel="internal")
    await until_state(run, State.WAITING_ANSWER)
    return run


async def until_asked(run: Run, number: int) -> QuestionView:
    """What the run says of its agent's question of that number, once the agent waits for it."""
    async with asyncio.timeout(30):
        while True:
            view: QuestionView | None = await run.query("question", result_type=QuestionView)
            if view is not None and view.number == number:
                await until_state(run, State.WAITING_ANSWER)
                return view
            await asyncio.sleep(0.05)


def newest(installation: Installation, operation: str = "op-1") -> Asked:
    """The question that was asked last."""
    asked = installation.ledger.questions.current("acme", operation)
    assert asked is not None
    return asked


def respond(call: str = PERIOD.id, message: str = "The first quarter.") -> dict[str, Any]:
    """What is said to a call that only asks."""
    return {"call": call, "decision": "respond", "message": message}


def answer(
    installation: Installation, person: str, *answers: dict[str, Any], operation: str = "op-1", **changes: Any
) -> dict[str, str]:
    """A signed message that answers the newest question, or what `changes` name instead."""
    asked = newest(installation, operation).question.hash()
    content = stored(installation, {"answers": list(answers or (respond(),))})
    return installation.command(operation, person, "answer", **{"question": asked, "content": content, **changes})


def counted(installation: Installation, operation: str = "op-1") -> Counter[str]:
    """How many model calls are on record, by what they were for."""
    return Counter(call.role for call in installation.ledger.model_calls.of_operation("acme", operation))
