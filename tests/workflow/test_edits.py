"""A reviewer's edit: a new version with a new hash, every earlier vote void, and the editor its author (G02, G14)."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import WorkflowHandle

from countersign.domain.administration import PolicyChange
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.errors import NotFound
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import RunResult
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_state
from workflows.governed_action import GovernedAction

pytestmark = pytest.mark.long

Run = WorkflowHandle[GovernedAction, RunResult]


async def waiting(installation: Installation) -> Run:
    run = await installation.start("op-1")
    await until_state(run, State.WAITING_APPROVAL)
    return run


async def told(run: Run, message: dict[str, str]) -> Outcome:
    outcome: Outcome = await run.execute_update("decide", message, result_type=Outcome)
    return outcome


@pytest.mark.guarantee("G14")
async def test_an_edit_that_raises_no_risk_is_published_as_edited_by_its_editors_word(
    installation: Installation,
) -> None:
    async with installation.workers():
        run = await waiting(installation)
        first = installation.proposal("op-1")
        outcome = await told(run, installation.edit(first, "bob", name="half-year.md"))
        result = await run.result()
    second = installation.proposal("op-1")
    assert (outcome.ruling, outcome.status) == (Ruling.ACCEPTED, ApprovalStatus.EDITED)
    assert result.state == State.SUCCEEDED
    assert [path.name for path in installation.published()] == ["half-year.md"]
    assert (second.approval_version, second.authors, second.edited_from) == (2, ("bob",), first.approval_id)
    assert second.action_hash != first.action_hash
    assert installation.ledger.audit.verify("acme").count > 0


@pytest.mark.guarantee("G14")
async def test_an_edited_title_goes_out_in_the_text_and_the_agents_draft_stays_the_agents(
    sqlite_installation: Installation,
) -> None:
    installation = sqlite_installation
    async with installation.workers():
        run = await waiting(installation)
        await told(run, installation.edit(installation.proposal("op-1"), "bob", title="Sales by region"))
        result = await run.result()
    (published,) = installation.published()
    assert result.state == State.SUCCEEDED
    assert published.read_text().startswith("# Sales by region\n")
    assert installation.proposal("op-1").verdict == "satisfied, before people edited the title"
    with pytest.raises(NotFound):
        installation.ledger.drafts.get("acme", "op-1", 2)


@pytest.mark.guarantee("G40")
async def test_an_edited_title_with_a_figure_that_nobody_computed_is_refused_and_the_run_waits_on(
    sqlite_installation: Installation,
) -> None:
    installation = sqlite_installation
    async with installation.workers():
        run = await waiting(installation)
        outcome = await told(run, installation.edit(installation.proposal("op-1"), "bob", title="Sales up 40 %"))
        status = await until_state(run, State.WAITING_APPROVAL)
    assert outcome.ruling == Ruling.EDIT_REFUSED
    assert "title" in outcome.detail
    assert installation.proposal("op-1").approval_version == 1
    assert status.refused == 1


@pytest.mark.guarantee("G02", "G16")
async def test_after_an_edit_that_counts_not_earlier_votes_are_void_and_the_editor_cannot_approve(
    installation: Installation, tmp_path: Path
) -> None:
    two = installation.with_policy(tmp_path, approvals=2)
    async with two.workers():
        run = await waiting(two)
        first = two.proposal("op-1")
        early = two.decision(first, "carl")
        assert (await told(run, early)).status == ApprovalStatus.PENDING
        edited = await told(run, two.edit(first, "bob", name="half-year.md"))
        await until_state(run, State.WAITING_APPROVAL)
        second = two.proposal("op-1")
        own = await told(run, two.decision(second, "bob"))
        again = await told(run, early)
        other = await told(run, two.decision(second, "carl"))
    assert edited.status == ApprovalStatus.EDITED
    assert (own.ruling, again.ruling) == (Ruling.AUTHOR_MAY_NOT_APPROVE, Ruling.REPLAY)
    assert (other.ruling, other.status) == (Ruling.ACCEPTED, ApprovalStatus.PENDING)
    assert two.published() == []


@pytest.mark.guarantee("G14")
async def test_an_edit_to_a_place_that_a_rule_grants_goes_there_and_nowhere_else(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    editing = {"fields": ["channel"], "raises_risk": [], "counts": "never"}
    installation = sqlite_installation.with_terms(tmp_path, editing=editing)
    async with installation.workers():
        run = await waiting(installation)
        await told(run, installation.edit(installation.proposal("op-1"), "bob", channel="internal"))
        result = await run.result()
    assert result.state == State.SUCCEEDED
    assert [path.name for path in installation.published("internal")] == ["op-1.md"]
    assert installation.published("public") == []


@pytest.mark.guarantee("G02", "G14")
async def test_where_a_change_of_the_side_effect_raises_the_risk_no_edit_leads_past_all_people(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    editing = {"fields": ["channel"], "raises_risk": ["side_effect"]}
    installation = sqlite_installation.with_terms(tmp_path, editing=editing)
    async with installation.workers():
        run = await waiting(installation)
        outcome = await told(run, installation.edit(installation.proposal("op-1"), "bob", channel="internal"))
    assert outcome.ruling == Ruling.EDIT_REFUSED
    assert "granted by rule, without people" in outcome.detail
    assert installation.published("internal") == []


@pytest.mark.guarantee("G15", "G47")
async def test_an_edit_whose_action_is_not_in_the_ledger_or_is_another_tools_changes_nothing(
    sqlite_installation: Installation,
) -> None:
    installation = sqlite_installation
    async with installation.workers():
        run = await waiting(installation)
        first = installation.proposal("op-1")
        unknown = await told(run, installation.decision(first, "bob", "edit", edited_action="sha256:" + "7" * 64))
        other = first.action.model_copy(update={"tool": "delete_everything"})
        stored = installation.store(other)
        foreign = await told(run, installation.decision(first, "bob", "edit", edited_action=stored))
        more = first.action.model_copy(update={"args": {**first.action.args, "force": True}})
        unheard = await told(run, installation.decision(first, "bob", "edit", edited_action=installation.store(more)))
        bare = await told(run, installation.decision(first, "bob", "edit"))
    assert {unknown.ruling, foreign.ruling, unheard.ruling, bare.ruling} == {Ruling.EDIT_REFUSED}
    assert "force" in unheard.detail
    assert installation.proposal("op-1").approval_version == 1


async def test_respond_to_an_outward_action_is_refused_with_the_explanation(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await waiting(installation)
        outcome = await told(run, installation.decision(installation.proposal("op-1"), "bob", "respond"))
    assert outcome.ruling == Ruling.RESPOND_IS_FOR_QUESTIONS
    assert "question" in outcome.sentence()


@pytest.mark.guarantee("G12")
async def test_a_policy_that_got_laxer_meanwhile_is_no_way_out_by_an_edit(sqlite_installation: Installation) -> None:
    """What the policy of the proposal wanted is wanted of the edited action too."""
    installation = sqlite_installation
    async with installation.workers():
        run = await waiting(installation)
        policy = installation.ledger.directory.policies("acme")["report"]
        rules = tuple(rule.model_copy(update={"need": None, "grant": "by_rule"}) for rule in policy.rules)
        laxer = policy.model_copy(update={"version": policy.version + 1, "rules": rules})
        installation.decree(PolicyChange(policy=laxer))
        await told(run, installation.edit(installation.proposal("op-1"), "bob", name="half-year.md"))
        result = await run.result()
    second = installation.proposal("op-1")
    assert [need.role for need in second.assessment.needs] == ["reviewer"]
    assert [vote.person for vote in installation.votes("op-1")] == ["bob"]
    assert result.state == State.SUCCEEDED
