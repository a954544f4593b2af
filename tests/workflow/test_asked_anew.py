"""What a grant rests on is looked at again when it is executed: a change voids it, and people are asked anew."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from countersign.domain.administration import PolicyChange
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.policy import Policy
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import RunResult, RunStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import eventually, until_state
from workflows.governed_action import GovernedAction

pytestmark = pytest.mark.long

Run = WorkflowHandle[GovernedAction, RunResult]


@pytest.fixture
def sqlite_installation(sqlite_installation: Installation, tmp_path: Path) -> Installation:
    """One whose policy brings nothing before people: a run that cannot go on has failed."""
    return sqlite_installation.with_fields(tmp_path, escalations={})


async def granted(installation: Installation) -> Run:
    """A run with bob's approval that no gateway has executed yet."""
    run = await installation.start("op-1")
    await until_state(run, State.WAITING_APPROVAL)
    message = installation.decision(installation.proposal("op-1"), "bob")
    assert (await run.execute_update("decide", message, result_type=Outcome)).status == ApprovalStatus.GRANTED
    return run


async def asked_anew(installation: Installation, run: Run) -> RunStatus:
    """The run once its second proposal waits."""

    def second() -> bool:
        current = installation.ledger.approvals.current("acme", "op-1")
        return current is not None and current.proposal.approval_version == 2

    await eventually(second)
    return await until_state(run, State.WAITING_APPROVAL)


def voided(installation: Installation) -> dict[str, Any]:
    (record,) = [
        record for record in installation.ledger.audit.records("acme", "op-1") if record.type == "approval.voided"
    ]
    return dict(record.detail)


@pytest.mark.guarantee("G06")
async def test_an_approver_who_was_demoted_no_longer_counts_and_the_run_waits_again_and_says_why(
    installation: Installation,
) -> None:
    async with installation.workers("agent"):
        run = await granted(installation)
        installation.demote("bob", "requester")
        async with installation.workers("gateway"):
            status = await asked_anew(installation, run)
            assert installation.published() == []
            message = installation.decision(installation.proposal("op-1"), "carl")
            await run.execute_update("decide", message, result_type=Outcome)
            result = await run.result()
    proposal = installation.proposal("op-1")
    assert status.reason == "roles"
    assert "bob" in proposal.asked_again
    assert "bob" in voided(installation)["found"]
    assert result.state == State.SUCCEEDED
    assert len(installation.published()) == 1


def stricter(policy: Policy) -> Policy:
    rules = [
        rule.model_copy(update={"need": rule.need.model_copy(update={"approvals": 2})}) if rule.need else rule
        for rule in policy.rules
    ]
    return policy.model_copy(update={"version": policy.version + 1, "rules": tuple(rules)})


def looser(policy: Policy) -> Policy:
    rules = [rule.model_copy(update={"need": None, "grant": "by_rule"}) for rule in policy.rules]
    return policy.model_copy(update={"version": policy.version + 1, "rules": tuple(rules)})


@pytest.mark.guarantee("G12")
@pytest.mark.parametrize(("changed", "still_needs"), [(stricter, 2), (looser, 1)])
async def test_a_policy_that_was_changed_meanwhile_asks_anew_and_takes_no_need_away(
    sqlite_installation: Installation, changed: Any, still_needs: int
) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await granted(installation)
        policy = installation.ledger.directory.policies("acme")["report"]
        installation.decree(PolicyChange(policy=changed(policy)))
        async with installation.workers("gateway"):
            status = await asked_anew(installation, run)
    needs = installation.proposal("op-1").assessment.needs
    assert status.reason == "policy"
    assert max(need.approvals for need in needs) == still_needs
    detail = voided(installation)
    assert (detail["expected"], detail["found"]) == (policy.label(), changed(policy).label())
    assert installation.published() == []


@pytest.mark.guarantee("G14")
async def test_a_document_that_was_changed_in_the_ledger_is_never_sent(sqlite_installation: Installation) -> None:
    """Asked anew, the document is made again from the draft, so people see what would really go out."""
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await granted(installation)
        first = installation.proposal("op-1")
        installation.overwrite_document(first.document, b"# Something else\n")
        async with installation.workers("gateway"):
            result = await run.result()
    assert result.state == State.FAILED
    assert installation.published() == []


@pytest.mark.guarantee("G10", "G16")
async def test_a_vote_on_the_void_version_does_not_count_for_the_new_one(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await granted(installation)
        old = installation.proposal("op-1")
        installation.demote("bob", "requester")
        async with installation.workers("gateway"):
            await asked_anew(installation, run)
            late = await run.execute_update("decide", installation.decision(old, "carl"), result_type=Outcome)
    assert late.ruling == Ruling.NOT_THIS_APPROVAL
    assert installation.published() == []


@pytest.mark.guarantee("G12")
async def test_an_edit_of_what_is_asked_anew_keeps_what_the_first_policy_wanted(
    sqlite_installation: Installation,
) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await granted(installation)
        policy = installation.ledger.directory.policies("acme")["report"]
        installation.decree(PolicyChange(policy=looser(policy)))
        async with installation.workers("gateway"):
            await asked_anew(installation, run)
            edit = installation.edit(installation.proposal("op-1"), "bob", name="half-year.md")
            edited = await run.execute_update("decide", edit, result_type=Outcome)
            result = await run.result()
    assert edited.status == ApprovalStatus.EDITED
    assert installation.proposal("op-1").floor == installation.proposal("op-1").assessment.needs
    assert result.state == State.SUCCEEDED
    assert [vote.person for vote in installation.votes("op-1")] == ["bob"]


@pytest.mark.guarantee("G35")
async def test_data_that_is_gone_ends_the_run_instead_of_asking_in_vain(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await granted(installation)
        shutil.rmtree(installation.settings.evidence_folder)
        async with installation.workers("gateway"):
            result = await run.result()
    assert (result.state, result.reason) == (State.FAILED, "evidence_gone")
    assert installation.published() == []


async def test_what_never_holds_still_is_asked_anew_five_times_and_then_given_up(
    sqlite_installation: Installation,
) -> None:
    """A gateway of another environment than the drafting side's: granted by rule, and void each time."""
    installation = sqlite_installation
    elsewhere = replace(installation, settings=installation.settings.model_copy(update={"environment": "production"}))
    async with installation.workers("agent"), elsewhere.workers("gateway"):
        run = await installation.start("op-1", channel="internal")
        result = await run.result()
    records = [record.type for record in installation.ledger.audit.records("acme", "op-1")]
    assert (result.state, result.reason) == (State.FAILED, "voided_too_often")
    assert records.count("approval.voided") == 6
    assert installation.published("internal") == []
