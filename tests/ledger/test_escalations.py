"""Escalations: brought before people once, answered or not, never forgotten; on both engines."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from countersign.domain.errors import Conflict, InputRefused, NotFound
from countersign.domain.escalation import SUGGESTED, Escalation, Reason, Route, Severity
from countersign.domain.notice import NoticeKind
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from tests.ledger.builders import NOW, OPERATION, OTHER_HASH, TENANT, audit_types, command, notices, operation, send

LATER = NOW + timedelta(minutes=1)
ROUTE = Route(role="expert", severity=Severity.HIGH, within="4h", tell=("lead",))
DUE = NOW + timedelta(hours=4)


@pytest.fixture(autouse=True)
def registered(ledger: SqlLedger) -> None:
    """The operation that everything here is about."""
    ledger.operations.register(operation())


def raise_one(
    ledger: SqlLedger, reason: Reason = Reason.LOW_CONFIDENCE, code: str = "rubric_failed", route: Route = ROUTE,
    now: datetime = NOW, operation: str = OPERATION,
) -> Escalation:  # fmt: skip
    return ledger.escalations.open(TENANT, operation, reason, route, code, 3, "failed", OTHER_HASH, now)


def test_an_escalation_says_why_to_whom_until_when_and_what_to_do(ledger: SqlLedger) -> None:
    raised = raise_one(ledger)
    assert raised == Escalation(
        tenant=TENANT, operation=OPERATION, number=1, reason=Reason.LOW_CONFIDENCE, code="rubric_failed", role="expert",
        severity=Severity.HIGH, deadline=DUE, attempts=3, last_error="failed", snapshot=OTHER_HASH,
        suggested_action=SUGGESTED[Reason.LOW_CONFIDENCE], raised_at=NOW,
    )  # fmt: skip
    record = [*ledger.audit.records(TENANT)][-1]
    assert record.type == "escalation.raised"
    assert (record.detail["code"], record.detail["snapshot"], record.detail["attempts"]) == (
        "rubric_failed", OTHER_HASH, 3
    )  # fmt: skip
    (told,) = notices(ledger)
    assert (told.kind, told.roles, told.severity, told.deadline) == (
        NoticeKind.ESCALATION_RAISED, ("expert", "lead"), Severity.HIGH, DUE
    )  # fmt: skip


def test_the_same_reason_and_code_again_is_the_same_escalation_for_as_long_as_it_is_open(ledger: SqlLedger) -> None:
    first = raise_one(ledger)
    assert raise_one(ledger, now=LATER) == first
    other = raise_one(ledger, code="max_iterations_reached")
    assert (other.number, len(notices(ledger))) == (2, 2)
    ledger.escalations.close_unanswered(TENANT, OPERATION, 1, DUE)
    assert raise_one(ledger, now=DUE).number == 3
    assert [one.number for one in ledger.escalations.of_operation(TENANT, OPERATION)] == [1, 2, 3]


def test_one_that_nobody_answered_is_over_at_its_deadline_and_not_before(ledger: SqlLedger) -> None:
    raise_one(ledger)
    with pytest.raises(InputRefused, match="not over yet"):
        ledger.escalations.close_unanswered(TENANT, OPERATION, 1, DUE - timedelta(microseconds=1))
    for _ in range(2):
        assert ledger.escalations.close_unanswered(TENANT, OPERATION, 1, DUE).outcome == "unanswered"
    unanswered = [record for record in ledger.audit.records(TENANT) if record.type == "escalation.unanswered"]
    assert [record.subject for record in unanswered] == ["clock"]
    assert [one.kind for one in notices(ledger)] == [NoticeKind.ESCALATION_RAISED, NoticeKind.ESCALATION_UNANSWERED]


def test_one_without_a_deadline_waits_for_people(ledger: SqlLedger) -> None:
    assert raise_one(ledger, route=Route(role="expert", severity=Severity.LOW)).deadline is None
    with pytest.raises(InputRefused, match="until somebody comes"):
        ledger.escalations.close_unanswered(TENANT, OPERATION, 1, NOW + timedelta(days=900))


def test_one_that_was_answered_stays_answered(ledger: SqlLedger) -> None:
    raise_one(ledger)
    send(ledger, command("cancel", "otto"))
    closed = ledger.escalations.close_unanswered(TENANT, OPERATION, 1, DUE)
    assert (closed.outcome, closed.answered_by) == ("ended", "otto")
    assert "escalation.unanswered" not in audit_types(ledger)


def test_an_end_of_the_run_closes_what_is_open(ledger: SqlLedger) -> None:
    raise_one(ledger)
    ledger.operations.move(TENANT, OPERATION, State.CANCELLED, "cancelled", LATER)
    assert ledger.escalations.waiting(TENANT) == []
    (closed,) = ledger.escalations.of_operation(TENANT, OPERATION)
    assert (closed.outcome, closed.answered_by) == ("ended", None)


def test_what_is_not_there_or_has_ended_is_not_escalated(ledger: SqlLedger) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        raise_one(ledger, operation="nowhere")
    with pytest.raises(NotFound, match="escalation"):
        ledger.escalations.close_unanswered(TENANT, OPERATION, 1, DUE)
    ledger.operations.move(TENANT, OPERATION, State.FAILED, "checks_failed", LATER)
    with pytest.raises(Conflict, match="ended as FAILED"):
        raise_one(ledger)


@pytest.mark.guarantee("G09")
def test_what_waits_is_listed_by_its_deadline_and_for_its_tenant_alone(ledger: SqlLedger) -> None:
    for number, within in enumerate(("8h", None, "1h"), start=1):
        ledger.operations.register(operation(f"op-{number}"))
        raise_one(ledger, operation=f"op-{number}", route=ROUTE.model_copy(update={"within": within}))
    assert [one.operation for one in ledger.escalations.waiting(TENANT)] == ["op-3", "op-1", "op-2"]
    assert ledger.escalations.waiting("globex") == []


def test_a_run_that_goes_on_by_itself_has_nobody_looking_at_it_any_more(ledger: SqlLedger) -> None:
    """An outcome that was unknown is known: whoever was called for that may not take over what people decide next."""
    ledger.operations.move(TENANT, OPERATION, State.OUTCOME_UNKNOWN, "timeout", NOW)
    raise_one(ledger, Reason.TOOL_OUTCOME_UNKNOWN, "outcome_unknown")
    ledger.operations.move(TENANT, OPERATION, State.WAITING_RETRY, "not_there", LATER)
    (closed,) = ledger.escalations.of_operation(TENANT, OPERATION)
    assert closed.outcome == "went_on"
    assert ledger.escalations.waiting(TENANT) == []
