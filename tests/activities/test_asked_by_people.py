"""A person proposes, and time passes: who is an author, what is asked anew, and who is asked at each tick."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.interfaces import Marked, MarkOrder, Proposed, SettleOrder
from countersign.domain.decision import Ruling
from countersign.domain.proposal import ApprovalStatus
from tests.activities.desk import OPERATION, Desk, a_draft

NAMED: dict[str, Any] = {"tenant": "acme", "operation": OPERATION}


def taken(desk: Desk) -> Desk:
    """Lena took the run over while the agent's proposal was pending, and wrote a version of her own."""
    desk.passed()
    desk.propose()
    assert desk.command("lena", "take_over").ruling == Ruling.ACCEPTED
    content = desk.put(a_draft("Lena's"))
    assert desk.command("lena", "amend", draft_version=1, content=content).ruling == Ruling.ACCEPTED
    return desk


def propose(desk: Desk, draft_version: int, **changes: Any) -> Proposed:
    step = desk.step(draft_version=draft_version, control_version=2)
    return desk.propose(approval_version=2, step=step, proposed_by="lena", **changes)


@pytest.mark.guarantee("G02")
def test_whoever_wrote_or_proposed_it_is_its_author_and_may_not_approve(desk: Desk) -> None:
    taken(desk).passed(2, control_version=2)
    propose(desk, 2)
    proposal = desk.proposal
    assert (proposal.summary, proposal.proposed_by, proposal.authors) == ("Lena's", "lena", ("lena",))
    assert (proposal.approval_version, proposal.control_version, proposal.draft_version) == (2, 2, 2)
    vote = desk.ledger.approvals.of_operation("acme", OPERATION)
    assert [approval.status for approval in vote] == [ApprovalStatus.SUPERSEDED, ApprovalStatus.PENDING]


def test_a_persons_version_passes_the_same_checks_and_grade_or_is_not_proposed(desk: Desk) -> None:
    with pytest.raises(ApplicationError) as refused:
        propose(taken(desk), 2)
    assert refused.value.type == "CONFLICT"


@pytest.mark.guarantee("G14")
def test_arguments_that_the_person_gave_are_what_is_put_before_people(desk: Desk) -> None:
    content = taken(desk).put({"channel": "public", "name": "op-1.md", "title": "Sales of the year"})
    propose(desk, 1, content=content)
    assert desk.proposal.action.args["title"] == "Sales of the year"
    assert "edited title was checked" in desk.proposal.checks


def test_the_agent_proposes_no_arguments_of_its_own(desk: Desk) -> None:
    desk.passed()
    content = desk.put({"channel": "public", "name": "op-1.md", "title": "Sales of the year"})
    with pytest.raises(ApplicationError) as refused:
        desk.propose(content=content)
    assert refused.value.type == "CONFLICT"


@pytest.mark.guarantee("G24")
def test_what_expired_is_asked_anew_only_in_other_hands(desk: Desk) -> None:
    desk.passed()
    desk.propose()
    desk.later = timedelta(hours=5)
    order = SettleOrder(**NAMED, approval_id=desk.proposal.approval_id, status=ApprovalStatus.EXPIRED, now=desk.now())
    assert desk.as_run().run(desk.deciding.settle, order) == ApprovalStatus.EXPIRED
    with pytest.raises(ApplicationError) as refused:
        desk.propose(approval_version=2)
    assert refused.value.type == "CONFLICT"
    assert desk.command("lena", "take_over").ruling == Ruling.ACCEPTED
    assert propose(desk, 1).status == ApprovalStatus.PENDING


def mark(desk: Desk, tick: int) -> Marked:
    order = MarkOrder(**NAMED, approval_id=desk.proposal.approval_id, tick=tick, now=desk.now())
    return desk.as_run().run(desk.deciding.mark, order)


@pytest.mark.guarantee("G27")
def test_each_tick_fires_once_at_its_time_and_says_who_is_asked_then(desk: Desk) -> None:
    desk.passed()
    proposed = desk.propose()
    start = desk.proposal.proposed_at
    assert [at - start for at in proposed.ticks] == [timedelta(hours=1), timedelta(hours=2)]
    assert (proposed.freezes, proposed.roles, proposed.deadline - start) == (True, ("reviewer",), timedelta(hours=4))
    with pytest.raises(ApplicationError) as refused:
        mark(desk, 0)
    assert refused.value.type == "INPUT_REFUSED"
    desk.later = timedelta(hours=2, minutes=1)
    for _ in range(2):
        assert mark(desk, 0) == Marked(status=ApprovalStatus.PENDING, escalated=False, roles=("reviewer",))
        assert mark(desk, 1) == Marked(status=ApprovalStatus.PENDING, escalated=True, roles=("reviewer", "lead"))
    assert (len(desk.records("approval.reminded")), len(desk.records("approval.escalated"))) == (1, 1)
    with pytest.raises(ApplicationError):
        mark(desk, 2)


@pytest.mark.guarantee("G27")
def test_nothing_is_asked_of_further_people_once_it_is_decided(desk: Desk) -> None:
    desk.passed()
    desk.propose()
    desk.later = timedelta(hours=3)
    desk.command("olga", "cancel")
    assert mark(desk, 1).status == ApprovalStatus.CANCELLED
    assert desk.records("approval.escalated") == []
