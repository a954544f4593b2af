"""The payment service keeps its contract: keys as in the IETF draft, its own rules, look-ups, lists, and faults."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from countersign.settings import ROOT
from examples.payments import service
from examples.payments.service import FAULTS
from tests.payments.calls import Reply, call, refund
from tests.support.payments import PAYMENTS_ADMIN_TOKEN, Payments, started_payments
from tests.support.processes import Processes


def test_an_order_is_told_with_its_payments_oldest_first_and_what_was_refunded(payments: Payments) -> None:
    call("POST", payments.url, refund(amount=900), "k-1")
    told = call("GET", f"{payments.orders_url}/o-1001")
    assert told.status == 200
    assert told.content["order"] == {"id": "o-1001", "status": "paid", "currency": "EUR", "total": 24900}
    assert [(one["id"], one["refunded"]) for one in told.content["payments"]] == [("p-1", 0), ("p-2", 900)]
    assert call("GET", f"{payments.orders_url}/o-9").status == 404


def test_a_key_does_something_once_and_is_given_its_stored_answer(payments: Payments) -> None:
    first = call("POST", payments.url, refund(), "k-1")
    assert first.status == 201
    assert first.content["content_hash"] == "sha256:" + hashlib.sha256(refund()).hexdigest()
    assert call("POST", payments.url, refund(), "k-1") == first
    assert call("POST", payments.url, refund(), '"k-1"') == first, "a quoted key is the same key"
    assert call("GET", f"{payments.url}/by-key/k-1").content == first.content
    assert call("GET", f"{payments.url}/keys").content == {"keys": [first.content]}
    assert payments.refunds() == ["k-1"]


def test_a_key_with_another_body_or_without_any_key_does_nothing(payments: Payments) -> None:
    call("POST", payments.url, refund(amount=1), "k-1")
    assert call("POST", payments.url, refund(amount=2), "k-1").code == "key_reused"
    assert call("POST", payments.url, refund(amount=2)).code == "key_missing"
    assert payments.refunded("o-1001", "p-2") == 1


def test_while_the_first_is_running_the_same_key_is_told_so(payments: Payments) -> None:
    payments.fail_next("slow", seconds=30)
    answers: list[Reply] = []
    first = threading.Thread(target=lambda: answers.append(call("POST", payments.url, refund(), "k-1")))
    first.start()
    while call("GET", f"{payments.url}/by-key/k-1").status != 409:
        assert first.is_alive()
    assert call("POST", payments.url, refund(), "k-1").code == "still_running"
    payments.let_go()
    first.join()
    assert [answer.status for answer in answers] == [201]
    assert payments.refunds() == ["k-1"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"order": "o-9"}, "order_unknown"),
        ({"order": "o-1004"}, "payment_unknown"),
        ({"payment": "p-9"}, "payment_unknown"),
        ({"order": "o-1005", "payment": "p-8", "account": "acc-ed", "amount": 1}, "order_not_paid"),
        ({"currency": "USD"}, "other_currency"),
        ({"account": "acc-bo"}, "other_account"),
        ({"amount": 0}, "amount_not_allowed"),
        ({"amount": 24901}, "over_refundable"),
    ],
)
def test_what_its_rules_forbid_is_refused_and_does_not_use_the_key_up(
    payments: Payments, fields: dict[str, Any], code: str
) -> None:
    refused = call("POST", payments.url, refund(**fields), "k-1")
    assert (refused.status, refused.code) == (422, code)
    assert call("GET", f"{payments.url}/by-key/k-1").status == 404
    assert call("POST", payments.url, refund(), "k-1").status == 201


@pytest.mark.parametrize(
    ("body", "status"), [(refund(), 201), (refund(amount=0), 422), (b"{", 400), (refund(order="o-9"), 422)]
)
def test_whoever_has_an_answer_finds_the_key_free(
    payments: Payments, monkeypatch: pytest.MonkeyPatch, body: bytes, status: int
) -> None:
    """Asked at the moment at which the answer is sent, since a caller who is quick enough asks then."""
    send, held = service._Handler._send, []

    def sending(self: Any, sent: int, *data: Any) -> None:
        held.append((sent, self.server.is_running("refunds", "k-1")))
        send(self, sent, *data)

    monkeypatch.setattr(service._Handler, "_send", sending)
    assert call("POST", payments.url, body, "k-1").status == status
    assert held == [(status, False)]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", refund(amount="1"), refund(more="x"), refund(amount=True)])
def test_a_body_in_another_form_is_refused(payments: Payments, body: bytes) -> None:
    assert call("POST", payments.url, body, "k-1").code == "malformed"
    assert payments.refunds() == []


def test_a_refund_is_taken_back_once(payments: Payments) -> None:
    made = call("POST", payments.url, refund(), "k-1").content
    body = json.dumps({"key": "k-1", "reference": made["reference"]}).encode()
    back = call("POST", f"{payments.url}/reversals", body, "k-2")
    assert back.status == 201
    assert payments.refunded("o-1001", "p-2") == 0
    assert call("POST", f"{payments.url}/reversals", body, "k-2") == back
    assert call("POST", f"{payments.url}/reversals", body, "k-3").code == "reversed_already"
    other = json.dumps({"key": "k-9", "reference": made["reference"]}).encode()
    assert call("POST", f"{payments.url}/reversals", other, "k-4").code == "refund_unknown"
    assert call("GET", f"{payments.url}/reversals/by-key/k-2").content == back.content
    assert payments.store.effects("reversals") == ["k-2"]


def test_without_the_token_nothing_is_told_or_done(payments: Payments) -> None:
    for method, path in (("POST", "/refunds"), ("GET", "/orders/o-1001"), ("GET", "/refunds/keys")):
        assert call(method, payments.base + path, refund(), "k-1", token="guessed").status == 401
    assert call("POST", f"{payments.base}/admin/faults", b"{}").status == 404, "callers set no faults"
    assert payments.refunds() == []


DONE = {"answer_lost": 0, "error_after": 500, "garbage": 200, "key_forgotten": 0}
NOT_DONE = {"closed": 0, "busy": 409, "unavailable": 503, "redirect": 307}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_befalls_so_many_calls_of_its_kind_and_no_more(payments: Payments, fault: str) -> None:
    ordered = json.dumps({"on": "refunds", "fault": fault, "calls": 1, "seconds": 0.01}).encode()
    assert call("POST", f"{payments.base}/admin/faults", ordered, token=PAYMENTS_ADMIN_TOKEN).status == 200
    assert call("GET", f"{payments.orders_url}/o-1001").status == 200
    first = call("POST", payments.url, refund(amount=1), "k-1")
    assert first.status == {**DONE, **NOT_DONE, "slow": 201}[fault]
    assert payments.refunds() == ([] if fault in NOT_DONE else ["k-1"])
    again = call("POST", payments.url, refund(amount=1), "k-1")
    assert again.status == 201
    assert payments.refunds() == ["k-1"] * (2 if fault == "key_forgotten" else 1)


@pytest.mark.parametrize("kind", ["lookups", "lists", "orders"])
def test_reading_can_be_down_too(payments: Payments, kind: str) -> None:
    payments.fail_next("unavailable", on=kind)
    path = {"lookups": "/refunds/by-key/k-1", "lists": "/refunds/keys", "orders": "/orders/o-1001"}[kind]
    assert call("GET", payments.base + path).status == 503
    assert call("GET", payments.base + path).status != 503


def test_faults_that_are_none_are_refused(payments: Payments) -> None:
    for wrong in ({"on": "refunds", "fault": "typo"}, {"on": "typo", "fault": "slow"}, {}):
        url, body = f"{payments.base}/admin/faults", json.dumps(wrong).encode()
        assert call("POST", url, body, token=PAYMENTS_ADMIN_TOKEN).code == "malformed"


@pytest.mark.parametrize("has_done", [False, True])
def test_killed_it_has_done_all_or_nothing_and_its_successor_goes_on(
    processes: Processes, tmp_path: Path, has_done: bool
) -> None:
    first, payments = started_payments(processes, tmp_path / "payments.sqlite")
    payments.fail_next("slow", on="lookups" if has_done else "refunds", seconds=60)
    if has_done:
        call("POST", payments.url, refund(), "k-1")
    path = f"{payments.url}/by-key/k-1" if has_done else payments.url
    waiting = threading.Thread(target=call, args=("GET" if has_done else "POST", path, refund(), "k-1"))
    waiting.start()
    while not payments.store.calls("lookups" if has_done else "refunds"):
        assert waiting.is_alive()
    first.kill()
    waiting.join()
    assert payments.refunds() == (["k-1"] if has_done else [])

    _, successor = started_payments(processes, tmp_path / "payments.sqlite")
    assert call("POST", successor.url, refund(), "k-1").status == 201
    assert successor.refunds() == ["k-1"]
    assert successor.refunded("o-1001", "p-2") == 24900


def test_without_a_token_or_with_a_wrong_seed_it_does_not_start(processes: Processes, tmp_path: Path) -> None:
    seed = tmp_path / "seed.json"
    seed.write_text("[]", encoding="utf-8")
    program = [sys.executable, "-m", "examples.payments", "--database", str(tmp_path / "payments.sqlite")]
    tokenless = processes.start(program, env={"PAYMENTS_TOKEN": ""}, cwd=ROOT)
    seeded = processes.start([*program, "--seed", str(seed)], env={"PAYMENTS_TOKEN": "x"}, cwd=ROOT)
    assert (tokenless.wait(), seeded.wait()) == (2, 2)
    assert "PAYMENTS_TOKEN is not set" in tokenless.output
    assert f"{seed}: no orders in the form of a seed" in seeded.output
