"""The chat model for reports without a provider: it drafts by rules, through the same agent and the same tool calls.

It stands apart as a model, not as a second drafter, so that checkpoints, tools, limits and checks are the same ones in
offline use. It looks only at the conversation: describe the dataset, query every figure at once, deliver the draft.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from countersign.agents.offline_report import Description, Figure, Statement, limitations, plan
from countersign.agents.offline_wording import WORDING, Language
from countersign.agents.rule_model import RuleModel
from countersign.domain.figures.shown import agrees, read_shown, show
from countersign.domain.report import CLAIM_REFERENCE
from countersign.domain.visible import is_hidden

OPENING = ("rows", "period", "top_amount")
"""What the report opens with, where it can be said: its conclusion."""
COMPLAINT = re.compile(
    r"^claims\.(?P<claim>[a-z][a-z0-9_]*)|^body:(?P<line>[0-9]+):|\{\{(?P<reference>[a-z][a-z0-9_]*)\}\}"
)
MARKUP = re.compile(r"[<>\[\]{}&\\`]|://|www\.")


class OfflineDrafter(RuleModel):
    """Drafts a plain, correct report about any dataset."""

    called = "offline-drafter/1"

    def next_calls(self, messages: Sequence[BaseMessage]) -> list[ToolCall]:
        """Describe, then query every figure at once, then deliver."""
        return _next_calls(messages)


def _next_calls(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    assignment = json.loads(next(str(message.content) for message in messages if isinstance(message, HumanMessage)))
    language: Language = assignment["request"]["language"]
    answers = {message.tool_call_id: str(message.content) for message in messages if isinstance(message, ToolMessage)}
    if "describe" not in answers:
        return [ToolCall(name="describe_dataset", args={}, id="describe")]
    description = Description.model_validate_json(answers["describe"])
    statements = plan(description, language)
    figures = list(dict.fromkeys(figure for statement in statements for figure in statement.figures))
    open_queries = [figure for figure in figures if figure.id not in answers]
    if open_queries:
        return [ToolCall(name="query_dataset", args={"sql": each.query}, id=each.id) for each in open_queries]
    claims = {figure.id: claim for figure in figures if (claim := _claim(figure, answers[figure.id], language))}
    kept = _kept(statements, claims, _complaints(assignment))
    attempt = sum(isinstance(message, AIMessage) for message in messages)
    draft = _draft(assignment, language, description, kept, claims)
    return [ToolCall(name="Draft", args=draft, id=f"draft-{attempt}")]


def _claim(figure: Figure, answer: str, language: Language) -> dict[str, str] | None:
    """The claim that the answer supports, or nothing: a refused query or a blank result is never guessed."""
    value = _single_value(answer)
    if value is None or not 0 < len(value) <= 120 or any(map(is_hidden, value)):
        return None
    if figure.kind != "number":
        return {"id": figure.id, "query": figure.query, "value": value, "unit": "", "shown": value}
    words = WORDING[language]
    unit = words["row_unit"] if value == "1" and figure.unit == words["rows_unit"] else figure.unit
    shown = _shown(value, unit, language, figure.ungrouped)
    return {"id": figure.id, "query": figure.query, "value": value, "unit": unit, "shown": shown} if shown else None


def _single_value(answer: str) -> str | None:
    try:
        rows = json.loads(answer)["rows"]
    except (ValueError, TypeError, KeyError):
        return None
    return rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else None


def _shown(value: str, unit: str, language: Language, ungrouped: bool) -> str | None:
    """The figure with its unit, or alone where the two together could be read as another number."""
    try:
        exact = Decimal(value)
    except InvalidOperation:
        return None
    plain = [value] if ungrouped and not unit else []
    for candidate in (*plain, show(exact, unit, language), show(exact, "", language)):
        read = read_shown(candidate, unit)
        if len(candidate) <= 120 and read is not None and agrees(read, exact, unit) is None:
            return candidate
    return None


def _complaints(assignment: Mapping[str, Any]) -> set[str]:
    """The claims that feedback on the version before speaks of, directly or by a line of its body."""
    earlier = assignment.get("earlier_draft") or {}
    lines = str(earlier.get("body", "")).split("\n")
    named: set[str] = set()
    for match in (match for feedback in assignment["feedback"] for match in COMPLAINT.finditer(feedback)):
        named |= {match[group] for group in ("claim", "reference") if match[group]}
        if match["line"] and int(match["line"]) <= len(lines):
            named |= set(CLAIM_REFERENCE.findall(lines[int(match["line"]) - 1]))
    return named


def _kept(statements: Sequence[Statement], claims: Mapping[str, Any], complaints: set[str]) -> list[Statement]:
    """The statements that can be made; the number of rows is never dropped, since a report needs a figure."""
    possible = [each for each in statements if all(figure.id in claims for figure in each.figures)]
    return [
        each for each in possible if each.wording == "rows" or not complaints & {figure.id for figure in each.figures}
    ]


def _draft(
    assignment: Mapping[str, Any],
    language: Language,
    description: Description,
    statements: Sequence[Statement],
    claims: Mapping[str, dict[str, str]],
) -> dict[str, Any]:
    words, title = WORDING[language], assignment["request"]["title"]
    used = dict.fromkeys(figure.id for statement in statements for figure in statement.figures)
    opening = [each for each in statements if each.wording in OPENING]
    rest = [_sentence(each, words) for each in statements if each not in opening]
    return {
        "title": title if title and not MARKUP.search(title) else words["title"],
        "body": "\n".join(
            [words["space"].join(_sentence(each, words) for each in opening), "", f"## {words['findings']}", "",
             *(f"- {each}" for each in rest), "", f"## {words['method']}", "", words["method_text"]]
        ),
        "claims": [claims[name] for name in used],
        "source": assignment["dataset"],
        "period": _period(assignment, statements, words),
        "unit": _unit([claims[name]["unit"] for name in used], words),
        "limitations": limitations(description, language),
    }  # fmt: skip


def _sentence(statement: Statement, words: Mapping[str, str]) -> str:
    refs = {key: figure.id for key, figure in statement.refs.items()}
    return words[statement.wording].format(**{key: f"{{{{{name}}}}}" for key, name in refs.items()}, **statement.words)


def _period(assignment: Mapping[str, Any], statements: Sequence[Statement], words: Mapping[str, str]) -> str:
    for statement in statements:
        if statement.wording == "period":
            refs = {key: f"{{{{{figure.id}}}}}" for key, figure in statement.refs.items()}
            return words["period_dates"].format(**refs)
    return assignment["request"]["period"] or words["period_none"]


def _unit(used: Sequence[str], words: Mapping[str, str]) -> str:
    named = [unit for unit in dict.fromkeys(used) if unit and unit not in (words["rows_unit"], words["row_unit"])]
    return words["unit_named"].format(units=words["unit_separator"].join(named)) if named else words["unit_none"]
