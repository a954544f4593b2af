"""A run that cannot go on: brought before whom the policy names, with all that is known, or else it ends as before."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.interfaces import Escalated, EscalateOrder, LapseOrder, UnansweredOrder
from countersign.domain.decision import Ruling
from countersign.domain.escalation import Reason, Severity
from tests.activities.desk import OPERATION, Desk

NAMED: dict[str, Any] = {"tenant": "acme", "operation": OPERATION}


def escalate(desk: Desk, code: str = "checks_failed") -> Escalated:
    order = EscalateOrder(**NAMED, code=code, attempts=2, now=desk.now())
    return desk.as_run().run(desk.escalating.escalate, order)


def test_it_goes_to_whom_the_policy_names_with_a_deadline(desk: Desk) -> None:
    before = desk.now()
    raised = escalate(desk)
    assert (raised.number, raised.reason, raised.role) == (1, Reason.LOW_CONFIDENCE, "lead")
    assert raised.severity == Severity.HIGH
    assert raised.deadline is not None
    assert timedelta(0) <= raised.deadline - before - timedelta(hours=2) < timedelta(minutes=1)


@pytest.mark.parametrize("code", ["denied_by_policy", "undecided_at_deadline", "cancelled", "no such code", ""])
def test_what_no_policy_routes_and_nobody_could_mend_is_brought_to_nobody(desk: Desk, code: str) -> None:
    assert escalate(desk, code) == Escalated(number=0)
    assert not desk.ledger.escalations.of_operation("acme", OPERATION)


def test_a_repeated_step_raises_it_once(desk: Desk) -> None:
    assert escalate(desk) == escalate(desk)
    assert len(desk.records("escalation.raised")) == 1


def test_the_snapshot_says_what_is_known(desk: Desk) -> None:
    desk.passed()
    desk.propose()
    with pytest.raises(ApplicationError):
        desk.propose(approval_version=3)
    escalate(desk)
    (raised,) = desk.ledger.escalations.of_operation("acme", OPERATION)
    known = json.loads(desk.ledger.documents.get("acme", raised.snapshot))
    assert (known["state"], known["control"]["by"]) == ("CREATED", "agent")
    assert known["drafts"] == [
        {"version": 1, "author": "agent", "model": "a-model", "codes": [], "verdict": "satisfied"}
    ]
    assert [(one["version"], one["status"]) for one in known["approvals"]] == [(1, "pending")]
    assert known["execution"] is None
    assert [(one["subject"], one["detail"]["code"]) for one in known["last_errors"]] == [("propose", "NOT_FOUND")]
    assert known["suggested_action"] == raised.suggested_action
    assert (raised.code, raised.last_error) == ("checks_failed", "NOT_FOUND")


def test_where_nothing_failed_nothing_is_called_an_error(desk: Desk) -> None:
    desk.passed()
    escalate(desk)
    (raised,) = desk.ledger.escalations.of_operation("acme", OPERATION)
    assert (raised.code, raised.last_error) == ("checks_failed", "")


def unanswered(desk: Desk) -> None:
    order = UnansweredOrder(**NAMED, number=1, now=desk.now())
    desk.as_run().run(desk.escalating.unanswered, order)


def test_nobody_came_only_once_its_deadline_is_over(desk: Desk) -> None:
    escalate(desk)
    with pytest.raises(ApplicationError) as refused:
        unanswered(desk)
    assert (refused.value.type, refused.value.non_retryable) == ("INPUT_REFUSED", True)
    desk.later = timedelta(hours=3)
    unanswered(desk)
    unanswered(desk)
    (raised,) = desk.ledger.escalations.of_operation("acme", OPERATION)
    assert raised.outcome == "unanswered"
    assert len(desk.records("escalation.unanswered")) == 1


def test_one_that_was_answered_stays_so(desk: Desk) -> None:
    escalate(desk)
    assert desk.command("liam", "take_over").ruling == Ruling.ACCEPTED
    desk.later = timedelta(hours=3)
    unanswered(desk)
    (raised,) = desk.ledger.escalations.of_operation("acme", OPERATION)
    assert (raised.outcome, raised.answered_by) == ("taken_over", "liam")


def test_a_lease_that_is_over_goes_to_nobody_and_never_to_the_agent(desk: Desk) -> None:
    assert desk.command("lena", "take_over").ruling == Ruling.ACCEPTED
    for later, holder in ((timedelta(0), "person"), (timedelta(hours=2), "nobody"), (timedelta(hours=3), "nobody")):
        desk.later = later
        order = LapseOrder(**NAMED, control_version=2, now=desk.now())
        assert desk.as_run().run(desk.escalating.lapse, order).by == holder
    assert desk.standing().control.version == 3
