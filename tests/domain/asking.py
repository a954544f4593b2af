"""Questions of an agent and answers to them, right in everything but what a test changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from countersign.domain.question import Answer, Answering, Asked, PendingCall, Question, QuestionStatus
from tests.domain.samples import NOW

WORDS = PendingCall(
    id="call-1", tool="ask_user", args={"question": "Which half?"}, description="Which half?", decisions=("respond",)
)
READ = PendingCall(
    id="call-2", tool="query_dataset", args={"sql": "SELECT name FROM data"}, description="it reads column name",
    decisions=("approve", "edit", "reject"),
)  # fmt: skip
ANSWERING: dict[str, Any] = {"role": "lead", "requester": True, "within": "4h", "at_most": 10}
WITHIN = timedelta(hours=4)
SECOND_HALF = Answer(call="call-1", decision="respond", message="the second")
READ_IT = Answer(call="call-2", decision="approve")


def a_question(*calls: PendingCall, **changes: Any) -> Question:
    """What the agent asks, both calls if nothing else is said."""
    fields: dict[str, Any] = {
        "tenant": "acme", "operation": "report-1", "number": 1, "line": "run-1", "draft_version": 1,
        "control_version": 1, "calls": calls or (WORDS, READ), "answering": ANSWERING, "asked_at": NOW,
        "deadline": NOW + WITHIN,
    }  # fmt: skip
    fields["answering"] = Answering.model_validate({**ANSWERING, **changes.pop("answering", {})})
    return Question(**{**fields, **changes})


def pending(question: Question) -> Asked:
    """As the ledger has it while it waits."""
    return Asked(question, QuestionStatus.PENDING, None)
