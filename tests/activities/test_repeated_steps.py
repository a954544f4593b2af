"""A step may run twice, and late: a repeat answers as the first did, and a message is judged by when it came."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.deciding import DecidingSteps
from activities.drafting import DraftingSteps
from activities.interfaces import Message, MessageBatch, ProposeOrder, StepOrder
from activities.proposing import ProposingSteps
from activities.runs import Runs
from countersign import bootstrap
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import ProposalView
from countersign.domain.state import State
from tests.activities.desk import Nobody
from tests.support.installation import MAX_PENDING, Installation
from tests.support.waiting import until_state


def runs(installation: Installation) -> Runs:
    """What checks the steps, by the wall clock."""
    return Runs(installation.ledger, bootstrap.wall_clock)


async def waiting_run(installation: Installation) -> tuple[StepOrder, ProposalView]:
    """A run that waits for people, whose worker has gone; its latest step and what it shows."""
    async with installation.workers("agent"):
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        shown = await run.query("proposal", result_type=ProposalView)
    run_id = (await run.describe()).run_id
    return StepOrder(tenant="acme", operation="op-1", line=run_id, draft_version=1, control_version=1), shown


@pytest.mark.guarantee("G15")
async def test_a_repeated_proposal_shows_what_the_first_showed(installation: Installation) -> None:
    step, shown = await waiting_run(installation)
    settings, proposal = installation.settings, installation.proposal("op-1")
    cases, rubrics = bootstrap.cases(settings, installation.ledger), bootstrap.load_rubrics(settings)
    proposing = ProposingSteps(installation.ledger, runs(installation), cases, rubrics, max_pending=MAX_PENDING)
    later = proposal.proposed_at + timedelta(seconds=30)
    order = ProposeOrder(step=step, approval_version=1, now=later)
    again = installation.step("op-1", step.line).run(proposing.propose, order)
    assert (again.view, again.deadline, again.approval_id) == (shown.view, shown.deadline, shown.approval_id)
    assert installation.proposal("op-1") == proposal


async def test_a_version_that_is_there_is_not_drafted_again(installation: Installation) -> None:
    step, _ = await waiting_run(installation)
    cases = bootstrap.cases(installation.settings, installation.ledger)
    drafting = DraftingSteps(
        installation.ledger,
        runs(installation),
        cases,
        {"report": Nobody()},
        prices=bootstrap.load_prices(installation.settings),
        max_pending=MAX_PENDING,
        installation=installation.settings.installation,
    )
    order = step.model_copy(update={"line": "after-a-reset"})
    again = await installation.step("op-1", "after-a-reset").run(drafting.draft, order)
    assert again.model == "offline-drafter/1"


@pytest.mark.guarantee("G26")
@pytest.mark.parametrize(
    ("before_deadline", "ruling"), [(timedelta(seconds=1), Ruling.ACCEPTED), (timedelta(0), Ruling.LATE)]
)
async def test_a_vote_counts_by_when_the_run_received_it_not_by_when_it_is_ruled_on(
    installation: Installation, tmp_path: Path, before_deadline: timedelta, ruling: Ruling
) -> None:
    short = installation.with_policy(tmp_path, decide_within="2s", ladder={})
    await waiting_run(short)
    proposal = short.proposal("op-1")
    await short.after(proposal.deadline)
    outcome = decided(short, "bob", received_at=proposal.deadline - before_deadline)
    assert outcome.ruling == ruling


@pytest.mark.guarantee("G17")
async def test_a_repeated_batch_is_answered_as_before_and_counts_once(installation: Installation) -> None:
    await waiting_run(installation)
    proposal = installation.proposal("op-1")
    message = installation.decision(proposal, "bob")
    first, again = (decided(installation, "bob", message=message) for _ in range(2))
    assert first == again == Outcome(ruling=Ruling.ACCEPTED, status=ApprovalStatus.GRANTED)
    approval = installation.ledger.approvals.current("acme", "op-1")
    assert approval is not None
    assert len(approval.votes) == 1


def decided(installation: Installation, person: str, message: dict[str, str] | None = None, **how: Any) -> Outcome:
    """What the deciding step says to one signed approval."""
    proposal = installation.proposal("op-1")
    signed = message or installation.decision(proposal, person, issued_at=proposal.proposed_at.replace(microsecond=0))
    received = Message(
        id="run:1",
        name="decide",
        transport="signal",
        body=f'{{"statement": "{signed["statement"]}"}}',
        received_at=how.get("received_at", datetime.now(UTC)),
    )
    batch = MessageBatch(tenant="acme", operation="op-1", messages=(received,))
    cases = bootstrap.cases(installation.settings, installation.ledger)
    deciding = DecidingSteps(installation.ledger, runs(installation), "local", cases, unsigned=False)
    (outcome,) = installation.step("op-1").run(deciding.decide, batch).outcomes
    return outcome
