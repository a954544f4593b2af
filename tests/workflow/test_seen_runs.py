"""What `reconcile` takes for an operation's run: what was started for its very request, and not all of its name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from countersign.cli.proving.seen_runs import seen_runs
from countersign.domain.reconciliation import DisagreementKind, Survey, disagreements
from tests.support.installation import Installation
from workflows.names import RUN_QUEUE


@pytest.mark.guarantee("G22")
async def test_what_holds_an_operations_name_and_was_started_for_something_else_is_named(
    sqlite_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, client = sqlite_installation, sqlite_installation.client
    own, other, typed, closed = (house.register(name) for name in ("own", "other", "typed", "closed"))
    other, closed = (one.model_copy(update={"request_hash": "sha256:" + "0" * 64}) for one in (other, closed))
    # No worker is there: how far a run has come does not matter here.
    runs = [await house.start_unchecked(order) for order in (own, other, closed)]
    runs.append(await client.start_workflow("Sleep", id=f"{house.tenant}:{typed.operation}", task_queue=RUN_QUEUE))
    await runs[2].terminate()

    async def connected() -> object:
        return client

    monkeypatch.setattr("countersign.temporal_client.connect", connected)
    operations = house.ledger.operations.list(house.tenant)

    seen = await seen_runs(house.tenant, operations, None)

    for run in (runs[0], runs[1], runs[3]):
        await run.terminate()
    assert {run.operation: run.foreign for run in seen} == {"own": False, "other": True, "typed": True}
    found = disagreements(Survey(operations=tuple(operations), runs=seen), datetime.now(UTC))
    assert sorted((one.operation, one.kind) for one in found) == [
        ("closed", DisagreementKind.RUN_MISSING),
        ("other", DisagreementKind.RUN_UNKNOWN),
        ("typed", DisagreementKind.RUN_UNKNOWN),
    ]
