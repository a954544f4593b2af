"""The offline grader's rules for refunds: what each criterion of the refund's rubric looks for in the texts.

Apart from the grader, which knows criteria by their ids alone. The rules look at what a reader could miss; whether the
money is right was checked before, on the facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from countersign.agents.rule_model import Rule

SUMMARY = re.compile(
    r"refund \S+ \S+ of payment (?P<payment>\S+?)(?:, which repeats (?P<repeats>\S+?))?, to account \S+"
)
SECTION = re.compile(r"^## (why|message to the customer|facts)\b.*$", re.MULTILINE)
CHINESE = re.compile(r"[\u4e00-\u9fff]")
LEAST, MOST = 40, 2_000
"""Characters of a text that says something, and does not lose its reader; Chinese needs fewer, so half counts there."""
FROM_HEARSAY = re.compile(
    r"\b(?:because|since|as) (?:the customer|they) (?:says?|said|claims?|complain\w*)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Texts:
    """A graded refund taken apart."""

    payment: str
    repeats: str
    """The payment that it repeats; empty where none."""
    why: str
    message: str
    facts: Sequence[str]
    task: Mapping[str, Any]
    """What the grader was told of the request."""


def read_texts(document: str, task: Mapping[str, Any]) -> Texts:
    """Take the graded text apart: a summary, then sections whose texts are quoted."""
    heading, *pieces = SECTION.split(document)
    sections = dict(zip(pieces[::2], pieces[1::2], strict=True))
    found = SUMMARY.search(heading)
    return Texts(
        payment=found["payment"] if found else "",
        repeats=(found["repeats"] or "") if found else "",
        why=_unquoted(sections.get("why", "")),
        message=_unquoted(sections.get("message to the customer", "")),
        facts=[line.removeprefix("- ") for line in sections.get("facts", "").splitlines() if line.startswith("- ")],
        task=task,
    )


def _unquoted(section: str) -> str:
    return "\n".join(line.removeprefix(">").strip() for line in section.strip().splitlines())


def _names_payment(texts: Texts) -> str:
    missing = [name for name in (texts.payment, texts.repeats) if name and name not in texts.why]
    return f"not named under why: {', '.join(missing)}" if missing or not texts.payment else ""


def _rests_on_facts(texts: Texts) -> str:
    listed = " ".join(texts.facts)
    strange = [name for name in (texts.payment, texts.repeats) if name and f"payment {name}:" not in listed]
    if strange:
        return f"not among the facts: {', '.join(strange)}"
    return "it takes what the customer says for a fact" if FROM_HEARSAY.search(texts.why) else ""


def _answers_complaint(texts: Texts) -> str:
    return _too_short_or_long(texts.why, "the text under why")


def _is_plain_message(texts: Texts) -> str:
    wanted = str(texts.task.get("message", "")).startswith("one ")
    if not texts.message:
        return "the customer is told nothing" if wanted else ""
    written = "zh" if CHINESE.search(texts.message) else "en"
    if texts.task["request"]["language"] != written:
        return f"the message is not in the request's language, which is {texts.task['request']['language']}"
    if texts.task["request"]["order"] not in texts.message:
        return "the message does not name the order"
    return _too_short_or_long(texts.message, "the message")


def _too_short_or_long(text: str, what: str) -> str:
    length = len(text) * (2 if CHINESE.search(text) else 1)
    if length < LEAST:
        return f"{what} is too short to say why"
    return f"{what} is longer than {MOST} characters" if length > MOST else ""


def _rule(of_texts: Callable[[Texts], str]) -> Rule:
    return lambda document, task: of_texts(read_texts(document, task))


REFUND_RULES: Mapping[str, Rule] = {
    "names-payment": _rule(_names_payment),
    "rests-on-facts": _rule(_rests_on_facts),
    "answers-complaint": _rule(_answers_complaint),
    "plain-message": _rule(_is_plain_message),
}
