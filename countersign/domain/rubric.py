"""The rubric, what a grader answers to it, and the gate that lets nothing through but a complete pass."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from countersign.domain.canonical import digest
from countersign.domain.identity import Name
from countersign.domain.values import Value


class Criterion(Value):
    """One thing a good draft must have."""

    id: Name
    text: Annotated[str, Field(min_length=10, max_length=1_000)]


class Rubric(Value):
    """A named, versioned list of criteria with unique ids."""

    rubric: Name
    version: Annotated[int, Field(ge=1)]
    criteria: Annotated[tuple[Criterion, ...], Field(strict=False, min_length=1, max_length=30)]

    @model_validator(mode="after")
    def _one_criterion_per_id(self) -> Rubric:
        if len({criterion.id for criterion in self.criteria}) < len(self.criteria):
            raise ValueError("each criterion needs an id of its own; one stands twice under 'criteria'")
        return self

    def label(self) -> str:
        """Name, version and hash, as kept with every grade."""
        return f"{self.rubric}/{self.version}@{digest(self.model_dump(mode='json'))}"


class Verdict(StrEnum):
    """The result of grading; only `satisfied` leads on."""

    SATISFIED = "satisfied"
    NEEDS_REVISION = "needs_revision"
    FAILED = "failed"
    MAX_ITERATIONS_REACHED = "max_iterations_reached"
    GRADER_ERROR = "grader_error"


class CriterionResult(Value):
    """What the grader says of one criterion."""

    id: str
    passed: bool
    gap: str = ""
    """What is missing, where it did not pass."""


class GraderAnswer(Value):
    """A grader's answer before the gate has looked at it."""

    verdict: str
    criteria: Annotated[tuple[CriterionResult, ...], Field(strict=False)]
    explanation: str = ""
    raw: str
    """The answer as it came, kept for the record whatever it was."""
    model: str
    """The grader that answered."""


class Grade(Value):
    """What the gate makes of a grader's answer."""

    verdict: Verdict
    feedback: Annotated[tuple[str, ...], Field(strict=False)]
    """Why it is not satisfied, one line each; empty when it is."""
    answer: GraderAnswer


def gate(rubric: Rubric, answer: GraderAnswer) -> Grade:
    """Pass only if the verdict is `satisfied` and every configured criterion is there exactly once and passed.

    `failed` is kept as it is, an honest `needs_revision` too; anything odd is `needs_revision` with the oddity as
    feedback, and an unknown verdict word is `grader_error` (G40: no form of answer opens the gate by accident).
    """
    feedback = _oddities(rubric, answer) + _gaps(answer)
    if answer.verdict not in (Verdict.SATISFIED, Verdict.NEEDS_REVISION, Verdict.FAILED):
        unknown = f"the grader's verdict {answer.verdict[:60]!r} is none of satisfied, needs_revision, failed"
        return Grade(verdict=Verdict.GRADER_ERROR, feedback=(unknown, *feedback), answer=answer)
    if answer.verdict == Verdict.FAILED:
        return Grade(verdict=Verdict.FAILED, feedback=feedback or (answer.explanation or "failed",), answer=answer)
    if answer.verdict == Verdict.SATISFIED and not feedback:
        return Grade(verdict=Verdict.SATISFIED, feedback=(), answer=answer)
    fallback = (answer.explanation or "the grader asks for a revision and names no gap",)
    return Grade(verdict=Verdict.NEEDS_REVISION, feedback=feedback or fallback, answer=answer)


def _oddities(rubric: Rubric, answer: GraderAnswer) -> tuple[str, ...]:
    wanted = [criterion.id for criterion in rubric.criteria]
    seen = Counter(result.id for result in answer.criteria)
    missing = [f"criterion {name} was not graded" for name in wanted if seen[name] == 0]
    repeated = [f"criterion {name} was graded {count} times" for name, count in seen.items() if count > 1]
    unknown = [f"criterion {name[:60]!r} is not in the rubric" for name in seen if name not in wanted]
    return tuple(missing + repeated + unknown)


def _gaps(answer: GraderAnswer) -> tuple[str, ...]:
    return tuple(f"{result.id}: {result.gap or 'not met'}" for result in answer.criteria if not result.passed)
