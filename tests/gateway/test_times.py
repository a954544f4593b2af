"""When it was proposed and decided, and that nothing is executed for what has ended."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import Approval
from countersign.domain.state import State
from countersign.signing.statements import LEEWAY
from tests.gateway.attempt import Attempt
from tests.gateway.tampering import changed_json
from tests.gateway.world import START, TENANT, World

EXECUTED = ExecutionStatus.EXECUTED
A_SECOND = timedelta(seconds=1)


@pytest.mark.guarantee("G22")
@pytest.mark.guarantee("G25")
@pytest.mark.parametrize("channel", ["press", "internal"])
def test_what_is_proposed_in_times_to_come(world: World, attempt: Attempt, channel: str) -> None:
    """By people or by rule: its windows would be open for longer than the policy says."""
    persons = ("bob",) if channel == "press" else ()
    approval = world.granted(channel=channel, by_persons=persons)
    to_come = (world.now + LEEWAY + A_SECOND).isoformat()
    world.tamper("approvals", "proposal", changed_json("proposed_at", to=to_come))
    attempt.is_forged(approval, "proposed_at")


@pytest.mark.guarantee("G25")
def test_a_clock_that_is_a_little_ahead_is_no_forgery(world: World, attempt: Attempt) -> None:
    world.now = START + LEEWAY - A_SECOND
    approval = world.granted()
    world.now = START
    assert attempt.execute(approval).status == EXECUTED


def moved(world: World, approval: Approval, later: datetime) -> None:
    """Move the proposal, with the times that its policy then gives it."""
    deadline, execute_by = approval.proposal.assessment.times(later)
    for field, moment in (("proposed_at", later), ("deadline", deadline), ("execute_by", execute_by)):
        world.tamper("approvals", "proposal", changed_json(field, to=moment.isoformat()))


@pytest.mark.guarantee("G22")
def test_a_vote_from_before_the_proposal(world: World, attempt: Attempt) -> None:
    """Signed and decided at one time, the proposal moved behind both."""
    approval = world.granted()
    later = START + LEEWAY + A_SECOND
    moved(world, approval, later)
    world.now = later
    attempt.is_forged(approval, "vote_forged")


@pytest.mark.guarantee("G16")
def test_a_vote_just_as_far_before_as_clocks_may_differ(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    later = START + LEEWAY
    moved(world, approval, later)
    world.now = later
    assert attempt.execute(approval).status == EXECUTED


@pytest.mark.guarantee("G10")
@pytest.mark.parametrize("state", [state for state in State if state.terminal])
def test_an_operation_that_has_ended(world: World, attempt: Attempt, state: State) -> None:
    """Its grant may have been left open: the run ended before it could be settled, or was never told."""
    approval = world.granted()
    world.ledger.operations.move(TENANT, "q2-report", state, "", world.now)
    attempt.is_ended(approval, "operation_ended")


@pytest.mark.guarantee("G22")
def test_a_forged_grant_of_an_operation_that_has_ended_raises_its_alarm(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    world.ledger.operations.move(TENANT, "q2-report", State.FAILED, "", world.now)
    world.tamper("votes", "vote", changed_json("statement", to="no.jws.here"))
    attempt.is_forged(approval, "vote_forged")


@pytest.mark.guarantee("G33")
def test_what_was_executed_before_it_ended_stays_known(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    first = attempt.execute(approval)
    world.ledger.operations.move(TENANT, "q2-report", State.SUCCEEDED, "", world.now)
    assert (first.status, attempt.execute(approval)) == (EXECUTED, first)
    assert len(attempt.publisher.effects()) == 1
