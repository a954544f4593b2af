"""What one run came to, as a file that can be shown to anybody: figures, codes and hashes, nothing that was written.

Apart from the command that makes the run: no text of a prompt, a draft, a dataset or a person is in it, no key and no
address; names of models are in it as they were asked for and as the provider told them.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from countersign.cli.reading.spending import spent, spent_json
from countersign.cli.session import Session
from countersign.domain.model_call import ModelCall, cost_text
from countersign.domain.question import Asked, by_call

LIBRARIES = ("deepagents", "langchain", "langchain-core", "langchain-openai", "langgraph", "openai", "temporalio")
"""What an answer's way through the agent depends on, beside us."""


def result_of(session: Session, tenant: str, operation: str) -> dict[str, Any]:
    """The result of an operation's run as JSON: how it ended, what was found and answered on the way, what it cost."""
    ledger = session.ledger
    stored, records = ledger.operations.get(tenant, operation), tuple(ledger.audit.records(tenant, operation))
    calls = ledger.model_calls.of_operation(tenant, operation)
    approval, execution = ledger.approvals.current(tenant, operation), ledger.executions.get(tenant, operation)
    return {
        "operation": operation, "case": stored.case, "state": stored.state, "reason": code_of(stored.reason),
        "began_at": records[0].recorded_at, "latest_record_at": records[-1].recorded_at,
        "checks": [
            {"draft_version": one.detail["version"], "violations": one.detail["codes"]}
            for one in records if one.type == "draft.checked"
        ],
        "grades": [
            {"draft_version": one.detail["version"], "verdict": one.detail["verdict"]}
            for one in records if one.type == "draft.graded"
        ],
        "questions": [_question(one) for one in ledger.questions.of_operation(tenant, operation)],
        "approval": approval.status if approval else None,
        "decisions": [vote.decision for vote in approval.votes] if approval else [],
        "effect": execution.status if execution else None,
        "calls": [_call(one) for one in calls], "sums": spent_json(spent(calls)),
        "streamed": session.settings.model_streaming, "versions": _versions(),
    }  # fmt: skip


def code_of(reason: str) -> str:
    """A reason's code; its sentence, where it has one, can quote."""
    found = re.match(r"[a-z][a-z0-9_]*", reason)
    return found[0] if found else ""


def _question(asked: Asked) -> dict[str, Any]:
    answers = by_call(asked.answered) if asked.answered else {}
    question = asked.question
    return {
        "number": question.number, "hash": question.hash(), "draft_version": question.draft_version,
        "status": asked.status,
        # By its place among the calls: a call's id is the model's own word.
        "calls": [
            {"tool": call.tool, "decision": answers[call.id].decision if call.id in answers else None}
            for call in question.calls
        ],
    }  # fmt: skip


def _call(call: ModelCall) -> dict[str, Any]:
    shown: Mapping[str, Any] = call.model_dump(
        mode="json",
        include={
            "number", "role", "draft_version", "attempt", "asked", "answered", "outcome", "error", "input_tokens",
            "output_tokens", "milliseconds",
        },
    )  # fmt: skip
    return {**shown, "cost": cost_text(call.nano, call.currency)}


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
