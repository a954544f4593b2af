"""What follows an effect: it is taken back, or told of, once it is confirmed, as an action of its own (G38)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.execution import ExecutionStatus, Receipt
from countersign.domain.proposal import Approval
from tests.gateway.asking import code, execute, reconcile
from tests.gateway.refunding import RefundWorld, reopened
from tests.support.payments import Payments

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN


@pytest.fixture
def world(populated: Path, tmp_path: Path, payments: Payments) -> Iterator[RefundWorld]:
    shutil.copytree(populated, tmp_path, dirs_exist_ok=True)
    opened = reopened(tmp_path, payments.base)
    yield opened
    opened.close()


def done(world: RefundWorld, approval: Approval) -> Receipt:
    """Execute, and the receipt of it."""
    result = execute(world.refunding(), approval)
    assert result.status == EXECUTED, result.reason
    assert result.receipt is not None
    return result.receipt


@pytest.mark.guarantee("G38")
def test_a_refund_is_taken_back_by_an_action_with_a_key_of_its_own(world: RefundWorld, payments: Payments) -> None:
    made = done(world, world.refund())
    approval = world.reversal(made, "r-1")
    back = done(world, approval)
    assert payments.refunded("o-1001", "p-2") == 0
    assert (back.channel, back.reference) == ("payments", "rv-000001")
    assert back.key == approval.proposal.action.idempotency_key() != made.key
    assert execute(world.refunding(), approval).receipt == back
    assert payments.store.calls("reversals") == [back.key]


@pytest.mark.parametrize("fault", ["answer_lost", "closed", "unavailable", "garbage"])
@pytest.mark.guarantee("G36")
@pytest.mark.guarantee("G38")
def test_a_compensation_fails_as_any_effect_does(world: RefundWorld, payments: Payments, fault: str) -> None:
    approval = world.reversal(done(world, world.refund()), "r-1")
    payments.fail_next(fault, on="reversals")
    assert execute(world.refunding(), approval).status == UNKNOWN
    assert reconcile(world.refunding(), approval).status in (EXECUTED, NOT_SENT)
    done(world, approval)
    assert payments.store.effects("reversals") == [approval.proposal.action.idempotency_key()]


@pytest.mark.guarantee("G38")
def test_what_was_taken_back_otherwise_is_refused_by_the_service(world: RefundWorld, payments: Payments) -> None:
    made = done(world, world.refund())
    approval = world.reversal(made, "r-1")
    document = world.ledger.documents.get(world.tenant, approval.proposal.action.content_hash)
    payments.store.do("reversals", "theirs", document)
    result = execute(world.refunding(), approval)
    assert (result.status, code(result)) == (None, "outside_refused")


@pytest.mark.guarantee("G38")
def test_a_published_report_is_taken_down(world: RefundWorld) -> None:
    made = done(world, world.granted(channel="internal", by_persons=()))
    back = done(world, world.reversal(made, "q2-report", "q2-report-undo"))
    assert not Path(made.reference).exists()
    assert back.reference == made.reference
    assert world.internal.look_up(made.key) == made.model_copy(update={"detail": "it was taken back since"})


@pytest.mark.parametrize("changes", [{"key": "0" * 64}, {"reference": "re-000009"}])
@pytest.mark.guarantee("G38")
def test_another_effect_than_the_receipts_is_not_taken_back(
    world: RefundWorld, payments: Payments, changes: dict[str, str]
) -> None:
    approval = world.reversal(done(world, world.refund()), "r-1", **changes)
    result = execute(world.refunding(), approval)
    assert (result.status, code(result)) == (None, "receipt_does_not_fit")
    assert payments.store.calls("reversals") == []


@pytest.mark.guarantee("G38")
def test_an_operation_takes_back_only_what_it_was_registered_to_follow(world: RefundWorld, payments: Payments) -> None:
    world.refund()
    made = done(world, world.refund("r-2", payment="p-1"))
    approval = world.reversal(made, "r-1", in_words="r-2")
    assert code(execute(world.refunding(), approval)) == "follows"
    assert payments.store.calls("reversals") == []


@pytest.mark.parametrize("tell", [True, False])
@pytest.mark.guarantee("G38")
def test_nothing_follows_what_is_not_confirmed(world: RefundWorld, payments: Payments, tell: bool) -> None:
    refund = world.refund()
    action = refund.proposal.action
    claimed = Receipt(
        channel="payments", key=action.idempotency_key(), reference="re-000001", content_hash=action.content_hash
    )
    approval = world.message(claimed) if tell else world.reversal(claimed, "r-1")
    payments.fail_next("answer_lost")
    execute(world.refunding(), refund)
    result = execute(world.refunding(), approval)
    assert (result.status, result.voided, code(result)) == (None, True, "receipt")
    assert payments.store.messages() == []
    assert payments.store.calls("reversals") == []


@pytest.mark.guarantee("G38")
def test_a_customer_is_told_once_and_of_what_the_receipt_says(world: RefundWorld, payments: Payments) -> None:
    made = done(world, world.refund())
    approval = world.message(made)
    payments.fail_next("answer_lost", on="messages")
    assert execute(world.refunding(), approval).status == UNKNOWN
    receipt = done(world, approval)
    assert payments.store.messages() == [b"Refunded as re-000001.\n"]
    assert receipt.content_hash == sha256_hex(b"Refunded as re-000001.\n")


def test_a_document_does_not_go_to_a_payment_service(world: RefundWorld, payments: Payments) -> None:
    approval = world.granted(channel="payments")
    assert code(execute(world.refunding(), approval)) == "channel_unsuitable"
    assert payments.store.calls("refunds") == []


def test_what_its_channel_cannot_take_back_is_not_sent_to_it(world: RefundWorld, payments: Payments) -> None:
    told = done(world, world.message(done(world, world.refund())))
    approval = world.reversal(told, "r-1-message", "r-1-message-undo")
    assert code(execute(world.refunding(), approval)) == "not_reversible"
