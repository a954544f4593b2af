"""People, freezes, clocks and runs that come at once, from two processes: one wins, and nobody is told otherwise."""

from __future__ import annotations

import pytest

from countersign.domain.execution import ExecutionStatus
from countersign.domain.need import Ladder
from countersign.domain.policy import Answer, Assessment
from countersign.domain.proposal import ApprovalStatus
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    NOW,
    OPERATION,
    ROOM,
    TENANT,
    VIEW,
    audit_types,
    granted,
    need,
    operation,
    person,
    proposal,
)
from tests.ledger.founding import found
from tests.ledger.test_races import Start, race, racers, told

pytestmark = pytest.mark.long

__all__ = ["racers"]


@pytest.fixture
def leads(empty_ledger: SqlLedger) -> SqlLedger:
    """A ledger with a lead for each thread of two racers."""
    found(empty_ledger, more=[person(f"person-{racer}-{number}", "lead") for racer in "ab" for number in range(10)])
    empty_ledger.operations.register(operation())
    return empty_ledger


@pytest.mark.guarantee("G28")
def test_of_twenty_takers_at_once_one_wins_and_all_others_learn_who(leads: SqlLedger, racers: Start) -> None:
    answers = race(racers, "take_over")
    (winner,) = told(answers, "accepted")
    name = winner.partition(":")[0]
    assert winner == f"{name}:{name}"
    assert len(told(answers, "stale_control")) == 19
    assert {answer.rpartition(":")[2] for answer in answers} == {name}
    control = leads.controls.standing(TENANT, OPERATION).control
    assert (control.person, control.version) == (name, 2)
    assert (audit_types(leads).count("control.changed"), audit_types(leads).count("command.refused")) == (1, 19)
    leads.audit.verify(TENANT)


@pytest.mark.guarantee("G29")
@pytest.mark.guarantee("G30")
def test_of_a_takeover_and_a_claim_at_once_the_claim_came_first_or_never(leads: SqlLedger, racers: Start) -> None:
    granted(leads)
    answers = race(racers, "take_over_and_claim")
    kinds = audit_types(leads)
    assert len(told(answers, "accepted")) == 1
    status = leads.approvals.get(TENANT, "approval-1").status
    if "effect.intended" in kinds:
        assert kinds.index("effect.intended") < kinds.index("control.changed")
        assert (answers["intended"], answers["UNAVAILABLE"], status) == (1, 9, ApprovalStatus.GRANTED)
    else:
        assert (answers["intended"], answers["CONFLICT"], status) == (0, 10, ApprovalStatus.SUPERSEDED)
    leads.audit.verify(TENANT)


@pytest.mark.guarantee("G45")
def test_once_a_freeze_has_returned_nothing_is_claimed_any_more(ledger: SqlLedger, racers: Start) -> None:
    for name in (f"{racer}-{number}" for racer in "ab" for number in range(9)):
        granted(ledger, proposal(f"approval-{name}", operation=f"op-{name}"))
    answers = race(racers, "freeze_and_claim")
    kinds = audit_types(ledger)
    first = kinds.index("effects.frozen")
    assert "effect.intended" not in kinds[first:]
    assert told(answers, "frozen_after") == {str(kinds.count("effect.intended"))}
    assert kinds.count("effect.held") == 18
    executions = [ledger.executions.get(TENANT, one.operation) for one in ledger.operations.list(TENANT)]
    assert {one.status for one in executions if one is not None} <= {ExecutionStatus.NOT_SENT}
    ledger.audit.verify(TENANT)


@pytest.mark.guarantee("G27")
def test_a_tick_that_comes_twenty_times_at_once_fires_once(ledger: SqlLedger, racers: Start) -> None:
    reminded = need().model_copy(update={"ladder": Ladder(remind=("5m",))})
    assessed = Assessment(answer=Answer.PEOPLE, rules=("rule-1",), needs=(reminded,))
    ledger.operations.register(operation())
    ledger.approvals.open(proposal(assessment=assessed), "run-1", VIEW, NOW, ROOM)
    assert race(racers, "mark") == {"pending": 20}
    assert audit_types(ledger).count("approval.reminded") == 1
    assert len(ledger.outbox.unaddressed(TENANT, 10)) == 2


@pytest.mark.guarantee("G23")
def test_of_twenty_runs_that_take_a_line_on_at_once_one_carries_it(ledger: SqlLedger, racers: Start) -> None:
    ledger.operations.register(operation())
    ledger.operations.hand_on(TENANT, OPERATION, "run-1", "run-1", NOW)
    answers = race(racers, "take_on")
    assert told(answers, "taken_on") == {ledger.operations.present_run(TENANT, OPERATION, "run-1")}
    assert answers["CONFLICT"] == 19
    assert audit_types(ledger).count("run.taken_on") == 1
