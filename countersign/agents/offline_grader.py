"""The grading model for work without a provider: it checks by rules the criteria that it has a rule for.

It stands apart as a model inside the same RubricMiddleware. What it cannot check it does not pass: a rubric with a
criterion that it has no rule for is `failed`, and says so, since no revision of the draft could change that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, ToolCall

from countersign.agents.rule_model import RuleModel
from countersign.domain.figures import find_numbers

PAYLOAD = re.compile(
    r"<rubric-(?P<nonce>[0-9a-f]+)>\n(?P<rubric>.*?)\n</rubric-(?P=nonce)>"
    r".*?<transcript-(?P=nonce)>\n(?P<transcript>.*)\n</transcript-(?P=nonce)>",
    re.DOTALL,
)
CRITERION = re.compile(r"^- ([a-z0-9][a-z0-9._-]{0,63}): ", re.MULTILINE)
PART = "\n\n[assistant] "
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
NAMES = {
    "Source": "source", "Period": "period", "Unit": "unit", "Limitations": "limitations", "Figures": "figures",
    "来源": "source", "期间": "period", "单位": "unit", "局限": "limitations", "数字": "figures",
}  # fmt: skip
"""The sections that a rendered report has after its text, by their headings."""
LIST_MARK = re.compile(r"^\s*[0-9]{1,2}[.)、]\s", re.MULTILINE)
CELLS = re.compile(r"(?<!\\)\|")
MAX_OPENING = 900
MAX_TEXT = 8_000


@dataclass(frozen=True)
class Report:
    """A rendered report taken apart."""

    opening: str
    """The first paragraph after the title; empty where a heading stands there."""
    text: str
    """Everything before the sections that Countersign itself writes."""
    sections: Mapping[str, str]
    figures: Sequence[Sequence[str]]
    """Rows of the table of figures: id, shown, exact value, unit, query."""
    request: Mapping[str, Any]


class OfflineGrader(RuleModel):
    """Grades a rendered report by its sections, its table of figures and its length."""

    def next_calls(self, messages: Sequence[BaseMessage]) -> list[ToolCall]:
        """The GraderResponse for the rubric and the report in the last message."""
        return [ToolCall(name="GraderResponse", args=_graded(str(messages[-1].content)), id="grade")]


def _graded(payload: str) -> dict[str, Any]:
    parts = PAYLOAD.search(payload)
    if parts is None:
        return {"result": "failed", "explanation": "The rubric or the report was not found.", "criteria": []}
    report = read_report(parts["transcript"])
    names = CRITERION.findall(parts["rubric"])
    unknown = [name for name in names if name not in RULES]
    criteria = [_criterion(name, report) for name in names]
    if unknown:
        explanation = f"The offline grader has no rule for {', '.join(unknown)}: grade with a model, or drop them."
        return {"result": "failed", "explanation": explanation, "criteria": criteria}
    passed = bool(criteria) and all(each["passed"] for each in criteria)
    explanation = "Checked by rules, without a language model."
    return {"result": "satisfied" if passed else "needs_revision", "explanation": explanation, "criteria": criteria}


def _criterion(name: str, report: Report) -> dict[str, Any]:
    rule = RULES.get(name)
    gap = rule(report) if rule else "not checked: the offline grader has no rule for this criterion"
    return {"name": name, "passed": False, "gap": gap} if gap else {"name": name, "passed": True}


def read_report(transcript: str) -> Report:
    """Take the transcript apart: the request, then the rendered report in its parts."""
    asked, _, document = transcript.partition(PART)
    document = document.replace(PART, "")
    pieces = SECTION.split(document)
    at = next((index for index in range(1, len(pieces), 2) if pieces[index] in NAMES), len(pieces))
    sections = {NAMES[pieces[i]]: pieces[i + 1].strip() for i in range(at, len(pieces) - 1, 2) if pieces[i] in NAMES}
    _, _, opening = pieces[0].strip().partition("\n\n")
    rows = [line for line in sections.get("figures", "").splitlines() if line.startswith("|")][2:]
    return Report(
        opening=opening.strip().partition("\n\n")[0],
        text="\n".join(pieces[:at]),
        sections=sections,
        figures=[[cell.strip() for cell in CELLS.split(row)[1:-1]] for row in rows],
        request=json.loads(asked.removeprefix("[user] ")),
    )


def _states_source_period_unit(report: Report) -> str:
    missing = [name for name in ("source", "period", "unit") if not report.sections.get(name)]
    if missing:
        return f"nothing is said under: {', '.join(missing)}"
    named = report.request["dataset"] in report.sections["source"]
    return "" if named else "the source does not name the dataset's file"


def _has_calculation_paths(report: Report) -> str:
    if not report.figures:
        return "there is no table of figures with their queries"
    bare = [row[0] for row in report.figures if len(row) != 5 or not re.search(r"(?i)\b(select|with)\b", row[4])]
    return f"no query stands beside: {', '.join(bare)}" if bare else ""


def _shows_verified_figures(report: Report) -> str:
    known = " ".join(cell for row in report.figures for cell in row[1:3])
    known += f" {report.request['request']['title']} {report.request['request']['period']}"
    text = LIST_MARK.sub("", report.text)
    strange = [found.text for found in find_numbers(text) if found.text not in known]
    return f"not in the table of figures: {', '.join(strange[:5])}" if strange else ""


def _states_limitation(report: Report) -> str:
    stated = [line for line in report.sections.get("limitations", "").splitlines() if len(line.strip("- ")) >= 6]
    return "" if stated else "no limitation or risk is stated"


def _concludes_clearly(report: Report) -> str:
    if not report.opening or report.opening.startswith("#"):
        return "the text does not open with its conclusion"
    if len(report.opening) > MAX_OPENING:
        return f"the opening paragraph is longer than {MAX_OPENING} characters"
    return f"the text is longer than {MAX_TEXT} characters" if len(report.text) > MAX_TEXT else ""


RULES: Mapping[str, Callable[[Report], str]] = {
    "source-period-unit": _states_source_period_unit,
    "calculation-path": _has_calculation_paths,
    "verified-figures": _shows_verified_figures,
    "limitation": _states_limitation,
    "clear-conclusion": _concludes_clearly,
}
"""By criterion id: what is missing, or nothing."""
