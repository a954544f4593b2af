"""What an agent asks and spends, as the ledger gets it; right in everything but what a test changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from countersign.domain.canonical import digest
from countersign.domain.command import Command
from countersign.domain.escalation import Reason, Route, Severity
from countersign.domain.model_call import Budget, CallEnd, ModelCall
from countersign.domain.question import Answer, Answers, Asked, PendingCall, Question
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from countersign.ports import Amendment
from tests.domain.asking import READ_IT, SECOND_HALF, WITHIN, a_question
from tests.ledger.builders import NOW, OPERATION, OTHER_HASH, ROOM, TENANT, Commanded, command, send

ANSWERS = (READ_IT, SECOND_HALF)
ENDED = CallEnd(answered="gpt-5.5-2026", input_tokens=100, output_tokens=10, milliseconds=1500)


def question(*calls: PendingCall, tenant: str = TENANT, operation: str = OPERATION, **changes: Any) -> Question:
    """What the agent of OPERATION asks the leads: a word, and to read something."""
    at = changes.pop("asked_at", NOW)
    fields = {"tenant": tenant, "operation": operation, "asked_at": at, "deadline": at + WITHIN, **changes}
    return a_question(*calls, **fields)


def ask(ledger: SqlLedger, *calls: PendingCall, room: int = ROOM, **changes: Any) -> Asked:
    """Have it asked."""
    return ledger.questions.ask(question(*calls, **changes), room)


def answer(asked: Asked, *answers: Answer, by: str = "lena", **changes: Any) -> tuple[Command, Amendment]:
    """A person's answers, both of ANSWERS if nothing else is said."""
    given = answers or ANSWERS
    content = digest(Answers(answers=given).model_dump(mode="json"))
    of_it = {"tenant": asked.question.tenant, "operation": asked.question.operation}
    said = {**of_it, "question": asked.question.hash(), "content": content, **changes}
    return command("answer", by, **said), Amendment(answers=given)


def send_answer(
    ledger: SqlLedger, asked: Asked, *answers: Answer, minutes: float = 1, by: str = "lena", **changes: Any
) -> Commanded:
    """Have it sent, so long after NOW."""
    said, amendment = answer(asked, *answers, by=by, **changes)
    return send(ledger, said, amendment=amendment, now=NOW + timedelta(minutes=minutes))


def a_call(tenant: str = TENANT, operation: str = OPERATION, minutes: float = 0, **changes: Any) -> ModelCall:
    """A call of the agent's model that is about to be made, so long after NOW."""
    fields: dict[str, Any] = {
        "tenant": tenant, "operation": operation, "number": 1, "case": "report", "role": "draft", "draft_version": 1,
        "attempt": 1, "asked": "gpt-5.5", "began_at": NOW + timedelta(minutes=minutes),
    }  # fmt: skip
    return ModelCall(**{**fields, **changes})


def bring_before_people(ledger: SqlLedger, tenant: str = TENANT, operation: str = OPERATION, **route: Any) -> None:
    """The run is out of its budget, and the leads are called."""
    to = Route(**{"role": "lead", "severity": Severity.LOW, **route})
    reason, code = Reason.BUDGET_EXCEEDED, "budget_exceeded"
    ledger.escalations.open(tenant, operation, reason, to, code, 1, "", OTHER_HASH, NOW)
    ledger.operations.move(tenant, operation, State.ESCALATED, reason.value, NOW)


def raise_budget(
    ledger: SqlLedger, by: str = "lena", minutes: float = 1, *, tenant: str = TENANT, operation: str = OPERATION,
    **more: Any,
) -> Commanded:  # fmt: skip
    """Have a person add to the budget, so long after NOW."""
    budget = Budget.model_validate(more or {"calls": 2})
    content = digest(budget.model_dump(mode="json"))
    said = command("raise_budget", by, tenant=tenant, operation=operation, content=content)
    return send(ledger, said, amendment=Amendment(budget=budget), now=NOW + timedelta(minutes=minutes))
