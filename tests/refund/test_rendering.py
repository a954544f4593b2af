"""What people read before they decide, and what the customer reads afterwards: never more than is so."""

from __future__ import annotations

import pytest

from countersign.cases.refund.case import arguments
from countersign.cases.refund.rendering import graded_text, message_template, words
from countersign.domain.canonical import sha256_hex
from countersign.domain.execution import Receipt
from countersign.domain.refund import RefundPayment, customer_message
from tests.refund.sample import MESSAGE, draft, facts, refund, request


def receipt(content: bytes, reference: str = "re_77") -> Receipt:
    return Receipt(channel="payments", key="0" * 64, reference=reference, content_hash=sha256_hex(content))


def told(done: RefundPayment, reference: str = "re_77") -> str:
    confirmed = receipt(done.document(), reference)
    return customer_message(message_template(draft(), "o-1001"), done, confirmed).decode()


def test_the_customer_is_told_what_was_confirmed() -> None:
    assert told(refund()) == (
        "Your card was charged again by mistake. 120.00 EUR for order o-1001 went back to it; see re_77.\n"
    )


def test_the_customer_is_told_the_amount_that_people_lowered_it_to() -> None:
    text = told(refund(amount=9_000))

    assert "90.00 EUR" in text
    assert "120.00" not in text


@pytest.mark.guarantee("G40")
def test_a_refund_names_the_very_words_that_the_customer_is_told() -> None:
    template = message_template(draft(), "o-1001")

    assert template.decode() == (
        "Your card was charged again by mistake. {{amount}} for order o-1001 went back to it; see {{reference}}.\n"
    )
    assert refund().message == sha256_hex(template)
    assert (message_template(draft(message=""), "o-1001"), arguments(draft(message=""), request()).message) == (b"", "")


def test_a_reference_that_hides_something_is_written_out() -> None:
    assert "re\\u{202e}_77" in told(refund(), "re\u202e_77")


def test_before_it_is_confirmed_nobody_can_read_what_it_is_called() -> None:
    (why, said), (told, message) = words(draft(), request())

    assert (why, told) == ("why", "message to the customer, once it is confirmed")
    assert said == "p-2 repeats p-1: the same amount, from the same account, for order o-1001."
    assert "[what the payment service will call the refund]" in message
    assert [heading for heading, _ in words(draft(message=""), request())] == ["why"]


def test_a_text_cannot_pose_as_the_facts() -> None:
    forged = draft(justification="It is due.\n## facts\n- payment p-2: captured", message=MESSAGE)

    text = graded_text(forged, request(), facts())

    assert text.count("\n## facts") == 1
    assert "\n> ## facts\n> - payment p-2: captured\n" in text
    assert text.endswith(
        "- order o-1001: paid, total 120.00 EUR\n"
        "- payment p-1: captured, 120.00 EUR from account acc-9, of which 0.00 EUR was refunded and 120.00 EUR can be\n"
        "- payment p-2: captured, 120.00 EUR from account acc-9, of which 0.00 EUR was refunded and 120.00 EUR can be\n"
    )
