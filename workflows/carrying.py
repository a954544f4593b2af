"""What a run hands on to the next one when its history has grown long: all that it knows and the ledger does not say,
so that no message, vote, tier or deadline is lost and none comes twice."""

from __future__ import annotations

import operator
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import (
        Escalated,
        HandOnOrder,
        Message,
        Opening,
        Proposed,
        QuestionAsked,
        RunOrder,
        RunPlan,
        Told,
    )
    from countersign.domain.command import Ending
    from countersign.domain.control import Control
    from countersign.domain.run import Step
    from countersign.domain.state import State
    from countersign.domain.values import Instant, Sha256, Value

from workflows import options
from workflows.cancelling import to_its_end

MAX_TIMELINE = 200
"""States that are carried on for the query `timeline`; the audit has them all."""


class Ready(Value):
    """What may be proposed: a version that passed, and arguments where a person gave other ones."""

    draft_version: int = 0
    content: Sha256 | Literal[""] = ""


class Course(Value):
    """What a run has behind it; the one value here that changes.

    What came later than the first runs is not written down where it says nothing, so that those replay to the same.
    """

    model_config = ConfigDict(frozen=False)

    draft_version: int = 0
    """The latest."""
    rounds: int = 0
    """How many of them the agent wrote since it has been in control."""
    unfinished: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Whether the latest version is still being written: the agent waits for people, or has used up its budget."""
    pauses: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """How often the latest version was gone on with after such a pause."""
    answering: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Whether what comes of the agent's last question is still to be entered."""
    raised: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Whether people gave the run more to spend, and it has not gone on by that yet."""
    ready: Ready | None = None
    facts: Sha256 | Literal[""] = ""
    """What was gathered outside, as it was when the latest version was checked."""
    unsteady: int = 0
    """How often they had changed when something was ready to be proposed."""
    resumed: str = ""
    """The approval under which an earlier run of the operation has sent something, or may have."""
    asks: int = 0
    """How often people, or the policy, were asked."""
    asking: bool = False
    """Whether what comes of the last ask is still to be entered."""
    asked_anew_for: str = ""
    """Why the next ask follows one before, as a reason code: it was edited, or its grant became void."""
    voided: int = 0
    """How many grants were void when they were to be executed."""
    failures: int = 0
    """How often nothing could be sent under the present grant."""
    wakes_at: Instant | None = None
    """When it is tried again, or people are called since the outcome is still unknown."""
    escalated: Escalated | None = None
    """Before whom the run was brought."""
    cause: str = ""
    """Why, as a reason code."""


class Carried(Value):
    """A run in the middle."""

    line: str
    """The id of the run that began; steps and votes are kept under it (activities/runs.py)."""
    plan: RunPlan
    state: State
    reason: str
    timeline: Annotated[tuple[Step, ...], Field(strict=False)]
    course: Course
    received: int
    """Messages that came so far."""
    refused: int
    waiting: Annotated[tuple[Message, ...], Field(strict=False)]
    """Messages that have no ruling yet."""
    proposed: Proposed | None
    ticked: int
    asked: Annotated[QuestionAsked | None, Field(exclude_if=operator.not_)] = None
    """The agent's last question as it stands."""
    asked_ticked: Annotated[int, Field(exclude_if=operator.not_)] = 0
    control: Control
    acted_on: int
    ending: Ending | None
    orders: Annotated[tuple[Told, ...], Field(strict=False)]


class RunInput(RunOrder):
    """What a run is started with: by whoever starts it, the order alone."""

    carried: Carried | None = None

    @property
    def order(self) -> RunOrder:
        """The order alone."""
        return RunOrder(tenant=self.tenant, operation=self.operation, case=self.case, request_hash=self.request_hash)


async def hand_on(run: RunOrder, line: str) -> None:
    """Write down that the run goes on in a next one."""
    step = workflow.execute_local_activity_method(Opening.hand_on, _succession(run, line), **options.LEDGER_STEP)
    await to_its_end(step)


async def take_on(run: RunOrder, line: str) -> None:
    """Make this run the one that carries the line on; fails where nobody handed it on."""
    step = workflow.execute_local_activity_method(Opening.take_on, _succession(run, line), **options.LEDGER_STEP)
    await to_its_end(step)


def _succession(run: RunOrder, line: str) -> HandOnOrder:
    return HandOnOrder(tenant=run.tenant, operation=run.operation, line=line, now=workflow.now())
