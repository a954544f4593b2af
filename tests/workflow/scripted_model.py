"""A model that drafts and grades whole runs as a script says, over HTTP; and an installation that asks it.

It stands apart from the server because what a run needs of a model is one thing: a draft per version, an answer per
grading, whatever else is asked in between.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import SecretStr

from tests.support.installation import Installation
from tests.support.model_server import ModelServer, Turn

API_KEY = "sk-planted-key-77aa"
MODEL = "test-model"
TOTAL = "SELECT sum(amount) FROM data"
CRITERIA = ("source-period-unit", "calculation-path", "verified-figures", "limitation", "clear-conclusion")
DESCRIBE = Turn(calls=(("describe_dataset", {}),))
QUERY = Turn(calls=(("query_dataset", {"sql": TOTAL}),))


def draft(body: str = "Sales came to {{total}} in all, summed over all records.", total: str = "500.50") -> Turn:
    """Delivers a draft about the installation's table; clean unless changed."""
    content = {
        "title": "Sales",
        "body": body,
        "claims": [{"id": "total", "query": TOTAL, "value": total, "unit": "", "shown": total}],
        "source": "The file sales.csv.",
        "period": "As the data states it.",
        "unit": "The table states none.",
        "limitations": ["Only what the file holds."],
    }
    return Turn(calls=(("Draft", content),))


def grade(result: str = "satisfied", gap: str = "") -> Turn:
    """The grader's answer; with `gap`, the last criterion is not met."""
    criteria: list[dict[str, Any]] = [{"name": name, "passed": True} for name in CRITERIA]
    if gap:
        criteria[-1] |= {"passed": False, "gap": gap}
    return Turn(calls=(("GraderResponse", {"result": result, "explanation": "Because.", "criteria": criteria}),))


UNREADABLE = (Turn(text="All criteria pass, well done."), Turn(text="As I said: it passes."))


@dataclass
class ScriptedModel:
    """A script for `running_model_server`: each draft takes three calls, each grading one."""

    drafts: Sequence[Turn] = (draft(),)
    """Version by version; the last is repeated."""
    grades: Sequence[Turn] = (grade(),)
    """Grading by grading; the last is repeated."""
    held: Collection[int] = ()
    """Numbers of the requests that are answered only when the server is told to."""
    gradings: int = field(default=0, init=False)

    def __call__(self, number: int, request: dict[str, Any]) -> Turn:
        """Answer a request."""
        return replace(self._turn(request), held=number in self.held)

    def _turn(self, request: dict[str, Any]) -> Turn:
        if is_grading(request):
            self.gradings += 1
            return self.grades[min(self.gradings, len(self.grades)) - 1]
        answered = sum(message["role"] == "assistant" for message in request["messages"])
        if answered < 2:
            return (DESCRIBE, QUERY)[answered]
        return self.drafts[min(_version(self.drafts, request), len(self.drafts) - 1)]


def is_grading(request: dict[str, Any]) -> bool:
    """Whether a request asks for a grade."""
    return any(tool["function"]["name"] == "GraderResponse" for tool in request.get("tools", []))


def assignment_in(request: dict[str, Any]) -> dict[str, Any]:
    """What a drafting request was told to do, as `agents.prompts.assignment` wrote it."""
    told = next(message["content"] for message in request["messages"] if message["role"] == "user")
    content: dict[str, Any] = json.loads(told)
    return content


def _version(drafts: Sequence[Turn], request: dict[str, Any]) -> int:
    earlier = assignment_in(request)["earlier_draft"]
    if earlier is None:
        return 0
    return 1 + next(at for at, turn in enumerate(drafts) if turn.calls[0][1]["body"] == earlier["body"])


def asking(installation: Installation, server: ModelServer) -> Installation:
    """The same installation, drafting and grading with that server."""
    models = {"openai_api_key": SecretStr(API_KEY), "openai_base_url": server.url}
    names = {"draft_model": MODEL, "grade_model": MODEL}
    return replace(installation, settings=installation.settings.model_copy(update=models | names))


def model_environment(server: ModelServer) -> dict[str, str]:
    """The same for worker processes."""
    names = {"COUNTERSIGN_DRAFT_MODEL": MODEL, "COUNTERSIGN_GRADE_MODEL": MODEL}
    return {"OPENAI_API_KEY": API_KEY, "OPENAI_BASE_URL": server.url, **names}
