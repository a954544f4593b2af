"""A run's word is a claim of whoever ran its steps; what counts is what the steps wrote down."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ApplicationError

from activities.interfaces import StateRecord
from countersign.domain.state import State
from tests.activities.desk import OPERATION, Desk, a_draft


@pytest.mark.guarantee("G22", "G40")
def test_a_draft_without_checks_and_grade_in_the_ledger_is_not_proposed(desk: Desk) -> None:
    desk.ledger.drafts.save("acme", OPERATION, 1, a_draft(), "a-model", 1, desk.now())
    desk.ledger.drafts.save_checks("acme", OPERATION, 1, (), 1, desk.now())
    with pytest.raises(ApplicationError) as refused:
        desk.propose()
    assert (refused.value.type, refused.value.non_retryable) == ("CONFLICT", True)
    assert desk.ledger.approvals.current("acme", OPERATION) is None


@pytest.mark.guarantee("G22")
def test_a_run_that_says_succeeded_without_a_receipt_is_not_written_down(desk: Desk) -> None:
    record = StateRecord(tenant="acme", operation=OPERATION, state=State.SUCCEEDED, reason="executed", now=desk.now())
    with pytest.raises(ApplicationError) as refused:
        desk.as_run().run(desk.opening.record_state, record)
    assert refused.value.non_retryable
    assert desk.ledger.operations.get("acme", OPERATION).state == State.CREATED
    assert [each.type for each in desk.ledger.audit.records("acme", OPERATION)][-1] == "step.failed"
