"""What earlier approvals count for: money spent and approved in windows, and rejections that are not forgotten."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.errors import NotFound
from countersign.domain.money import Amount
from countersign.domain.policy import Spent, Window
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Rejection
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    DEADLINE,
    NOW,
    OTHER_HASH,
    ROOM,
    TENANT,
    VIEW,
    action,
    claim,
    command,
    decide,
    operation,
    proposal,
    receipt,
    send,
    statement,
)
from tests.ledger.founding import found

DAY, WEEK = Window(within="1d"), Window(within="7d")
TO_TARGET = Window(within="7d", per="target")
OTHER = "globex"


def eur(minor: int) -> Amount:
    return Amount(currency="EUR", minor=minor)


def refund(number: int, minor: int = 100, *, approvals: int = 1, tenant: str = TENANT, **acting: Any) -> Proposal:
    """One of many refunds, each of an operation of its own."""
    fields = {"tool": "refund", "target": "card-1", "amount": eur(minor), **acting}
    return proposal(
        f"approval-{number}", operation=f"refund-{number}", tenant=tenant, approvals=approvals, acting=fields
    )


def opened(ledger: SqlLedger, proposed: Proposal, now: datetime = NOW) -> Approval:
    ledger.operations.register(operation(proposed.operation, tenant=proposed.tenant))
    return ledger.approvals.open(proposed, "run-1", VIEW, now, ROOM)


def say(
    ledger: SqlLedger, proposed: Proposal, by: str = "bob", decision: str = "approve", *,
    now: datetime = NOW + timedelta(minutes=1), **changes: Any,
) -> Outcome:  # fmt: skip
    said = statement(proposed, by, id=f"{decision}-{by}-{proposed.approval_id}", decision=decision, **changes)
    return decide(ledger, said, message_id=f"{by}-{decision}", now=now)


def spent(ledger: SqlLedger, *windows: Window, **more: Any) -> list[int]:
    """What has been spent when the next refund is assessed."""
    asked = refund(99, **{key: value for key, value in more.items() if key not in ("before", "now")}).action
    found = ledger.approvals.spent(asked, windows, more.get("before"), more.get("now", NOW))
    assert [one.window for one in found] == list(windows)
    return [one.minor for one in found]


def expire(ledger: SqlLedger, proposed: Proposal) -> None:
    ledger.approvals.settle(TENANT, proposed.approval_id, ApprovalStatus.EXPIRED, DEADLINE)


def void(ledger: SqlLedger, proposed: Proposal) -> None:
    say(ledger, proposed)
    assert ledger.approvals.void(TENANT, proposed.approval_id, "drift", "a", "b", NOW) == ApprovalStatus.VOIDED


def execute(ledger: SqlLedger, approval: Approval, now: datetime) -> None:
    granted = ledger.approvals.get(approval.proposal.tenant, approval.proposal.approval_id)
    execution = claim(ledger, granted, now)
    ledger.executions.finish(execution, receipt(execution), now)


@pytest.mark.guarantee("G08")
def test_what_is_pending_granted_or_executed_counts_and_what_ended_otherwise_does_not(ledger: SqlLedger) -> None:
    opened(ledger, refund(1, 1))
    say(ledger, opened(ledger, refund(2, 10)).proposal)
    done = opened(ledger, refund(3, 100))
    say(ledger, done.proposal)
    execute(ledger, done, NOW)
    ends: list[Callable[[SqlLedger, Proposal], object]] = [
        expire, void, lambda ledger, one: say(ledger, one, decision="reject"),
        lambda ledger, one: send(ledger, command("withdraw", "rita", operation=one.operation)),
    ]  # fmt: skip
    for number, end in enumerate(ends, start=4):
        end(ledger, opened(ledger, refund(number, 1_000)).proposal)
    assert spent(ledger, DAY, WEEK) == [111, 111]


@pytest.mark.guarantee("G08")
def test_only_the_same_tenant_tool_currency_and_where_asked_target_count(ledger: SqlLedger) -> None:
    found(ledger, OTHER)
    opened(ledger, refund(1, 1))
    opened(ledger, refund(2, 10, target="card-2"))
    opened(ledger, refund(3, 1_000, tool="pay"))
    opened(ledger, refund(4, 1_000, amount=Amount(currency="USD", minor=1_000)))
    opened(ledger, refund(5, 1_000, tenant=OTHER))
    opened(ledger, refund(6, 1_000, amount=None))
    opened(ledger, refund(99, 1_000))
    assert spent(ledger, WEEK, TO_TARGET) == [11, 1]


@pytest.mark.guarantee("G08")
def test_an_executed_amount_counts_until_its_window_is_over_and_an_open_one_for_ever(ledger: SqlLedger) -> None:
    done = opened(ledger, refund(1, 1))
    say(ledger, done.proposal)
    execute(ledger, done, NOW)
    opened(ledger, refund(2, 10))
    end = NOW + timedelta(days=1)
    assert spent(ledger, DAY, now=end) == [11]
    assert spent(ledger, DAY, WEEK, now=end + timedelta(microseconds=1)) == [10, 11]


@pytest.mark.guarantee("G08")
def test_what_may_have_gone_out_counts(ledger: SqlLedger) -> None:
    unclear = opened(ledger, refund(1, 1))
    say(ledger, unclear.proposal)
    execution = claim(ledger, ledger.approvals.get(TENANT, "approval-1"))
    ledger.executions.unknown(execution, "no answer", NOW)
    assert spent(ledger, DAY, now=NOW + timedelta(days=30)) == [1]


@pytest.mark.guarantee("G08")
def test_of_two_approvals_the_later_one_counts_the_other_and_the_earlier_does_not(ledger: SqlLedger) -> None:
    """Later is what came later to the ledger, whatever time the runs had: only that is one order for all."""
    first = opened(ledger, refund(1, 1), NOW + timedelta(minutes=5))
    second, third = opened(ledger, refund(2, 10)), opened(ledger, refund(3, 100))
    opened(ledger, refund(4, 1_000), NOW - timedelta(minutes=5))
    assert [spent(ledger, DAY, before=one)[0] for one in (first, second, third)] == [0, 1, 11]
    with pytest.raises(NotFound, match="approval-7"):
        spent(ledger, DAY, before=first.model_copy(update={"proposal": refund(7)}))


@pytest.mark.guarantee("G08")
def test_of_many_that_are_opened_at_once_each_pair_has_a_later_one_that_counts_the_other(ledger: SqlLedger) -> None:
    asked = [refund(number, 1) for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda one: opened(ledger, one), asked))
    assert sorted(spent(ledger, DAY, before=one)[0] for one in made) == [*range(8)]


def test_an_action_without_an_amount_spends_nothing(ledger: SqlLedger) -> None:
    opened(ledger, refund(1))
    assert ledger.approvals.spent(action(tool="refund"), [DAY], None, NOW) == (Spent(window=DAY, minor=0),)


@pytest.mark.guarantee("G08")
def test_many_small_yeses_of_one_person_do_not_pass_what_one_large_one_would_not(ledger: SqlLedger) -> None:
    """bob may approve 1000.00 EUR at once and 2500.00 EUR in a week."""
    rulings = [say(ledger, opened(ledger, refund(number, 90_000)).proposal).ruling for number in range(1, 5)]
    assert rulings == [Ruling.ACCEPTED, Ruling.ACCEPTED, Ruling.LIMIT_EXCEEDED, Ruling.LIMIT_EXCEEDED]
    assert say(ledger, refund(3, 90_000), "carl").ruling == Ruling.ACCEPTED
    bob = ledger.directory.persons(TENANT)["bob"]
    assert ledger.approvals.approved_by(bob, refund(4).action, NOW) == 180_000
    assert ledger.approvals.approved_by(bob, refund(1).action, NOW) == 90_000


@pytest.mark.guarantee("G08")
def test_yeses_of_one_person_in_many_operations_at_once_do_not_pass_the_limit_either(ledger: SqlLedger) -> None:
    asked = [opened(ledger, refund(number, 90_000)).proposal for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        rulings = list(threads.map(lambda one: say(ledger, one).ruling, asked))
    assert sorted(rulings) == [Ruling.ACCEPTED] * 2 + [Ruling.LIMIT_EXCEEDED] * 6


@pytest.mark.guarantee("G08")
def test_a_persons_own_sum_forgets_no_and_what_came_to_nothing_and_what_is_long_ago(ledger: SqlLedger) -> None:
    bob = ledger.directory.persons(TENANT)["bob"]
    say(ledger, opened(ledger, refund(1, 1, approvals=2)).proposal)
    say(ledger, opened(ledger, refund(2, 10)).proposal, "carl")
    say(ledger, opened(ledger, refund(3, 100)).proposal, decision="reject")
    void(ledger, opened(ledger, refund(4, 1_000)).proposal)
    glass = opened(ledger, refund(5, 10_000, approvals=2)).proposal
    say(ledger, glass, decision="break_glass", comment_hash=OTHER_HASH)
    say(ledger, opened(ledger, refund(6, 50_000, tool="pay")).proposal)
    voted_at = NOW + timedelta(minutes=1)
    assert ledger.approvals.approved_by(bob, refund(99).action, voted_at) == 60_001
    end = voted_at + timedelta(days=7)
    assert ledger.approvals.approved_by(bob, refund(99).action, end) == 60_001
    assert ledger.approvals.approved_by(bob, refund(99).action, end + timedelta(microseconds=1)) == 0
    usd = refund(99, amount=Amount(currency="USD", minor=1)).action
    assert ledger.approvals.approved_by(bob, usd, voted_at) == 0


def reject(ledger: SqlLedger, number: int, now: datetime, by: str = "bob", **changes: Any) -> None:
    proposed = proposal(f"approval-{number}", operation=f"op-{number}", **changes)
    opened(ledger, proposed)
    assert say(ledger, proposed, by, "reject", now=now, comment_hash=OTHER_HASH).status == ApprovalStatus.REJECTED


def test_a_rejected_action_is_known_again_under_another_name(ledger: SqlLedger) -> None:
    at = NOW + timedelta(minutes=5)
    reject(ledger, 1, NOW + timedelta(minutes=1))
    reject(ledger, 2, at, "carl", approvals=2)
    reject(ledger, 3, at + timedelta(minutes=1), content=b"another text")
    again = action(operation="op-4", target="public/other-name")
    expected = Rejection(operation="op-2", person="carl", at=at, comment_hash=OTHER_HASH)
    assert ledger.approvals.rejection_like(again, NOW) == expected
    assert ledger.approvals.rejection_like(again, at) == expected
    assert ledger.approvals.rejection_like(again, at + timedelta(microseconds=1)) is None
    assert ledger.approvals.rejection_like(action(b"a third text"), NOW) is None


def test_the_no_is_told_and_not_a_yes_of_the_same_approval_whose_clock_was_ahead(ledger: SqlLedger) -> None:
    proposed = opened(ledger, proposal(approvals=2)).proposal
    say(ledger, proposed, "bob", now=NOW + timedelta(minutes=9))
    say(ledger, proposed, "carl", "reject", now=NOW + timedelta(minutes=5))
    rejection = ledger.approvals.rejection_like(action(), NOW)
    assert rejection is not None
    assert rejection.person == "carl"


@pytest.mark.guarantee("G09")
def test_another_tenants_rejection_is_not_told(ledger: SqlLedger) -> None:
    found(ledger, OTHER)
    reject(ledger, 1, NOW + timedelta(minutes=1), tenant=OTHER)
    assert ledger.approvals.rejection_like(action(), NOW) is None


def test_what_was_approved_is_no_rejection(ledger: SqlLedger) -> None:
    first = proposal(approvals=2)
    opened(ledger, first)
    say(ledger, first)
    say(ledger, first, "carl")
    assert ledger.approvals.rejection_like(action(), NOW) is None


def test_what_lies_at_a_target_is_what_was_executed_there_last(ledger: SqlLedger) -> None:
    assert ledger.executions.at_target(TENANT, "public/report") is None
    for number, minutes in ((1, 5), (2, 1)):
        approval = opened(ledger, proposal(f"approval-{number}", operation=f"op-{number}", content=b"%d" % number))
        say(ledger, approval.proposal)
        execute(ledger, approval, NOW + timedelta(minutes=minutes))
    elsewhere = opened(ledger, proposal("approval-3", operation="op-3", acting={"target": "public/other"}))
    say(ledger, elsewhere.proposal)
    execute(ledger, elsewhere, NOW + timedelta(minutes=9))
    pending = opened(ledger, proposal("approval-4", operation="op-4"))
    last = ledger.executions.get(TENANT, "op-1")
    assert last is not None
    assert ledger.executions.at_target(TENANT, pending.proposal.action.target) == last.receipt
