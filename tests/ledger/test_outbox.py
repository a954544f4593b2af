"""Notices: written with what they tell of, addressed once, tried by one at a time until they arrive or are given up."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from countersign.domain.errors import Conflict, NotFound
from countersign.domain.escalation import Severity
from countersign.domain.notice import NoticeKind
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from countersign.ports import Delivery
from tests.ledger.builders import NOW, OPERATION, ROOM, TENANT, VIEW, audit_types, granted, notices, operation, proposal

UNTIL = NOW + timedelta(minutes=1)
LATER = NOW + timedelta(hours=1)


def end(ledger: SqlLedger, name: str = OPERATION, reason: str = "checks_failed: body:3:14 says so") -> None:
    ledger.operations.register(operation(name))
    ledger.operations.move(TENANT, name, State.FAILED, reason, NOW)


def addressed(ledger: SqlLedger, *targets: str) -> None:
    """A notice to these addresses."""
    end(ledger)
    ledger.outbox.address(TENANT, 1, targets or ("chat",), NOW)


def take(ledger: SqlLedger, now: timedelta = timedelta(0), limit: int = 10) -> list[Delivery]:
    return [*ledger.outbox.take(TENANT, NOW + now, UNTIL + now, limit)]


@pytest.mark.guarantee("G46")
def test_the_requester_is_told_of_an_end_by_codes_alone_and_once(ledger: SqlLedger) -> None:
    end(ledger)
    end(ledger)
    (told,) = notices(ledger)
    assert (told.kind, told.persons, told.code) == (NoticeKind.RUN_ENDED, ("rita",), "FAILED:checks_failed")


def test_whoever_is_asked_is_told_by_role_and_deadline(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    for _ in range(2):
        opened = ledger.approvals.open(proposal(approvals=2), "run-1", VIEW, NOW, ROOM).proposal
    (told,) = notices(ledger)
    assert (told.kind, told.roles, told.deadline) == (NoticeKind.APPROVAL_OPENED, ("reviewer",), opened.deadline)
    assert (told.severity, told.code) == (Severity.MEDIUM, opened.approval_id)


def test_where_the_policy_asks_nobody_nobody_is_told(ledger: SqlLedger) -> None:
    granted(ledger, proposal(by_rule=True))
    assert notices(ledger) == []


@pytest.mark.guarantee("G45")
def test_a_step_that_is_refused_tells_nobody(ledger: SqlLedger) -> None:
    end(ledger)
    with pytest.raises(Conflict):
        ledger.operations.move(TENANT, OPERATION, State.SUCCEEDED, "", NOW)
    assert len(notices(ledger)) == 1


def test_notices_of_many_writers_are_numbered_without_a_gap(ledger: SqlLedger) -> None:
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda number: end(ledger, f"op-{number}"), range(12)))
    assert [number for number, _ in ledger.outbox.unaddressed(TENANT, 100)] == [*range(1, 13)]
    assert [number for number, _ in ledger.outbox.unaddressed(TENANT, 5)] == [1, 2, 3, 4, 5]


def test_addresses_are_chosen_once_and_none_is_a_choice_too(ledger: SqlLedger) -> None:
    addressed(ledger, "chat", "mail", "chat")
    ledger.outbox.address(TENANT, 1, ("pager",), NOW)
    assert [one.target for one in ledger.outbox.deliveries(TENANT)] == ["chat", "mail"]
    end(ledger, "report-8")
    ledger.outbox.address(TENANT, 2, (), NOW)
    assert notices(ledger) == []
    with pytest.raises(NotFound, match="notice"):
        ledger.outbox.address(TENANT, 9, ("chat",), NOW)


def test_who_takes_a_delivery_has_the_sole_right_to_it_for_a_while(ledger: SqlLedger) -> None:
    addressed(ledger)
    (mine,) = take(ledger)
    assert (mine.target, mine.attempts, mine.status, mine.next_at) == ("chat", 1, "waiting", UNTIL)
    assert mine.notice.code == "FAILED:checks_failed"
    assert take(ledger) == []
    (again,) = take(ledger, timedelta(minutes=1))
    assert again.attempts == 2


def test_twenty_that_take_at_once_get_each_delivery_once(ledger: SqlLedger) -> None:
    addressed(ledger, *(f"address-{number}" for number in range(30)))
    with ThreadPoolExecutor(20) as threads:
        taken = [one.target for some in threads.map(lambda _: take(ledger, limit=3), range(20)) for one in some]
    assert Counter(taken).most_common(1)[0][1] == 1
    assert len(taken) + len(take(ledger, limit=50)) == 30


def test_what_arrived_is_recorded_once_and_tried_no_more(ledger: SqlLedger) -> None:
    addressed(ledger)
    (mine,) = take(ledger)
    for _ in range(2):
        ledger.outbox.delivered(mine, NOW)
    assert take(ledger, timedelta(days=1)) == []
    assert [one.status for one in ledger.outbox.deliveries(TENANT)] == ["delivered"]
    record = [*ledger.audit.records(TENANT)][-1]
    assert (record.type, record.detail["notice"], record.detail["target"]) == ("notice.delivered", 1, "chat")
    assert audit_types(ledger).count("notice.delivered") == 1


def test_what_failed_is_tried_again_when_it_is_due(ledger: SqlLedger) -> None:
    addressed(ledger)
    (mine,) = take(ledger)
    ledger.outbox.failed(mine, "connection refused", LATER, NOW)
    assert take(ledger, timedelta(minutes=59)) == []
    (again,) = take(ledger, timedelta(hours=1))
    assert (again.attempts, again.error) == (2, "connection refused")
    ledger.outbox.failed(mine, "an older try", None, LATER)
    assert [one.status for one in ledger.outbox.deliveries(TENANT)] == ["waiting"]


def test_what_is_given_up_is_recorded_and_told_the_operator_and_that_no_more(ledger: SqlLedger) -> None:
    addressed(ledger)
    (mine,) = take(ledger)
    for _ in range(2):
        ledger.outbox.failed(mine, "550", None, NOW)
    assert [one.status for one in ledger.outbox.deliveries(TENANT)] == ["failed"]
    ((number, told),) = ledger.outbox.unaddressed(TENANT, 10)
    assert (told.kind, told.roles, told.severity) == (NoticeKind.DELIVERY_FAILED, ("operator",), Severity.HIGH)
    assert (told.operation, told.code) == (OPERATION, "1:chat")
    ledger.outbox.address(TENANT, number, ("mail",), NOW)
    (its,) = take(ledger)
    ledger.outbox.failed(its, "550", None, NOW)
    assert notices(ledger) == []
    assert audit_types(ledger).count("notice.failed") == 2
    assert [(one.number, one.status) for one in ledger.outbox.deliveries(TENANT)] == [(2, "failed"), (1, "failed")]


def test_a_delivery_that_there_is_not_is_not_reported(ledger: SqlLedger) -> None:
    addressed(ledger)
    (mine,) = take(ledger)
    with pytest.raises(NotFound, match="delivery"):
        ledger.outbox.delivered(mine.model_copy(update={"target": "elsewhere"}), NOW)
