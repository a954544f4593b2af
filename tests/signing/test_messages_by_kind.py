"""Messages of each kind of decision, signed and unsigned: what becomes of them on the way to the ruling."""

from __future__ import annotations

import json
from typing import Any

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Ruling
from countersign.domain.policy import BreakGlass, Editing, Terms
from countersign.domain.proposal import ApprovalStatus
from countersign.signing.unsigned import unsigned_fields
from tests.domain.samples import DEADLINE, a_need, a_proposal, a_statement
from tests.signing.messages import BLANK, REASON, body_of, sent
from tests.signing.tokens import CLAIMS, claims_with, token


def kind_of(decision: str, **changes: Any) -> str:
    return body_of(token(claims=claims_with(decision=decision, **changes)))


def test_respond_on_an_outward_action_is_refused_and_says_what_it_is_for() -> None:
    outcomes, _ = sent(kind_of("respond"))

    assert outcomes[0].ruling == Ruling.RESPOND_IS_FOR_QUESTIONS
    assert "answers a question" in outcomes[0].sentence()
    assert outcomes[0].status == ApprovalStatus.PENDING


@pytest.mark.guarantee("G14")
def test_an_edit_whose_action_is_not_in_the_ledger_changes_nothing() -> None:
    claims = claims_with(decision="edit", edited_action=CLAIMS["action_hash"])
    need = a_need(decisions=("approve", "edit", "reject"))
    editable = a_proposal(need, terms=Terms(editing=Editing(fields=("title",), raises_risk=())))

    outcomes, _ = sent(body_of(token(claims=claims)), proposal=editable)

    assert (outcomes[0].ruling, outcomes[0].status) == (Ruling.EDIT_REFUSED, ApprovalStatus.PENDING)
    assert "not in the ledger" in outcomes[0].detail


@pytest.mark.guarantee("G11")
def test_breaking_the_glass_is_off_unless_the_policy_turns_it_on() -> None:
    assert sent(kind_of("break_glass", comment_hash=sha256_hex(REASON)))[0][0].ruling == Ruling.DECISION_NOT_ALLOWED


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize("comment_hash", ["", sha256_hex(BLANK), sha256_hex(b"a comment that nobody keeps")])
def test_breaking_the_glass_needs_a_reason_that_can_be_read_later(comment_hash: str) -> None:
    glass = a_proposal(terms=Terms(break_glass=BreakGlass(role="reviewer", approvals=2)))
    with_reason, without = (kind_of("break_glass", comment_hash=one) for one in (sha256_hex(REASON), comment_hash))

    outcomes, recorded = sent(with_reason, without, proposal=glass)

    assert [outcome.ruling for outcome in outcomes] == [Ruling.ACCEPTED, Ruling.REASON_MISSING]
    assert recorded.refused == outcomes[1:]


@pytest.mark.guarantee("G18")
@pytest.mark.parametrize(
    ("seconds", "decision", "ruling"),
    [
        (-1, "approve", Ruling.EXPIRES_TOO_SOON),
        (0, "approve", Ruling.ACCEPTED),
        (-1, "reject", Ruling.ACCEPTED),
    ],
)
def test_a_yes_that_is_void_before_the_deadline_decides_nothing(seconds: int, decision: str, ruling: Ruling) -> None:
    claims = claims_with(decision=decision, exp=int(DEADLINE.timestamp()) + seconds)

    assert sent(body_of(token(claims=claims)))[0][0].ruling == ruling


def test_a_withdrawal_is_a_command_and_no_decision() -> None:
    outcomes, recorded = sent(kind_of("withdraw"))

    assert outcomes[0].ruling == Ruling.BAD_STATEMENT
    assert recorded.ruled_on == []


def unsigned_body(**changes: Any) -> str:
    return json.dumps({"unsigned": {**unsigned_fields(a_statement(key_id="")), **changes}})


@pytest.mark.guarantee("G19")
@pytest.mark.guarantee("G21")
def test_an_installation_that_wants_signatures_takes_nothing_else() -> None:
    outcomes, recorded = sent(unsigned_body())

    assert outcomes[0].ruling == Ruling.BAD_STATEMENT
    assert outcomes[0].detail.startswith("unsigned: decisions must be signed here")
    assert recorded.ruled_on == []


def test_a_trial_installation_rules_on_an_unsigned_decision_as_namespace_only() -> None:
    outcomes, recorded = sent(unsigned_body(), unsigned=True)

    assert outcomes[0].ruling == Ruling.ACCEPTED
    assert [(one.assurance, one.statement.person, one.statement.key_id) for one in recorded.ruled_on] == [
        ("namespace-only", "bob", "")
    ]


@pytest.mark.guarantee("G04")
def test_an_unsigned_decision_never_counts_towards_two_persons() -> None:
    outcomes, _ = sent(unsigned_body(), unsigned=True, proposal=a_proposal(a_need(approvals=2)))

    assert outcomes[0].ruling == Ruling.SIGNATURE_NEEDED
    assert outcomes[0].status == ApprovalStatus.PENDING


@pytest.mark.guarantee("G20")
def test_an_unsigned_decision_that_was_sent_to_many_runs_names_one_approval() -> None:
    elsewhere, _ = sent(unsigned_body(approval_id="apr-2"), unsigned=True)

    assert elsewhere[0].ruling == Ruling.NOT_THIS_APPROVAL


@pytest.mark.guarantee("G19")
@pytest.mark.parametrize(
    "changes",
    [{"person": "mallory"}, {"decision": "sign"}, {"extra": 1}, {"extra": 1.5}, {"approval_version": 2.5},
     {"approval_version": 10**30}, {"id": "x"}, {"tenant": "acme"}, {"deep": [[[[{}]]]]}],
)  # fmt: skip
def test_an_unsigned_decision_of_another_form_is_refused_and_recorded(changes: dict[str, Any]) -> None:
    outcomes, recorded = sent(unsigned_body(**changes), unsigned=True)

    assert outcomes[0].ruling == Ruling.BAD_STATEMENT
    assert (recorded.refused, recorded.ruled_on) == (outcomes, [])
