"""A person took over: what the agent had in flight is discarded, and no model is asked for it any more (G29, G30)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.interfaces import StepOrder
from countersign.domain.decision import Ruling
from countersign.domain.progress import ProgressKind
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.rubric import GraderAnswer
from countersign.ports import Watching, Written
from tests.activities.desk import OPERATION, Desk, a_draft, called

pytestmark = pytest.mark.guarantee("G30")


def changed(desk: Desk, step: Any, order: StepOrder) -> None:
    """The step is refused for good, since control changed hands."""
    with pytest.raises(ApplicationError) as refused:
        called(desk.as_run(), step, order)
    assert (refused.value.type, refused.value.non_retryable) == ("CONTROL_CHANGED", True)


def take_over(desk: Desk) -> None:
    assert desk.command("lena", "take_over").ruling == Ruling.ACCEPTED


class Agent:
    """Calls its model twice and then hands in a draft; somebody can come between."""

    def __init__(self, between: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None) -> None:
        self.calls: list[str] = []
        self._between, self._after = between, after

    async def draft(self, *asked: Any, watching: Watching, **more: Any) -> Written:
        for call in ("model call 1", "query_dataset"):
            if call == "query_dataset":
                await watching.happened(ProgressKind.TOOL_CALLED, call)
            else:
                await watching.calling("a-model")
            self.calls.append(call)
            self._between()
        self._after()
        return Written(draft=a_draft("The agent's"), model="a-model")


def drafting(desk: Desk, agent: Any) -> Any:
    return desk.drafted_by(agent).draft


def test_the_agent_makes_no_further_call(desk: Desk) -> None:
    agent = Agent(between=lambda: take_over(desk))
    changed(desk, drafting(desk, agent), desk.step())
    assert agent.calls == ["model call 1"]
    assert desk.standing().draft_version == 0


def test_a_draft_that_arrives_late_is_discarded(desk: Desk) -> None:
    agent = Agent(after=lambda: take_over(desk))
    changed(desk, drafting(desk, agent), desk.step())
    assert (len(agent.calls), desk.standing().draft_version) == (2, 0)


def test_while_a_person_is_in_control_nobody_can_have_the_agent_draft(desk: Desk) -> None:
    take_over(desk)
    agent = Agent()
    changed(desk, drafting(desk, agent), desk.step(control_version=2))
    assert agent.calls == []


def test_after_a_release_the_agent_drafts_anew_under_the_version_of_that(desk: Desk) -> None:
    take_over(desk)
    desk.command("lena", "release")
    agent = Agent()
    called(desk.as_run(), drafting(desk, agent), desk.step(control_version=3))
    assert desk.ledger.drafts.get("acme", OPERATION, 1)["title"] == "The agent's"
    changed(desk, drafting(desk, Agent()), desk.step(draft_version=2, control_version=1))


def test_a_version_that_a_person_wrote_is_never_drafted_again(desk: Desk) -> None:
    desk.passed()
    take_over(desk)
    content = desk.put(a_draft("Lena's"))
    assert desk.command("lena", "amend", draft_version=1, content=content).ruling == Ruling.ACCEPTED
    assert desk.command("lena", "release", draft_version=2).ruling == Ruling.ACCEPTED
    written = called(desk.as_run(), desk.drafting.draft, desk.step(draft_version=2, control_version=3))
    assert written.model == ""
    assert desk.ledger.drafts.get("acme", OPERATION, 2)["title"] == "Lena's"


def test_checks_of_a_step_from_before_are_discarded(desk: Desk) -> None:
    desk.ledger.drafts.save("acme", OPERATION, 1, a_draft(), "a-model", 1, desk.now())
    take_over(desk)
    changed(desk, desk.validating.validate, desk.step())
    assert desk.records("draft.checked") == []
    assert called(desk.as_run(), desk.validating.validate, desk.step(control_version=2)).codes == ()


def test_the_grader_is_not_asked_for_a_step_from_before(desk: Desk) -> None:
    desk.passed()
    take_over(desk)
    changed(desk, desk.grading.grade, desk.step())


def test_a_grade_that_arrives_late_is_discarded(desk: Desk) -> None:
    class Slow:
        async def grade(self, *asked: Any) -> GraderAnswer:
            take_over(desk)
            return GraderAnswer(verdict="satisfied", criteria=(), raw="", model="a-grader")

    desk.ledger.drafts.save("acme", OPERATION, 1, a_draft(), "a-model", 1, desk.now())
    changed(desk, desk.graded_by(Slow()).grade, desk.step())
    assert desk.records("draft.graded") == []


@pytest.mark.guarantee("G29")
@pytest.mark.parametrize(
    ("control_version", "proposed_by"), [(1, "agent"), (2, "agent"), (2, "liam"), (3, "lena"), (1, "lena")]
)
def test_only_the_person_in_control_proposes(desk: Desk, control_version: int, proposed_by: str) -> None:
    desk.passed()
    take_over(desk)
    with pytest.raises(ApplicationError) as refused:
        desk.propose(step=desk.step(control_version=control_version), proposed_by=proposed_by)
    assert refused.value.type == "CONTROL_CHANGED"
    assert desk.ledger.approvals.current("acme", OPERATION) is None
    assert desk.propose(step=desk.step(control_version=2), proposed_by="lena").status == ApprovalStatus.PENDING
