"""What is checked of a refund's money: every way in which a draft, a model or an outsider could send it astray."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.cases.refund.checks import STOPS
from countersign.domain.money import amount
from countersign.domain.refund import OrderFacts
from tests.refund.sample import codes, draft, facts, findings, payment, request


def test_a_payment_that_repeats_another_one_is_refunded_without_a_finding() -> None:
    assert findings(draft()) == ()


def test_part_of_a_payment_can_be_refunded_for_another_reason() -> None:
    asked_for = draft(duplicate_of="", amount=amount("20.00 EUR"), justification="The customer got too little.")

    assert findings(asked_for, facts(payment(), payment(id="p-2", refunded=1_000))) == ()


HOSTILE: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "an invented payment": ({"payment": "p-77"}, [("unknown_payment", "payment")]),
    "another account": ({"account": "acc-evil"}, [("account_mismatch", "account")]),
    "no account": ({"account": ""}, [("account_mismatch", "account")]),
    "a cent too much": ({"amount": amount("120.01 EUR")}, [("above_refundable", "amount"), ("not_overpaid", "amount")]),
    "no amount": ({"amount": amount("0.00 EUR")}, [("no_amount", "amount")]),
    "another currency": ({"amount": amount("120.00 USD")}, [("currency_mismatch", "amount")]),
    "an invented first payment": ({"duplicate_of": "p-77"}, [("unknown_payment", "duplicate_of")]),
    "a duplicate of itself": ({"duplicate_of": "p-2"}, [("not_a_duplicate", "duplicate_of")]),
}


@pytest.mark.parametrize("attempt", HOSTILE)
def test_a_draft_that_would_send_money_astray_is_found_out(attempt: str) -> None:
    changes, found = HOSTILE[attempt]

    assert codes(draft(**changes)) == found


FACTS: dict[str, tuple[OrderFacts, list[tuple[str, str]]]] = {
    "not paid": (facts(status="open"), [("order_not_paid", "order")]),
    "cancelled": (facts(status="cancelled"), [("order_not_paid", "order")]),
    "no payments": (facts(payment(id="p-5")), [("unknown_payment", "payment")]),
    "another order's payment": (
        facts(payment(), payment(id="p-2", order="o-2")),
        [("other_order", "payment"), ("not_a_duplicate", "duplicate_of")],
    ),
    "disputed": (
        facts(payment(), payment(id="p-2", status="disputed"), payment(id="p-3")),
        [("not_captured", "payment"), ("above_refundable", "amount"), ("not_a_duplicate", "duplicate_of")],
    ),
    "refunded already": (
        facts(payment(), payment(id="p-2", refunded=12_000), payment(id="p-3")),
        [("already_refunded", "payment"), ("above_refundable", "amount"), ("already_refunded", "duplicate_of")],
    ),
    "the other one refunded already": (
        facts(payment(refunded=12_000), payment(id="p-2"), payment(id="p-3")),
        [("already_refunded", "duplicate_of")],
    ),
    "less than the same": (facts(payment(amount=11_999), payment(id="p-2"), payment(id="p-3")),
                           [("not_a_duplicate", "duplicate_of")]),
    "from another account": (facts(payment(account="acc-1"), payment(id="p-2")), [("not_a_duplicate", "duplicate_of")]),
    "in another currency than the order": (
        facts(currency="USD"), [("currency_mismatch", "payment")],
    ),
    "two instalments of one price": (facts(total=24_000), [("not_overpaid", "amount")]),
}  # fmt: skip


@pytest.mark.parametrize("case", FACTS)
def test_facts_that_do_not_bear_the_refund_are_found(case: str) -> None:
    known, found = FACTS[case]

    assert codes(draft(), known) == found


def test_facts_of_another_order_than_was_asked_about_bear_nothing() -> None:
    assert ("other_order", "order") in codes(draft(), None, request(order="o-2"))


def test_an_honest_nothing_ends_the_run_with_its_reason() -> None:
    nothing = draft(payment="", duplicate_of="", account="", amount=amount("0.00 EUR"), message="",
                    justification="No payment of {{order}} repeats another one.")  # fmt: skip

    first, *_ = findings(nothing, facts(payment()))

    assert (first.code, first.code in STOPS) == ("nothing_to_refund", True)
    assert "No payment of {{order}} repeats another one." in first.found


def test_nothing_is_no_answer_where_the_payments_show_a_repetition() -> None:
    nothing = draft(payment="", duplicate_of="", account="", amount=amount("0.00 EUR"))

    first, *_ = findings(nothing)

    assert (first.code, first.code in STOPS) == ("overlooked_duplicate", False)
    assert "p-2, which repeats p-1" in first.expected


def test_of_three_alike_only_what_is_paid_too_much_goes_back() -> None:
    once_back = facts(payment(), payment(id="p-2", refunded=12_000), payment(id="p-3"))
    third = draft(payment="p-3")

    assert findings(third, once_back) == ()
    assert codes(third, facts(payment(), payment(id="p-2"), payment(id="p-3"), total=36_000)) == [
        ("not_overpaid", "amount")
    ]
