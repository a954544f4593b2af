"""When the server recorded a signal is read from the run's own history, so that no outage makes it late."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.deciding import DecidingSteps
from activities.interfaces import SignalTimes, TimesOrder
from activities.runs import Runs
from countersign import bootstrap
from tests.support.installation import Installation


async def asked(installation: Installation, run_id: str, *signals: int) -> SignalTimes:
    """What the step says to the run of `op-1`, which no worker has ever carried out."""
    cases = bootstrap.cases(installation.settings, installation.ledger)
    runs = Runs(installation.ledger, bootstrap.wall_clock)
    deciding = DecidingSteps(installation.ledger, runs, "local", cases, unsigned=False)
    environment = ActivityEnvironment(installation.client)
    environment.info = installation.step("op-1", run_id).info
    order = TimesOrder(tenant="acme", operation="op-1", signals=signals)
    return await environment.run(deciding.signal_times, order)


@pytest.mark.guarantee("G26")
async def test_signals_that_nobody_has_taken_in_have_the_time_of_their_arrival(
    sqlite_installation: Installation,
) -> None:
    run = await sqlite_installation.start("op-1")
    run_id = (await run.describe()).run_id
    moments = [datetime.now(UTC)]
    for name in ("decide", "cancel", "decide"):
        await run.signal(name, {"statement": "a.b.c"})
        moments.append(datetime.now(UTC))
    found = await asked(sqlite_installation, run_id, 3, 1, 2)
    assert found.cancelled_at is None
    third, first, second = found.times
    for at, after, before in zip((first, second, third), moments[:-1], moments[1:], strict=True):
        assert after <= at <= before
    await run.cancel()
    cancelled = (await asked(sqlite_installation, run_id)).cancelled_at
    assert cancelled is not None
    assert moments[-1] <= cancelled <= datetime.now(UTC)


@pytest.mark.parametrize("signal", [0, 2])
async def test_a_signal_that_history_has_not_is_asked_for_again(sqlite_installation: Installation, signal: int) -> None:
    run = await sqlite_installation.start("op-1")
    await run.signal("decide", {"statement": "a.b.c"})
    run_id = (await run.describe()).run_id
    with pytest.raises(ApplicationError) as refused:
        await asked(sqlite_installation, run_id, signal)
    assert (refused.value.type, refused.value.non_retryable) == ("UNAVAILABLE", False)
