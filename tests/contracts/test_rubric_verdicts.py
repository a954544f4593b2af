"""Which verdicts come out of RubricMiddleware, and when it asks whom again.

Our adapter (`countersign/agents/grading.py`) calls its hook directly, once per version of a draft, with
`max_iterations=1`; rounds are counted by the run, and `countersign.domain.rubric.gate` judges every answer anew.
"""

from __future__ import annotations

from typing import Any

import pytest
from deepagents.middleware.rubric import GraderResponse, RubricEvaluation, RubricMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError

from tests.contracts.grading import RUBRIC, Graded
from tests.contracts.scripted import THREAD, ScriptedModel, grader_says

SATISFIED = grader_says("satisfied", True, True)
REVISE = grader_says("needs_revision", True, False)


async def test_a_wish_for_revision_brings_another_draft_until_the_grader_is_content() -> None:
    graded = await Graded([REVISE, SATISFIED]).run()

    assert (graded.results, graded.status) == (["needs_revision", "satisfied"], "satisfied")
    assert (len(graded.drafter.seen), len(graded.grader.seen)) == (2, 2)
    assert graded.messages[-1].content == "draft 2"


@pytest.mark.parametrize("rubric", [None, ""], ids=["none", "empty"])
async def test_without_a_rubric_nothing_is_graded_and_nothing_says_so(rubric: str | None) -> None:
    """No pass and no failure: our adapter always has one, since a rubric without criteria is not loaded."""
    graded = await Graded([SATISFIED]).run(rubric)

    assert (graded.grader.seen, graded.seen, graded.events, graded.status) == ([], [], [], None)
    assert graded.messages[-1].content == "draft 1"


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_max_iterations_counts_gradings_the_first_included(most: int) -> None:
    """With 1, the first wish for revision is the end already: our adapter reads it as `needs_revision` again."""
    graded = await Graded([REVISE] * 5, more={"max_iterations": most}).run()

    assert (len(graded.grader.seen), len(graded.drafter.seen)) == (most, most)
    assert graded.results == ["needs_revision"] * (most - 1) + ["max_iterations_reached"]


async def test_a_pass_at_the_last_iteration_is_a_pass() -> None:
    graded = await Graded([REVISE, SATISFIED], more={"max_iterations": 2}).run()

    assert graded.status == "satisfied"


async def test_a_rubric_that_cannot_be_graded_ends_it_as_failed() -> None:
    graded = await Graded([grader_says("failed"), SATISFIED]).run()

    assert (graded.status, len(graded.grader.seen)) == ("failed", 1)


async def test_a_grader_that_raises_is_a_grader_error_and_no_exception() -> None:
    graded = await Graded([TimeoutError("no answer"), SATISFIED]).run()

    assert (graded.status, len(graded.grader.seen)) == ("grader_error", 1)
    assert graded.seen[0]["criteria"] == []


@pytest.mark.parametrize(
    "prose",
    ["All criteria pass, well done.", '{"result": "satisfied", "explanation": "Fine.", "criteria": []}'],
    ids=["praise", "a verdict"],
)
async def test_prose_is_no_verdict_and_the_grader_is_asked_on(prose: str) -> None:
    """Within the same grading, as often as the graph allows; our adapter refuses the second call."""
    graded = await Graded([AIMessage(prose), AIMessage(prose), REVISE], more={"max_iterations": 1}).run()

    assert (graded.status, len(graded.grader.seen)) == ("max_iterations_reached", 3)


async def test_two_structured_answers_at_once_are_no_verdict_either() -> None:
    both = AIMessage("", tool_calls=[*SATISFIED.tool_calls, {**REVISE.tool_calls[0], "id": "grade-2"}])
    graded = await Graded([both, REVISE], more={"max_iterations": 1}).run()

    assert (graded.status, len(graded.grader.seen)) == ("max_iterations_reached", 2)


async def test_a_grader_error_says_which_exception_it_was() -> None:
    """With the exception's own text, which may quote the prompt: our adapter replaces it."""
    graded = await Graded([TimeoutError("no answer")]).run()

    assert graded.seen[0]["explanation"].startswith("Grader raised TimeoutError (configured_model=")
    assert graded.seen[0]["explanation"].endswith(": no answer")


@pytest.mark.parametrize("end", [grader_says("failed"), TimeoutError("no answer"), REVISE])
async def test_after_a_bad_end_the_last_draft_stands_as_if_it_were_good(end: Any) -> None:
    """The reason for a gate of our own: whoever reads the last message alone would publish it."""
    graded = await Graded([end], more={"max_iterations": 1}).run()

    assert graded.status != "satisfied"
    assert graded.messages[-1].content == "draft 1"


async def test_the_verdict_is_private_state_and_no_part_of_the_result() -> None:
    graded = Graded([SATISFIED])
    result = await graded.agent.ainvoke({"messages": [("user", "Write.")], "rubric": RUBRIC}, THREAD)

    assert set(result) == {"messages", "rubric"}
    assert {"_rubric_status", "_rubric_iterations", "_rubric_evaluations"} <= set(graded.state)


async def test_nobody_can_hand_a_verdict_in_with_the_request() -> None:
    graded = await Graded([REVISE], more={"max_iterations": 1}).run(_rubric_status="satisfied")

    assert graded.status == "max_iterations_reached"


