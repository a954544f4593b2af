"""The rubric's gate: nothing but a complete pass opens it, whatever a grader answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from countersign.domain.rubric import CriterionResult, GraderAnswer, Rubric, Verdict, gate

RUBRIC = Rubric.model_validate(
    {
        "rubric": "report-rubric",
        "version": 1,
        "criteria": [
            {"id": "answers", "text": "It answers the question."},
            {"id": "plain", "text": "It uses plain words."},
        ],
    }
)
SATISFIED, REVISE, FAILED, ERROR = (
    Verdict.SATISFIED,
    Verdict.NEEDS_REVISION,
    Verdict.FAILED,
    Verdict.GRADER_ERROR,
)


def an_answer(verdict: str, *results: tuple[str, bool, str], explanation: str = "") -> GraderAnswer:
    criteria = tuple(CriterionResult(id=name, passed=passed, gap=gap) for name, passed, gap in results)
    return GraderAnswer(verdict=verdict, criteria=criteria, explanation=explanation, raw="{}", model="grader")


ANSWERS, PLAIN = ("answers", True, ""), ("plain", True, "")
NO_PLAIN = ("plain", False, "jargon in line 3")

TABLE: list[tuple[GraderAnswer, Verdict, tuple[str, ...]]] = [
    (an_answer("satisfied", ANSWERS, PLAIN), SATISFIED, ()),
    (an_answer("satisfied", PLAIN, ANSWERS), SATISFIED, ()),
    (an_answer("satisfied"), REVISE, ("criterion answers was not graded", "criterion plain was not graded")),
    (an_answer("satisfied", ANSWERS), REVISE, ("criterion plain was not graded",)),
    (an_answer("satisfied", ANSWERS, NO_PLAIN), REVISE, ("plain: jargon in line 3",)),
    (an_answer("satisfied", ANSWERS, ("plain", False, "")), REVISE, ("plain: not met",)),
    (an_answer("satisfied", ANSWERS, PLAIN, PLAIN), REVISE, ("criterion plain was graded 2 times",)),
    (
        an_answer("satisfied", ANSWERS, PLAIN, NO_PLAIN),
        REVISE,
        ("criterion plain was graded 2 times", "plain: jargon in line 3"),
    ),
    (
        an_answer("satisfied", ANSWERS, PLAIN, ("charm", True, "")),
        REVISE,
        ("criterion 'charm' is not in the rubric",),
    ),
    (
        an_answer("satisfied", ANSWERS, ("Plain", True, "")),
        REVISE,
        ("criterion plain was not graded", "criterion 'Plain' is not in the rubric"),
    ),
    (an_answer("needs_revision", ANSWERS, NO_PLAIN), REVISE, ("plain: jargon in line 3",)),
    (an_answer("needs_revision", ANSWERS, PLAIN, explanation="too long"), REVISE, ("too long",)),
    (
        an_answer("needs_revision", ANSWERS, PLAIN),
        REVISE,
        ("the grader asks for a revision and names no gap",),
    ),
    (an_answer("failed", ANSWERS, PLAIN), FAILED, ("failed",)),
    (an_answer("failed", ANSWERS, PLAIN, explanation="off topic"), FAILED, ("off topic",)),
    (an_answer("failed", ANSWERS, NO_PLAIN), FAILED, ("plain: jargon in line 3",)),
    *(
        (
            an_answer(word, ANSWERS, PLAIN),
            ERROR,
            (f"the grader's verdict {word!r} is none of satisfied, needs_revision, failed",),
        )
        for word in ("", "Satisfied", "satisfied ", "ok", "grader_error", "max_iterations_reached", "true")
    ),
]


@pytest.mark.guarantee("G40")
@pytest.mark.parametrize(("answer", "verdict", "feedback"), TABLE)
def test_what_the_gate_makes_of_an_answer(answer: GraderAnswer, verdict: Verdict, feedback: tuple[str, ...]) -> None:
    grade = gate(RUBRIC, answer)

    assert (grade.verdict, grade.feedback) == (verdict, feedback)
    assert grade.answer == answer


RESULTS = st.tuples(st.sampled_from(["answers", "plain", "charm", "", "ANSWERS"]), st.booleans(), st.text(max_size=5))
VERDICTS = st.sampled_from([*Verdict, "Satisfied", ""]) | st.text(max_size=12)


@pytest.mark.guarantee("G40")
@given(VERDICTS, st.lists(RESULTS, max_size=4))
def test_only_a_complete_pass_opens_the_gate(verdict: str, results: list[tuple[str, bool, str]]) -> None:
    grade = gate(RUBRIC, an_answer(verdict, *results))
    complete = sorted((name, passed) for name, passed, _ in results) == [("answers", True), ("plain", True)]

    assert (grade.verdict == SATISFIED) == (verdict == "satisfied" and complete)
    assert bool(grade.feedback) == (grade.verdict != SATISFIED)


@pytest.mark.guarantee("G40")
@pytest.mark.parametrize("passed", ["true", 1, None, "yes"])
def test_a_pass_that_is_no_boolean_is_no_answer(passed: Any) -> None:
    with pytest.raises(ValidationError):
        CriterionResult(id="plain", passed=passed)


@pytest.mark.guarantee("G40")
@pytest.mark.parametrize(
    "criteria",
    [
        [],
        [{"id": "plain", "text": "It uses plain words."}, {"id": "plain", "text": "It has no jargon."}],
        [{"id": "plain", "text": "short"}],
        [{"id": "", "text": "It uses plain words."}],
        [{"id": "plain"}],
        [{"id": f"c{number}", "text": "It uses plain words."} for number in range(31)],
    ],
)
def test_a_rubric_that_a_grader_could_pass_too_easily_is_refused(criteria: Any) -> None:
    with pytest.raises(ValidationError):
        Rubric.model_validate({"rubric": "r", "version": 1, "criteria": criteria})


@pytest.mark.parametrize("change", [{"rubric": "other"}, {"version": 2}, {"criteria": RUBRIC.criteria[:1]}])
def test_any_change_of_a_rubric_changes_its_label(change: dict[str, Any]) -> None:
    assert RUBRIC.label().startswith("report-rubric/1@sha256:")
    assert Rubric.model_validate({**RUBRIC.model_dump(), **change}).label() != RUBRIC.label()
