"""The shipped policy of refunds, on real ledgers: who must agree to how much, and that splitting does not help."""

from __future__ import annotations

import pytest

from countersign.domain.money import Amount, amount
from countersign.domain.operation import Operation
from countersign.domain.policy import Answer, Assessment, Spent, assess
from tests.refund.desk import POLICY, Desk
from tests.refund.sample import draft, facts, payment, request


def due(desk: Desk, number: int, money: str, account: str = "acc-9") -> Operation:
    """A refund of so much, for an order of its own."""
    sum_, order = amount(money), f"o-{number}"
    paid = payment(order=order, currency=sum_.currency, amount=sum_.minor, account=account)
    return desk.drafted(
        f"refund-{number}",
        request(order=order),
        facts(paid, paid.model_copy(update={"id": "p-2"}), id=order, currency=sum_.currency, total=sum_.minor),
        draft(amount=sum_, account=account),
    )


def people(assessment: Assessment) -> list[str]:
    return [str(need) for need in assessment.needs]


@pytest.mark.guarantee("G08")
@pytest.mark.parametrize("currency", ["EUR", "USD", "GBP", "CNY", "JPY"])
def test_the_larger_the_sum_the_more_people_must_agree(desk: Desk, currency: str) -> None:
    action, name = desk.submission(desk.drafted()).action, currency.lower()
    nothing = tuple(Spent(window=window, minor=0) for window in POLICY.windows())
    for minor, rule, needs in (
        (100_000, f"{name}-by-rule", []),
        (100_001, f"{name}-needs-one", ["1 of role finance"]),
        (1_000_000, f"{name}-needs-one", ["1 of role finance"]),
        (1_000_001, f"{name}-needs-two", ["2 of role finance"]),
    ):
        money = Amount(currency=currency, minor=minor)
        assessment = assess(POLICY, action.model_copy(update={"amount": money}), nothing)
        assert (assessment.rules, people(assessment)) == ((rule,), needs)


@pytest.mark.guarantee("G01")
def test_a_currency_that_the_policy_does_not_name_is_refunded_by_nobody(desk: Desk) -> None:
    assessment, _ = desk.proposed(due(desk, 1, "5.00 CHF"))

    assert assessment.answer == Answer.DENIED


@pytest.mark.guarantee("G08")
def test_many_small_refunds_to_one_account_need_who_one_large_one_would(each_desk: Desk) -> None:
    answers = [each_desk.proposed(due(each_desk, number, "400.00 EUR"))[0].answer for number in (1, 2, 3)]
    elsewhere, _ = each_desk.proposed(due(each_desk, 4, "400.00 EUR", account="acc-8"))

    assert answers == [Answer.BY_RULE, Answer.BY_RULE, Answer.PEOPLE]
    assert elsewhere.answer == Answer.BY_RULE


@pytest.mark.guarantee("G08")
def test_small_refunds_after_large_ones_need_two_persons(desk: Desk) -> None:
    desk.proposed(due(desk, 1, "9999.00 EUR"))

    small, _ = desk.proposed(due(desk, 2, "2.00 EUR"))

    assert people(small) == ["2 of role finance"]
