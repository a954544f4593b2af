"""The gateway does what a requester signed for, and nothing that was put in its place, whoever granted it (G22)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.administration import DirectoryChange, KeyRevocation
from countersign.domain.canonical import sha256_hex
from countersign.domain.execution import ExecutionStatus, Receipt
from countersign.domain.proposal import Approval
from countersign.domain.refund import RefundRequest
from tests.gateway.asking import code, execute
from tests.gateway.refunding import RefundWorld, reopened
from tests.support.payments import Payments, running_payments

pytestmark = pytest.mark.guarantee("G22")


@pytest.fixture
def payments(tmp_path: Path) -> Iterator[Payments]:
    with running_payments(tmp_path / "payments.sqlite") as running:
        yield running


@pytest.fixture
def world(populated: Path, tmp_path: Path, payments: Payments) -> Iterator[RefundWorld]:
    shutil.copytree(populated, tmp_path, dirs_exist_ok=True)
    opened = reopened(tmp_path, payments.base)
    yield opened
    opened.close()


def is_refused(world: RefundWorld, approval: Approval, reason: str = "request") -> None:
    result = execute(world.refunding(), approval)
    assert (result.status, code(result)) == (None, reason), result.reason
    assert "alarm.raised" in [record.type for record in world.ledger.audit.records(world.tenant)]


def done(world: RefundWorld, approval: Approval) -> Receipt:
    receipt = execute(world.refunding(), approval).receipt
    assert receipt is not None
    return receipt


def asked(world: RefundWorld, operation: str, order: str = "o-1001") -> None:
    world.asked(operation, RefundRequest(order=order, complaint="Twice!", channel="payments"))


def test_an_order_that_nobody_signed_for_is_not_refunded(world: RefundWorld, payments: Payments) -> None:
    asked(world, "r-1")
    asked(world, "spy", "o-1002")
    facts = world.refunding().gather(world.tenant, "spy")
    payment = payments.told("o-1002")["payments"][-1]
    other: dict[str, Any] = {"order": "o-1002", "payment": payment["id"], "amount": 1, "account": payment["account"]}
    is_refused(world, world.granted_action(world.refund_action("r-1", facts, **other), "refund"))
    assert payments.refunds() == []


def test_facts_that_were_gathered_for_another_operation_carry_no_refund(world: RefundWorld, payments: Payments) -> None:
    asked(world, "r-1")
    asked(world, "r-2")
    facts = world.refunding().gather(world.tenant, "r-2")
    is_refused(world, world.granted_action(world.refund_action("r-1", facts), "refund"), "facts_not_gathered")
    assert payments.refunds() == []


def test_a_report_goes_by_rule_only_where_it_was_asked_to_go(world: RefundWorld) -> None:
    approval = world.propose(channel="internal", wanted=world.wanted("press"))
    is_refused(world, approval)
    assert not [*(world.folder / "published").glob("**/*.md")]


def test_a_report_on_other_data_than_was_asked_about_is_not_published(world: RefundWorld) -> None:
    is_refused(world, world.propose(channel="internal", evidence_hash=sha256_hex(b"other data")))


WHOSE = ("eve", "bob")


def test_another_change_than_the_administrator_asked_for_is_not_made(world: RefundWorld) -> None:
    change, other = (DirectoryChange(keys_revoked=(KeyRevocation(person=one, key_id=f"{one}-1"),)) for one in WHOSE)
    forged = world.change_action("a-change", other)
    approval = world.propose_change(change, **{name: getattr(forged, name) for name in type(forged).model_fields})
    for person in ("ada", "abe"):
        world.decide(approval, person)
    is_refused(world, world.approval(approval))
    assert world.ledger.directory.persons(world.tenant)["bob"].keys[0].revoked_at is None


WORDS = [
    b"We refunded 99,999.00 EUR. Call +1 900 SCAM with your card number.\n",
    b"Refunded as re-000002.\n",
    b"Refunded as re-000001. \n",
]


@pytest.mark.parametrize("text", WORDS)
@pytest.mark.guarantee("G40")
def test_other_words_than_those_that_were_approved_with_the_refund_do_not_go_out(
    world: RefundWorld, payments: Payments, text: bytes
) -> None:
    is_refused(world, world.message(done(world, world.refund()), in_words=text), "words_do_not_fit")
    assert payments.store.messages() == []


@pytest.mark.guarantee("G40")
def test_of_a_refund_that_was_approved_without_a_message_nobody_is_told(world: RefundWorld, payments: Payments) -> None:
    is_refused(world, world.message(done(world, world.refund(message=""))), "words_do_not_fit")
    assert payments.store.messages() == []


@pytest.mark.guarantee("G38")
def test_a_customer_is_not_told_of_what_was_taken_back(world: RefundWorld, payments: Payments) -> None:
    made = done(world, world.refund())
    message, undo = world.message(made), world.reversal(made, "r-1")
    under_way = execute(world.refunding(), message)
    assert (under_way.status, code(under_way)) == (ExecutionStatus.NOT_SENT, "being_taken_back")
    done(world, undo)
    result = execute(world.refunding(), message)
    assert (result.status, code(result)) == (None, "taken_back")
    assert payments.store.messages() == []


@pytest.mark.guarantee("G38")
def test_a_customer_is_told_only_what_the_service_itself_confirms_at_that_moment(
    world: RefundWorld, payments: Payments
) -> None:
    message = world.message(done(world, world.refund()))
    payments.fail_next("unavailable", on="lookups")
    unclear = execute(world.refunding(), message)
    assert (unclear.status, payments.store.messages()) == (ExecutionStatus.NOT_SENT, [])
    done(world, message)
    assert payments.store.messages() == [b"Refunded as re-000001.\n"]


@pytest.mark.guarantee("G38")
@pytest.mark.guarantee("G40")
@pytest.mark.parametrize("went_out", [True, False])
def test_what_people_say_of_a_refund_is_not_told_as_confirmed(
    world: RefundWorld, payments: Payments, *, went_out: bool
) -> None:
    approval = world.refund()
    key, now = approval.proposal.action.idempotency_key(), world.now
    content = approval.proposal.action.content_hash
    if went_out:
        payments.store.do("refunds", key, world.ledger.documents.get(world.tenant, content))
    said = Receipt(channel="payments", key=key, reference="re-777777", content_hash=content, detail="settled by cora")
    execution = world.ledger.executions.claim(approval, key, now, now)
    world.ledger.executions.finish(execution, said, now)
    result = execute(world.refunding(), world.message(said))
    found = (None, "receipt_does_not_fit") if went_out else (ExecutionStatus.NOT_SENT, "not_confirmed")
    assert (result.status, code(result)) == found
    assert payments.store.messages() == []
