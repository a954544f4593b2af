"""While nobody decides: reminders, further lines of people, the end of a ladder; each once, at its time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.edit import Edit
from countersign.domain.errors import InputRefused, NotFound
from countersign.domain.escalation import Severity
from countersign.domain.need import Ladder, Need, Tier
from countersign.domain.notice import NoticeKind
from countersign.domain.policy import Answer, Assessment
from countersign.domain.proposal import ApprovalStatus, Proposal
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    DEADLINE,
    NOW,
    OPERATION,
    ROOM,
    TENANT,
    VIEW,
    action,
    audit_types,
    decide,
    need,
    notices,
    operation,
    proposal,
    statement,
)

MINUTE = timedelta(minutes=1)


def laddered(approvals: int = 1, then: str = "expire") -> Need:
    """A reminder after 5 minutes, the leads after 15, the admins after 30."""
    tiers = (
        Tier(after="15m", role="lead", decisions=("approve", "reject"), tell=("operator",)),
        Tier(after="30m", role="admin", decisions=("approve", "reject")),
    )
    ladder = Ladder.model_validate({"remind": ("5m",), "tiers": tiers, "then": then})
    return need(approvals).model_copy(update={"ladder": ladder})


def asked(*needs: Need, **changes: Any) -> Proposal:
    return proposal(assessment=Assessment(answer=Answer.PEOPLE, rules=("rule-1",), needs=needs), **changes)


def opened(ledger: SqlLedger, *needs: Need) -> Proposal:
    """A pending proposal that needs them."""
    ledger.operations.register(operation())
    return ledger.approvals.open(asked(*(needs or (laddered(),))), "run-1", VIEW, NOW, ROOM).proposal


def mark(ledger: SqlLedger, tick: int, after: timedelta) -> ApprovalStatus:
    return ledger.approvals.mark(TENANT, "approval-1", tick, NOW + after)


def ticked(ledger: SqlLedger) -> list[str]:
    kinds = ("approval.reminded", "approval.escalated")
    return [kind for kind in audit_types(ledger) if kind in kinds]


@pytest.mark.guarantee("G27")
def test_each_tick_is_recorded_and_told_once_at_its_time(ledger: SqlLedger) -> None:
    opened(ledger)
    for tick, after in enumerate((5, 15, 30)):
        for late in (0, 3):
            assert mark(ledger, tick, (after + late) * MINUTE) == ApprovalStatus.PENDING
    assert ticked(ledger) == ["approval.reminded", "approval.escalated", "approval.escalated"]
    told = [(one.kind, one.roles, one.severity) for one in notices(ledger)[1:]]
    assert told == [
        (NoticeKind.APPROVAL_REMINDER, ("reviewer",), Severity.MEDIUM),
        (NoticeKind.APPROVAL_ESCALATED, ("lead", "operator"), Severity.HIGH),
        (NoticeKind.APPROVAL_ESCALATED, ("admin",), Severity.HIGH),
    ]
    records = [record for record in ledger.audit.records(TENANT) if record.type == "approval.escalated"]
    assert [(record.subject, record.detail["tick"]) for record in records] == [("clock", 1), ("clock", 2)]
    assert records[0].detail["roles"] == ["lead", "operator"]


@pytest.mark.guarantee("G27")
def test_no_tick_comes_before_its_time_and_none_that_there_is_not(ledger: SqlLedger) -> None:
    opened(ledger)
    with pytest.raises(InputRefused, match="not yet"):
        mark(ledger, 1, 15 * MINUTE - timedelta(microseconds=1))
    for tick in (-1, 3):
        with pytest.raises(InputRefused, match="has 3 ticks"):
            mark(ledger, tick, 59 * MINUTE)
    with pytest.raises(NotFound, match="approval-9"):
        ledger.approvals.mark(TENANT, "approval-9", 0, NOW)
    assert ticked(ledger) == []


@pytest.mark.guarantee("G27")
def test_nobody_is_reminded_of_what_is_settled(ledger: SqlLedger) -> None:
    proposed = opened(ledger)
    decide(ledger, statement(proposed, "bob"))
    assert mark(ledger, 0, 5 * MINUTE) == ApprovalStatus.GRANTED
    assert ticked(ledger) == []
    assert len(notices(ledger)) == 1


@pytest.mark.guarantee("G27")
def test_a_further_line_counts_from_its_time_on_and_lowers_nothing(ledger: SqlLedger) -> None:
    proposed = opened(ledger, laddered(approvals=2))

    def vote(by: str, after: timedelta, number: int) -> Outcome:
        said = statement(proposed, by, id=f"statement-number-{number}")
        return decide(ledger, said, message_id=f"m-{number}", now=NOW + after)

    assert vote("lena", 14 * MINUTE, 1).ruling == Ruling.ROLE_MISSING
    assert vote("lena", 15 * MINUTE, 2).status == ApprovalStatus.PENDING
    assert vote("lars", 16 * MINUTE, 3).status == ApprovalStatus.GRANTED


@pytest.mark.guarantee("G24")
@pytest.mark.parametrize(("then", "told"), [("expire", 1), ("freeze", 2)])
def test_at_the_deadline_it_is_expired_and_where_the_run_is_held_the_last_line_is_told(
    ledger: SqlLedger, then: str, told: int
) -> None:
    opened(ledger, laddered(then=then))
    for _ in range(2):
        assert ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.EXPIRED, DEADLINE) == ApprovalStatus.EXPIRED
    found = notices(ledger)
    assert len(found) == told
    if then == "freeze":
        assert (found[-1].kind, found[-1].roles, found[-1].severity) == (
            NoticeKind.APPROVAL_FROZEN, ("admin",), Severity.HIGH
        )  # fmt: skip


def test_an_edit_of_a_later_line_is_no_vote_of_the_first_line_of_what_it_made(ledger: SqlLedger) -> None:
    """The editor's vote is older than the new proposal, whose ladder begins anew."""
    tier = Tier(after="15m", role="lead", decisions=("approve", "edit"))
    wanted = need().model_copy(update={"ladder": Ladder(tiers=(tier,))})
    proposed = opened(ledger, wanted)
    edited = action(args={"channel": "internal"})
    assessed = Assessment(answer=Answer.PEOPLE, rules=("rule-1",), needs=(wanted,))
    said = statement(proposed, "lena", decision="edit", edited_action=edited.hash())
    at = NOW + 20 * MINUTE
    assert decide(ledger, said, edit=Edit(edited, assessed), now=at).status == ApprovalStatus.EDITED
    made = asked(
        wanted, approval_id="approval-2", version=2, acting={"args": {"channel": "internal"}}, authors=("lena",),
        edited_from="approval-1", proposed_at=at + MINUTE, deadline=DEADLINE + 21 * MINUTE,
    )  # fmt: skip
    assert ledger.approvals.open(made, "run-1", VIEW, at + MINUTE, ROOM).status == ApprovalStatus.PENDING
    assert ledger.operations.get(TENANT, OPERATION).operation == OPERATION
