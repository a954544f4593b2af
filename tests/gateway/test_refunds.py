"""Refunds through the gateway: one refund outside whatever fails, on facts that still hold, or none and a reason."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.channel import ChannelConfig
from countersign.domain.errors import NotAuthorised, NotFound, Unavailable
from countersign.domain.execution import EffectResult, ExecutionStatus
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.reconciliation import Effect, Survey, disagreements, gaps
from countersign.domain.refund import RefundRequest
from countersign.gateway.gateway import CLAIM_MARGIN
from countersign.gateway.inactive_channel import InactivePayments
from countersign.gateway.reconciling import Outside, Way
from countersign.gateway.tools import Tools
from tests.gateway.asking import code, execute, reconcile
from tests.gateway.refunding import RefundWorld, reopened
from tests.support.payments import Payments
from tests.support.processes import Processes

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN


@pytest.fixture
def world(populated: Path, tmp_path: Path, payments: Payments) -> Iterator[RefundWorld]:
    shutil.copytree(populated, tmp_path, dirs_exist_ok=True)
    opened = reopened(tmp_path, payments.base)
    yield opened
    opened.close()


def key_of(approval: Approval) -> str:
    return approval.proposal.action.idempotency_key()


def test_a_refund_goes_out_once_and_its_receipt_is_answered_again(world: RefundWorld, payments: Payments) -> None:
    approval = world.refund()
    gateway = world.refunding()
    result = execute(gateway, approval)
    assert result.status == EXECUTED, result.reason
    assert result.receipt is not None
    assert (result.receipt.channel, result.receipt.reference) == ("payments", "re-000001")
    assert execute(gateway, approval) == reconcile(gateway, approval) == result
    assert payments.refunds() == payments.store.calls("refunds") == [key_of(approval)]
    assert payments.refunded("o-1001", "p-2") == 24900


UNCLEAR = ["answer_lost", "closed", "error_after", "busy", "unavailable", "garbage", "redirect"]


@pytest.mark.parametrize("fault", UNCLEAR)
@pytest.mark.guarantee("G36")
@pytest.mark.guarantee("G37")
def test_each_fault_leaves_it_unknown_until_it_is_looked_up_and_refunded_once(
    world: RefundWorld, payments: Payments, fault: str
) -> None:
    gateway, approval = world.refunding(), world.refund()
    payments.fail_next(fault)
    assert execute(gateway, approval).status == UNKNOWN
    has_happened = bool(payments.refunds())
    assert execute(gateway, approval).status == EXECUTED
    assert payments.store.calls("lookups") == [key_of(approval)]
    assert payments.refunds() == [key_of(approval)]
    assert len(payments.store.calls("refunds")) == (1 if has_happened else 2)
    assert {*payments.store.calls("refunds")} == {key_of(approval)}


@pytest.mark.guarantee("G36")
def test_while_look_ups_are_down_it_stays_unknown_and_nothing_is_sent(world: RefundWorld, payments: Payments) -> None:
    gateway, approval = world.refunding(), world.refund()
    payments.fail_next("answer_lost")
    payments.fail_next("unavailable", "garbage", "closed", on="lookups")
    results = [execute(gateway, approval), execute(gateway, approval), reconcile(gateway, approval)]
    assert [result.status for result in [*results, execute(gateway, approval)]] == [UNKNOWN] * 4
    assert len(payments.store.calls("refunds")) == 1
    assert reconcile(gateway, approval).status == EXECUTED


@pytest.mark.guarantee("G35")
def test_a_key_that_the_service_may_have_forgotten_is_left_to_a_person(world: RefundWorld, payments: Payments) -> None:
    """Half of the payment: a second refund under the forgotten key would go through."""
    gateway, approval = world.refunding(), world.refund(amount=1000)
    payments.fail_next("key_forgotten")
    assert execute(gateway, approval).status == UNKNOWN
    world.now += timedelta(hours=24)
    result = reconcile(gateway, approval)
    assert (result.status, code(result)) == (UNKNOWN, "key_forgotten")
    assert payments.refunded("o-1001", "p-2") == 1000


@pytest.mark.guarantee("G35")
def test_a_key_forgotten_at_once_is_stopped_by_what_the_order_says(world: RefundWorld, payments: Payments) -> None:
    """The look-up finds nothing, but the order shows the refund: nothing is sent again, and a person looks."""
    gateway, approval = world.refunding(), world.refund(amount=1000)
    payments.fail_next("key_forgotten")
    assert execute(gateway, approval).status == UNKNOWN
    for result in (execute(gateway, approval), reconcile(gateway, approval)):
        assert (result.status, code(result)) == (UNKNOWN, "key_forgotten")
    assert payments.refunded("o-1001", "p-2") == 1000


def looked_at(world: RefundWorld, *approvals: Approval) -> list[Effect]:
    """What one look outside says of these actions' effects."""
    ways = {world.payments.name: Way(world.payments, "", lambda: ())}
    tools = Tools({world.tenant: [world.payments]}, world.ledger, world.verify_evidence, lambda: world.now)
    outside, executions = Outside(ways, tools), world.ledger.executions
    return [
        outside.look(one.proposal.action, executions.get(world.tenant, one.proposal.operation)) for one in approvals
    ]


