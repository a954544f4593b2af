"""Taking back what an operation did: a new action with its own hash, approvals and key, which can fail like others."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ApplicationError

from countersign.domain.compensation import ReverseEffect, receipt_hash, reversal_document
from countersign.domain.decision import Ruling
from countersign.domain.errors import Conflict
from countersign.domain.execution import ExecutionStatus
from countersign.domain.money import amount
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.following.house import TENANT, House
from tests.support.payments import Payments


@pytest.mark.guarantee("G38")
def test_a_compensation_is_an_action_of_its_own_with_a_link_to_the_first(house: House) -> None:
    report = house.published()
    first, first_receipt = house.approval("report-7").proposal, house.receipt("report-7")
    undo = house.asked_back()
    proposal = house.approval(undo).proposal
    assert house.operation(undo).follows == "report-7"
    assert proposal.action_hash != first.action_hash
    assert proposal.action.idempotency_key() != first_receipt.key
    assert proposal.action.evidence_hash == receipt_hash(first_receipt)
    args = ReverseEffect.model_validate(proposal.action.args)
    assert (args.follows, args.key, args.reference) == ("report-7", first_receipt.key, str(report))
    assert house.document(undo) == reversal_document(args)
    assert proposal.action.side_effect == "external_publication_reversal"
    # What people are shown is what would go away.
    assert house.ledger.documents.get(TENANT, proposal.live) == report.read_bytes()


@pytest.mark.guarantee("G38")
def test_what_was_published_stays_until_people_approve_its_withdrawal_and_then_goes_once(house: House) -> None:
    report = house.published()
    undo = house.asked_back()
    assert house.execute(undo).status is None
    assert report.exists()
    assert house.decide(undo, "bob").ruling == Ruling.ACCEPTED
    done = house.execute(undo)
    assert (done.status, done.receipt) == (ExecutionStatus.EXECUTED, house.receipt(undo))
    assert not report.exists()
    assert house.execute(undo) == done
    house.ends(undo, State.SUCCEEDED)
    # The first record stands as it was; that nothing lies there any more is the second one's.
    assert house.receipt("report-7").reference == str(report)
    assert house.operation("report-7").state == State.SUCCEEDED
    assert house.ledger.executions.at_target(TENANT, "public:report-7.md") is None
    house.ledger.audit.verify(TENANT)


def test_whoever_rejects_a_withdrawal_leaves_everything_as_it_was(house: House) -> None:
    report = house.published()
    undo = house.asked_back()
    house.decide(undo, "bob", "reject")
    house.ends(undo, State.REJECTED, "rejected")
    assert house.execute(undo).status is None
    assert report.exists()
    assert house.ledger.executions.at_target(TENANT, "public:report-7.md") == house.receipt("report-7")


@pytest.mark.guarantee("G38")
def test_a_compensation_that_fails_says_so_and_another_one_can_be_asked_for(house: House) -> None:
    report = house.published()
    undo = house.asked_back()
    house.decide(undo, "bob")
    report.unlink()
    report.write_text("somebody else's text under the same name")
    failed = house.execute(undo)
    assert failed.status is None
    assert failed.receipt is None
    assert "outside" in failed.reason or "not_" in failed.reason
    assert report.exists()
    house.ends(undo, State.FAILED, "outside_refused")
    assert house.ledger.executions.at_target(TENANT, "public:report-7.md") == house.receipt("report-7")
    again = house.undo("report-7", "report-7.undo-2")
    assert house.open(again).drafted is False


def test_nothing_is_taken_back_that_was_not_confirmed(house: House) -> None:
    house.published()
    order = house.undo("report-7")
    waiting = house.installation.register("report-8")
    wrong = house.undo("report-7", "wrong", follows=waiting.operation)
    with pytest.raises(ApplicationError, match="UNAVAILABLE") as early:
        house.open(wrong)
    assert not early.value.non_retryable
    assert house.operation("wrong").state == State.CREATED
    case = house.cases["compensation"]
    with pytest.raises(Conflict, match="report-8 is CREATED: nothing was sent for it, so nothing follows it"):
        case.submission(house.operation("wrong"), 0, "compensation/1")
    assert house.open(order).followers == ()


def test_a_request_about_another_receipt_than_the_ledgers_is_refused(house: House) -> None:
    house.published()
    order = house.undo("report-7", receipt_hash="sha256:" + "0" * 64)
    house.open(order)
    with pytest.raises(ApplicationError, match="CONFLICT"):
        house.propose(order.operation)
    assert house.ledger.approvals.current(TENANT, order.operation) is None


@pytest.mark.guarantee("G38")
def test_an_operation_that_was_registered_behind_another_one_than_its_request_names_never_begins(house: House) -> None:
    house.published()
    house.published("report-8")
    order = house.undo("report-7")
    moved = house.operation(order.operation).model_copy(update={"operation": "moved", "follows": "report-8"})
    house.ledger.operations.register(moved)
    with pytest.raises(Conflict, match="is registered behind report-8, and its request names report-7"):
        house.cases["compensation"].submission(moved, 0, "compensation/1")


@pytest.mark.parametrize("args", [{"channel": "internal"}, {"reference": "elsewhere"}])
def test_a_compensation_is_not_edited(house: House, args: dict[str, str]) -> None:
    house.published()
    undo = house.asked_back()
    proposal = house.approval(undo).proposal
    case = house.cases["compensation"]
    edited = case.submission(house.operation(undo), 0, "compensation/1", {**proposal.action.args, **args})
    assert "a compensation is not edited" in edited.problem
    same = case.submission(house.operation(undo), 0, "compensation/1", proposal.action.args)
    assert same.problem == ""


@pytest.mark.guarantee("G38")
@pytest.mark.guarantee("G04")
def test_a_refund_is_taken_back_by_two_of_finance_at_the_payment_service(paying: House, payments: Payments) -> None:
    house = paying
    before = {one["id"]: one for one in payments.told("o-1001")["payments"]}
    house.refund_proposed(account="acc-ada", amount=amount("249.00 EUR"))
    assert house.approval("refund-7").status == ApprovalStatus.GRANTED
    assert house.execute("refund-7").status == ExecutionStatus.EXECUTED
    house.ends("refund-7", State.SUCCEEDED)
    assert payments.refunded("o-1001", "p-2") == before["p-2"]["amount"]
    undo = house.asked_back("refund-7")
    action = house.approval(undo).proposal.action
    assert (action.side_effect, action.amount) == ("refund_reversal", amount("249.00 EUR"))
    assert house.decide(undo, "fay").ruling == Ruling.ACCEPTED
    assert house.execute(undo).status is None
    assert house.decide(undo, "finn").ruling == Ruling.ACCEPTED
    assert house.execute(undo).status == ExecutionStatus.EXECUTED
    assert payments.refunded("o-1001", "p-2") == before["p-2"]["refunded"]
    assert len(payments.refunds()) == 1
    with pytest.raises(Conflict, match="took something back itself"):
        house.cases["compensation"].submission(
            house.ledger.operations.register(house.operation(house.undo(undo, "undo-undo").operation)), 0, "c/1"
        )
