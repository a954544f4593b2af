"""From a complaint, gathered facts and a draft to one exact refund; what a reviewer is shown, and may change of it."""

from __future__ import annotations

import json

import pytest

from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.edit import Edit, refusal
from countersign.domain.errors import ConfigurationRefused, InputRefused, NotFound
from countersign.domain.money import amount
from countersign.domain.policy import Answer
from countersign.domain.proposal import Proposal
from tests.ledger.builders import proposal as a_proposal
from tests.refund.desk import POLICY, Desk
from tests.refund.sample import draft, facts, payment, request


@pytest.mark.guarantee("G14")
def test_a_draft_becomes_exactly_one_refund(desk: Desk) -> None:
    operation = desk.drafted()

    made = desk.submission(operation)

    action = made.action
    assert json.loads(made.document) == {
        "order": "o-1001", "payment": "p-2", "amount": 12_000, "currency": "EUR", "account": "acc-9",
        "reason": "duplicate",
    }  # fmt: skip
    assert made.document == canonical_bytes(json.loads(made.document))
    assert (action.tool, action.channel, action.target) == ("refund_payment", "payments", "payments:acc-9")
    assert (action.side_effect, action.scope, action.amount) == ("refund", "one_payment", amount("120.00 EUR"))
    assert action.content_hash == sha256_hex(made.document)
    assert action.evidence_hash == desk.ledger.operations.facts("acme", "refund-1")
    assert made.problem == ""


def test_a_reviewer_is_shown_the_facts_the_reason_and_the_message(desk: Desk) -> None:
    made = desk.submission(desk.drafted())

    assert made.summary == "refund 120.00 EUR of payment p-2, which repeats p-1, to account acc-9"
    assert made.reason == "I paid once and you took the money twice!"
    assert made.evidence[1:] == (
        "order o-1001: paid, total 120.00 EUR",
        "payment p-1: captured, 120.00 EUR from account acc-9, of which 0.00 EUR was refunded and 120.00 EUR can be",
        "payment p-2: captured, 120.00 EUR from account acc-9, of which 0.00 EUR was refunded and 120.00 EUR can be",
    )
    assert made.cost == "120.00 EUR, which goes back to account acc-9"
    assert [heading for heading, _ in made.words] == ["why", "message to the customer, once it is confirmed"]


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize("changed", ["amount", "account", "payment", "facts"])
def test_another_amount_payee_payment_or_fact_is_another_action(desk: Desk, changed: str) -> None:
    facts_then = facts(payment(), payment(id="p-2"), payment(id="p-3"))
    drafts = {
        "amount": draft(amount=amount("119.99 EUR")),
        "account": draft(account="acc-8"),
        "payment": draft(payment="p-3"),
        "facts": draft(),
    }
    one = desk.drafted("refund-1", facts=facts_then)
    other = desk.drafted("refund-2", facts=facts() if changed == "facts" else facts_then, draft=drafts[changed])

    hashes = {desk.submission(each).action.model_copy(update={"operation": "the-same"}).hash() for each in (one, other)}

    assert len(hashes) == 2


def test_without_facts_there_is_nothing_to_work_on(desk: Desk) -> None:
    operation = desk.asked()

    with pytest.raises(NotFound, match="facts of operation"):
        desk.case.open(operation, ())


def test_checks_look_at_the_facts_as_they_were_gathered_last(desk: Desk) -> None:
    operation = desk.drafted()
    desk.gathered(operation, facts(payment(), payment(id="p-2", refunded=12_000)))

    with_material = desk.case.check(draft(), desk.case.open(operation, ()), by_agent=True)

    assert "already_refunded" in [found.code for found in with_material]
    assert "already_refunded" in desk.submission(operation).problem


def test_a_draft_that_refunds_nothing_is_never_proposed(desk: Desk) -> None:
    operation = desk.drafted(draft=draft(payment="", duplicate_of="", account="", amount=amount("0.00 EUR")))

    with pytest.raises(InputRefused, match="nothing to propose"):
        desk.submission(operation)


def test_a_channel_that_the_tenant_does_not_have_is_refused(desk: Desk) -> None:
    operation = desk.drafted(request=request(channel="elsewhere"))

    with pytest.raises(ConfigurationRefused, match="allowed: payments"):
        desk.submission(operation)


def pending(desk: Desk) -> Proposal:
    """A proposal of the clean draft under the shipped policy."""
    action = desk.submission(desk.drafted()).action
    fields = {"case": "refund", "action": action, "action_hash": action.hash(), "terms": POLICY.terms}
    return a_proposal().model_copy(update=fields)


def ruled(desk: Desk, before: Proposal, **args: object) -> str:
    """Why the edit would be refused; empty if it would not be."""
    operation = desk.ledger.operations.get("acme", "refund-1")
    made = desk.edited(operation, before, **args)
    assessment = before.assessment.model_copy(update={"answer": Answer.PEOPLE})
    return refusal(before, Edit(made.action, assessment, made.problem))


def test_a_reviewer_may_lower_the_amount(desk: Desk) -> None:
    before = pending(desk)
    operation = desk.ledger.operations.get("acme", "refund-1")

    made = desk.edited(operation, before, amount=9_000)

    assert (made.problem, made.action.amount) == ("", amount("90.00 EUR"))
    assert json.loads(made.document)["amount"] == 9_000
    assert "90.00 EUR" in made.words[1][1]
    assert ruled(desk, before, amount=9_000) == ""


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"amount": 12_001}, "above_refundable"),
        ({"account": "acc-evil"}, "account may not be edited; allowed: amount"),
        ({"payment": "p-1"}, "payment may not be edited; allowed: amount"),
        ({"currency": "USD"}, "currency may not be edited; allowed: amount"),
        ({"reason": "goodwill"}, "reason may not be edited; allowed: amount"),
    ],
)
def test_nothing_else_and_nothing_beyond_the_facts(desk: Desk, args: dict[str, object], why: str) -> None:
    assert why in ruled(desk, pending(desk), **args)


def test_a_person_who_proposes_cannot_leave_the_drafts_payment_either(desk: Desk) -> None:
    operation = desk.drafted()

    assert "amend the draft instead" in desk.submission(operation, payment="p-1").problem
    assert "amend the draft instead" in desk.submission(operation, account="acc-evil").problem
    assert "above_refundable" in desk.submission(operation, amount=99_999).problem


def test_arguments_of_another_form_are_refused(desk: Desk) -> None:
    operation = desk.drafted()

    with pytest.raises(InputRefused, match="amount: Input should be a valid integer; the arguments are: channel"):
        desk.submission(operation, amount="120.00")