@pytest.mark.guarantee("G35")
@pytest.mark.guarantee("G36")
def test_of_a_forgotten_key_reconcile_does_not_say_that_nothing_is_there(
    world: RefundWorld, payments: Payments
) -> None:
    """Nobody may sign `not executed` on the strength of it; the service answers, so other keys are asked for."""
    gateway, approval = world.refunding(), world.refund(amount=1000)
    payments.fail_next("key_forgotten")
    assert execute(gateway, approval).status == UNKNOWN
    other = world.refund("r-2", order="o-1002", payment="p-3", amount=1000, account="acc-bo")
    never_sent = world.refund("r-3", amount=500)
    payments.store.do("refunds", "theirs", _other_refund("p-2", 100))

    effects = looked_at(world, approval, other, never_sent)

    (gap,) = gaps(Survey(operations=(), effects=tuple(effects)), world.now)
    assert (gap.part, gap.count) == ("payments", 1)
    assert gap.why.startswith("key_forgotten: the key is not known, but something of payment p-2 was refunded meanwh")
    assert disagreements(Survey(operations=(), effects=tuple(effects)), world.now) == ()


def test_a_refund_and_its_reversal_are_found_where_the_gateway_put_them(world: RefundWorld) -> None:
    approval = world.refund()
    made = execute(world.refunding(), approval).receipt
    assert made is not None
    back = world.reversal(made, "r-1")
    undone = execute(world.refunding(), back).receipt
    refund, reversal = looked_at(world, approval, back)
    assert (refund.channel, refund.look.receipt) == ("payments", made)
    assert (reversal.channel, reversal.look.receipt) == ("payments, taking back", undone)


CHANGES: list[tuple[Callable[[Payments], Any], str, str]] = [
    (lambda service: service.store.set_status("o-1001", "cancelled"),
     "order o-1001: status paid", "order o-1001: status cancelled"),
    (lambda service: service.store.do("refunds", "theirs", _other_refund("p-2", 100)),
     "payment p-2: refunded 0.00 EUR", "payment p-2: refunded 1.00 EUR"),
    (lambda service: service.store.do("refunds", "theirs", _other_refund("p-1", 24900)),
     "payment p-1: refunded 0.00 EUR", "payment p-1: refunded 249.00 EUR"),
]  # fmt: skip


def _other_refund(payment: str, amount: int, **more: str) -> bytes:
    """What somebody else has the service refund."""
    body = {"order": "o-1001", "payment": payment, "amount": amount, "currency": "EUR", "account": "acc-ada", **more}
    return json.dumps({**body, "reason": "by_hand"}).encode()


@pytest.mark.parametrize(("change", "expected", "found"), CHANGES)
@pytest.mark.guarantee("G06")
def test_an_order_that_changed_since_voids_the_grant_and_says_what_changed(
    world: RefundWorld, payments: Payments, change: Callable[[Payments], Any], expected: str, found: str
) -> None:
    approval = world.refund(amount=1000)
    change(payments)
    result = execute(world.refunding(), approval)
    assert (result.status, result.voided, code(result)) == (None, True, "facts"), result.reason
    assert world.approval(approval).status == ApprovalStatus.VOIDED
    voided = world.found(approval)
    assert (voided["reason"], voided["expected"], voided["found"]) == ("facts", expected, found)
    assert payments.store.calls("refunds") == []


@pytest.mark.parametrize("fault", ["unavailable", "closed", "garbage"])
@pytest.mark.guarantee("G34")
def test_facts_that_cannot_be_read_send_nothing_and_void_nothing(
    world: RefundWorld, payments: Payments, fault: str
) -> None:
    gateway, approval = world.refunding(), world.refund()
    payments.fail_next(fault, on="orders")
    result = execute(gateway, approval)
    assert (result.status, code(result)) == (NOT_SENT, "facts_unreadable")
    assert payments.store.calls("refunds") == []
    assert execute(gateway, approval).status == EXECUTED


