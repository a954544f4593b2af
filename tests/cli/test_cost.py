"""What models cost: every call is there, failed and open ones too, and what nobody knows is never a number."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.session import now
from countersign.domain.canonical import sha256_hex
from countersign.domain.model_call import CallEnd
from countersign.domain.operation import Operation
from tests.cli.asking import OPERATION, called
from tests.cli.desk import ACME, TENANT, Desk

DOCUMENTED = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.fixture(autouse=True)
def made(desk: Desk) -> None:
    """A call that was answered, one that failed, a grade by a model without a price, and one that a kill left open."""
    desk.register(OPERATION)
    answered = CallEnd(answered="gpt-5.5-2026", input_tokens=1000, output_tokens=200, milliseconds=912)
    called(desk, answered, 1_250_000)
    called(desk, CallEnd(error="unavailable", cause="HTTP 503", milliseconds=30), attempt=1)
    graded = CallEnd(answered="other\u202e", input_tokens=50, output_tokens=None, milliseconds=100)
    called(desk, graded, role="grade", asked="other", attempt=2)
    called(desk, None, attempt=3)


def rows(out: str) -> list[list[str]]:
    return [re.split(r"  +", line) for line in out.splitlines()]


def test_every_call_is_shown_with_what_it_was_and_cost(desk: Desk) -> None:
    head, *lines = rows(desk.cli.done("cost", OPERATION, *ACME).out)

    assert head == ["CALL", "ROLE", "DRAFT", "ATTEMPT", "ASKED", "ANSWERED", "INPUT", "OUTPUT", "MS", "OUTCOME", "COST"]
    assert lines[:4] == [
        ["1", "draft", "v1", "1", "gpt-5.5", "gpt-5.5-2026", "1000", "200", "912", "answered", "0.001250000 USD"],
        [
            "2",
            "draft",
            "v1",
            "1",
            "gpt-5.5",
            "unknown",
            "unknown",
            "unknown",
            "30",
            "failed unavailable, HTTP 503",
            "unknown",
        ],
        ["3", "grade", "v1", "2", "other", "other\\u{202e}", "50", "unknown", "100", "answered", "unknown"],
        ["4", "draft", "v1", "3", "gpt-5.5", "unknown", "unknown", "unknown", "unknown", "open", "unknown"],
    ]
    assert lines[4:] == [
        ["calls", "4, 1 of them failed"],
        ["input tokens", "1050 + 3 unknown"],
        ["output tokens", "200 + 3 unknown"],
        ["milliseconds", "1042 + 1 unknown"],
        ["cost", "0.001250000 USD + 3 unknown"],
        ["budget", "60 calls, 1h of waiting for models"],
    ]


def test_where_nothing_is_known_no_number_stands_for_it(desk: Desk) -> None:
    desk.register("killed")
    called(desk, None, operation="killed")

    shown = desk.cli.done("cost", "killed", *ACME).out

    for name in ("input tokens", "output tokens", "milliseconds", "cost"):
        assert re.search(rf"^{name} +1 unknown$", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("by", "sums"),
    [
        ("case", {"refund": ["1", "0", "5", "5", "7", "0.000000500 USD"],
                  "report": ["4", "1", "1050 + 3 unknown", "200 + 3 unknown", "1042 + 1 unknown",
                             "0.001250000 USD + 3 unknown"]}),
        ("model", {"gpt-5.5": ["2", "1", "2 unknown", "2 unknown", "30 + 1 unknown", "2 unknown"],
                   "gpt-5.5-2026": ["2", "0", "1005", "205", "919", "0.001250500 USD"],
                   "other\\u{202e}": ["1", "0", "50 + 1 unknown", "1 unknown", "100", "1 unknown"]}),
    ],
)  # fmt: skip
def test_a_tenants_calls_are_summed_by_case_and_by_model(desk: Desk, by: str, sums: dict[str, list[str]]) -> None:
    refund = Operation(
        tenant=TENANT, operation="refund-1", case="refund", requester="rita", statement="a.b.c",
        request_hash=sha256_hex(b""), registered_at=now(),
    )  # fmt: skip
    desk.ledger.operations.register(refund)
    end = CallEnd(answered="gpt-5.5-2026", input_tokens=5, output_tokens=5, milliseconds=7)
    called(desk, end, 500, operation="refund-1", case="refund")

    head, *lines = rows(desk.cli.done("cost", *ACME, "--by", by).out)
    groups = {line[0]: line[1:] for line in lines if len(line) == len(head)}

    assert head[0] == by.upper()
    assert groups == sums
    assert ["calls", "5, 1 of them failed"] in lines


def test_older_calls_are_left_out_where_only_the_latest_are_asked_for(desk: Desk) -> None:
    desk.register("old")
    called(desk, None, operation="old", began_at=now() - timedelta(days=8))

    every, latest = (desk.cli.done("cost", *ACME, "--json", *since).json() for since in ((), ("--since", "7d")))

    assert (every["sums"]["calls"], latest["sums"]["calls"]) == (5, 4)
    assert desk.cli("cost", *ACME, "--since", "yesterday").code == 2


def test_its_json_is_as_documented_and_leaves_unknown_numbers_null(desk: Desk) -> None:
    answer: dict[str, Any] = desk.cli.done("cost", OPERATION, *ACME, "--by", "model", "--json").json()

    part = DOCUMENTED.read_text().partition("## `cost`")[2].partition("## ")[0]
    assert list(answer) == re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)
    assert [one["nano"] for one in answer["calls"]] == [1_250_000, None, None, None]
    assert answer["sums"]["cost"] == [{"currency": "USD", "nano": 1_250_000}]
    assert (answer["sums"]["unknown_tokens"], answer["sums"]["unknown_cost"]) == (3, 3)
    assert [one["name"] for one in answer["groups"]] == ["gpt-5.5", "gpt-5.5-2026", "other\u202e"]


@pytest.mark.guarantee("G09")
def test_of_another_tenants_calls_nothing_is_told(desk: Desk) -> None:
    theirs, none = (desk.cli("cost", name, "--tenant", "globex") for name in (OPERATION, "nope"))

    assert (theirs.code, theirs.out) == (1, "")
    assert theirs.err.replace(OPERATION, "nope") == none.err
    assert desk.cli("cost", "--tenant", "globex").code == 1


def test_where_no_model_was_called_that_is_said(desk: Desk) -> None:
    desk.register("quiet")

    assert desk.cli.done("cost", "quiet", *ACME).out == "no model was called for operation quiet\n"


def test_a_model_without_a_price_is_named_and_nothing_reads_as_if_it_were_free(desk: Desk) -> None:
    desk.register("unpriced")
    known = CallEnd(answered="mystery", input_tokens=5, output_tokens=5, milliseconds=7)
    called(desk, known, operation="unpriced", asked="mystery")
    called(desk, known, 0, operation="unpriced", asked="offline-grader/1", attempt=1)

    shown = desk.cli.done("cost", "unpriced", *ACME).out

    assert re.search(r"^cost +1 unknown$", shown, re.MULTILINE)
    assert re.search(r"^no price +for model mystery in policies/prices.yaml, so what its calls cost is", shown, re.M)
    assert "no price" not in desk.cli.done("cost", OPERATION, *ACME, "--json").out
