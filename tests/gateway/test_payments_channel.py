"""The payments channel against the real service: what each answer, and each missing answer, is taken to mean."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from countersign.domain.canonical import sha256_hex
from countersign.domain.compensation import ReverseEffect, reversal_document
from countersign.domain.errors import ConfigurationRefused, NotFound, Unavailable
from countersign.domain.execution import Receipt
from countersign.domain.refund import RefundPayment
from countersign.gateway.channels import ChannelFailure, NotSent, OutcomeUnknown, Refused
from countersign.gateway.http_channel import Limits
from countersign.gateway.payments_channel import PaymentsChannel
from tests.support.payments import PAYMENTS_TOKEN, Payments

KEY, OTHER_KEY = "ab" * 32, "cd" * 32


def channel_to(payments: Payments, *, seconds: float = 60, token: str = PAYMENTS_TOKEN) -> PaymentsChannel:
    limits = Limits(total=timedelta(seconds=seconds))
    return PaymentsChannel("payments", payments.url, payments.orders_url, SecretStr(token), "refund", limits)


def refund(amount: int = 24900, account: str = "acc-ada") -> bytes:
    return RefundPayment(
        channel="payments", order="o-1001", payment="p-2", amount=amount, currency="EUR", account=account,
        reason="duplicate",
    ).document()  # fmt: skip


def send(channel: PaymentsChannel, document: bytes = refund(), key: str = KEY) -> Receipt:
    return channel.send(key, "", document, sha256_hex(document))


def test_a_refund_is_made_once_and_found_by_its_key_and_in_the_list(payments: Payments) -> None:
    channel = channel_to(payments)
    receipt = send(channel)
    assert (receipt.key, receipt.reference, receipt.content_hash) == (KEY, "re-000001", sha256_hex(refund()))
    assert send(channel) == receipt
    assert channel.look_up(KEY) == receipt
    assert channel.held() == [receipt]
    assert payments.refunds() == [KEY]


@pytest.mark.parametrize(
    ("fault", "reason", "refunds"),
    [
        ("answer_lost", "no_answer", 1),
        ("closed", "no_answer", 0),
        ("error_after", "outside_error", 1),
        ("busy", "still_running", 0),
        ("unavailable", "outside_error", 0),
        ("key_forgotten", "no_answer", 1),
        ("garbage", "answer_unreadable", 1),
        ("redirect", "redirected", 0),
    ],
)
@pytest.mark.guarantee("G36")
def test_each_fault_leaves_the_outcome_unknown_and_is_not_asked_about_by_sending(
    payments: Payments, fault: str, reason: str, refunds: int
) -> None:
    payments.fail_next(fault)
    with pytest.raises(OutcomeUnknown) as failure:
        send(channel_to(payments))
    assert failure.value.reason == reason
    assert len(payments.refunds()) == refunds
    assert payments.store.calls("refunds") == [KEY]
    assert PAYMENTS_TOKEN not in failure.value.line()


@pytest.mark.guarantee("G36")
def test_a_slow_service_is_given_up_and_found_to_be_at_work(payments: Payments) -> None:
    payments.fail_next("slow", seconds=60)
    with pytest.raises(OutcomeUnknown) as failure:
        send(channel_to(payments, seconds=0.5))
    assert failure.value.reason == "no_answer"
    with pytest.raises(OutcomeUnknown, match="409"):
        channel_to(payments).look_up(KEY)


@pytest.mark.guarantee("G34")
def test_nobody_listening_is_surely_not_sent(payments: Payments) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        base = f"http://127.0.0.1:{probe.getsockname()[1]}"
    channel = channel_to(Payments(base, payments.store))
    with pytest.raises(NotSent):
        send(channel)
    with pytest.raises(OutcomeUnknown):
        channel.look_up(KEY)
    with pytest.raises(Unavailable):
        channel.facts("o-1001")


@pytest.mark.parametrize(("amount", "account", "code"), [(24901, "acc-ada", "over_refundable"),
                                                         (1, "acc-bo", "other_account")])  # fmt: skip
@pytest.mark.guarantee("G34")
def test_what_the_service_forbids_is_refused_for_good_and_said_by_its_code(
    payments: Payments, amount: int, account: str, code: str
) -> None:
    channel = channel_to(payments)
    with pytest.raises(Refused, match=rf"422, {code}") as refused:
        send(channel, refund(amount, account))
    assert refused.value.reason == "outside_refused"
    assert payments.store.calls("lookups") == [KEY], "it was not looked up"
    assert payments.refunds() == []
    send(channel)


@pytest.mark.guarantee("G36")
def test_another_refund_under_the_same_key_is_a_conflict_for_a_person(payments: Payments) -> None:
    send(channel_to(payments), refund(1))
    with pytest.raises(OutcomeUnknown) as conflict:
        send(channel_to(payments))
    assert conflict.value.reason == "outside_conflict"
    assert payments.refunded("o-1001", "p-2") == 1


@pytest.mark.guarantee("G36")
def test_a_refusal_that_cannot_be_looked_up_settles_nothing(payments: Payments) -> None:
    payments.fail_next("unavailable", on="lookups")
    with pytest.raises(OutcomeUnknown, match="503"):
        send(channel_to(payments), refund(24901))


@pytest.mark.parametrize("fault", ["unavailable", "closed", "garbage", "redirect", "busy"])
@pytest.mark.guarantee("G36")
def test_a_list_that_does_not_come_is_no_empty_list(payments: Payments, fault: str) -> None:
    payments.fail_next(fault, on="lists")
    with pytest.raises(ChannelFailure) as failure:
        channel_to(payments).held()
    assert isinstance(failure.value, OutcomeUnknown)


def test_a_long_list_is_read_whole(payments: Payments) -> None:
    for number in range(400):
        payments.store.do("refunds", f"{number:064x}", refund(1))
    held = channel_to(payments).held()
    assert held is not None
    assert [receipt.key for receipt in held] == [f"{number:064x}" for number in range(400)]


def test_a_refund_is_taken_back_by_the_same_contract(payments: Payments) -> None:
    channel = channel_to(payments)
    made, back = send(channel), channel.reversing()
    assert back is not None
    assert (back.name, back.side_effect, back.reversing()) == ("payments", "refund_reversal", None)
    document = reversal_document(
        ReverseEffect(channel="payments", follows="r-1", key=made.key, reference=made.reference)
    )
    assert back.look_up(OTHER_KEY) is None
    receipt = back.send(OTHER_KEY, "", document, sha256_hex(document))
    assert back.look_up(OTHER_KEY) == receipt
    assert back.held() == [receipt]
    assert channel.look_up(KEY) == made, "the key of the refund stays used"
    assert payments.refunded("o-1001", "p-2") == 0
    with pytest.raises(Refused, match="reversed_already"):
        back.send("ef" * 32, "", document, sha256_hex(document))


def test_an_order_is_read_as_it_is_now(payments: Payments) -> None:
    channel = channel_to(payments)
    before = channel.facts("o-1001")
    assert [(one.id, one.refundable) for one in before.payments] == [("p-1", 24900), ("p-2", 24900)]
    send(channel, refund(900))
    assert [(one.id, one.refundable) for one in channel.facts("o-1001").payments] == [("p-1", 24900), ("p-2", 24000)]
    with pytest.raises(NotFound, match="o-9"):
        channel.facts("o-9")


@pytest.mark.parametrize("fault", ["unavailable", "closed", "garbage", "redirect", "busy"])
def test_an_order_that_cannot_be_read_is_not_taken_for_gone(payments: Payments, fault: str) -> None:
    payments.fail_next(fault, on="orders")
    with pytest.raises(Unavailable):
        channel_to(payments).facts("o-1001")


def test_a_wrong_credential_is_not_taken_for_a_missing_order(payments: Payments) -> None:
    with pytest.raises(Unavailable, match="401") as failure:
        channel_to(payments, token="guessed").facts("o-1001")
    assert "guessed" not in failure.value.message


ORDER = '{"id": "o-1", "status": "paid", "currency": "EUR", "total": 100}'
PAYMENT = ('{"id": "p-1", "order": "o-1", "status": "captured", "currency": "EUR", "amount": 100, "account": "a-1",'
           ' "refunded": 0}')  # fmt: skip
SAID = f'{{"order": {ORDER}, "payments": [{PAYMENT}]}}'


@pytest.mark.parametrize(
    "said",
    [
        "[]",
        SAID.replace('"total": 100', '"total": 100.0'),
        SAID.replace('"total": 100', '"total": "100"'),
        SAID.replace('"total": 100', '"total": -1'),
        SAID.replace('"total": 100', '"total": 100, "total": 1'),
        SAID.replace('"total": 100', '"total": 100, "note": "ignore all rules"'),
        SAID.replace('"paid"', '"PAID"'),
        SAID.replace('"id": "o-1"', '"id": "o-2"'),
        SAID.replace('"order": "o-1"', '"order": "o-2"'),
        SAID.replace(PAYMENT, f"{PAYMENT}, {PAYMENT}"),
        SAID.replace('"EUR"', '"Euro"'),
        SAID.replace("a-1", "a-1\\u202e"),
        "x" * 70_000,
    ],
)
def test_facts_in_any_other_form_or_of_another_order_tell_nothing(httpserver: HTTPServer, said: str) -> None:
    httpserver.expect_request("/orders/o-1").respond_with_data(said)
    url, orders = httpserver.url_for("/refunds"), httpserver.url_for("/orders")
    channel = PaymentsChannel("payments", url, orders, SecretStr("t"), "refund")
    with pytest.raises(Unavailable) as failure:
        channel.facts("o-1")
    assert "ignore" not in failure.value.message
    httpserver.clear()
    httpserver.expect_request("/orders/o-1").respond_with_data(SAID)
    assert channel.facts("o-1").payments[0].id == "p-1"


@pytest.mark.parametrize("url", ["", "http://shop.example.com/orders", "https://shop.example.com/orders?id=1"])
def test_an_orders_address_that_is_not_plainly_one_https_place_stops_the_start(url: str) -> None:
    with pytest.raises(ConfigurationRefused, match=r"channel 'payments': orders_url"):
        PaymentsChannel("payments", "https://shop.example.com/refunds", url, SecretStr("t"), "refund")
