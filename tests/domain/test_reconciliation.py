"""What counts as a disagreement between ledger, Temporal and the outside: one row of a table each, and what is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from countersign.domain.execution import Execution, ExecutionStatus, Receipt
from countersign.domain.operation import Operation
from countersign.domain.reconciliation import (
    SERVER,
    Disagreement,
    DisagreementKind,
    Effect,
    Gap,
    Look,
    SeenRun,
    Survey,
    disagreements,
    gaps,
    lasting,
)
from countersign.domain.state import State
from countersign.domain.values import Sha256

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
A_MINUTE = timedelta(minutes=1)
EXECUTED, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.UNKNOWN
INTENDED, NOT_SENT = ExecutionStatus.INTENDED, ExecutionStatus.NOT_SENT
KEY, HASH = "a" * 64, Sha256("sha256:" + "1" * 64)
NOTHING, SILENT = Look(), Look(untold="no_answer: it did not answer")


def receipt(**changes: Any) -> Receipt:
    return Receipt(**{"channel": "press", "key": KEY, "reference": "press/1", "content_hash": HASH, **changes})


THERE = Look(receipt=receipt())


def operation(state: State = State.SUCCEEDED, name: str = "op-1", follows: str = "") -> Operation:
    return Operation(
        tenant="acme", operation=name, case="report", request_hash=HASH, requester="rita", statement="a.b.c",
        state=state, registered_at=NOW, follows=follows,
    )  # fmt: skip


def execution(status: ExecutionStatus, claimed_until: datetime = NOW - A_MINUTE) -> Execution:
    return Execution(
        tenant="acme", operation="op-1", approval_id="apr-1", action_hash=HASH, key=KEY, status=status, attempt=1,
        claimed_until=claimed_until, receipt=receipt() if status == EXECUTED else None,
    )  # fmt: skip


def effect(status: ExecutionStatus | None = EXECUTED, look: Look = THERE, **changes: Any) -> Effect:
    its = execution(status) if status is not None else None
    fields = {"operation": "op-1", "channel": "press", "key": KEY, "execution": its, "look": look}
    return Effect(**{**fields, **changes})


def run(status: str = "COMPLETED", state: str = "SUCCEEDED", name: str = "op-1") -> SeenRun:
    return SeenRun(operation=name, run_id="run-1", status=status, state=state)


def survey(state: State = State.SUCCEEDED, *effects: Effect, **more: Any) -> Survey:
    return Survey(**{"operations": (operation(state),), "effects": effects, "runs": (run(),), **more})


def kinds(seen: Survey) -> list[DisagreementKind]:
    return [one.kind for one in disagreements(seen, NOW)]


OPEN = {"runs": (run("RUNNING", "EXECUTING"),)}
OTHER = Look(receipt=receipt(content_hash="sha256:" + "2" * 64))
ELSEWHERE = Look(receipt=receipt(reference="press/2"))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(survey(State.SUCCEEDED, effect(look=NOTHING)), [DisagreementKind.EFFECT_GONE], id="gone outside"),
        pytest.param(survey(State.SUCCEEDED, effect(look=OTHER)), [DisagreementKind.EFFECT_DIFFERS], id="another body"),
        pytest.param(
            survey(State.SUCCEEDED, effect(look=ELSEWHERE)), [DisagreementKind.EFFECT_DIFFERS], id="another reference"
        ),
        pytest.param(
            survey(State.EXECUTING, effect(UNKNOWN), **OPEN),
            [DisagreementKind.EFFECT_UNRECORDED],
            id="unknown here, there outside",
        ),
        pytest.param(
            survey(State.EXECUTING, effect(NOT_SENT), **OPEN),
            [DisagreementKind.EFFECT_UNRECORDED],
            id="not sent, and there",
        ),
        pytest.param(
            survey(State.EXECUTING, effect(None), **OPEN),
            [DisagreementKind.EFFECT_UNRECORDED],
            id="never claimed, and there",
        ),
        pytest.param(
            survey(State.EXECUTING, effect(INTENDED), **OPEN),
            [DisagreementKind.EFFECT_UNRECORDED],
            id="begun, killed, and there",
        ),
        pytest.param(
            survey(State.EXECUTING, effect(UNKNOWN, NOTHING), **OPEN),
            [DisagreementKind.OUTCOME_OPEN],
            id="nobody knows it",
        ),
        pytest.param(
            survey(State.SUCCEEDED, effect(), strays=(receipt(key="b" * 64),)),
            [DisagreementKind.EFFECT_UNKNOWN],
            id="stray",
        ),
        pytest.param(
            survey(State.EXECUTING, effect(), runs=()), [DisagreementKind.EXECUTED_NOT_ENDED], id="no run to end it"
        ),
        pytest.param(survey(State.EXECUTING, effect()), [DisagreementKind.EXECUTED_NOT_ENDED], id="its run is closed"),
        pytest.param(
            survey(State.CANCELLED, effect(), runs=()),
            [DisagreementKind.EXECUTED_ENDED_OTHERWISE],
            id="executed and cancelled",
        ),
        pytest.param(
            survey(State.SUCCEEDED), [DisagreementKind.SUCCEEDED_NOT_EXECUTED], id="succeeded without an effect"
        ),
        pytest.param(survey(State.WAITING_APPROVAL, runs=()), [DisagreementKind.RUN_MISSING], id="no run"),
        pytest.param(
            survey(State.RUNNING, runs=(run("TERMINATED", "RUNNING"),)),
            [DisagreementKind.RUN_CLOSED],
            id="its run was cut short",
        ),
        pytest.param(
            survey(State.REJECTED, runs=(run("RUNNING", "REJECTED"),)),
            [DisagreementKind.RUN_GOES_ON],
            id="its run goes on",
        ),
        pytest.param(
            survey(State.RUNNING, runs=(run("RUNNING", "EXECUTING"),)),
            [DisagreementKind.STATES_DIFFER],
            id="different states",
        ),
        pytest.param(survey(State.REJECTED), [DisagreementKind.STATES_DIFFER], id="its run says that it has succeeded"),
        pytest.param(
            survey(State.SUCCEEDED, effect(), runs=(run(state="FAILED"),)),
            [DisagreementKind.STATES_DIFFER],
            id="its run denies it",
        ),
        pytest.param(
            survey(State.SUCCEEDED, effect(), runs=(run(), run(name="op-9"))),
            [DisagreementKind.RUN_UNKNOWN],
            id="unknown run",
        ),
    ],
)
def test_a_disagreement_is_found_and_named_once(seen: Survey, expected: list[DisagreementKind]) -> None:
    assert kinds(seen) == expected


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(survey(State.SUCCEEDED, effect()), id="executed, there, and ended"),
        pytest.param(survey(State.SUCCEEDED, effect(), runs=()), id="Temporal keeps closed runs for a while only"),
        pytest.param(survey(State.REJECTED, effect(None, NOTHING), runs=()), id="rejected, and nothing there"),
        pytest.param(survey(State.EXPIRED, effect(NOT_SENT, NOTHING), runs=()), id="not sent, and nothing there"),
        pytest.param(survey(State.REJECTED, runs=(run(state="FAILED"),)), id="a run that was reset after the end"),
        pytest.param(
            survey(State.SUCCEEDED, effect(), runs=(run("TERMINATED", "RUNNING"),)), id="one that was reset, and ended"
        ),
        pytest.param(
            survey(State.EXECUTING, effect(execution=execution(INTENDED, NOW + A_MINUTE)), **OPEN), id="being recorded"
        ),
        pytest.param(
            survey(State.EXECUTING, effect(look=NOTHING, execution=execution(INTENDED, NOW + A_MINUTE)), **OPEN),
            id="being sent",
        ),
        pytest.param(survey(State.EXECUTING, effect(), **OPEN), id="executed, and its run is about to end it"),
        pytest.param(
            survey(State.RUNNING, runs=None), id="Temporal was not asked, so it has not said that it has none"
        ),
    ],
)
def test_what_agrees_is_not_named(seen: Survey) -> None:
    assert kinds(seen) == []


@pytest.mark.parametrize(
    ("followed", "expected"),
    [
        (operation(), [DisagreementKind.FOLLOWER_NOT_STARTED]),
        (operation(State.WAITING_APPROVAL), []),
        (operation(State.REJECTED), [DisagreementKind.FOLLOWER_NOT_STARTED]),
    ],
)
def test_a_follower_needs_a_run_once_the_one_before_it_has_ended(
    followed: Operation, expected: list[DisagreementKind]
) -> None:
    follower = operation(State.CREATED, "op-1.message", follows="op-1")
    seen = Survey(operations=(follower,), others=(followed,), runs=())
    assert kinds(seen) == expected


def test_a_channel_that_did_not_answer_is_a_gap_and_no_agreement() -> None:
    seen = survey(
        State.SUCCEEDED, effect(look=SILENT), effect(look=SILENT, key="b" * 64), gaps=(Gap(part=SERVER, why="w"),)
    )
    assert kinds(seen) == []
    assert gaps(seen, NOW) == (
        Gap(part=SERVER, why="w"),
        Gap(part="press", why="no_answer: it did not answer", count=2),
    )


@pytest.mark.guarantee("G35")
def test_that_an_old_key_is_not_there_any_more_says_nothing() -> None:
    day = timedelta(days=1)
    old = effect(look=NOTHING, keys_kept=day, execution=execution(EXECUTED, NOW - day))
    young = effect(look=NOTHING, keys_kept=day, execution=execution(EXECUTED, NOW - day + A_MINUTE))
    assert kinds(survey(State.SUCCEEDED, old)) == []
    assert [(gap.part, gap.count) for gap in gaps(survey(State.SUCCEEDED, old), NOW)] == [("press", 1)]
    assert kinds(survey(State.SUCCEEDED, young)) == [DisagreementKind.EFFECT_GONE]
    assert gaps(survey(State.SUCCEEDED, young), NOW) == ()


def test_what_is_found_says_where_it_lies_and_under_which_key() -> None:
    (found,) = disagreements(survey(State.CANCELLED, effect(NOT_SENT), runs=()), NOW)
    assert found == Disagreement(
        kind=DisagreementKind.EFFECT_UNRECORDED, operation="op-1", key=KEY,
        says="press holds press/1, and the ledger says: not sent",
    )  # fmt: skip


def test_only_what_is_found_twice_lasts() -> None:
    passing, staying = (
        Disagreement(kind=DisagreementKind.STATES_DIFFER, operation=name, says="s") for name in ("a", "b")
    )
    assert lasting([passing, staying], [staying]) == (staying,)
    assert lasting([passing], [staying]) == ()


def test_what_is_found_in_other_words_the_second_time_lasts_but_for_states_that_move() -> None:
    then, now = (
        [
            Disagreement(kind=kind, operation="a", says=says)
            for kind in (DisagreementKind.RUN_UNKNOWN, DisagreementKind.STATES_DIFFER)
        ]
        for says in ("RUNNING", "COMPLETED")
    )
    assert lasting(then, now) == (now[0],)
