"""Refunds from end to end: real workers, a real payment service, and the money counted where it lies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from countersign.domain.decision import Ruling
from countersign.domain.directory import Limit
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.payments import Payments, at_service
from tests.support.waiting import until_state
from tests.workflow.acting import Run, records, vote

ONCE, BY_RULE, BY_ONE, BY_TWO = "o-1004", "o-1001", "o-1002", "o-1003"
LIMITS = tuple(Limit.model_validate({"each": each}) for each in ("20000.00 EUR", "20000.00 USD"))


@pytest.fixture
def house(sqlite_installation: Installation, payments: Payments, tmp_path: Path) -> Installation:
    """An installation with people of finance, at that service."""
    for person in ("fay", "finn"):
        sqlite_installation.enrol(person, "finance", limits=LIMITS)
    changed = sqlite_installation.with_policy(tmp_path)
    at_service(changed.settings.policies, payments)
    return changed


async def asked(house: Installation, operation: str, order: str) -> Run:
    return await house.start_unchecked(house.register_refund(operation, order=order))


async def test_a_small_refund_goes_out_by_rule_and_where_none_is_due_none_does(
    house: Installation, payments: Payments
) -> None:
    async with house.workers():
        due, not_due = await asked(house, "refund-1", BY_RULE), await asked(house, "refund-2", ONCE)
        result, other = await due.result(), await not_due.result()

    assert (result.state, other.state, other.reason) == (State.SUCCEEDED, State.FAILED, "nothing_to_refund")
    assert payments.refunds() == [house.proposal("refund-1").action.idempotency_key()]
    assert payments.refunded(BY_RULE, "p-2") == 24_900
    types = [record.type for record in house.ledger.audit.records("acme", "refund-1")]
    assert types.index("facts.gathered") < types.index("draft.written") < types.index("effect.executed")


@pytest.mark.guarantee("G08")
async def test_larger_refunds_wait_for_one_or_two_of_finance(house: Installation, payments: Payments) -> None:
    async with house.workers():
        one, two = await asked(house, "refund-1", BY_ONE), await asked(house, "refund-2", BY_TWO)
        for run in (one, two):
            await until_state(run, State.WAITING_APPROVAL)
        assert (await vote(house, one, "bob")).ruling == Ruling.ROLE_MISSING
        assert payments.refunds() == []
        for run, person in ((one, "fay"), (two, "fay"), (two, "finn")):
            assert (await vote(house, run, person)).ruling == Ruling.ACCEPTED
        results = [await one.result(), await two.result()]

    assert [result.state for result in results] == [State.SUCCEEDED, State.SUCCEEDED]
    assert (payments.refunded(BY_ONE, "p-4"), payments.refunded(BY_TWO, "p-6")) == (480_000, 1_250_000)
    assert len(payments.refunds()) == 2


@pytest.mark.guarantee("G15")
async def test_who_decides_is_shown_the_facts_and_the_reason_and_may_lower_the_amount(
    house: Installation, payments: Payments
) -> None:
    async with house.workers():
        run = await asked(house, "refund-1", BY_ONE)
        await until_state(run, State.WAITING_APPROVAL)
        proposal = house.proposal("refund-1")
        edit = house.edit(proposal, "fay", amount=400_000)
        await run.execute_update("decide", edit)
        result = await run.result()

    (opened, _) = records(house, "approval.opened", "refund-1")
    view = json.loads(house.ledger.documents.get("acme", opened["view"]))
    assert "payment p-4: captured, 4800.00 EUR from account acc-bo" in proposal.evidence[-1]
    assert view["words"][0][1].startswith("p-4 repeats p-3:")
    assert (result.state, payments.refunded(BY_ONE, "p-4")) == (State.SUCCEEDED, 400_000)


async def test_money_that_went_back_meanwhile_is_not_sent_again(house: Installation, payments: Payments) -> None:
    async with house.workers():
        run = await asked(house, "refund-1", BY_ONE)
        await until_state(run, State.WAITING_APPROVAL)
        by_others = {**house.proposal("refund-1").action.args, "amount": 480_000}
        body = json.dumps({name: value for name, value in by_others.items() if name not in ("channel", "message")})
        payments.store.do("refunds", "somebody-elses", body.encode())
        assert (await vote(house, run, "fay")).ruling == Ruling.ACCEPTED
        result = await run.result()

    assert (result.state, result.reason) == (State.FAILED, "nothing_to_refund")
    assert payments.refunds() == ["somebody-elses"]
    (voided,) = records(house, "approval.voided", "refund-1")
    assert "p-4" in json.dumps(voided)