@pytest.mark.guarantee("G31")
def test_two_processes_at_a_barrier_make_one_call(
    world: RefundWorld, payments: Payments, processes: Processes, tmp_path: Path
) -> None:
    approval, barrier = world.refund(), tmp_path / "barrier"
    payments.fail_next("slow", seconds=1)
    program = [sys.executable, "-m", "tests.gateway.executor", str(world.folder), approval.proposal.approval_id]
    more = ["--now", world.now.isoformat(), "--payments", payments.base, "--barrier", str(barrier)]
    running = [processes.start([*program, *more]) for _ in range(2)]
    for process in running:
        process.wait_for_line("^ready$")
    barrier.touch()
    assert [process.wait() for process in running] == [0, 0], [process.output for process in running]
    results = [EffectResult.model_validate_json(process.output.splitlines()[-1]) for process in running]
    assert EXECUTED in [result.status for result in results]
    assert payments.refunds() == payments.store.calls("refunds") == [key_of(approval)]
    assert {execute(world.refunding(), approval).receipt} == {one.receipt for one in results if one.receipt}


@pytest.mark.parametrize(("step", "calls"), [("claimed", 0), ("sent", 1), ("recorded", 1)])
@pytest.mark.guarantee("G31")
@pytest.mark.guarantee("G37")
def test_a_gateway_killed_over_a_refund_leaves_one_refund(
    world: RefundWorld, payments: Payments, processes: Processes, step: str, calls: int
) -> None:
    approval = world.refund()
    program = [sys.executable, "-m", "tests.gateway.executor", str(world.folder), approval.proposal.approval_id]
    more = ["--now", world.now.isoformat(), "--payments", payments.base, "--kill-at", step]
    assert processes.start([*program, *more]).wait() == -9
    assert len(payments.refunds()) == calls
    world.now += 2 * (world.payments.time_limit + timedelta(seconds=5)) + CLAIM_MARGIN
    assert execute(world.refunding(), approval).status == EXECUTED
    assert payments.refunds() == payments.store.calls("refunds") == [key_of(approval)]


@pytest.mark.guarantee("G36")
def test_a_service_that_holds_another_refund_under_our_key_is_a_conflict_for_a_person(
    world: RefundWorld, payments: Payments
) -> None:
    """Another body of the same order would have changed the facts: the other one is of another order."""
    gateway, approval = world.refunding(), world.refund(amount=1000)
    payments.store.do(
        "refunds", key_of(approval), _other_refund("p-7", 100).replace(b"o-1001", b"o-1004").replace(b"ada", b"di")
    )
    for ask in (execute, execute, reconcile):
        result = ask(gateway, approval)
        assert (result.status, code(result)) == (UNKNOWN, "outside_conflict")
    assert payments.refunded("o-1001", "p-2") == 0


@pytest.mark.guarantee("G34")
def test_what_the_service_forbids_is_given_up_and_the_key_not_used(world: RefundWorld, payments: Payments) -> None:
    """Its rules are its own: here it closes the account between the last look and the refund."""
    approval = world.refund(amount=1000)
    channel = world.payments
    facts = channel.facts("o-1001")
    payments.store.set_status("o-1001", "cancelled")
    vars(channel)["facts"] = lambda order: facts
    result = execute(world.gateway(channel), approval)
    assert (result.status, code(result)) == (None, "outside_refused")
    assert payments.refunds() == []
    assert channel.look_up(key_of(approval)) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"payment": "p-3"}, "facts_do_not_fit"),
        ({"account": "acc-bo"}, "facts_do_not_fit"),
        ({"amount": 24901}, "facts_do_not_fit"),
    ],
)
@pytest.mark.guarantee("G22")
def test_a_refund_that_its_facts_do_not_allow_raises_an_alarm_though_people_approved_it(
    world: RefundWorld, payments: Payments, changes: dict[str, Any], reason: str
) -> None:
    result = execute(world.refunding(), world.refund(**changes))
    assert (result.status, code(result)) == (None, reason)
    assert "alarm.raised" in [record.type for record in world.ledger.audit.records(world.tenant)]
    assert payments.store.calls("refunds") == []


