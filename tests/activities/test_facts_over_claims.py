"""A run's word is a claim of whoever ran its steps; what counts is what the steps wrote down."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from temporalio.exceptions import ApplicationError

from activities.interfaces import ProposeOrder, StateRecord, StepOrder
from activities.opening import OpeningSteps
from activities.proposing import ProposingSteps
from countersign import bootstrap
from countersign.domain.draft import Claim, Draft
from countersign.domain.state import State
from tests.support.installation import Installation

DRAFT = Draft(
    title="Profit",
    body="Profit was {{c1}}.",
    claims=(Claim(id="c1", query="SELECT sum(amount) FROM data", value="99", unit="", shown="99"),),
    source="sales.csv",
    period="none stated",
    unit="none stated",
    limitations=("None examined.",),
)


@pytest.mark.guarantee("G22", "G40")
def test_a_draft_without_checks_and_grade_in_the_ledger_is_not_proposed(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    installation.register("op-1", channel="internal")
    now = datetime.now(UTC)
    installation.ledger.drafts.save("acme", "op-1", 1, DRAFT, "a-model", now)
    installation.ledger.drafts.save_checks("acme", "op-1", 1, (), now)
    settings = installation.settings
    proposing = ProposingSteps(
        installation.ledger, bootstrap.cases(settings, installation.ledger), bootstrap.load_rubric(settings)
    )
    step = StepOrder(tenant="acme", operation="op-1", run_id="r", draft_version=1)
    order = ProposeOrder(step=step, approval_version=1, draft_model="d", grade_model="g", now=now)
    with pytest.raises(ApplicationError) as refused:
        installation.step("op-1").run(proposing.propose, order)
    assert (refused.value.type, refused.value.non_retryable) == ("CONFLICT", True)
    assert installation.ledger.approvals.current("acme", "op-1") is None


@pytest.mark.guarantee("G22")
def test_a_run_that_says_succeeded_without_a_receipt_is_not_written_down(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    installation.register("op-1")
    opening = OpeningSteps(
        installation.ledger,
        "local",
        bootstrap.cases(installation.settings, installation.ledger),
        max_rounds=1,
        max_grader_tries=1,
    )
    environment = installation.step("op-1")
    record = StateRecord(
        tenant="acme", operation="op-1", state=State.SUCCEEDED, reason="executed", now=datetime.now(UTC)
    )
    with pytest.raises(ApplicationError) as refused:
        environment.run(opening.record_state, record)
    assert refused.value.non_retryable
    assert installation.ledger.operations.get("acme", "op-1").state == State.CREATED
    assert [each.type for each in installation.ledger.audit.records("acme", "op-1")][-1] == "step.failed"
