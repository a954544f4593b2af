"""What people did with a run stays so, whatever the run says, and after a reset as well."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ApplicationError

from activities.interfaces import OpenOrder, RunPlan, StateRecord
from countersign.domain.command import Ending
from countersign.domain.decision import Ruling
from countersign.domain.state import State
from tests.activities.desk import OPERATION, Desk


def opened(desk: Desk, run_id: str = "after-a-reset") -> RunPlan:
    return desk.as_run(run_id).run(desk.opening.open_run, OpenOrder(run=desk.order, now=desk.now()))


def record(desk: Desk, state: State, reason: str) -> None:
    order = StateRecord(tenant="acme", operation=OPERATION, state=state, reason=reason, now=desk.now())
    desk.as_run().run(desk.opening.record_state, order)


def test_a_run_begins_with_the_agent_in_control(desk: Desk) -> None:
    plan = opened(desk)
    assert (plan.control.by, plan.control.version, plan.ending) == ("agent", 1, None)


@pytest.mark.guarantee("G23", "G30")
def test_a_run_that_was_reset_is_still_the_persons_who_took_it_over(desk: Desk) -> None:
    assert desk.command("lena", "take_over").ruling == Ruling.ACCEPTED
    plan = opened(desk)
    assert (plan.control.person, plan.control.version) == ("lena", 2)


@pytest.mark.guarantee("G23")
def test_a_run_that_was_reset_after_its_end_is_told_of_it(desk: Desk) -> None:
    assert desk.command("olga", "cancel").ruling == Ruling.ACCEPTED
    assert opened(desk).ending == Ending(state=State.CANCELLED, reason="cancelled_by_operator")


@pytest.mark.guarantee("G22")
@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State.WITHDRAWN, "withdrawn"),
        (State.WITHDRAWN, "anything else"),
        (State.CANCELLED, "superseded"),
        (State.CANCELLED, "cancelled_by_operator"),
        (State.HUMAN_TAKEOVER, "taken_over"),
    ],
)
def test_what_no_person_commanded_is_not_written_down(desk: Desk, state: State, reason: str) -> None:
    with pytest.raises(ApplicationError) as refused:
        record(desk, state, reason)
    assert (refused.value.type, refused.value.non_retryable) == ("CONFLICT", True)
    assert desk.ledger.operations.get("acme", OPERATION).state == State.CREATED


@pytest.mark.guarantee("G22")
def test_a_run_ends_as_the_person_said_and_not_otherwise(desk: Desk) -> None:
    desk.command("rita", "withdraw")
    for state, reason in ((State.CANCELLED, "superseded"), (State.WITHDRAWN, "superseded")):
        with pytest.raises(ApplicationError):
            record(desk, state, reason)
    record(desk, State.WITHDRAWN, "withdrawn")
    assert desk.ledger.operations.get("acme", OPERATION).state == State.WITHDRAWN


def test_a_takeover_is_written_down_and_so_is_temporals_own_cancel(desk: Desk) -> None:
    desk.command("lena", "take_over")
    for state, reason in ((State.HUMAN_TAKEOVER, "taken_over"), (State.CANCELLED, "cancelled")):
        record(desk, state, reason)
    assert desk.ledger.operations.get("acme", OPERATION).state == State.CANCELLED
