"""The offline grader's rules for reports: what each criterion of the report's rubric looks for in the rendered text.

Apart from the grader, which knows criteria by their ids alone; other cases bring rules of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from countersign.agents.rule_model import Rule
from countersign.domain.figures.finding import find_numbers

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
    task: Mapping[str, Any]
    """What the grader was told of the request."""


def read_report(document: str, task: Mapping[str, Any]) -> Report:
    """Take a rendered report apart."""
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
        task=task,
    )


def _states_source_period_unit(report: Report) -> str:
    missing = [name for name in ("source", "period", "unit") if not report.sections.get(name)]
    if missing:
        return f"nothing is said under: {', '.join(missing)}"
    named = report.task["dataset"] in report.sections["source"]
    return "" if named else "the source does not name the dataset's file"


def _has_calculation_paths(report: Report) -> str:
    if not report.figures:
        return "there is no table of figures with their queries"
    bare = [row[0] for row in report.figures if len(row) != 5 or not re.search(r"(?i)\b(select|with)\b", row[4])]
    return f"no query stands beside: {', '.join(bare)}" if bare else ""


def _shows_verified_figures(report: Report) -> str:
    known = " ".join(cell for row in report.figures for cell in row[1:3])
    known += f" {report.task['request']['title']} {report.task['request']['period']}"
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


def _rule(of_report: Callable[[Report], str]) -> Rule:
    return lambda document, task: of_report(read_report(document, task))


REPORT_RULES: Mapping[str, Rule] = {
    "source-period-unit": _rule(_states_source_period_unit),
    "calculation-path": _rule(_has_calculation_paths),
    "verified-figures": _rule(_shows_verified_figures),
    "limitation": _rule(_states_limitation),
    "clear-conclusion": _rule(_concludes_clearly),
}
