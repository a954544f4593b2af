"""What an agent asks while it drafts, and what its models' calls came to, put into a desk's ledger.

Apart from the desk itself, since here the agent is heard before there is anything to decide about.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from countersign.cli.session import now
from countersign.domain.durations import duration
from countersign.domain.escalation import Reason, Route, Severity
from countersign.domain.model_call import CallEnd, ModelCall
from countersign.domain.question import Answering, AnswerKind, Asked, PendingCall, Question
from countersign.domain.state import State
from tests.cli.desk import RUN, TENANT, Desk

OPERATION = "report-7"
GUARDED: tuple[AnswerKind, ...] = ("approve", "edit", "reject")
ASKS: tuple[AnswerKind, ...] = ("respond",)
ROOM = 1000


def guarded(call: str = "call_1", **args: Any) -> PendingCall:
    """A query on a sensitive column."""
    return PendingCall(
        id=call, tool="query_dataset", args=args or {"sql": "select name from data"},
        description="it reads the sensitive column name", decisions=GUARDED,
    )  # fmt: skip


def asks(call: str = "call_2", text: str = "Which half of the year?") -> PendingCall:
    """A question in words."""
    return PendingCall(id=call, tool="ask_user", args={"question": text}, description=text, decisions=ASKS)


def put_question(
    desk: Desk, *calls: PendingCall, operation: str = OPERATION, minutes_ago: int = 0, registered: bool = False,
    **answering: Any,
) -> Question:  # fmt: skip
    """Have the agent of an operation ask, by default a guarded query; its run waits."""
    if not registered:
        desk.register(operation)
    said = Answering(**{"role": "lead", "requester": True, "within": "24h", "at_most": 10, **answering})
    at = now() - timedelta(minutes=minutes_ago)
    question = Question(
        tenant=TENANT, operation=operation, number=len(desk.ledger.questions.of_operation(TENANT, operation)) + 1,
        line=RUN, draft_version=2, control_version=desk.control(operation).version, calls=calls or (guarded(),),
        answering=said, asked_at=at, deadline=at + duration(said.within),
    )  # fmt: skip
    asked = desk.ledger.questions.ask(question, ROOM)
    desk.stands(operation, State.WAITING_ANSWER, "agent_asks")
    return asked.question


def stored(desk: Desk, operation: str = OPERATION) -> Asked:
    """The newest question as the ledger has it."""
    found = desk.ledger.questions.current(TENANT, operation)
    assert found is not None
    return found


def called(desk: Desk, end: CallEnd | None, nano: int | None = None, **changes: Any) -> ModelCall:
    """A call of a model; without an end nobody knows what became of it."""
    fields: dict[str, Any] = {
        "tenant": TENANT, "operation": OPERATION, "number": 1, "case": "report", "role": "draft", "draft_version": 1,
        "attempt": 1, "asked": "gpt-5.5", "began_at": now(),
    }  # fmt: skip
    begun = desk.ledger.model_calls.begin(ModelCall(**{**fields, **changes}))
    if end is not None:
        currency = "USD" if nano is not None else ""
        desk.ledger.model_calls.end(TENANT, begun.operation, begun.number, end, nano, currency)
    return begun


def out_of_budget(desk: Desk, operation: str = OPERATION) -> None:
    """The run was brought before the leads, since its budget is used up."""
    route, snapshot = Route(role="lead", severity=Severity.LOW, within="72h"), desk.put("{}")
    desk.ledger.escalations.open(
        TENANT, operation, Reason.BUDGET_EXCEEDED, route, "budget_exceeded", 1, "", snapshot, now()
    )  # fmt: skip
    desk.stands(operation, State.ESCALATED, "BUDGET_EXCEEDED")
