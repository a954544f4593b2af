"""Calls of models: there before they are made, none where a budget is used up, more where people add; both engines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text

from countersign.cli.proving.rebuild_rows import compared
from countersign.domain.decision import Ruling
from countersign.domain.errors import BudgetExceeded, CountersignError, NotFound
from countersign.domain.model_call import Budget, CallEnd, ModelCall, usage
from countersign.domain.progress import ProgressKind
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from countersign.ledger.columns import LARGEST_COUNT
from tests.ledger.asking import ENDED, a_call, bring_before_people, raise_budget
from tests.ledger.builders import NOW, OPERATION, TENANT, audit_types, command, operation, send
from tests.ledger.founding import POLICIES, TAKEOVER, found, policy

CALLED: dict[str, Any] = {"escalations": {"BUDGET_EXCEEDED": {"role": "lead", "severity": "low"}}}


def budgeted(ledger: SqlLedger, **budgets: Any) -> SqlLedger:
    """The tenant with such budgets for reports, and an operation that runs."""
    report = policy("report", "reviewer", takeover=TAKEOVER, budgets=budgets, **CALLED)
    found(ledger, policies=(report, POLICIES[1]))
    for name in (OPERATION, "report-8"):
        ledger.operations.register(operation(name))
        ledger.operations.move(TENANT, name, State.RUNNING, "", NOW)
    return ledger


def called(ledger: SqlLedger, end: CallEnd | None = ENDED, nano: int | None = 45_050, **changes: Any) -> ModelCall:
    begun = ledger.model_calls.begin(a_call(**changes))
    if end is not None:
        ledger.model_calls.end(TENANT, begun.operation, begun.number, end, nano, "USD" if nano is not None else "")
    return begun


def test_a_call_is_there_before_it_is_made_and_knows_what_became_of_it_afterwards(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    begun = ledger.model_calls.begin(a_call(number=9, case="refund"))
    assert [*ledger.model_calls.of_operation(TENANT, OPERATION)] == [begun] == [a_call()]
    ledger.model_calls.end(TENANT, OPERATION, 1, ENDED, 45_050, "USD")
    ledger.model_calls.end(TENANT, OPERATION, 1, CallEnd(error="late", milliseconds=1), None, "")
    failed = called(ledger, CallEnd(error="unavailable", milliseconds=20), None, attempt=2)
    first, second = ledger.model_calls.of_operation(TENANT, OPERATION)
    assert first == a_call(
        answered="gpt-5.5-2026", outcome="answered", input_tokens=100, output_tokens=10, milliseconds=1500, nano=45_050,
        currency="USD",
    )  # fmt: skip
    assert (failed.number, second.outcome, second.error, second.input_tokens, second.nano) == (
        2, "failed", "unavailable", None, None
    )  # fmt: skip
    assert audit_types(ledger) == ["operation.registered"]


def test_a_cost_beyond_any_count_uses_a_budget_up_and_breaks_nothing(empty_ledger: SqlLedger, database: Engine) -> None:
    ledger = budgeted(empty_ledger, run={"money": "5.00 USD"})
    called(ledger, nano=LARGEST_COUNT)
    more = 'SELECT tenant, operation, number + (SELECT max(number) FROM model_calls), began_at, "case", outcome, '
    more += "input_tokens, output_tokens, milliseconds, nano, currency, call FROM model_calls"
    with database.begin() as connection:
        for _ in range(11):
            connection.execute(text(f"INSERT INTO model_calls {more}"))
    with pytest.raises(BudgetExceeded, match=r"money|USD of 5\.00 USD"):
        called(ledger)


def test_what_was_spent_is_told_as_the_calls_themselves_add_up(empty_ledger: SqlLedger) -> None:
    """Failed and open calls, tokens known in part: the refusal quotes the sum."""
    ledger = budgeted(empty_ledger, run={"tokens": 1_000})
    called(ledger)
    called(ledger, None)
    called(ledger, CallEnd(error="unavailable", milliseconds=20), None)
    called(ledger, CallEnd(answered="m", input_tokens=400, milliseconds=5), None)
    called(ledger, CallEnd(answered="m", input_tokens=300, output_tokens=300, milliseconds=5), 10)
    spent = usage(ledger.model_calls.of_operation(TENANT, OPERATION))
    tokens = spent.input_tokens + spent.output_tokens
    with pytest.raises(BudgetExceeded, match=f"{tokens} of 1000 tokens, and of {spent.unknown_tokens} calls"):
        called(ledger)


def test_what_is_not_there_makes_no_call_and_ends_none(ledger: SqlLedger) -> None:
    with pytest.raises(NotFound, match="operation"):
        called(ledger)
    with pytest.raises(NotFound, match="model call"):
        ledger.model_calls.end(TENANT, OPERATION, 1, ENDED, None, "")


def test_calls_of_a_tenant_are_listed_from_a_moment_on(ledger: SqlLedger) -> None:
    for name in ("op-2", "op-1"):
        ledger.operations.register(operation(name))
        for minutes in (5, 1):
            called(ledger, operation=name, minutes=minutes)
    every = [(one.operation, one.number) for one in ledger.model_calls.of_tenant(TENANT)]
    assert every == [("op-1", 2), ("op-2", 2), ("op-1", 1), ("op-2", 1)]
    since = ledger.model_calls.of_tenant(TENANT, NOW + timedelta(minutes=5))
    assert [(one.operation, one.number) for one in since] == [("op-1", 1), ("op-2", 1)]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"calls": 2}, "operation report-7: the run's budget is used up: 2 of 2 calls; the role lead may raise it"),
        ({"tokens": 220}, "220 of 220 tokens"),
        ({"money": "0.01 USD"}, "0.012000000 USD of 0.01 USD"),
        ({"time": "3s"}, "3 seconds of 3s"),
    ],
)
def test_a_call_beyond_the_runs_budget_is_not_begun(empty_ledger: SqlLedger, limits: Any, words: str) -> None:
    ledger = budgeted(empty_ledger, run=limits)
    for _ in range(2):
        called(ledger, nano=6_000_000)
    with pytest.raises(BudgetExceeded) as refused:
        called(ledger)
    assert words in refused.value.message
    assert len(ledger.model_calls.of_operation(TENANT, OPERATION)) == 2
    assert called(ledger, operation="report-8").number == 1


def test_calls_of_which_nobody_knows_what_they_cost_use_a_budget_up(empty_ledger: SqlLedger) -> None:
    ledger = budgeted(empty_ledger, run={"money": "9.00 USD"})
    for _ in range(4):
        called(ledger, None)
    with pytest.raises(BudgetExceeded, match=r"0 of 9\.00 USD, and of 4 calls it is not known"):
        called(ledger)
    bring_before_people(ledger)
    assert raise_budget(ledger, money="1.00 USD").outcome.ruling == Ruling.ACCEPTED
    for minutes in range(2, 6):
        called(ledger, None, minutes=minutes)
    with pytest.raises(BudgetExceeded, match="of 8 calls it is not known"):
        called(ledger, minutes=6)


def test_the_tenants_budget_is_for_all_runs_of_the_case_within_its_time(empty_ledger: SqlLedger) -> None:
    ledger = budgeted(empty_ledger, run={"calls": 9}, tenant={"calls": 2}, within="1h")
    ledger.operations.register(operation("refund-1", case="refund"))
    called(ledger)
    called(ledger, operation="refund-1", minutes=1)
    called(ledger, operation="report-8", minutes=2)
    with pytest.raises(BudgetExceeded, match="the tenant's budget of 1h for report is used up: 2 of 2 calls"):
        called(ledger, minutes=59)
    called(ledger, minutes=60)
    with pytest.raises(BudgetExceeded):
        called(ledger, operation="report-8", minutes=61)


def test_a_run_that_people_gave_more_neither_asks_for_the_tenants_budget_nor_uses_it_up(
    empty_ledger: SqlLedger,
) -> None:
    ledger = budgeted(empty_ledger, run={"calls": 2}, tenant={"calls": 2}, within="1h")
    called(ledger)
    bring_before_people(ledger)
    raise_budget(ledger, minutes=1, calls=2)
    for minutes in (1, 2):
        called(ledger, minutes=minutes)
    assert called(ledger, operation="report-8", minutes=3).number == 1
    with pytest.raises(BudgetExceeded, match="the tenant's budget of 1h for report is used up: 2 of 2 calls"):
        called(ledger, operation="report-8", minutes=4)
    assert called(ledger, minutes=5).number == 4
    with pytest.raises(BudgetExceeded, match="the run's budget is used up: 4 of 4 calls"):
        called(ledger, minutes=6)


def test_calls_that_never_ended_use_a_limit_on_time_up(empty_ledger: SqlLedger) -> None:
    ledger = budgeted(empty_ledger, run={"time": "1h"})
    for _ in range(4):
        called(ledger, None)
    with pytest.raises(BudgetExceeded, match="0 seconds of 1h, and of 4 calls it is not known"):
        called(ledger)


def test_more_than_any_amount_can_be_lifts_a_limit_and_stops_no_run(empty_ledger: SqlLedger) -> None:
    ledger = budgeted(empty_ledger, run={"money": "9.00 USD"})
    bring_before_people(ledger)
    most = {"currency": "USD", "minor": 2**53 - 1}
    assert raise_budget(ledger, money=most).outcome.ruling == Ruling.ACCEPTED
    assert called(ledger, minutes=2).number == 1


def test_a_raised_budget_is_recorded_and_counts_from_now_on(empty_ledger: SqlLedger) -> None:
    ledger = budgeted(empty_ledger, run={"calls": 1})
    called(ledger)
    bring_before_people(ledger)
    assert raise_budget(ledger).outcome.ruling == Ruling.ACCEPTED
    assert ledger.model_calls.raises(TENANT, OPERATION) == [(NOW + timedelta(minutes=1), Budget(calls=2))]
    record = next(one for one in ledger.audit.records(TENANT) if one.type == "budget.raised")
    budget = {"calls": 2, "tokens": None, "money": None, "time": None}
    assert (record.subject, record.detail) == (
        "lena", {"number": 1, "budget": budget, "by": "raise_budget-by-lena-0000"}
    )  # fmt: skip
    (escalation,) = ledger.escalations.of_operation(TENANT, OPERATION)
    assert (escalation.outcome, escalation.answered_by) == ("went_on", "lena")
    assert [called(ledger, minutes=2).number for _ in range(2)] == [2, 3]
    with pytest.raises(BudgetExceeded, match="3 of 3 calls"):
        called(ledger, minutes=2)
    rows, records = ledger.audit.rows(TENANT, OPERATION), [*ledger.audit.records(TENANT)]
    assert compared(rows, records, OPERATION).wrong == ()
    more = [{**rows["budget_raises"][0], "budget": {**budget, "calls": 99}}]
    (wrong,) = compared({**rows, "budget_raises": more}, records, OPERATION).wrong
    assert "what was added to the budget, the 1. time: budget is" in wrong


def test_a_budget_is_raised_by_whom_the_run_was_brought_before_and_once(empty_ledger: SqlLedger) -> None:
    ledger = budgeted(empty_ledger, run={"calls": 1})
    assert raise_budget(ledger).outcome.ruling == Ruling.BUDGET_NOT_EXCEEDED
    bring_before_people(ledger)
    assert raise_budget(ledger, by="bob").outcome.ruling == Ruling.ROLE_MISSING
    nothing = command("raise_budget", "lena", id="raise-by-nothing", content="sha256:" + "0" * 64)
    assert send(ledger, nothing).outcome.ruling == Ruling.CONTENT_REFUSED
    assert raise_budget(ledger, by="lars").outcome.ruling == Ruling.ACCEPTED
    again = command("raise_budget", "lars", id="raise-once-again", content="sha256:" + "0" * 64)
    assert send(ledger, again).outcome.ruling == Ruling.BUDGET_NOT_EXCEEDED
    assert len(ledger.model_calls.raises(TENANT, OPERATION)) == 1


def test_what_would_become_of_raising_is_told_before_anyone_said_how_much(empty_ledger: SqlLedger) -> None:
    ledger = budgeted(empty_ledger, run={"calls": 1})
    bring_before_people(ledger)
    said = command("raise_budget", "lena", content="sha256:" + "0" * 64)
    lena = ledger.directory.person(TENANT, "lena")
    assert lena is not None
    assert ledger.controls.would(said, lena, NOW).ruling == Ruling.ACCEPTED
    assert ledger.model_calls.raises(TENANT, OPERATION) == []


def test_a_run_out_of_its_budget_is_taken_over_by_whom_it_was_brought_before(empty_ledger: SqlLedger) -> None:
    ledger = budgeted(empty_ledger, run={"calls": 1})
    bring_before_people(ledger, role="operator")
    assert send(ledger, command("take_over", "otto")).outcome.ruling == Ruling.ACCEPTED
    assert raise_budget(ledger, by="otto").outcome.ruling == Ruling.BUDGET_NOT_EXCEEDED


def test_of_many_calls_at_once_as_many_are_begun_as_the_tenant_has_left(empty_ledger: SqlLedger) -> None:
    ledger = budgeted(empty_ledger, run={"calls": 9}, tenant={"calls": 3}, within="1h")

    def begin(number: int) -> str:
        try:
            return f"begun {called(ledger, None, operation=(OPERATION, 'report-8')[number % 2]).operation}"
        except CountersignError as refused:
            return refused.code

    with ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(begin, range(8))]
    assert answers.count("BUDGET_EXCEEDED") == 5
    assert len(ledger.model_calls.of_tenant(TENANT)) == 3


def test_progress_is_followed_from_any_offset_without_gaps_and_is_no_audit(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())

    def add(number: int) -> None:
        detail = f"call {number}"
        ledger.progress.add(TENANT, OPERATION, ProgressKind.MODEL_CALLED, 1, "gpt-5.5", detail, NOW)

    with ThreadPoolExecutor(4) as threads:
        [*threads.map(add, range(8))]
    assert [one.number for one in ledger.progress.since(TENANT, OPERATION, 0)] == [*range(1, 9)]
    assert [one.number for one in ledger.progress.since(TENANT, OPERATION, 5, 2)] == [6, 7]
    assert {one.detail for one in ledger.progress.since(TENANT, OPERATION, 0)} == {f"call {n}" for n in range(8)}
    assert audit_types(ledger) == ["operation.registered"]
    assert (ledger.progress.forget(TENANT, OPERATION), ledger.progress.forget(TENANT, OPERATION)) == (8, 0)
    assert ledger.progress.since(TENANT, OPERATION, 0) == []
    with pytest.raises(NotFound):
        ledger.progress.add(TENANT, "nowhere", ProgressKind.DRAFTING, 1, "", "", NOW)
