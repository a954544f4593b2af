"""What takes effect outside after it was given up: found, the operation's one effect, and never paid for twice."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from countersign.domain.canonical import sha256_hex
from countersign.domain.command import Command
from countersign.domain.decision import Ruling
from countersign.domain.execution import ExecutionStatus, Receipt
from countersign.domain.policy import Policy, Rule
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.refund import RefundRequest
from countersign.domain.settlement import Settling
from countersign.gateway.channels import OutcomeUnknown
from countersign.gateway.payments_channel import PaymentsChannel
from countersign.ports import Amendment, ReceivedCommand
from countersign.signing.statements import sign_command
from tests.gateway import refunding
from tests.gateway.asking import code, execute, reconcile
from tests.gateway.refunding import RefundWorld, reopened
from tests.gateway.rules import need
from tests.gateway.test_restored_ledger import restored
from tests.gateway.world import INSTALLATION
from tests.support.payments import PAYMENTS_TOKEN, Payments, running_payments

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN
OVER = timedelta(minutes=10)
"""After every claim, and after anything that was sent may land."""


@pytest.fixture
def payments(tmp_path: Path) -> Iterator[Payments]:
    with running_payments(tmp_path / "payments.sqlite") as running:
        yield running


@pytest.fixture
def world(populated: Path, tmp_path: Path, payments: Payments) -> Iterator[RefundWorld]:
    shutil.copytree(populated, tmp_path, dirs_exist_ok=True)
    opened = reopened(tmp_path, payments.base)
    opened.asked("r-1", RefundRequest(order="o-1001", complaint="Half of it", channel="payments"))
    yield opened
    opened.close()


class Between(PaymentsChannel):
    """The real channel, with something that happens before a request is sent."""

    def __init__(self, world: RefundWorld, before: Callable[..., None]) -> None:
        url, orders = f"{world.base}/refunds", f"{world.base}/orders"
        super().__init__("payments", url, orders, SecretStr(PAYMENTS_TOKEN), "refund")
        self._before: Callable[..., None] | None = before

    def send(self, *arguments: Any) -> Receipt:
        before, self._before = self._before, None
        if before is not None:
            before(*arguments)
        return super().send(*arguments)


def proposed(world: RefundWorld, amount: int) -> Approval:
    """A granted refund of a part of the payment, on facts gathered now."""
    facts = world.refunding().gather(world.tenant, "r-1")
    return world.granted_action(world.refund_action("r-1", facts, amount=amount), "refund")


def late(world: RefundWorld, payments: Payments, approval: Approval) -> Callable[[], None]:
    """Send a refund whose request is stuck on its way until the returned function is called; nobody finds it."""
    stuck: list[tuple[str, bytes]] = []

    def hold(key: str, _: str, document: bytes, *__: Any) -> None:
        stuck.append((key, document))
        raise OutcomeUnknown("no_answer", "timed out")

    gateway = world.gateway(Between(world, hold), world.messages, world.internal)
    assert execute(gateway, approval).status == UNKNOWN
    assert reconcile(gateway, approval).status == NOT_SENT

    def lands() -> None:
        for key, document in stuck:
            payments.store.do("refunds", key, document)

    return lands


@pytest.mark.guarantee("G31", "G36")
def test_a_request_that_lands_after_a_look_up_is_found_before_it_counts_as_drift(
    world: RefundWorld, payments: Payments
) -> None:
    approval = proposed(world, 10000)
    late(world, payments, approval)()
    assert execute(world.refunding(), approval).status == EXECUTED
    assert payments.refunded("o-1001", "p-2") == 10000
    assert len(payments.refunds()) == 1


@pytest.mark.guarantee("G31", "G36")
def test_it_is_found_also_where_the_window_has_closed_meanwhile(world: RefundWorld, payments: Payments) -> None:
    approval = proposed(world, 10000)
    late(world, payments, approval)()
    world.now += timedelta(hours=2)
    assert execute(world.refunding(), approval).status == EXECUTED
    assert world.approval(approval).status == ApprovalStatus.CONSUMED


@pytest.mark.guarantee("G31", "G32")
def test_another_action_waits_until_the_first_can_no_longer_land(world: RefundWorld, payments: Payments) -> None:
    first = proposed(world, 10000)
    late(world, payments, first)
    other = proposed(world, 9000)
    waiting = execute(world.refunding(), other)
    assert (waiting.status, code(waiting)) == (NOT_SENT, "may_still_land")
    assert payments.store.calls("refunds") == []
    world.now += OVER
    assert execute(world.refunding(), other).status == EXECUTED
    assert payments.refunded("o-1001", "p-2") == 9000


@pytest.mark.guarantee("G31", "G32", "G47")
@pytest.mark.parametrize("passes", [timedelta(0), OVER])
def test_what_landed_for_the_first_is_the_operations_outcome_and_the_other_is_not_sent(
    world: RefundWorld, payments: Payments, passes: timedelta
) -> None:
    first = proposed(world, 10000)
    lands = late(world, payments, first)
    other = proposed(world, 9000)
    assert code(execute(world.refunding(), other)) == "may_still_land"
    lands()
    world.now += passes
    results = [execute(world.refunding(), other), reconcile(world.refunding(), other)]
    assert [result.status for result in results] == [EXECUTED] * 2
    assert results[0].receipt is not None
    assert results[0].receipt.key == first.proposal.action.idempotency_key()
    assert payments.refunded("o-1001", "p-2") == 10000
    assert world.approval(first).status == ApprovalStatus.CONSUMED
    records = list(world.ledger.audit.records(world.tenant, "r-1"))
    (executed,) = [record for record in records if record.type == "effect.executed"]
    assert executed.detail["found_late"] is True
    assert [record.type for record in records][-1] == "alarm.raised"


@pytest.mark.guarantee("G32", "G36")
def test_while_the_first_cannot_be_looked_up_nothing_else_is_sent(world: RefundWorld, payments: Payments) -> None:
    first = proposed(world, 10000)
    late(world, payments, first)
    other = proposed(world, 9000)
    world.now += OVER
    payments.fail_next("unavailable", "unavailable", on="lookups")
    assert execute(world.refunding(), other).status == reconcile(world.refunding(), other).status == UNKNOWN
    standing = world.ledger.executions.get(world.tenant, "r-1")
    assert standing is not None
    assert (standing.key, standing.status) == (first.proposal.action.idempotency_key(), UNKNOWN)
    assert payments.store.calls("refunds") == []
    assert reconcile(world.refunding(), other).status == NOT_SENT
    assert execute(world.refunding(), other).status == EXECUTED
    assert payments.refunded("o-1001", "p-2") == 9000


@pytest.mark.guarantee("G31", "G37")
def test_a_gateway_that_slept_over_its_claim_sends_nothing(world: RefundWorld, payments: Payments) -> None:
    approval = proposed(world, 10000)
    meanwhile: list[str] = []

    def sleep(*_: Any) -> None:
        world.now += timedelta(minutes=2)
        meanwhile.append(code(reconcile(world.refunding(), approval)))

    gateway = world.gateway(Between(world, sleep), world.messages, world.internal)
    assert execute(gateway, approval).status == NOT_SENT
    assert meanwhile == ["not_there"]
    assert payments.store.calls("refunds") == []
    assert execute(world.refunding(), approval).status == EXECUTED
    assert payments.refunded("o-1001", "p-2") == 10000


class Answering(Between):
    """The same, where the answer waits."""

    def send(self, *arguments: Any) -> Receipt:
        receipt = PaymentsChannel.send(self, *arguments)
        assert self._before is not None
        self._before()
        return receipt


@pytest.mark.guarantee("G31", "G37")
def test_a_receipt_in_hand_is_recorded_whatever_was_recorded_meanwhile(world: RefundWorld, payments: Payments) -> None:
    """The later attempt looked where nothing was to be seen yet, as behind a cache."""
    approval = proposed(world, 10000)
    blind = Between(world, lambda *_: None)
    vars(blind)["look_up"] = lambda _: None
    seen = blind.facts("o-1001")
    vars(blind)["facts"] = lambda _: seen

    def meanwhile(*_: Any) -> None:
        world.now += timedelta(minutes=2)
        assert reconcile(world.gateway(blind), approval).status == NOT_SENT

    result = execute(world.gateway(Answering(world, meanwhile)), approval)
    assert result.status == EXECUTED
    assert execute(world.refunding(), approval) == result
    assert world.approval(approval).status == ApprovalStatus.CONSUMED
    assert payments.refunded("o-1001", "p-2") == 10000


@pytest.mark.guarantee("G31", "G37")
class TestRestored:
    def test_reconciling_looks_for_what_was_sent_in_the_lost_time(self, world: RefundWorld, payments: Payments) -> None:
        approval = proposed(world, 10000)
        _sent_in_the_lost_time(world, payments, approval)
        assert reconcile(world.refunding(), approval).status == EXECUTED

    def test_it_is_the_outcome_also_where_another_action_was_approved_since(
        self, world: RefundWorld, payments: Payments
    ) -> None:
        first = proposed(world, 10000)
        _sent_in_the_lost_time(world, payments, first)
        other = proposed(world, 9000)
        assert execute(world.refunding(), other).status == EXECUTED
        assert payments.refunded("o-1001", "p-2") == 10000


def _sent_in_the_lost_time(world: RefundWorld, payments: Payments, approval: Approval) -> None:
    action = approval.proposal.action
    document = world.ledger.documents.get(world.tenant, action.content_hash)
    payments.store.do("refunds", action.idempotency_key(), document)
    restored(world)


@pytest.mark.guarantee("G04", "G36")
def test_one_persons_word_does_not_beat_what_the_service_itself_shows(
    world: RefundWorld, payments: Payments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order shows the refund, though the service has dropped its key."""
    settling = Settling.model_validate({"role": "chief", "two_over": ["1000.00 EUR"]})
    rules = (Rule(id="all", when={"side_effect": "refund"}, need=need()),)
    settled = Policy(policy="refund", version=1, settling=settling, rules=rules)
    monkeypatch.setitem(refunding.POLICIES, "refund", settled)
    approval, gateway = proposed(world, 10000), world.refunding()
    payments.fail_next("key_forgotten")
    assert execute(gateway, approval).status == UNKNOWN
    _says_not_executed(world, approval, "cora")
    result = reconcile(gateway, approval)
    assert (result.status, code(result)) == (UNKNOWN, "key_forgotten")
    _says_not_executed(world, approval, "carl")
    assert code(reconcile(gateway, approval)) == "settled"


def _says_not_executed(world: RefundWorld, approval: Approval, person: str) -> None:
    command = Command(
        installation=INSTALLATION, person=person, key_id=f"{person}-1", tenant=world.tenant, operation="r-1",
        command="settle", control_version=1, key=approval.proposal.action.idempotency_key(), finding="not_executed",
        comment_hash=sha256_hex(b"seen"), issued_at=world.now, expires_at=world.now + timedelta(hours=1),
        id=f"settle-by-{person}-0001",
    )  # fmt: skip
    token = sign_command(command, world.keys[person])
    received = ReceivedCommand(message_id=command.id, transport="signal", command=command, token=token, at=world.now)
    signer = world.ledger.directory.persons(world.tenant)[person]
    assert world.ledger.controls.command(received, signer, Amendment()).ruling == Ruling.ACCEPTED
