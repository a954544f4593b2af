"""Refunds by their sums at a real payment service: what was done there past us, and what cannot be compared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from countersign.cli.proving.reconcile_money import Money, money_of
from countersign.domain.execution import ExecutionStatus, Receipt
from countersign.gateway.channels import Channel
from countersign.gateway.reconciling import Outside, Way, keys_by_right
from countersign.gateway.tools import Tools
from tests.gateway.asking import execute
from tests.gateway.refunding import RefundWorld, reopened
from tests.support.payments import Payments

OPERATION = frozenset({"r-1"})


@pytest.fixture
def world(populated: Path, tmp_path: Path, payments: Payments) -> Iterator[RefundWorld]:
    shutil.copytree(populated, tmp_path, dirs_exist_ok=True)
    opened = reopened(tmp_path, payments.base)
    yield opened
    opened.close()


def money(world: RefundWorld, channel: Channel | None = None) -> Money:
    """The sums that operation r-1 is concerned by, with this channel for the payments one."""
    way = Way(channel or world.payments, "", partial(keys_by_right, world.ledger, [world.tenant]))
    tools = Tools({world.tenant: [world.payments]}, world.ledger, world.verify_evidence, lambda: world.now)
    everything = world.ledger.operations.list(world.tenant)
    return money_of(world.ledger, Outside({"payments": way}, tools), everything, OPERATION)


def refunded(world: RefundWorld) -> Receipt:
    """Refund 100.00 of payment p-2."""
    result = execute(world.refunding(), world.refund(amount=10000))
    assert result.status == ExecutionStatus.EXECUTED, result.reason
    assert result.receipt is not None
    return result.receipt


def differ(world: RefundWorld) -> list[tuple[str, str, str]]:
    """Of each payment about which both disagree: what the service and what the ledger says."""
    found = money(world)
    assert found.gaps == []
    return [(one.payment, str(one.told), str(one.least)) for one in found.balances if not one.agrees]


@pytest.mark.guarantee("G36")
def test_what_was_refunded_and_taken_back_by_us_agrees(world: RefundWorld) -> None:
    receipt = refunded(world)
    assert differ(world) == []
    undone = execute(world.refunding(), world.reversal(receipt, "r-1"))
    assert undone.status == ExecutionStatus.EXECUTED, undone.reason
    assert differ(world) == []


@pytest.mark.guarantee("G36")
def test_what_was_taken_back_past_us_under_a_key_that_is_listed_no_more_is_found(
    world: RefundWorld, payments: Payments
) -> None:
    receipt = refunded(world)
    undo = json.dumps({"key": receipt.key, "reference": receipt.reference}).encode()
    payments.store.do("reversals", "somebody-elses-key", undo)
    payments.store.forget("reversals", "somebody-elses-key")
    assert differ(world) == [("p-2", "0.00 EUR", "100.00 EUR")]


@pytest.mark.guarantee("G36")
def test_a_second_refund_past_us_is_found(world: RefundWorld, payments: Payments) -> None:
    refunded(world)
    action = world.ledger.approvals.of_operation(world.tenant, "r-1")[0].proposal.action
    body = world.ledger.documents.get(world.tenant, action.content_hash)
    payments.store.do("refunds", "f" * 64, body)
    payments.store.forget("refunds", "f" * 64)
    assert differ(world) == [("p-2", "200.00 EUR", "100.00 EUR")]


def test_a_service_that_cannot_say_is_named_as_not_compared(world: RefundWorld) -> None:
    refunded(world)
    found = money(world, world.internal)
    assert (found.balances, [gap.part for gap in found.gaps]) == ([], ["payments"])
    assert "cannot say what was refunded" in found.gaps[0].why
