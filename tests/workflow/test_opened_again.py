"""Runs that are begun again over an effect that is there, or may be: found out, and never asked for anew (G37)."""

from __future__ import annotations

import asyncio

import pytest

from activities.interfaces import RunOrder
from countersign import bootstrap
from countersign.domain.run import Step
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.publisher import Publisher
from tests.support.waiting import until_state
from tests.workflow.acting import Run, records
from tests.workflow.press import approved

DOWN = ["lookup_unavailable"] * 50


async def begun_again(press: Installation) -> Run:
    """Another run of the operation, as after the Temporal store was lost."""
    operation = press.ledger.operations.get("acme", "op-1")
    order = RunOrder(
        tenant="acme", operation="op-1", case=operation.case, request_hash=operation.request_hash
    )  # fmt: skip
    return await press.start_unchecked(order)


async def steps(run: Run) -> list[tuple[State, str]]:
    return [(step.state, step.reason) for step in await run.query("timeline", result_type=list[Step])]


@pytest.mark.guarantee("G33", "G37")
@pytest.mark.parametrize("has_ended", [True, False], ids=["it had ended", "it was lost before its end"])
async def test_over_an_executed_effect_it_succeeds_at_once(
    press: Installation, publisher: Publisher, has_ended: bool
) -> None:
    async with press.workers("agent"):
        run = await approved(press, "op-1")
        if has_ended:
            async with press.workers("gateway"):
                await run.result()
        else:
            await until_state(run, State.EXECUTING)
            await run.terminate()
            gateway = bootstrap.gateway(press.settings, press.ledger)
            await asyncio.to_thread(gateway.execute, "acme", press.proposal("op-1").approval_id)
        asked = len(press.ledger.approvals.of_operation("acme", "op-1"))
        again = await begun_again(press)
        result = await again.result()
        way = await steps(again)
    execution = press.ledger.executions.get("acme", "op-1")
    assert execution is not None
    assert (result.state, result.key) == (State.SUCCEEDED, execution.key)
    assert [state for state, _ in way] == [State.SUCCEEDED]
    assert press.ledger.operations.get("acme", "op-1").state == State.SUCCEEDED
    assert len(press.ledger.approvals.of_operation("acme", "op-1")) == asked
    assert len(publisher.effects()) == len(publisher.calls("POST")) == 1
    assert len(records(press, "run.succeeded")) == 1


@pytest.mark.guarantee("G36", "G37")
@pytest.mark.parametrize("is_there", [True, False], ids=["it is there", "it is not there"])
async def test_over_an_unknown_effect_it_finds_out_first_whoever_asked_may_still_ask(
    press: Installation, publisher: Publisher, is_there: bool
) -> None:
    publisher.fail_next("error_after" if is_there else "error_before", *DOWN)
    async with press.workers():
        run = await approved(press, "op-1")
        await until_state(run, State.OUTCOME_UNKNOWN)
        await run.terminate()
        press.demote("rita")
        again = await begun_again(press)
        status = await until_state(again, State.OUTCOME_UNKNOWN)
        assert status.draft_version == 0
        press.demote("rita", "requester")
        publisher.take_faults()
        result = await again.result()
    assert result.state == State.SUCCEEDED
    assert len(publisher.effects()) == 1
    assert set(publisher.calls("POST")) == {result.key}
    assert len(press.ledger.approvals.of_operation("acme", "op-1")) == 1
