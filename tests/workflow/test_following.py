"""Operations that follow others, from end to end: the message after a refund, and a report that is taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.service import RPCError

from activities.interfaces import RunOrder
from countersign.domain.compensation import CompensationRequest, MessageRequest, receipt_hash
from countersign.domain.decision import Ruling
from countersign.domain.directory import Limit
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.payments import Payments, at_service
from tests.support.waiting import until_state
from tests.workflow.acting import Run, vote
from tests.workflow.strict_replay import commands_of

BY_RULE, BY_ONE = "o-1001", "o-1002"
LIMIT = Limit.model_validate({"each": "20000.00 EUR"})


@pytest.fixture
def house(sqlite_installation: Installation, payments: Payments, tmp_path: Path) -> Installation:
    """An installation with fay of finance, at that service."""
    sqlite_installation.enrol("fay", "finance", limits=(LIMIT,))
    changed = sqlite_installation.with_policy(tmp_path)
    at_service(changed.settings.policies, payments)
    return changed


def registered(house: Installation, operation: str, order: str) -> tuple[RunOrder, RunOrder]:
    """A refund and its message, as `start` signs and registers them."""
    refund = house.register_refund(operation, order=order, message_channel="messages")
    message = house.register_following(f"{operation}.message", MessageRequest(follows=operation, channel="messages"))
    return refund, message


def sent(house: Installation) -> dict[str, str]:
    """The messages that went out, by name."""
    folder = house.settings.reports_folder / "messages" / house.tenant
    return {path.name: path.read_text() for path in folder.glob("*.txt")}


def follower(house: Installation, operation: str) -> Run:
    return house.client.get_workflow_handle(f"{house.tenant}:{operation}.message")


async def test_a_customer_is_told_by_a_run_of_its_own_after_the_refund_and_not_after_another_end(
    house: Installation, payments: Payments
) -> None:
    told, early, refused = registered(house, "told", BY_RULE), registered(house, "early", BY_ONE), "refused"
    async with house.workers():
        # Somebody starts the message's run by hand: it waits for the refund, and the refund's run finds it there.
        waiting = await house.start_unchecked(early[1])
        run, slow = [await house.start_unchecked(one) for one in (told[0], early[0])]
        assert (await run.result()).state == State.SUCCEEDED
        # The other run is over; the one that it began goes on without it.
        assert (await follower(house, "told").result())["state"] == State.SUCCEEDED
        await until_state(slow, State.WAITING_APPROVAL)
        assert [*sent(house)] == ["told.message.txt"]
        assert house.ledger.operations.get("acme", "early.message").state == State.CREATED
        assert (await vote(house, slow, "fay")).ruling == Ruling.ACCEPTED
        assert (await slow.result()).state == State.SUCCEEDED
        assert (await waiting.result()).state == State.SUCCEEDED
        no = await house.start_unchecked(registered(house, refused, BY_ONE)[0])
        assert (await no.result()).state != State.SUCCEEDED
        await commands_of(await run.fetch_history())

    keys = payments.refunds()
    assert len(keys) == 2
    references = [house.ledger.executions.get("acme", one).receipt.reference for one in ("told", "early")]  # type: ignore[union-attr]
    assert [references[0] in sent(house)["told.message.txt"], references[1] in sent(house)["early.message.txt"]] == [
        True, True,
    ]  # fmt: skip
    assert house.ledger.operations.get("acme", f"{refused}.message").state == State.CANCELLED
    with pytest.raises(RPCError, match="not found"):
        await follower(house, refused).describe()
    assert await house.listed('CountersignCase = "message"', count=2)


@pytest.mark.guarantee("G38")
async def test_a_report_is_taken_back_by_a_run_that_people_decide_about(sqlite_installation: Installation) -> None:
    house = sqlite_installation
    async with house.workers():
        run = await house.start("report-7")
        await until_state(run, State.WAITING_APPROVAL)
        await vote(house, run, "bob")
        assert (await run.result()).state == State.SUCCEEDED
        execution = house.ledger.executions.get("acme", "report-7")
        assert execution is not None
        assert execution.receipt is not None
        wanted = CompensationRequest(
            follows="report-7", receipt_hash=receipt_hash(execution.receipt), reason="a wrong figure"
        )
        undo = await house.start_unchecked(house.register_following("report-7.undo", wanted))
        await until_state(undo, State.WAITING_APPROVAL)
        assert len(house.published()) == 1
        assert (await vote(house, undo, "bob")).ruling == Ruling.ACCEPTED
        result = await undo.result()
    assert (result.state, house.published()) == (State.SUCCEEDED, [])
    assert result.key != execution.key
    assert house.ledger.operations.get("acme", "report-7").state == State.SUCCEEDED
    house.ledger.audit.verify("acme")
