"""Whose step it is, and when: another workflow, another run's line or a time to come gets nothing done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.interfaces import (
    EscalateOrder,
    HandOnOrder,
    LapseOrder,
    MarkOrder,
    MessageBatch,
    OpenOrder,
    ProposeOrder,
    SettleOrder,
    StateRecord,
    TimesOrder,
    UnansweredOrder,
)
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.activities.desk import LINE, OPERATION, Desk, called

NAMED: dict[str, Any] = {"tenant": "acme", "operation": OPERATION}


def asked(desk: Desk, ahead: timedelta = timedelta(0)) -> dict[str, tuple[Any, Any]]:
    """Every step of the agent's worker, with an order that the operation's own run could give."""
    now, approval = desk.now() + ahead, {"approval_id": "apr-1"}
    message = desk.message("cancel", "{}", received_at=now)
    return {
        "open_run": (desk.opening.open_run, OpenOrder(run=desk.order, now=now)),
        "hand_on": (desk.opening.hand_on, HandOnOrder(**NAMED, line=LINE, now=now)),
        "take_on": (desk.opening.take_on, HandOnOrder(**NAMED, line=LINE, now=now)),
        "record_state": (
            desk.opening.record_state, StateRecord(**NAMED, state=State.ESCALATED, reason="checks_failed", now=now)
        ),
        "draft": (desk.drafting.draft, desk.step()),
        "validate": (desk.validating.validate, desk.step()),
        "grade": (desk.grading.grade, desk.step()),
        "propose": (desk.proposing.propose, ProposeOrder(step=desk.step(), approval_version=1, now=now)),
        "decide": (desk.deciding.decide, MessageBatch(**NAMED, messages=(message,))),
        "signal_times": (desk.deciding.signal_times, TimesOrder(**NAMED, signals=(1,))),
        "mark": (desk.deciding.mark, MarkOrder(**NAMED, **approval, tick=0, now=now)),
        "settle": (desk.deciding.settle, SettleOrder(**NAMED, **approval, status=ApprovalStatus.EXPIRED, now=now)),
        "escalate": (desk.escalating.escalate, EscalateOrder(**NAMED, code="checks_failed", attempts=1, now=now)),
        "unanswered": (desk.escalating.unanswered, UnansweredOrder(**NAMED, number=1, now=now)),
        "lapse": (desk.escalating.lapse, LapseOrder(**NAMED, control_version=1, now=now)),
    }  # fmt: skip


STEPS = (
    "open_run", "hand_on", "take_on", "record_state", "draft", "validate", "grade", "propose", "decide",
    "signal_times", "mark", "settle", "escalate", "unanswered", "lapse",
)  # fmt: skip
WITH_LINE = ("draft", "validate", "grade", "propose")
WITH_TIME = tuple(
    name for name in STEPS if name not in {"draft", "validate", "grade", "signal_times", "mark", "settle"}
)


def refusal(environment: Any, step: Any, order: Any) -> ApplicationError:
    with pytest.raises(ApplicationError) as refused:
        called(environment, step, order)
    return refused.value


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize("name", STEPS)
def test_a_workflow_of_another_name_gets_no_step(desk: Desk, name: str) -> None:
    before = desk.ledger.audit.verify("acme").count
    refused = refusal(desk.as_run(workflow="acme:op-2"), *asked(desk)[name])
    assert (refused.type, refused.non_retryable) == ("CONFLICT", True)
    (failed,) = list(desk.ledger.audit.records("acme"))[before:]
    assert (failed.type, failed.subject) == ("step.failed", name)


@pytest.mark.guarantee("G23")
@pytest.mark.parametrize("name", WITH_LINE)
def test_a_run_that_was_reset_does_not_speak_for_the_line_of_another(desk: Desk, name: str) -> None:
    refused = refusal(desk.as_run("after-a-reset"), *asked(desk)[name])
    assert (refused.type, refused.non_retryable) == ("CONFLICT", True)
    (failed,) = desk.records("step.failed")
    assert b"which it does not carry on" in desk.ledger.documents.get("acme", failed["sentence"])


@pytest.mark.guarantee("G23")
def test_a_line_is_carried_on_by_the_run_that_took_it_on_and_by_no_other(desk: Desk) -> None:
    desk.passed()
    order = HandOnOrder(**NAMED, line=LINE, now=desk.now())
    assert refusal(desk.as_run("run-2"), desk.opening.take_on, order).type == "CONFLICT"
    for _ in range(2):
        desk.as_run().run(desk.opening.hand_on, order)
    for _ in range(2):
        desk.as_run("run-2").run(desk.opening.take_on, order)
    ask = ProposeOrder(step=desk.step(), approval_version=1, now=desk.now())
    assert refusal(desk.as_run("run-3"), desk.opening.take_on, order).type == "CONFLICT"
    assert refusal(desk.as_run("run-3"), desk.proposing.propose, ask).type == "CONFLICT"
    assert desk.as_run("run-2").run(desk.proposing.propose, ask).status == ApprovalStatus.PENDING
    handed = [one for one in desk.ledger.audit.records("acme", OPERATION) if one.type.startswith("run.")]
    assert [one.type for one in handed] == ["run.handed_on", "run.taken_on"]


@pytest.mark.guarantee("G26")
@pytest.mark.parametrize("name", WITH_TIME)
def test_a_time_that_has_not_come_is_believed_by_no_step(desk: Desk, name: str) -> None:
    refused = refusal(desk.as_run(), *asked(desk, ahead=timedelta(hours=1))[name])
    assert (refused.type, refused.non_retryable) == ("UNAVAILABLE", False)


@pytest.mark.guarantee("G24")
def test_an_hour_ahead_is_not_ahead_once_the_clock_is_there(desk: Desk) -> None:
    desk.later = timedelta(hours=1)
    order = OpenOrder(run=desk.order, now=desk.now())
    desk.later = timedelta(0)
    assert refusal(desk.as_run(), desk.opening.open_run, order).type == "UNAVAILABLE"
    desk.later = timedelta(hours=1)
    assert desk.as_run().run(desk.opening.open_run, order).drafted
