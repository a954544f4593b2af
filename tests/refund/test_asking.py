"""How a refund is asked for: by a request file, by options or both; and what is refused before anything is signed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from countersign.cli.starting.request_file import Order, RefundOrder, read_order, refund_request_of
from countersign.domain.errors import InputRefused
from countersign.domain.refund import RefundRequest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples" / "refund").glob("*.yaml"))
GIVEN: dict[str, str | None] = {
    "case": "refund", "tenant": "acme", "requester": "rita", "order": "o-1001", "complaint": "Twice!",
    "channel": "payments",
}  # fmt: skip


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.stem))
def test_each_example_is_a_request(file: Path) -> None:
    order = read_order(file, {})

    assert isinstance(order, RefundOrder)
    assert refund_request_of(order).channel == "payments"


def test_options_alone_are_a_request() -> None:
    order = read_order(None, GIVEN)

    assert isinstance(order, RefundOrder)
    assert refund_request_of(order) == RefundRequest(order="o-1001", complaint="Twice!", channel="payments")


def test_options_fill_in_what_a_file_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "refund.yaml"
    file.write_text("case: refund\ntenant: acme\nrequester: rita\norder: o-1001\nchannel: payments\n")

    order = read_order(file, {"complaint": "Twice!", "message_channel": "messages"})

    assert isinstance(order, RefundOrder)
    assert (order.asks, order.message_channel) == ("Twice!", "messages")


def test_a_request_that_names_no_case_is_for_a_report() -> None:
    asked: dict[str, str | None] = {
        "tenant": "acme", "requester": "rita", "question": "How?", "channel": "internal", "data": "a.csv",
    }  # fmt: skip

    assert isinstance(read_order(None, asked), Order)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"case": "refunds"}, "start: case: nobody can ask for 'refunds' so; allowed: report, refund"),
    ({"order": None}, "start: --order: give it, or a request file"),
    ({"complaint": None}, "start: --complaint: give it, or a request file"),
    ({"order": "o 1; drop"}, "start: --order: the text does not have the form"),
    ({"question": "Why?"}, "start: --question: a refund has none; it is for --case report"),
    ({"schema": "a.yaml"}, "start: --schema: a refund has none; it is for --case report"),
    ({"case": None}, "start: --order: a report has none; it is for --case refund"),
    ({"message_channel": "Mail!"}, "start: --message-channel: "),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_what_is_wrong_with_it_is_said_in_a_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputRefused) as refused:
        read_order(None, {**GIVEN, **changes})

    assert refused.value.message.startswith(said)
    assert "\n" not in refused.value.message


def test_a_language_that_nobody_writes_is_refused() -> None:
    order = read_order(None, {**GIVEN, "language": "fr"})

    assert isinstance(order, RefundOrder)
    with pytest.raises(InputRefused, match="request: language: write 'en' or 'zh'"):
        refund_request_of(order)