@pytest.mark.guarantee("G14")
def test_other_bytes_than_those_of_the_refund_do_not_go_out(world: RefundWorld, payments: Payments) -> None:
    honest = world.refund().proposal.action
    other = world.ledger.documents.put(world.tenant, _other_refund("p-1", 24900))
    world.asked("r-2", RefundRequest(order="o-1001", complaint="Twice!", channel="payments"))
    world.refunding().gather(world.tenant, "r-2")
    forged = world.granted_action(honest.model_copy(update={"operation": "r-2", "content_hash": other}), "refund")
    assert code(execute(world.refunding(), forged)) == "words_do_not_fit"
    assert payments.store.calls("refunds") == []


def test_an_inactive_channel_keeps_everything_waiting(world: RefundWorld, payments: Payments) -> None:
    config = ChannelConfig(
        kind="payments", tenants=("acme",), side_effect="refund", reversibility="reversible",
        url=payments.url, orders_url=payments.orders_url, token_env="PAYMENTS_TOKEN", optional=True,
    )  # fmt: skip
    approval, asleep = world.refund(), world.gateway(InactivePayments("payments", config))
    result = execute(asleep, approval)
    assert (result.status, code(result)) == (NOT_SENT, "facts_unreadable")
    assert "PAYMENTS_TOKEN is not set" in result.reason
    with pytest.raises(Unavailable, match="PAYMENTS_TOKEN is not set"):
        asleep.gather(world.tenant, "r-1")
    assert execute(world.refunding(), approval).status == EXECUTED


class TestGathering:
    """Facts are read for what a requester signed for, kept under their hash, and never guessed."""

    def asked(self, world: RefundWorld, operation: str = "r-1", order: str = "o-1001", **more: Any) -> None:
        world.asked(operation, RefundRequest(order=order, complaint="Twice!", channel="payments"), **more)

    def test_the_same_facts_are_the_same_document(self, world: RefundWorld, payments: Payments) -> None:
        self.asked(world)
        gateway = world.refunding()
        facts = gateway.gather(world.tenant, "r-1")
        assert gateway.gather(world.tenant, "r-1") == facts == world.ledger.operations.facts(world.tenant, "r-1")
        payments.store.set_status("o-1001", "cancelled")
        changed = gateway.gather(world.tenant, "r-1")
        assert changed != facts
        assert world.ledger.operations.facts(world.tenant, "r-1") == changed
        gathered = [one for one in world.ledger.audit.records(world.tenant, "r-1") if one.type == "facts.gathered"]
        assert len(gathered) == 2

    def test_an_order_that_is_not_there_is_not_found(self, world: RefundWorld) -> None:
        self.asked(world, order="o-9")
        with pytest.raises(NotFound, match="no order o-9"):
            world.refunding().gather(world.tenant, "r-1")

    @pytest.mark.parametrize("fault", ["unavailable", "closed", "garbage", "redirect"])
    def test_an_order_that_cannot_be_read_records_nothing(
        self, world: RefundWorld, payments: Payments, fault: str
    ) -> None:
        self.asked(world)
        payments.fail_next(fault, on="orders")
        with pytest.raises(Unavailable):
            world.refunding().gather(world.tenant, "r-1")
        with pytest.raises(NotFound):
            world.ledger.operations.facts(world.tenant, "r-1")

    @pytest.mark.parametrize(
        "signed_as",
        [
            {"operation": "r-9"},
            {"request_hash": "sha256:" + "0" * 64},
            {"installation": "elsewhere"},
            {"person": "bob"},
        ],
    )
    @pytest.mark.guarantee("G22")
    def test_nobody_reads_an_order_that_no_requester_signed_for(
        self, world: RefundWorld, payments: Payments, signed_as: dict[str, str]
    ) -> None:
        self.asked(world, signed_as=signed_as)
        with pytest.raises(NotAuthorised):
            world.refunding().gather(world.tenant, "r-1")
        assert payments.store.calls("orders") == []

    @pytest.mark.guarantee("G09")
    def test_another_tenants_channel_is_no_way_to_read(self, world: RefundWorld, payments: Payments) -> None:
        self.asked(world)
        without = world.gateway(channels={"globex": (world.payments,)})
        with pytest.raises(NotAuthorised, match="not configured for tenant acme"):
            without.gather(world.tenant, "r-1")
        assert payments.store.calls("orders") == []

    def test_a_channel_of_another_kind_tells_of_no_orders(self, world: RefundWorld) -> None:
        world.asked("r-1", RefundRequest(order="o-1001", complaint="Twice!", channel="internal"))
        with pytest.raises(NotAuthorised, match="takes documents, not refunds"):
            world.refunding().gather(world.tenant, "r-1")
