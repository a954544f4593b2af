"""Lines of runs: a run that goes on in a next one is known, and no other run passes for that (G23)."""

from __future__ import annotations

import pytest

from countersign.domain.errors import Conflict, NotFound
from countersign.ledger import SqlLedger
from tests.ledger.builders import NOW, OPERATION, TENANT, audit_types, operation


@pytest.fixture(autouse=True)
def registered(ledger: SqlLedger) -> None:
    """The operation that everything here is about."""
    ledger.operations.register(operation())


def hand_on(ledger: SqlLedger, run_id: str, line: str = "run-1") -> None:
    ledger.operations.hand_on(TENANT, OPERATION, line, run_id, NOW)


def take_on(ledger: SqlLedger, run_id: str, line: str = "run-1") -> None:
    ledger.operations.take_on(TENANT, OPERATION, line, run_id, NOW)


def present(ledger: SqlLedger, line: str = "run-1") -> str:
    return ledger.operations.present_run(TENANT, OPERATION, line)


@pytest.mark.guarantee("G23")
def test_a_line_goes_from_run_to_run_and_between_two_the_one_before_carries_it(ledger: SqlLedger) -> None:
    assert present(ledger) == "run-1"
    for before, after in (("run-1", "run-2"), ("run-2", "run-3")):
        hand_on(ledger, before)
        hand_on(ledger, before)
        assert present(ledger) == before
        take_on(ledger, after)
        take_on(ledger, after)
        assert present(ledger) == after
    handed = ["run.handed_on", "run.taken_on"]
    assert audit_types(ledger)[1:] == handed * 2


@pytest.mark.guarantee("G23")
def test_a_run_that_nobody_handed_anything_on_to_takes_nothing_on(ledger: SqlLedger) -> None:
    before = audit_types(ledger)
    for ask in (hand_on, take_on):
        with pytest.raises(Conflict, match="carried by run run-1"):
            ask(ledger, "run-9")
    hand_on(ledger, "run-1")
    take_on(ledger, "run-2")
    for ask, run_id in ((take_on, "run-9"), (hand_on, "run-9"), (hand_on, "run-1")):
        with pytest.raises(Conflict, match="carried by run run-2"):
            ask(ledger, run_id)
    assert present(ledger) == "run-2"
    assert present(ledger, "run-9") == "run-9", "it begins a line of its own, which no vote of another belongs to"
    assert audit_types(ledger) == [*before, "run.handed_on", "run.taken_on"]


@pytest.mark.guarantee("G23")
def test_between_two_runs_only_the_one_that_handed_on_may_say_so_again(ledger: SqlLedger) -> None:
    hand_on(ledger, "run-1")
    with pytest.raises(Conflict, match="carried by no run yet"):
        hand_on(ledger, "run-9")


def test_what_is_not_there_has_no_line_to_hand_on(ledger: SqlLedger) -> None:
    for ask in (ledger.operations.hand_on, ledger.operations.take_on):
        with pytest.raises(NotFound, match="nowhere"):
            ask(TENANT, "nowhere", "run-1", "run-1", NOW)
