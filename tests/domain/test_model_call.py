"""What calls of models cost, and when a budget is used up: exact, and in doubt not allowed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from countersign.domain.model_call import (
    MAX_UNKNOWN,
    Budget,
    Budgets,
    ModelCall,
    Prices,
    cost_text,
    exceeded,
    problem_with_raise,
    raised,
    usage,
)
from countersign.domain.money import amount
from tests.domain.samples import NOW

PRICES = Prices.model_validate({"currency": "USD", "models": {"gpt": {"input": "0.25", "output": "2.005"}}})


def a_call(**changes: Any) -> ModelCall:
    fields: dict[str, Any] = {
        "tenant": "acme", "operation": "report-1", "number": 1, "case": "report", "role": "draft", "draft_version": 1,
        "attempt": 1, "asked": "gpt", "began_at": NOW, "outcome": "answered", "input_tokens": 100, "output_tokens": 10,
        "milliseconds": 1500, "nano": 45_050, "currency": "USD",
    }  # fmt: skip
    return ModelCall(**{**fields, **changes})


UNKNOWN = a_call(outcome="open", input_tokens=None, output_tokens=None, milliseconds=None, nano=None, currency="")


def a_budget(**limits: Any) -> Budget:
    return Budget.model_validate(limits)


def test_a_cost_is_exact_to_the_billionth_and_unknown_where_anything_is_unknown() -> None:
    assert PRICES.nano("gpt", 100, 10) == 45_050
    assert cost_text(45_050, "USD") == "0.000045050 USD"
    assert [PRICES.nano("other", 1, 1), PRICES.nano("gpt", None, 1), PRICES.nano("gpt", 1, None)] == [None] * 3
    assert cost_text(None, "USD") == "unknown"


def test_a_cost_that_is_more_than_the_ledger_can_write_down_is_unknown() -> None:
    prices = Prices.model_validate({"currency": "USD", "models": {"dear": {"input": "0.001", "output": "999999.999"}}})
    assert prices.nano("dear", 2**53 - 1, 0) == 2**53 - 1
    assert [prices.nano("dear", 2**53, 0), prices.nano("dear", 0, 10**9)] == [None, None]


@pytest.mark.parametrize("price", ["0.2501", "-1", "1e3", 0.25, 1, "", "1.", "١"])
def test_a_price_is_written_so_that_nothing_is_rounded(price: Any) -> None:
    with pytest.raises(ValidationError, match="is no price"):
        Prices.model_validate({"currency": "USD", "models": {"gpt": {"input": price, "output": "1"}}})


def test_what_is_not_known_is_counted_beside_and_never_as_nothing() -> None:
    spent = usage([a_call(), a_call(outcome="failed", error="unavailable", nano=None), UNKNOWN])
    assert (spent.calls, spent.failed, spent.input_tokens, spent.output_tokens) == (3, 1, 200, 20)
    assert (spent.nano, spent.unknown_tokens, spent.unknown_cost) == ({"USD": 45_050}, 1, 2)
    assert (spent.milliseconds, spent.unknown_time) == (3000, 1)


USED_UP = [
    ({"calls": 2}, 1, ""), ({"calls": 2}, 2, "calls"),
    ({"tokens": 221}, 2, ""), ({"tokens": 220}, 2, "tokens"),
    ({"time": "4s"}, 2, ""), ({"time": "3s"}, 2, "time"),
    ({"money": "0.01 USD"}, 221, ""), ({"money": "0.01 USD"}, 222, "money"),
    ({"money": "1 JPY"}, 1, "money"),  # of another currency than was spent: in doubt it is not allowed
    ({"calls": 9, "tokens": 110}, 1, "tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("limits", "calls", "limit"), USED_UP)
def test_a_limit_that_is_reached_leaves_no_room_for_another_call(limits: Any, calls: int, limit: str) -> None:
    spent = usage([a_call()] * calls)
    assert exceeded(a_budget(**limits), spent, spent) == limit


@pytest.mark.parametrize(
    ("limits", "limit"),
    [({"tokens": 9_999}, "tokens"), ({"money": "9.00 USD"}, "money"), ({"time": "9h"}, "time")],
)
def test_a_few_calls_of_unknown_cost_pass_and_no_more_until_people_have_looked(limits: Any, limit: str) -> None:
    few, many = usage([UNKNOWN] * MAX_UNKNOWN), usage([UNKNOWN] * (MAX_UNKNOWN + 1))
    assert exceeded(a_budget(**limits), few, few) == ""
    assert exceeded(a_budget(**limits), many, many) == limit
    assert exceeded(a_budget(**limits), many, usage([])) == ""
    assert exceeded(a_budget(calls=9_999), many, many) == ""


def test_what_people_add_counts_for_what_was_limited_and_limits_nothing_else() -> None:
    budget = a_budget(calls=2, money="1.00 USD", time="1h")
    more = [a_budget(calls=3, tokens=5), a_budget(money="0.50 USD"), a_budget(money="9.00 EUR", time="30m")]
    assert raised(budget, more) == Budget(calls=5, money=amount("1.50 USD"), time="90m")
    assert raised(budget, []) == budget
    assert raised(a_budget(time="99999m"), [a_budget(time="1m")]).time == "1667h"
    assert raised(a_budget(time="99999d"), [a_budget(time="1d")]).time == "99999d"


MOST_MONEY = {"currency": "USD", "minor": 2**53 - 1}


def test_no_sum_of_what_people_added_is_too_large_to_be_counted() -> None:
    more = a_budget(money=MOST_MONEY, calls=2**53 - 1, tokens=2**53 - 1)
    total = raised(a_budget(money="1.00 USD", calls=1, tokens=1), [more, more])
    assert total.money == more.money
    assert exceeded(total, usage([a_call()]), usage([])) == ""


@pytest.mark.parametrize(
    ("most", "too_much", "words"),
    [
        ({"calls": 10**6}, {"calls": 10**6 + 1}, "add at most 1000000"),
        ({"tokens": 10**12}, {"tokens": 10**12 + 1}, "add at most 1000000000000"),
        (
            {"money": {"currency": "USD", "minor": 9007199254740891}},
            {"money": {"currency": "USD", "minor": 9007199254740892}},
            "at most 90071992547408.91 USD",
        ),
    ],
)
def test_more_than_can_be_meant_is_not_added(most: Any, too_much: Any, words: str) -> None:
    budget = a_budget(calls=1, tokens=1, money="1.00 USD")
    assert problem_with_raise(budget, a_budget(**most)) == ""
    assert words in problem_with_raise(budget, a_budget(**too_much))


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (a_budget(calls=60, time="1h"), "the run has 60 calls, 1h of waiting for models"),
        (None, "the run has no budget"),
    ],
)
def test_what_is_not_limited_is_not_added_to(budget: Budget | None, words: str) -> None:
    for name, more in (("tokens", a_budget(tokens=1)), ("money", a_budget(money="1.00 USD"))):
        problem = problem_with_raise(budget, more)
        assert problem == f"{name}: not limited, so adding some changes nothing; {words}"


@pytest.mark.parametrize(
    ("asked", "answered", "priced"),
    [
        ("gpt", "", "gpt"),
        ("gpt", "gpt-2026-05-01", "gpt"),
        ("gpt", "gpt-large", "gpt-large"),
        ("gpt", "other-2026-05-01", "other-2026-05-01"),
        ("gpt", "gpt-2026-05-01-large", "gpt-2026-05-01-large"),
    ],
)
def test_a_model_of_some_day_has_the_price_of_the_one_that_was_asked_for(
    asked: str, answered: str, priced: str
) -> None:
    assert PRICES.priced(asked, answered) == priced


def test_a_model_of_some_day_that_has_a_price_of_its_own_has_that() -> None:
    own = PRICES.model_copy(update={"models": {**PRICES.models, "gpt-2026-05-01": PRICES.models["gpt"]}})
    assert own.priced("gpt", "gpt-2026-05-01") == "gpt-2026-05-01"


def test_money_in_another_currency_than_the_prices_is_unpriced() -> None:
    euros, dollars = a_budget(money="1.00 EUR"), a_budget(money="1.00 USD")
    both = Budgets(run=euros, tenant=euros, within="1d")
    assert both.unpriced(PRICES) == {"run": amount("1.00 EUR"), "tenant": amount("1.00 EUR")}
    assert Budgets(run=dollars, tenant=euros, within="1d").unpriced(PRICES) == {"tenant": amount("1.00 EUR")}
    assert Budgets(run=dollars, tenant=a_budget(calls=1), within="1d").unpriced(PRICES) == {}
    assert Budgets(run=a_budget(calls=1)).unpriced(PRICES) == {}


def test_money_is_added_in_the_currency_of_the_budget() -> None:
    refused = problem_with_raise(a_budget(money="1.00 USD"), a_budget(money="1.00 EUR"))
    assert refused == "money: the budget is in USD; add to it in that currency"


@pytest.mark.parametrize("said", [{}, {"calls": 0}, {"tokens": -1}, {"money": "1"}, {"calls": 1.5}, {"cals": 1}])
def test_a_budget_limits_something_that_there_is(said: Any) -> None:
    with pytest.raises(ValidationError):
        Budget.model_validate(said)


@pytest.mark.parametrize("said", [{"tenant": {"calls": 1}}, {"within": "24h"}])
def test_a_tenants_budget_says_for_how_long(said: Any) -> None:
    with pytest.raises(ValidationError, match="'tenant' and 'within' together"):
        Budgets.model_validate({"run": {"calls": 1}, **said})
