"""Reading `decide` messages: whatever a sender puts in, one recorded outcome with a reason, and never an exception."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.messages import MAX_DETAIL
from countersign.domain.decision import Outcome, Ruling
from tests.signing.messages import TOKEN, body_of, sent
from tests.signing.tokens import CLAIMS, claims_with, token


def test_a_good_statement_goes_to_the_ledger_to_be_ruled_on() -> None:
    outcomes, recorded = sent(body_of())

    assert [outcome.ruling for outcome in outcomes] == [Ruling.ACCEPTED]
    assert [(one.statement.person, one.assurance, one.token) for one in recorded.ruled_on] == [("bob", "signed", TOKEN)]
    assert recorded.refused == []


MALFORMED = [
    "",
    " ",
    "null",
    "1",
    "[]",
    "{}",
    '"statement"',
    json.dumps(TOKEN),
    json.dumps([{"statement": TOKEN}]),
    body_of(None),
    json.dumps({"statement": TOKEN, "unsigned": {}}),
    json.dumps({"statement": "", "unsigned": None}),
    json.dumps({"unsigned": None}),
    json.dumps({"unsigned": []}),
    json.dumps({"unsigned": TOKEN}),
    body_of(1),
    body_of(""),
    body_of([TOKEN]),
    body_of("x" * 8_001),
    json.dumps({"statement": TOKEN, "person": "carl"}),
    json.dumps({"Statement": TOKEN}),
    body_of()[:-1] + f', "statement": "{TOKEN}"}}',
    body_of() + body_of(),
    '{"statement": NaN}',
    '{"statement": "\\ud800"}',
    '{"statement": "\\u0000"}',
    '{"statement": "\ud800"}',
    "[" * 5_000 + "]" * 5_000,
    '{"statement":' * 5_000,
    "9" * 15_000,
    "\ufeff" + body_of(),
]


@pytest.mark.guarantee("G19")
@pytest.mark.guarantee("G47")
@pytest.mark.parametrize("body", MALFORMED, ids=[f"{n}-{body[:14]!r}" for n, body in enumerate(MALFORMED)])
def test_a_message_of_another_form_is_malformed_and_recorded(body: str) -> None:
    outcomes, recorded = sent(body)

    assert [outcome.ruling for outcome in outcomes] == [Ruling.MALFORMED]
    assert recorded.refused == outcomes
    assert recorded.ruled_on == []
    assert outcomes[0].detail
    assert len(outcomes[0].detail.splitlines()) == 1


@pytest.mark.guarantee("G19")
def test_what_the_run_could_not_even_take_as_text_is_recorded_with_its_problem() -> None:
    assert sent(None)[0] == [Outcome(ruling=Ruling.MALFORMED, detail="no argument")]


@pytest.mark.guarantee("G47")
@pytest.mark.parametrize("name", ["approve", "", "Decide", "decide ", "__temporal_x"])
def test_a_message_of_another_name_is_unknown_whatever_it_holds(name: str) -> None:
    outcomes, recorded = sent(body_of(), name=name)

    assert [outcome.ruling for outcome in outcomes] == [Ruling.UNKNOWN_MESSAGE]
    assert recorded.ruled_on == []


@pytest.mark.guarantee("G19")
@pytest.mark.guarantee("G21")
@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        ("approve it, says bob", "malformed"),
        (token(claims=claims_with(aud="prod")), "audience"),
        (token(claims=claims_with(sub="carl")), "unknown_key"),
        (token(claims=claims_with(exp=CLAIMS["iat"])), "expired"),
        (TOKEN[:-8] + "AAAAAAAA", "signature"),
        (token(claims=claims_with(**{f"{number:030d}": 1 for number in range(50)})), "claims"),
    ],
)
def test_a_statement_that_does_not_verify_is_refused_with_its_reason(forged: str, reason: str) -> None:
    outcomes, recorded = sent(body_of(forged))

    assert outcomes[0].ruling == Ruling.BAD_STATEMENT
    assert outcomes[0].detail.startswith(f"{reason}: ")
    assert len(outcomes[0].detail) <= MAX_DETAIL
    assert recorded.ruled_on == []


@pytest.mark.guarantee("G20")
def test_a_good_statement_that_was_sent_to_another_run_moves_nothing_there() -> None:
    outcomes, recorded = sent(body_of(), operation="report-2")

    assert [outcome.ruling for outcome in outcomes] == [Ruling.NOT_THIS_APPROVAL]
    assert (recorded.refused, recorded.ruled_on) == (outcomes, [])


@pytest.mark.guarantee("G47")
def test_each_message_of_a_batch_has_its_own_outcome_in_order() -> None:
    outcomes, _ = sent("{", body_of(), None, body_of("x"))

    rulings = [Ruling.MALFORMED, Ruling.ACCEPTED, Ruling.MALFORMED, Ruling.BAD_STATEMENT]
    assert [outcome.ruling for outcome in outcomes] == rulings


@pytest.mark.guarantee("G19")
@given(st.text(st.characters(codec=None), max_size=120) | st.text(max_size=60).map(lambda text: body_of(text)))
def test_any_text_has_an_outcome_and_reaches_no_ruling(body: str) -> None:
    outcomes, recorded = sent(body or " ")

    assert outcomes[0].ruling in {Ruling.MALFORMED, Ruling.BAD_STATEMENT}
    assert recorded.ruled_on == []