async def test_the_graders_feedback_enters_the_conversation_as_a_marked_message_of_the_user() -> None:
    """So a grader's text reaches a drafter as if a person spoke. Ours are drafted anew, with feedback as JSON data."""
    graded = await Graded([REVISE, SATISFIED]).run()
    feedback = graded.messages[2]

    assert isinstance(feedback, HumanMessage)
    assert (feedback.name, feedback.additional_kwargs) == ("rubric_grader", {"lc_source": "rubric_grader"})
    assert "- criterion-2: gap of 2" in str(feedback.content)


async def test_an_exception_of_the_callback_changes_nothing() -> None:
    def broken(evaluation: RubricEvaluation) -> None:
        raise RuntimeError("the metrics are gone")

    graded = await Graded([REVISE, SATISFIED], more={"on_evaluation": broken}).run()

    assert graded.status == "satisfied"


async def test_an_interrupt_of_the_callback_goes_through() -> None:
    def pausing(evaluation: RubricEvaluation) -> None:
        raise GraphBubbleUp

    graded = Graded([SATISFIED], more={"on_evaluation": pausing})
    with pytest.raises(GraphBubbleUp):
        await graded.run()

    assert graded.status is None


@pytest.mark.parametrize(
    ("result", "passed"),
    [("satisfied", (True, False)), ("satisfied", (False,)), ("needs_revision", (True, True))],
)
def test_an_answer_that_contradicts_itself_is_refused(result: str, passed: tuple[bool, ...]) -> None:
    answer = grader_says(result, *passed)
    with pytest.raises(ValidationError, match="but"):
        GraderResponse.model_validate(answer.tool_calls[0]["args"])


async def test_in_a_grading_a_contradiction_is_told_to_the_grader_which_may_answer_again() -> None:
    """A model call that no budget of ours would know: our adapter refuses the second one."""
    graded = await Graded([grader_says("satisfied", True, False), SATISFIED]).run()

    assert (graded.status, len(graded.grader.seen)) == ("satisfied", 2)


@pytest.mark.parametrize(
    "criteria",
    [
        [{"name": "first", "passed": False}],
        [{"name": "first", "passed": "perhaps", "gap": ""}],
        [{"passed": True}],
        [{"name": "first"}],
        "all pass",
    ],
    ids=["fails without a gap", "perhaps", "no name", "no verdict", "prose"],
)
def test_a_criterion_needs_a_name_a_verdict_and_where_it_fails_a_gap(criteria: Any) -> None:
    with pytest.raises(ValidationError):
        GraderResponse.model_validate({"result": "failed", "explanation": "Because.", "criteria": criteria})


@pytest.mark.parametrize("result", ["Satisfied", "approved", "max_iterations_reached", "grader_error", "", None])
def test_a_grader_has_three_verdicts_and_no_others(result: Any) -> None:
    with pytest.raises(ValidationError):
        GraderResponse.model_validate({"result": result, "explanation": "Because.", "criteria": []})


def test_a_pass_without_a_single_criterion_has_a_valid_form() -> None:
    """Which is why the gate of ours compares the criteria with the rubric's own."""
    answer = {"result": "satisfied", "explanation": "Fine.", "criteria": []}

    assert GraderResponse.model_validate(answer).result == "satisfied"


async def test_a_pass_without_criteria_is_asked_for_once_more_and_then_no_pass() -> None:
    """The second call of one grading; our adapter refuses it, and its own gate says the same of the first."""
    empty = grader_says("satisfied")
    graded = await Graded([empty, empty], more={"max_iterations": 1}).run()

    assert (graded.status, len(graded.grader.seen)) == ("max_iterations_reached", 2)
    assert graded.seen[0]["unverified"]


async def test_the_first_grading_may_leave_criteria_out_unnoticed() -> None:
    """The rubric is prose to the middleware; two criteria are there and one was graded. The gate of ours counts."""
    graded = await Graded([grader_says("satisfied", True)]).run()

    assert graded.status == "satisfied"


async def test_a_later_grading_may_not_have_fewer_criteria_than_the_first() -> None:
    graded = await Graded([REVISE, grader_says("satisfied", True), grader_says("satisfied", True), SATISFIED]).run()

    assert graded.results == ["needs_revision", "needs_revision", "satisfied"]
    assert [evaluation["unverified"] for evaluation in graded.seen] == [False, True, False]


async def test_the_same_rubric_after_an_end_is_graded_anew_with_a_new_budget() -> None:
    graded = await Graded([REVISE, REVISE], more={"max_iterations": 1}).run()
    await graded.run()

    assert [evaluation["iteration"] for evaluation in graded.seen] == [0, 0]
    assert len({evaluation["grading_run_id"] for evaluation in graded.seen}) == 2


@pytest.mark.parametrize(("most", "error"), [(0, ValueError), (-1, ValueError), (True, TypeError), ("3", TypeError)])
def test_an_illegal_max_iterations_is_refused(most: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_iterations"):
        RubricMiddleware(model=ScriptedModel(turns=[]), max_iterations=most)


def test_max_iterations_has_no_upper_limit_any_more() -> None:
    """Releases before 0.7 refused more than 20; ours is 1, and the run counts rounds itself."""
    assert RubricMiddleware(model=ScriptedModel(turns=[]), max_iterations=21).max_iterations == 21
