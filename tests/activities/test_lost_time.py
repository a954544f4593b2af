"""A run that begins on a restored ledger asks the gateway first what was done in the time that was lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from activities.interfaces import OpenOrder, RunPlan
from countersign.domain.execution import LOST_TIME, ExecutionStatus
from countersign.domain.state import State
from countersign.ledger.columns import moment_text
from tests.activities.desk import OPERATION, Desk


def opened(desk: Desk) -> RunPlan:
    return desk.as_run("after-the-restore").run(desk.opening.open_run, OpenOrder(run=desk.order, now=desk.now()))


def restored(desk: Desk, until: timedelta) -> None:
    """Have the ledger say that it lost a time, by how long after the operation's registration it ended."""
    registered = desk.ledger.operations.get("acme", OPERATION).registered_at
    lost = [moment_text(moment) for moment in (registered - timedelta(hours=1), registered + until)]
    file = desk.settings.ledger_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT INTO restores VALUES (?, ?, ?, ?)", ("acme", 1, *lost))


@pytest.mark.guarantee("G31", "G37")
def test_what_was_asked_before_the_loss_is_looked_up_before_anything_is_read_anew(desk: Desk) -> None:
    desk.passed()
    asked = desk.propose()
    restored(desk, timedelta(minutes=5))
    standing = opened(desk).standing
    assert standing is not None
    assert standing.approval_id == asked.approval_id
    assert (standing.effect.status, standing.effect.reason) == (ExecutionStatus.UNKNOWN, LOST_TIME)
    assert desk.ledger.operations.get("acme", OPERATION).state != State.RUNNING


def test_where_nobody_was_asked_nothing_can_have_been_sent(desk: Desk) -> None:
    restored(desk, timedelta(minutes=5))
    assert opened(desk).standing is None


def test_what_was_registered_after_the_loss_begins_as_ever(desk: Desk) -> None:
    desk.passed()
    desk.propose()
    restored(desk, -timedelta(seconds=1))
    assert opened(desk).standing is None
