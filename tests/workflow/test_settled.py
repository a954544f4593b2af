"""Unknown outcomes that people settle, and what the outside refuses: the run goes on truthfully, with one effect."""

from __future__ import annotations

import pytest

from countersign.domain.decision import Ruling
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.publisher import Publisher
from tests.support.waiting import eventually, until_state
from tests.workflow.acting import Run, approved_by, command, done, records, settled, stored, taken_over
from tests.workflow.press import approved

DOWN = ["lookup_unavailable"] * 50


async def reconciliations(run: Run) -> int:
    """How often the run has asked for the outcome; every such question is repeated until there is an answer."""
    history = await run.fetch_history()
    asked = [event.activity_task_scheduled_event_attributes.activity_type.name for event in history.events]
    return asked.count("reconcile")


@pytest.mark.guarantee("G36")
@pytest.mark.parametrize("finding", ["executed", "not_executed"])
async def test_what_people_settle_is_heard_at_once_and_makes_no_second_effect(
    press: Installation, publisher: Publisher, finding: str
) -> None:
    is_there = finding == "executed"
    publisher.fail_next("error_after" if is_there else "error_before", *DOWN)
    async with press.workers():
        run = await approved(press, "op-1")
        await until_state(run, State.OUTCOME_UNKNOWN)
        await eventually(lambda: len(records(press, "effect.unknown")) >= 2)
        refused = await settled(press, run, "bob", finding, "report-7" if is_there else "")
        accepted = await settled(press, run, "lea", finding, "report-7" if is_there else "")
        result = await run.result()
    assert await reconciliations(run) == 2
    assert (refused.ruling, accepted.ruling) == (Ruling.ROLE_MISSING, Ruling.ACCEPTED)
    assert result.state == State.SUCCEEDED
    assert (result.reference == "report-7") == is_there
    assert len(publisher.effects()) == 1
    assert set(publisher.calls("POST")) == {result.key}
    assert [record["finding"] for record in records(press, "effect.settled")] == [finding]


@pytest.mark.guarantee("G32", "G36")
async def test_while_it_is_unknown_nothing_else_can_be_proposed(press: Installation, publisher: Publisher) -> None:
    publisher.fail_next("error_before", *DOWN)
    async with press.workers():
        run = await approved(press, "op-1")
        await until_state(run, State.OUTCOME_UNKNOWN)
        await done(press, run, "lea", "take_over")
        refused = await command(press, run, "lea", "propose", draft_version=1)
        assert refused.ruling == Ruling.TOO_LATE
        assert (await settled(press, run, "lea", "not_executed")).ruling == Ruling.ACCEPTED
        await until_state(run, State.HUMAN_TAKEOVER)
        assert publisher.effects() == []
        await done(press, run, "lea", "propose", draft_version=1)
        await approved_by(press, run)
        assert (await run.result()).state == State.SUCCEEDED
    assert len(publisher.effects()) == 1


@pytest.mark.guarantee("G34")
async def test_what_the_outside_refuses_is_brought_before_people_who_propose_something_else(
    press: Installation, publisher: Publisher
) -> None:
    publisher.fail_next("refuses")
    async with press.workers():
        run = await approved(press, "op-1")
        status = await until_state(run, State.ESCALATED)
        assert status.reason == "outside_refused"
        (raised,) = press.ledger.escalations.of_operation("acme", "op-1")
        assert (raised.reason.value, raised.code) == ("REPEATED_TOOL_FAILURE", "outside_refused")
        await taken_over(press, run)
        first = press.proposal("op-1").action.idempotency_key()
        await done(press, run, "lea", "propose", draft_version=1, content=_renamed(press))
        await approved_by(press, run)
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert result.key != first
    assert publisher.calls("POST") == [first, result.key]
    assert len(publisher.effects()) == 1


def _renamed(press: Installation) -> str:
    return stored(press, {**press.proposal("op-1").action.args, "name": "another-name.md"})
