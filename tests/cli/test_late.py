"""A decision that comes after the deadline: refused, with what to do instead, and on the record all the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from countersign.cli.session import now
from countersign.domain.proposal import ApprovalStatus, Proposal
from countersign.domain.state import State
from tests.cli.desk import ACME, TENANT, Desk

OPERATION = "report-7"
BOB = (*ACME, "--as", "bob")


@pytest.fixture
def expired(desk: Desk) -> Proposal:
    """Nobody decided in time, and the run has ended; the desk has no Temporal server that could be asked."""
    made = desk.asked(deadline=now() - timedelta(seconds=1), execute_by=now() + timedelta(hours=1))
    desk.ledger.approvals.settle(TENANT, made.approval_id, ApprovalStatus.EXPIRED, now())
    return made


@pytest.mark.guarantee("G26", "G47")
@pytest.mark.parametrize(
    "command",
    [["approve"], ["reject", "--comment", "no"], ["edit", "--set", "title=Turnover", "--yes"]],
)
def test_a_late_decision_is_refused_and_recorded_as_late(desk: Desk, expired: Proposal, command: list[str]) -> None:
    desk.stands(OPERATION, State.EXPIRED)

    answer = desk.cli(command[0], OPERATION, *BOB, *command[1:])

    assert answer.code == 1
    assert "refused: late: expired, not executed: the deadline had passed" in answer.err
    assert "ask again under a new operation id" in answer.err
    record = [*desk.ledger.audit.records(TENANT, OPERATION)][-1]
    assert (record.type, record.subject, record.detail["ruling"]) == ("decision.refused", "bob", "late")
    assert (record.detail["transport"], record.detail["decision"]) == ("cli", command[0])
    assert desk.ledger.approvals.get(TENANT, expired.approval_id).status == ApprovalStatus.EXPIRED
    assert desk.ledger.approvals.get(TENANT, expired.approval_id).votes == ()


def test_a_late_decision_answers_a_program_too(desk: Desk, expired: Proposal) -> None:
    desk.stands(OPERATION, State.EXPIRED)

    answer = desk.cli("approve", OPERATION, *BOB, "--json")

    assert answer.code == 1
    assert (answer.json()["sent_as"], answer.json()["outcome"]["ruling"]) == ("cli", "late")


def test_where_the_run_is_held_the_late_voter_learns_who_can_still_act(desk: Desk, expired: Proposal) -> None:
    desk.stands(OPERATION, State.ESCALATED, "undecided_at_deadline")

    answer = desk.cli("approve", OPERATION, *BOB)

    assert "held until somebody takes it over or ends it" in answer.err
    assert f"starter.py brief {OPERATION} --tenant acme" in answer.err


def test_nothing_late_is_kept_in_a_file(desk: Desk, expired: Proposal, tmp_path: Path) -> None:
    answer = desk.cli("sign", "approve", OPERATION, *BOB, "--out", tmp_path / "late.json")

    assert answer.code == 1
    assert not (tmp_path / "late.json").exists()
