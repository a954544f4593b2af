"""Executions: one holder, one effect per operation, and only the newest attempt may say how it ended."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from countersign.domain.errors import Conflict, NotFound, Unavailable
from countersign.domain.execution import Execution, ExecutionStatus
from countersign.domain.proposal import ApprovalStatus
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    NOW,
    OPERATION,
    ROOM,
    TENANT,
    VIEW,
    audit_types,
    claim,
    decide,
    granted,
    operation,
    proposal,
    receipt,
    statement,
)

LATER = NOW + timedelta(minutes=10)
"""After the first claim has run out."""


def effects(ledger: SqlLedger) -> list[str]:
    return [kind for kind in audit_types(ledger) if kind.startswith("effect.")]


def second_grant(ledger: SqlLedger, content: bytes) -> object:
    """Another action of the same operation, granted too."""
    other = proposal("approval-2", version=2, content=content)
    ledger.approvals.open(other, "run-1", VIEW, NOW, ROOM)
    decide(ledger, statement(other, "bob", id="statement-of-bob-2"), message_id="m-2")
    return ledger.approvals.get(TENANT, "approval-2")


def test_an_intent_is_recorded_before_anything_is_sent(ledger: SqlLedger) -> None:
    execution = claim(ledger, granted(ledger))
    assert (execution.status, execution.attempt) == (ExecutionStatus.INTENDED, 1)
    assert ledger.executions.get(TENANT, OPERATION) == execution
    assert effects(ledger) == ["effect.intended"]


@pytest.mark.guarantee("G31")
def test_while_one_holds_the_claim_nobody_else_may_send(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    claim(ledger, approval)
    with pytest.raises(Unavailable, match="attempt 1"):
        claim(ledger, approval, NOW + timedelta(minutes=4))
    assert effects(ledger) == ["effect.intended"]


@pytest.mark.guarantee("G31")
def test_a_claim_that_ran_out_passes_on_and_the_older_attempt_may_record_nothing(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    old = claim(ledger, approval)
    new = claim(ledger, approval, LATER)
    assert (new.status, new.attempt) == (ExecutionStatus.INTENDED, 2)
    before = audit_types(ledger)
    for stale in (
        lambda: ledger.executions.finish(old, receipt(old), LATER),
        lambda: ledger.executions.not_sent(old, "refused", LATER),
        lambda: ledger.executions.unknown(old, "timeout", LATER),
    ):
        with pytest.raises(Conflict, match="attempt 1"):
            stale()
    assert audit_types(ledger) == before
    assert ledger.executions.get(TENANT, OPERATION) == new


@pytest.mark.guarantee("G33")
def test_a_finished_execution_answers_again_with_its_receipt(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    execution = claim(ledger, approval)
    done = ledger.executions.finish(execution, receipt(execution), NOW)
    assert (done.status, done.receipt) == (ExecutionStatus.EXECUTED, receipt(execution))
    assert ledger.executions.finish(execution, receipt(execution), LATER) == done
    assert claim(ledger, approval, LATER) == done
    assert ledger.approvals.get(TENANT, "approval-1").status == ApprovalStatus.CONSUMED
    assert effects(ledger) == ["effect.intended", "effect.executed"]


def test_an_executed_effect_cannot_be_told_otherwise(ledger: SqlLedger) -> None:
    execution = claim(ledger, granted(ledger))
    done = ledger.executions.finish(execution, receipt(execution), NOW)
    with pytest.raises(Conflict):
        ledger.executions.finish(execution, receipt(execution, b"other"), NOW)
    with pytest.raises(Conflict):
        ledger.executions.not_sent(execution, "refused", NOW)
    assert ledger.executions.get(TENANT, OPERATION) == done


def test_an_outcome_that_comes_after_the_claim_ran_out_is_kept_if_nobody_took_over(ledger: SqlLedger) -> None:
    execution = claim(ledger, granted(ledger))
    assert ledger.executions.finish(execution, receipt(execution), LATER).status == ExecutionStatus.EXECUTED


@pytest.mark.guarantee("G34")
def test_what_was_not_sent_may_be_tried_again_at_once_with_the_same_key(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    first = claim(ledger, approval)
    for _ in range(2):
        ended = ledger.executions.not_sent(first, "connection refused", NOW)
    second = claim(ledger, approval)
    assert (ended.status, second.status) == (ExecutionStatus.NOT_SENT, ExecutionStatus.NOT_SENT)
    assert (second.key, second.attempt) == (first.key, 2)
    assert effects(ledger) == ["effect.intended", "effect.not_sent", "effect.intended"]


@pytest.mark.guarantee("G36")
def test_an_unknown_outcome_can_be_taken_up_at_once_and_says_that_it_must_be_looked_up(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    first = claim(ledger, approval)
    for _ in range(2):
        ledger.executions.unknown(first, "timeout after sending", NOW)
    second = claim(ledger, approval)
    assert (second.status, second.attempt) == (ExecutionStatus.UNKNOWN, 2)
    # Should the second be killed too, the third still learns that something may have been sent.
    third = claim(ledger, approval, LATER)
    assert (third.status, third.attempt) == (ExecutionStatus.INTENDED, 3)
    assert effects(ledger) == ["effect.intended", "effect.unknown", "effect.intended", "effect.intended"]


def test_the_attempt_that_found_its_outcome_unknown_may_still_look_it_up(ledger: SqlLedger) -> None:
    execution = claim(ledger, granted(ledger))
    unknown = ledger.executions.unknown(execution, "timeout", NOW)
    assert ledger.executions.finish(unknown, receipt(execution), NOW).status == ExecutionStatus.EXECUTED


@pytest.mark.guarantee("G32")
@pytest.mark.parametrize("ending", ["intended", "unknown", "executed"])
def test_another_action_of_the_operation_is_refused_until_the_first_is_settled_as_not_sent(
    ledger: SqlLedger, database: Engine, ending: str
) -> None:
    """Whatever the ledger says of grants: while the first may be there, no other is even put before people."""
    first = claim(ledger, granted(ledger))
    ledger.executions.not_sent(first, "refused", NOW)
    other = second_grant(ledger, b"another text")
    with database.begin() as connection:
        connection.execute(text("UPDATE executions SET status = :ending"), {"ending": ending})
    before = audit_types(ledger)
    with pytest.raises(Conflict, match=first.action_hash):
        claim(ledger, other, LATER)  # type: ignore[arg-type]
    assert audit_types(ledger) == before


@pytest.mark.guarantee("G32")
@pytest.mark.guarantee("G34")
def test_after_not_sent_another_action_may_go_and_then_the_first_may_not(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    first = claim(ledger, approval)
    ledger.executions.not_sent(first, "refused", NOW)
    other = claim(ledger, second_grant(ledger, b"another text"))  # type: ignore[arg-type]
    assert other.attempt == 1
    assert ledger.executions.get(TENANT, OPERATION) == other
    with pytest.raises(Conflict, match="superseded"):
        claim(ledger, approval, LATER)


def test_the_same_action_has_one_key(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    first = claim(ledger, approval)
    ledger.executions.not_sent(first, "refused", NOW)
    with pytest.raises(Conflict, match="another key"):
        ledger.executions.claim(approval, "some-other-key", NOW, LATER)


def test_only_what_is_granted_in_the_ledger_can_be_claimed(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    pending = ledger.approvals.open(proposal(), "run-1", VIEW, NOW, ROOM)
    forged = pending.model_copy(update={"status": ApprovalStatus.GRANTED})
    with pytest.raises(Conflict, match="pending"):
        claim(ledger, forged)
    with pytest.raises(Conflict, match="another proposal"):
        claim(ledger, forged.model_copy(update={"proposal": proposal(content=b"forged")}))
    with pytest.raises(NotFound, match="approval-9"):
        claim(ledger, forged.model_copy(update={"proposal": proposal("approval-9")}))
    assert ledger.executions.get(TENANT, OPERATION) is None
    assert effects(ledger) == []


def test_an_execution_that_was_never_claimed_cannot_end(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    invented = Execution(
        tenant=TENANT,
        operation=OPERATION,
        approval_id="approval-1",
        action_hash=approval.proposal.action_hash,
        key="invented",
        status=ExecutionStatus.INTENDED,
        attempt=1,
        claimed_until=LATER,
    )
    with pytest.raises(NotFound, match="invented"):
        ledger.executions.not_sent(invented, "refused", NOW)


@pytest.mark.guarantee("G47")
def test_each_refusal_of_the_gateway_leaves_a_record(ledger: SqlLedger) -> None:
    for _ in range(2):
        ledger.executions.refused(TENANT, OPERATION, "approval-1", "expired", NOW, alarm=False)
    records = list(ledger.audit.records(TENANT, OPERATION))
    assert [(record.type, record.detail["reason"]) for record in records] == [("effect.refused", "expired")] * 2


@pytest.mark.guarantee("G47")
def test_a_refusal_of_what_was_forged_is_an_alarm_as_well(ledger: SqlLedger) -> None:
    ledger.executions.refused(TENANT, OPERATION, "approval-1", "vote_forged", NOW, alarm=True)
    records = list(ledger.audit.records(TENANT, OPERATION))
    assert [record.type for record in records] == ["effect.refused", "alarm.raised"]
    assert all(record.detail == {"approval_id": "approval-1", "reason": "vote_forged"} for record in records)
