"""The grading model for work without a provider: it checks by rules the criteria that it has a rule for, of any case.

It stands apart as a model inside the same RubricMiddleware. What it cannot check it does not pass: a rubric with a
criterion that it has no rule for is `failed`, and says so, since no revision of the draft could change that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, ToolCall

from countersign.agents.rule_model import Rule, RuleModel

PAYLOAD = re.compile(
    r"<rubric-(?P<nonce>[0-9a-f]+)>\n(?P<rubric>.*?)\n</rubric-(?P=nonce)>"
    r".*?<transcript-(?P=nonce)>\n(?P<transcript>.*)\n</transcript-(?P=nonce)>",
    re.DOTALL,
)
CRITERION = re.compile(r"^- ([a-z0-9][a-z0-9._-]{0,63}): ", re.MULTILINE)
PART = "\n\n[assistant] "


class OfflineGrader(RuleModel):
    """Grades what it is shown, each criterion by its rule."""

    called = "offline-grader/1"

    rules: Mapping[str, Rule]
    """By criterion id, whatever rubric it stands in: what is missing, or nothing."""

    def next_calls(self, messages: Sequence[BaseMessage]) -> list[ToolCall]:
        """The GraderResponse for the rubric and the transcript in the last message."""
        return [ToolCall(name="GraderResponse", args=_graded(str(messages[-1].content), self.rules), id="grade")]


def _graded(payload: str, rules: Mapping[str, Rule]) -> dict[str, Any]:
    parts = PAYLOAD.search(payload)
    if parts is None:
        return {"result": "failed", "explanation": "The rubric or the text was not found.", "criteria": []}
    # What was asked, then the graded text in its parts.
    asked, _, document = parts["transcript"].partition(PART)
    document, task = document.replace(PART, ""), json.loads(asked.removeprefix("[user] "))
    names = CRITERION.findall(parts["rubric"])
    unknown = [name for name in names if name not in rules]
    criteria = [_criterion(name, rules.get(name), document, task) for name in names]
    if unknown:
        explanation = f"The offline grader has no rule for {', '.join(unknown)}: grade with a model, or drop them."
        return {"result": "failed", "explanation": explanation, "criteria": criteria}
    passed = bool(criteria) and all(each["passed"] for each in criteria)
    explanation = "Checked by rules, without a language model."
    return {"result": "satisfied" if passed else "needs_revision", "explanation": explanation, "criteria": criteria}


def _criterion(name: str, rule: Rule | None, document: str, task: Mapping[str, Any]) -> dict[str, Any]:
    gap = rule(document, task) if rule else "not checked: the offline grader has no rule for this criterion"
    return {"name": name, "passed": False, "gap": gap} if gap else {"name": name, "passed": True}
