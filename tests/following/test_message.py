"""The customer's message: it goes out after the refund is confirmed, with what was confirmed, and not otherwise."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ApplicationError

from activities.executing import ExecutingSteps
from activities.interfaces import GatherOrder
from activities.runs import Runs
from countersign.domain.canonical import canonical_bytes
from countersign.domain.errors import Conflict
from countersign.domain.execution import ExecutionStatus
from countersign.domain.money import amount
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.following.house import LINE, TENANT, House
from tests.refund import sample

MESSAGE = "refund-7.message"
FACTS = canonical_bytes(sample.facts().model_dump(mode="json"))


def test_the_customer_is_told_by_rule_once_the_refund_is_confirmed(paying: House) -> None:
    house = paying
    house.refund_proposed(account="acc-ada", amount=amount("249.00 EUR"))
    refunded = house.execute("refund-7").receipt
    assert refunded is not None
    house.ends("refund-7", State.SUCCEEDED)
    house.open(house.message())
    assert house.propose(MESSAGE).status == ApprovalStatus.GRANTED
    done = house.execute(MESSAGE)
    assert done.status == ExecutionStatus.EXECUTED, done.reason
    (sent,) = house.folder("messages").glob("*.txt")
    assert sent.name == f"{MESSAGE}.txt"
    told = f"249.00 EUR for order o-1001 went back to it; see {refunded.reference}."
    assert sent.read_text() == f"Your card was charged again by mistake. {told}\n"
    assert house.operation(MESSAGE).follows == "refund-7"
    assert house.receipt(MESSAGE).key != refunded.key


@pytest.mark.guarantee("G22")
def test_facts_are_gathered_for_an_operations_own_run_alone(paying: House) -> None:
    paying.installation.register_refund("refund-8", order="o-1001")
    gathering = ExecutingSteps(paying.gateway, Runs(paying.ledger, paying.clock))
    order = GatherOrder(tenant=TENANT, operation="refund-8")
    with pytest.raises(ApplicationError, match="CONFLICT") as refused:
        paying.installation.step("somebody-elses", LINE).run(gathering.gather, order)
    assert refused.value.non_retryable
    assert paying.installation.step("refund-8", LINE).run(gathering.gather, order).content


def test_a_message_states_the_amount_that_people_lowered_it_to(house: House) -> None:
    house.refund_proposed(facts=FACTS)
    proposal = house.approval("refund-7").proposal
    lowered = house.cases["refund"].submission(
        house.operation("refund-7"), proposal.draft_version, "refund/1", {**proposal.action.args, "amount": 6_000}
    )
    changed = proposal.model_copy(
        update={
            "approval_id": "lowered", "approval_version": 2, "action": lowered.action,
            "action_hash": lowered.action.hash(), "document": house.ledger.documents.put(TENANT, lowered.document),
        }
    )  # fmt: skip
    view = house.ledger.documents.put(TENANT, b"the view")
    house.ledger.approvals.open(changed, "run-1", view, house.clock(), room=1_000)
    house.refund_confirmed()
    house.open(house.message())
    house.propose(MESSAGE)
    assert house.document(MESSAGE).startswith(b"Your card was charged again by mistake. 60.00 EUR for order o-1001")


def test_nothing_of_a_message_exists_before_the_refund_is_confirmed(house: House) -> None:
    house.refund_proposed(facts=FACTS)
    assert house.operation(MESSAGE).state == State.CREATED
    with pytest.raises(ApplicationError, match="UNAVAILABLE"):
        house.open(house.message())
    # Nor for a workflow of somebody's own, which asks for the next step without an opening.
    with pytest.raises(ApplicationError, match="CONFLICT"):
        house.propose(MESSAGE)
    assert house.ledger.approvals.current(TENANT, MESSAGE) is None
    assert not [*house.folder("messages").glob("*.txt")]
    with pytest.raises(Conflict, match="refund-7 is RUNNING: nothing was sent for it"):
        house.cases["message"].submission(house.operation(MESSAGE), 0, "message/1")


@pytest.mark.parametrize("unknown", [True, False])
def test_a_refund_whose_outcome_is_unknown_tells_nobody(house: House, *, unknown: bool) -> None:
    house.refund_proposed(facts=FACTS)
    approval, now = house.approval("refund-7"), house.clock()
    execution = house.ledger.executions.claim(approval, approval.proposal.action.idempotency_key(), now, now)
    if unknown:
        house.ledger.executions.unknown(execution, "timeout", now)
    with pytest.raises(ApplicationError, match="UNAVAILABLE"):
        house.open(house.message())
    how = "unknown" if unknown else "intended"
    with pytest.raises(Conflict, match=f"its effect is {how}, and nothing follows it until it is confirmed"):
        house.cases["message"].submission(house.operation(MESSAGE), 0, "message/1")


def test_a_refund_that_ended_otherwise_ends_its_message_and_no_later_start_sends_it(house: House) -> None:
    house.refund_proposed(facts=FACTS)
    house.ends("refund-7", State.FAILED, "step_failed")
    ended = house.operation(MESSAGE)
    assert (ended.state, ended.reason.partition(":")[0]) == (State.CANCELLED, "nothing_to_follow")
    with pytest.raises(ApplicationError, match="CONFLICT") as refused:
        house.open(house.message())
    assert refused.value.non_retryable
    assert not [*house.folder("messages").glob("*.txt")]


def test_the_words_are_neither_edited_nor_put_for_another_effect(house: House) -> None:
    house.published()
    house.refund_proposed(facts=FACTS)
    house.refund_confirmed()
    house.open(house.message())
    house.propose(MESSAGE)
    case, proposal = house.cases["message"], house.approval(MESSAGE).proposal
    edited = case.submission(house.operation(MESSAGE), 0, "message/1", {**proposal.action.args, "name": "x"})
    assert "a message is not edited" in edited.problem
    other = house.message_about("report-7")
    with pytest.raises(Conflict, match="report-7 is no refund"):
        case.submission(house.operation(other.operation), 0, "message/1")


@pytest.mark.guarantee("G22")
def test_a_run_that_was_started_by_hand_for_another_request_neither_waits_in_its_name_nor_ends_it(house: House) -> None:
    house.refund_proposed(facts=FACTS)
    wrong = house.message().model_copy(update={"request_hash": "sha256:" + "0" * 64})
    with pytest.raises(ApplicationError, match="CONFLICT") as refused:
        house.open(wrong)
    assert refused.value.non_retryable
    for confirmed in (False, True):
        if confirmed:
            house.refund_confirmed()
        for state in (State.FAILED, State.CANCELLED):
            with pytest.raises(ApplicationError, match="CONFLICT"):
                house.ends(MESSAGE, state, "conflict")
        assert house.operation(MESSAGE).state == State.CREATED
    house.open(house.message())
    assert house.propose(MESSAGE).status == ApprovalStatus.GRANTED


@pytest.mark.guarantee("G22")
def test_what_nobody_may_begin_any_more_is_ended_by_its_own_run(house: House) -> None:
    order = house.installation.register("report-7")
    house.installation.demote("rita")
    with pytest.raises(ApplicationError, match="NOT_AUTHORISED"):
        house.open(order)
    house.ends("report-7", State.FAILED, "not_authorised")
    assert house.operation("report-7").state == State.FAILED
