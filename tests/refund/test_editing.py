"""What an approver sees who changes the amount of a refund: money as money, whichever way the new amount is given."""

from __future__ import annotations

import re
from typing import Any

import pytest

from countersign.cli.deciding.arguments import assigned
from countersign.cli.deciding.decision_message import Choice, what_is_signed
from countersign.cli.deciding.edit import Edited, edit_text
from countersign.domain.edit import Edit
from countersign.domain.errors import InputRefused
from tests.refund.desk import Desk

ARGS = {"amount": 1_250_000, "currency": "USD", "order": "o-1001"}


def edited(desk: Desk, **args: Any) -> Edited:
    """The edit of a refund of 120.00 EUR."""
    operation = desk.drafted()
    assessment, approval = desk.proposed(operation)
    made = desk.edited(operation, approval.proposal, **args)
    return Edited(
        approval=approval, edit=Edit(made.action, assessment, made.problem), summary=made.summary, counts=False,
        granted=False, action_changes=(), document_changes=(), live=None, live_changes=(),
    )  # fmt: skip


@pytest.mark.parametrize("given", ["5000", "50.00 USD", "50 USD"])
def test_an_amount_is_taken_as_money_or_in_minor_units(given: str) -> None:
    assert assigned(ARGS, [f"amount={given}"]) == {**ARGS, "amount": 5_000}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("50.00 EUR", "--set amount: 50.00 EUR is in another currency; the action's is USD"),
        ("50.0 USD", "USD has 2 decimal places"),
        ("fifty", "write it as 1000.00 EUR: digits, a blank, a currency"),
    ],
)
def test_an_amount_that_is_not_plainly_money_of_the_refunds_currency_is_refused(given: str, said: str) -> None:
    with pytest.raises(InputRefused, match=said):
        assigned(ARGS, [f"amount={given}"])


@pytest.mark.guarantee("G14")
def test_the_change_of_an_amount_is_shown_as_money_with_the_edited_title(desk: Desk) -> None:
    lowered = edited(desk, amount=120)
    choice = Choice("edit", "fay", edited_summary=lowered.summary)

    text, signed = edit_text(lowered), what_is_signed(lowered.approval.proposal, choice)

    assert text.startswith("AMOUNT\n  120.00 EUR -> 1.20 EUR\n")
    assert "1.20 EUR" in lowered.summary
    assert re.search(rf"^edited title +{re.escape(lowered.summary)}$", text, re.MULTILINE)
    assert signed.splitlines()[1].split(maxsplit=1) == ["title", lowered.summary]
    assert signed.splitlines()[2].startswith("instead of")


def test_an_amount_that_stays_is_shown_all_the_same(desk: Desk) -> None:
    assert edit_text(edited(desk)).startswith("AMOUNT\n  120.00 EUR, as before\n")
