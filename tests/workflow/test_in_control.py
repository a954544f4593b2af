"""What a person in control does: their own version goes the same way as the agent's, and control changes hands."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import Step
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import running_model_server
from tests.support.waiting import eventually, until_messages, until_state
from tests.workflow.acting import (
    approval,
    approved_by,
    command,
    done,
    owned,
    proposed,
    records,
    rewritten,
    stored,
    taken_over,
    until_idle,
    vote,
    work_on,
)
from tests.workflow.scripted_model import ScriptedModel, asking, assignment_in, draft


async def test_amended_graded_and_proposed_it_goes_the_same_way_to_one_effect(installation: Installation) -> None:
    """The new version lies beside the agent's, under its author's name, who may not approve it."""
    installation.enrol("zoe", "lead", "reviewer")
    async with installation.workers():
        run = await proposed(installation)
        await taken_over(installation, run, "zoe")
        content = rewritten(installation, "op-1", 1, title="Sales in both regions")
        await done(installation, run, "zoe", "amend", draft_version=1, content=content)
        await eventually(lambda: [one["version"] for one in records(installation, "draft.checked")] == [1, 2])
        await done(installation, run, "zoe", "grade", draft_version=2)
        await eventually(lambda: installation.ledger.drafts.passed("acme", "op-1", 2))
        await done(installation, run, "zoe", "propose", draft_version=2)
        await until_state(run, State.WAITING_APPROVAL)
        own = await vote(installation, run, "zoe")
        assert installation.published() == []
        await approved_by(installation, run)
        result = await run.result()
    assert result.state == State.SUCCEEDED
    drafts = installation.ledger.drafts
    assert drafts.get("acme", "op-1", 1)["title"] != drafts.get("acme", "op-1", 2)["title"] == "Sales in both regions"
    assert [one["subject"] for one in records(installation, "draft.written")] == ["agent", "zoe"]
    assert own.ruling == Ruling.AUTHOR_MAY_NOT_APPROVE
    proposal = installation.proposal("op-1")
    assert (proposal.proposed_by, "zoe" in proposal.authors, proposal.control_version) == ("zoe", True, 2)
    (report,) = installation.published()
    assert "Sales in both regions" in report.read_text()


async def test_proposed_with_other_arguments_exactly_those_are_executed(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers():
        run = await owned(installation)
        args = {**installation.proposal("op-1").action.args, "name": "final.md"}
        given = {name: args[name] for name in ("channel", "name", "title")}
        await done(installation, run, "lea", "propose", draft_version=1, content=stored(installation, given))
        await approved_by(installation, run)
        assert (await run.result()).state == State.SUCCEEDED
    (report,) = installation.published()
    assert report.name == "final.md"


@pytest.mark.guarantee("G40")
async def test_a_version_that_did_not_pass_is_not_proposed_by_a_person_either(
    sqlite_installation: Installation,
) -> None:
    """Ungraded first, then with a figure that no query gives; each refusal is on record, and the owner goes on."""
    installation = sqlite_installation
    async with installation.workers():
        run = await owned(installation)
        good = rewritten(installation, "op-1", 1, title="Sales in both regions")
        await done(installation, run, "lea", "amend", draft_version=1, content=good)
        await done(installation, run, "lea", "propose", draft_version=2)
        await eventually(lambda: len(records(installation, "step.failed")) == 1)
        bad = rewritten(installation, "op-1", 1, body="Sales came to 900 in all.")
        await done(installation, run, "lea", "amend", draft_version=2, content=bad)
        await done(installation, run, "lea", "grade", draft_version=3)
        await done(installation, run, "lea", "propose", draft_version=3)
        await eventually(lambda: len(records(installation, "step.failed")) == 2)
        await until_idle(run)
        status = await until_state(run, State.HUMAN_TAKEOVER)
    assert (status.control, status.draft_version) == ("lea", 3)
    assert [one["version"] for one in records(installation, "draft.graded")] == [1]
    assert approval(installation).status == ApprovalStatus.SUPERSEDED
    assert approval(installation).proposal.approval_version == 1
    assert installation.published() == []


async def test_the_agent_goes_on_from_exactly_the_version_that_was_released(installation: Installation) -> None:
    async with installation.workers():
        run = await owned(installation)
        content = rewritten(installation, "op-1", 1, title="Sales in both regions")
        await done(installation, run, "lea", "amend", draft_version=1, content=content)
        wrong = [await command(installation, run, "lea", "release", draft_version=version) for version in (0, 1, 3)]
        await done(installation, run, "lea", "release", draft_version=2)
        status = await until_state(run, State.WAITING_APPROVAL)
        steps = await run.query("timeline", result_type=list[Step])
    assert [outcome.ruling for outcome in wrong] == [Ruling.NOT_THIS_VERSION] * 3
    assert "the latest version is v2, you named v1" in wrong[1].detail
    assert (status.control, status.control_version, status.draft_version) == ("agent", 3, 2)
    proposal = installation.proposal("op-1")
    assert (proposal.proposed_by, "lea" in proposal.authors) == ("agent", True)
    assert "Sales in both regions" in str(proposal.action.args)
    assert [step.state for step in steps][-3:] == [State.HUMAN_TAKEOVER, State.RUNNING, State.WAITING_APPROVAL]


async def test_released_with_a_fault_in_it_the_agent_mends_that_version(sqlite_installation: Installation) -> None:
    with running_model_server(
        ScriptedModel(drafts=[draft(), draft(body="In all, sales came to {{total}}.")])
    ) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            run = await owned(asked)
            before = server.calls
            bad = rewritten(asked, "op-1", 1, limitations=("Nobody asked the 17 customers.",))
            await done(asked, run, "lea", "amend", draft_version=1, content=bad)
            await done(asked, run, "lea", "release", draft_version=2)
            status = await until_state(run, State.WAITING_APPROVAL)
    assert status.draft_version == 3
    assignment = assignment_in(server.requests[before])
    assert assignment["earlier_draft"]["limitations"] == ["Nobody asked the 17 customers."]
    assert any("17" in line for line in assignment["feedback"])


# Hands change


@pytest.mark.guarantee("G29")
async def test_handed_over_whatever_the_one_before_still_does_is_refused_with_who_and_why(
    installation: Installation,
) -> None:
    async with installation.workers():
        run = await owned(installation)
        old = [(kind, said) for kind, said in work_on(installation, "op-1") if kind != "hand_over"]
        signed = {kind: installation.command("op-1", "lea", kind, **said) for kind, said in old}
        await done(installation, run, "lea", "hand_over", to="leo")
        early = [
            await run.execute_update(kind, message, result_type=Outcome) for kind, message in signed.items()
        ]  # fmt: skip
        informed = [await command(installation, run, "lea", kind, **said) for kind, said in old]
        status = await until_state(run, State.HUMAN_TAKEOVER)
        await done(installation, run, "leo", "propose", draft_version=1)
        await approved_by(installation, run)
        assert (await run.result()).state == State.SUCCEEDED
    assert {outcome.ruling for outcome in early} == {Ruling.STALE_CONTROL}
    assert all("control is with leo since" in outcome.detail for outcome in early)
    assert {outcome.ruling for outcome in informed} == {Ruling.NOT_IN_CONTROL}
    assert all("leo is in control, version 3" in outcome.detail for outcome in informed)
    assert (status.control, status.control_version) == ("leo", 3)
    assert installation.ledger.controls.standing("acme", "op-1").draft_version == 1
    assert installation.proposal("op-1").proposed_by == "leo"


async def test_only_who_could_have_taken_it_over_can_be_handed_control(sqlite_installation: Installation) -> None:
    async with sqlite_installation.workers():
        run = await owned(sqlite_installation)
        outcomes = [
            await command(sqlite_installation, run, "lea", "hand_over", **to)
            for to in ({"to": "bob"}, {"to": "lea"}, {"to": "nobody-here"}, {})
        ]
        status = await until_state(run, State.HUMAN_TAKEOVER)
    assert {outcome.ruling for outcome in outcomes} == {Ruling.RECEIVER_REFUSED}
    assert (status.control, status.control_version) == ("lea", 2)


@pytest.mark.guarantee("G29", "G16")
async def test_a_decision_or_an_edit_of_what_was_proposed_before_does_nothing(installation: Installation) -> None:
    async with installation.workers():
        run = await proposed(installation)
        before = installation.proposal("op-1")
        late = {"approve": installation.decision(before, "bob"), "edit": installation.edit(before, "carl", name="x.md")}
        await taken_over(installation, run)
        await done(installation, run, "lea", "release", draft_version=1)
        await until_state(run, State.WAITING_APPROVAL)
        outcomes = [
            await run.execute_update("decide", message, result_type=Outcome) for message in late.values()
        ]  # fmt: skip
        status = await until_state(run, State.WAITING_APPROVAL)
    assert Ruling.ACCEPTED not in {outcome.ruling for outcome in outcomes}
    assert status.control_version == 3
    assert (approval(installation).status, approval(installation).votes) == (ApprovalStatus.PENDING, ())
    assert installation.published() == []


async def test_what_waits_is_taken_back_where_its_author_amends_it(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers():
        run = await owned(installation)
        await done(installation, run, "lea", "propose", draft_version=1)
        await until_state(run, State.WAITING_APPROVAL)
        pending = installation.proposal("op-1")
        content = rewritten(installation, "op-1", 1, title="Sales in both regions")
        await done(installation, run, "lea", "amend", draft_version=1, content=content)
        status = await until_state(run, State.HUMAN_TAKEOVER)
        late = await vote(installation, run, "bob", proposal=pending)
    assert status.reason == "taken_back"
    assert approval(installation).status == ApprovalStatus.SUPERSEDED
    assert late.ruling != Ruling.ACCEPTED
    assert installation.published() == []


async def test_what_was_granted_is_taken_back_where_its_author_amends_it_before_it_is_sent(
    installation: Installation,
) -> None:
    async with installation.workers("agent"):
        run = await owned(installation)
        await done(installation, run, "lea", "propose", draft_version=1)
        await approved_by(installation, run)
        await until_state(run, State.EXECUTING)
        content = rewritten(installation, "op-1", 1, title="Sales in both regions")
        await done(installation, run, "lea", "amend", draft_version=1, content=content)
        async with installation.workers("gateway"):
            status = await until_state(run, State.HUMAN_TAKEOVER)
            await until_idle(run)
    assert status.reason == "taken_back"
    assert installation.published() == []
    assert [one["version"] for one in records(installation, "draft.checked")] == [1, 2]


async def test_by_signal_it_is_the_same_and_a_replayed_one_takes_nothing_again(
    sqlite_installation: Installation,
) -> None:
    installation = sqlite_installation
    async with installation.workers():
        run = await proposed(installation)
        take_over = installation.command("op-1", "lea", "take_over")
        await run.signal("take_over", take_over)
        await until_state(run, State.HUMAN_TAKEOVER)
        await run.signal("release", installation.command("op-1", "lea", "release", draft_version=1))
        await until_state(run, State.WAITING_APPROVAL)
        await run.signal("take_over", take_over)
        status = await until_messages(run, 3)
    assert (status.state, status.control, status.control_version) == (State.WAITING_APPROVAL, "agent", 3)
    assert status.refused == 0
    assert [one["ruling"] for one in records(installation, "command.repeated")] == ["replay"]
    assert records(installation, "command.refused") == []
    since = [kept.since for kept in installation.ledger.controls.history("acme", "op-1")]
    assert since == sorted(since)
    assert since[-1] <= datetime.now(UTC)
