"""Operations that follow others, and gathered facts: what may be registered behind what, and what ends with it."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.notice import NoticeKind
from countersign.domain.operation import Operation
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    NOW,
    OPERATION,
    TENANT,
    audit_types,
    claim,
    granted,
    notices,
    operation,
    receipt,
)
from tests.ledger.founding import NEWCOMER, found

LATER = NOW + timedelta(minutes=1)
ENDS = (State.REJECTED, State.EXPIRED, State.WITHDRAWN, State.CANCELLED, State.FAILED)


def undo(id: str = "report-7.undo", **changes: Any) -> Operation:
    return operation(id, request=id.encode(), **{"case": "compensation", "follows": OPERATION, **changes})


def message(id: str = "report-7.message") -> Operation:
    return undo(id, case="message")


def executed(ledger: SqlLedger) -> None:
    """OPERATION with its effect confirmed."""
    execution = claim(ledger, granted(ledger))
    ledger.executions.finish(execution, receipt(execution), NOW)


@pytest.mark.guarantee("G38")
def test_an_operation_is_registered_with_a_link_to_the_one_that_it_follows(ledger: SqlLedger) -> None:
    executed(ledger)
    ledger.operations.register(message())
    ledger.operations.register(undo(registered_at=LATER))
    followers = ledger.operations.followers(TENANT, OPERATION)
    assert [one.operation for one in followers] == ["report-7.message", "report-7.undo"]
    assert ledger.operations.get(TENANT, "report-7.undo").follows == OPERATION
    registered = [one for one in ledger.audit.records(TENANT, "report-7.undo") if one.type == "operation.registered"]
    assert [one.detail["follows"] for one in registered] == [OPERATION]


def test_one_that_follows_nothing_says_nothing_of_it_in_the_record(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    (registered,) = ledger.audit.records(TENANT, OPERATION)
    assert "follows" not in registered.detail
    assert ledger.operations.followers(TENANT, OPERATION) == []


@pytest.mark.parametrize("follows", ["report-8", "report-7.undo"])
def test_nothing_follows_what_is_not_there(ledger: SqlLedger, follows: str) -> None:
    with pytest.raises(NotFound, match="is not there"):
        ledger.operations.register(undo(follows=follows))
    assert ledger.operations.list(TENANT) == []


@pytest.mark.guarantee("G09")
def test_nothing_follows_the_operation_of_another_tenant(ledger: SqlLedger) -> None:
    found(ledger, NEWCOMER)
    ledger.operations.register(operation(tenant=NEWCOMER))
    with pytest.raises(NotFound) as theirs:
        ledger.operations.register(undo())
    with pytest.raises(NotFound) as nobodys:
        ledger.operations.register(undo(follows="report-8"))
    assert theirs.value.message.replace(OPERATION, "") == nobodys.value.message.replace("report-8", "")


@pytest.mark.guarantee("G38")
def test_an_effect_has_one_compensation_that_has_not_come_to_nothing(ledger: SqlLedger) -> None:
    executed(ledger)
    ledger.operations.register(undo())
    for state in (State.RUNNING, State.WAITING_APPROVAL, State.SUCCEEDED):
        with pytest.raises(Conflict, match=r"is followed by report-7\.undo already, of the same case compensation"):
            ledger.operations.register(undo("another"))
        assert ledger.operations.register(undo()).operation == "report-7.undo"
        ledger.operations.move(TENANT, "report-7.undo", state, "", LATER)
    with pytest.raises(Conflict, match="and SUCCEEDED; one effect has one compensation"):
        ledger.operations.register(undo("another"))
    assert ledger.operations.register(message()).operation == "report-7.message"


@pytest.mark.guarantee("G38")
def test_a_compensation_that_came_to_nothing_makes_room_for_another_one(ledger: SqlLedger) -> None:
    executed(ledger)
    for number, end in enumerate(ENDS):
        assert ledger.operations.register(undo(f"undo-{number}")).state == State.CREATED
        ledger.operations.move(TENANT, f"undo-{number}", end, "reason", LATER)


def test_the_same_id_behind_another_operation_is_a_conflict(ledger: SqlLedger) -> None:
    executed(ledger)
    ledger.operations.register(operation("report-8"))
    first = ledger.operations.register(message())
    with pytest.raises(Conflict, match="stands for another request already"):
        ledger.operations.register(first.model_copy(update={"follows": "report-8"}))


def test_what_was_to_follow_ends_with_what_came_to_no_effect(ledger: SqlLedger) -> None:
    for end in ENDS:
        followed, follower = f"op-{end.value.lower()}", f"op-{end.value.lower()}.message"
        ledger.operations.register(operation(followed))
        ledger.operations.register(undo(follower, case="message", follows=followed))
        ledger.operations.move(TENANT, followed, end, "reason", LATER)
        ended = ledger.operations.get(TENANT, follower)
        assert (ended.state, ended.reason.partition(":")[0]) == (State.CANCELLED, "nothing_to_follow")
        records = [one.type for one in ledger.audit.records(TENANT, follower)]
        assert records == ["operation.registered", "run.cancelled"]
        told = [one for one in notices(ledger) if one.kind == NoticeKind.RUN_ENDED][-2:]
        assert [(one.operation, one.persons) for one in told] == [(followed, ("rita",)), (follower, ("rita",))]
        with pytest.raises(Conflict, match="so there is nothing that could follow it"):
            ledger.operations.register(undo(follows=followed))


def test_what_follows_goes_on_after_what_succeeded(ledger: SqlLedger) -> None:
    executed(ledger)
    ledger.operations.register(message())
    ledger.operations.move(TENANT, OPERATION, State.SUCCEEDED, "", LATER)
    assert ledger.operations.get(TENANT, "report-7.message").state == State.CREATED
    assert ledger.operations.register(undo()).follows == OPERATION


def test_a_follower_that_was_begun_is_not_ended_by_an_end_that_comes_late(ledger: SqlLedger) -> None:
    executed(ledger)
    ledger.operations.register(message())
    ledger.operations.move(TENANT, "report-7.message", State.RUNNING, "", LATER)
    ledger.operations.move(TENANT, OPERATION, State.FAILED, "reason", LATER)
    assert ledger.operations.get(TENANT, "report-7.message").state == State.RUNNING
    # What was done can be taken back, whatever the run made of it.
    assert ledger.operations.register(undo()).follows == OPERATION


@pytest.mark.guarantee("G38")
def test_of_two_ends_and_registrations_at_once_no_follower_is_left_waiting_for_nothing(ledger: SqlLedger) -> None:
    for number in range(8):
        ledger.operations.register(operation(f"op-{number}"))

    def end(number: int) -> str:
        ledger.operations.move(TENANT, f"op-{number}", State.REJECTED, "rejected", LATER)
        return "ended"

    def follow(number: int) -> str:
        try:
            ledger.operations.register(undo(f"op-{number}.message", case="message", follows=f"op-{number}"))
        except Conflict:
            return "refused"
        return "registered"

    with ThreadPoolExecutor(16) as threads:
        ends = [threads.submit(end, number) for number in range(8)]
        follows = [threads.submit(follow, number) for number in range(8)]
        assert [one.result() for one in ends] == ["ended"] * 8
        said = Counter(one.result() for one in follows)
    states = Counter(one.state for one in ledger.operations.list(TENANT) if one.follows)
    assert states == ({State.CANCELLED: said["registered"]} if said["registered"] else {})
    ledger.audit.verify(TENANT)


FACTS, OTHER_FACTS = sha256_hex(b"facts"), sha256_hex(b"other facts")


def test_the_facts_that_were_gathered_last_are_what_an_operation_rests_on(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    with pytest.raises(NotFound, match=f"facts of operation '{OPERATION}' is not there"):
        ledger.operations.facts(TENANT, OPERATION)
    for gathered in (FACTS, FACTS, OTHER_FACTS, FACTS):
        ledger.operations.gathered(TENANT, OPERATION, gathered, LATER)
        assert ledger.operations.facts(TENANT, OPERATION) == gathered
    records = [one for one in ledger.audit.records(TENANT, OPERATION) if one.type == "facts.gathered"]
    assert [(one.subject, one.detail) for one in records] == [
        ("gateway", {"facts": gathered, "number": number})
        for number, gathered in enumerate((FACTS, OTHER_FACTS, FACTS), start=1)
    ]


def test_no_facts_are_gathered_for_what_is_not_there_or_has_ended(ledger: SqlLedger) -> None:
    with pytest.raises(NotFound):
        ledger.operations.gathered(TENANT, OPERATION, FACTS, NOW)
    ledger.operations.register(operation())
    ledger.operations.gathered(TENANT, OPERATION, FACTS, NOW)
    ledger.operations.move(TENANT, OPERATION, State.FAILED, "reason", NOW)
    ledger.operations.gathered(TENANT, OPERATION, FACTS, NOW)
    with pytest.raises(Conflict, match="has ended as FAILED"):
        ledger.operations.gathered(TENANT, OPERATION, OTHER_FACTS, NOW)
    assert audit_types(ledger).count("facts.gathered") == 1
