"""What a reviewer of a refund sees in the terminal: facts, amount, reason and message, with what could deceive them."""

from __future__ import annotations

import json

from activities.proposing import reviewers_view
from countersign.cli.reviewing.review import Review
from countersign.cli.reviewing.review_text import review_text
from countersign.cli.reviewing.review_warnings import Known, warnings
from countersign.domain.proposal import Proposal
from tests.ledger.builders import proposal as a_proposal
from tests.refund.desk import Desk
from tests.refund.sample import draft

NOBODY = Known(frozenset(), frozenset(), frozenset(), frozenset())
REVIEW = Review(
    workflow_id="acme:refund-1", run_id="r", view="sha256:" + "0" * 64, warnings=(), changed_since="",
    action_changes=(), document_changes=(), live_changes=(), authority_changes=(), control="the agent",
    asked_now=("finance",), decisions_now=("approve",), next_tick="", person="", options=(), versions=(),
    rejection_comment="",
)  # fmt: skip


def shown(desk: Desk, **changes: str) -> tuple[Proposal, dict[str, object]]:
    """The proposal of a draft, and the view of it that is recorded."""
    made = desk.submission(desk.drafted(draft=draft(**changes)))
    fields = {
        "case": "refund", "action": made.action, "action_hash": made.action.hash(), "reason": made.reason,
        "summary": made.summary, "evidence": made.evidence, "cost": made.cost,
    }  # fmt: skip
    proposal = a_proposal().model_copy(update=fields)
    view: dict[str, object] = json.loads(reviewers_view(proposal, made))
    return proposal, view


def test_all_that_matters_is_on_the_screen(desk: Desk) -> None:
    text = review_text(*shown(desk), REVIEW)

    for line in (
        "refund a payment to the account that it came from",
        "120.00 EUR",
        "payments:acc-9",
        "payment p-1: captured, 120.00 EUR from account acc-9, of which 0.00 EUR was refunded and 120.00 EUR can be",
        "I paid once and you took the money twice!",
        "| p-2 repeats p-1: the same amount, from the same account, for order o-1001.",
        "MESSAGE TO THE CUSTOMER, ONCE IT IS CONFIRMED",
        "| Your card was charged again by mistake. 120.00 EUR for order o-1001 went back to it; see [what the payment",
    ):
        assert line in text


def test_what_a_text_hides_is_warned_of(desk: Desk) -> None:
    proposal, view = shown(desk, justification="It is due.\u2066 {{payment}}")

    (warning,) = warnings(proposal, view, NOBODY)

    assert warning == "why holds characters that cannot be seen; they are written out here: \\u{2066}"
