"""A person takes control at any moment before the end: the agent does nothing any more, and they do it themselves."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.administration import DirectoryChange, PersonChange
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.directory import Standing
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import running_model_server
from tests.support.waiting import eventually, until_state
from tests.workflow.acting import (
    approval,
    command,
    done,
    holding_back,
    owned,
    proposed,
    records,
    rewritten,
    taken_over,
    until_idle,
    vote,
)
from tests.workflow.scripted_model import ScriptedModel, asking, draft

UNSUPPORTED = draft(body="Sales came to {{total}} in all, and 17 customers left.")


# While the agent works


@pytest.mark.guarantee("G30")
@pytest.mark.parametrize("call", [1, 2, 3])
async def test_while_the_model_drafts_no_further_call_begins_and_what_comes_late_is_discarded(
    sqlite_installation: Installation, call: int
) -> None:
    with running_model_server(ScriptedModel(held=[call])) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            run = await asked.start("op-1", channel="internal")
            await asyncio.to_thread(server.wait_for_calls, call)
            await taken_over(asked, run)
            server.release()
            await until_idle(run)
            status = await until_state(run, State.HUMAN_TAKEOVER)
    assert server.calls == call
    assert status.draft_version == 0
    assert asked.ledger.controls.standing("acme", "op-1").draft_version == 0
    assert records(asked, "draft.written") == []
    asked.ledger.audit.verify("acme")


@pytest.mark.guarantee("G30")
async def test_while_the_checks_run_they_count_for_nothing_and_no_grade_is_asked_for(
    sqlite_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        running_model_server(ScriptedModel()) as server,
        holding_back(monkeypatch, sqlite_installation.ledger.drafts, "save_checks") as checks,
    ):
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            run = await asked.start("op-1", channel="internal")
            await checks.begun()
            await taken_over(asked, run)
            checks.go_on()
            await until_idle(run)
            status = await until_state(run, State.HUMAN_TAKEOVER)
    assert status.draft_version == 1
    assert server.calls == 3
    assert records(asked, "draft.checked") == []


@pytest.mark.guarantee("G30", "G40")
async def test_while_the_grader_is_asked_its_answer_counts_for_nothing(sqlite_installation: Installation) -> None:
    with running_model_server(ScriptedModel(held=[4])) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            run = await asked.start("op-1", channel="internal")
            await asyncio.to_thread(server.wait_for_calls, 4)
            await taken_over(asked, run)
            server.release()
            await until_idle(run)
            await until_state(run, State.HUMAN_TAKEOVER)
    assert (server.calls, records(asked, "draft.graded")) == (4, [])
    assert asked.ledger.approvals.current("acme", "op-1") is None
    assert asked.published("internal") == []


async def test_before_any_worker_has_seen_the_run_the_agent_never_begins(sqlite_installation: Installation) -> None:
    with running_model_server(ScriptedModel()) as server:
        asked = asking(sqlite_installation, server)
        run = await asked.start("op-1", channel="internal")
        await run.signal("take_over", asked.command("op-1", "lea", "take_over"))
        async with asked.workers():
            await until_state(run, State.HUMAN_TAKEOVER)
            await until_idle(run)
    assert asked.ledger.controls.standing("acme", "op-1").draft_version == 0


# While people are asked


@pytest.mark.guarantee("G29")
async def test_with_one_vote_of_two_the_proposal_is_superseded_and_that_vote_is_void(
    installation: Installation, tmp_path: Path
) -> None:
    two = installation.with_policy(tmp_path, approvals=2)
    async with two.workers():
        run = await proposed(two)
        assert (await vote(two, run, "bob")).status == ApprovalStatus.PENDING
        before = approval(two)
        await taken_over(two, run)
        late = await vote(two, run, "carl", proposal=before.proposal)
        reject = await vote(two, run, "carl", "reject", proposal=before.proposal)
        await done(two, run, "lea", "propose", draft_version=1)
        await until_state(run, State.WAITING_APPROVAL)
        first = await vote(two, run, "carl")
        assert two.published() == []
        second = await vote(two, run, "bob")
        assert (await run.result()).state == State.SUCCEEDED
    assert two.ledger.approvals.get("acme", before.proposal.approval_id).status == ApprovalStatus.SUPERSEDED
    assert {late.ruling, reject.ruling}.isdisjoint({Ruling.ACCEPTED})
    assert (first.status, second.status) == (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)
    assert len(two.published()) == 1


async def test_escalated_since_the_checks_never_pass_it_is_taken_up_and_brought_to_its_end(
    sqlite_installation: Installation,
) -> None:
    with running_model_server(ScriptedModel(drafts=[UNSUPPORTED])) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            run = await asked.start("op-1", channel="internal")
            escalated = await until_state(run, State.ESCALATED)
            await taken_over(asked, run)
            version = escalated.draft_version
            mended = rewritten(asked, "op-1", version, body="Sales came to {{total}} in all, over all records.")
            await done(asked, run, "lea", "amend", draft_version=version, content=mended)
            await done(asked, run, "lea", "grade", draft_version=version + 1)
            await eventually(lambda: asked.ledger.drafts.passed("acme", "op-1", version + 1))
            await done(asked, run, "lea", "propose", draft_version=version + 1)
            result = await run.result()
    assert escalated.reason == "checks_failed"
    assert result.state == State.SUCCEEDED
    (answered,) = records(asked, "escalation.answered")
    assert answered["subject"] == "lea"
    assert len(asked.published("internal")) == 1


async def test_escalated_since_nobody_decided_what_was_asked_is_superseded(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    tier = {"after": "1s", "role": "lead", "decisions": ["approve", "reject"]}
    slow = sqlite_installation.with_policy(tmp_path, ladder={"tiers": [tier], "then": "expire"})
    async with slow.workers():
        run = await slow.start("op-1")
        await until_state(run, State.ESCALATED)
        await taken_over(slow, run)
        late = await vote(slow, run, "bob")
    assert approval(slow).status == ApprovalStatus.SUPERSEDED
    assert late.ruling != Ruling.ACCEPTED
    assert slow.published() == []


# Who may


@pytest.mark.guarantee("G28")
async def test_of_two_who_take_over_at_once_one_wins_and_the_other_learns_who(installation: Installation) -> None:
    async with installation.workers():
        run = await proposed(installation)
        messages = {one: installation.command("op-1", one, "take_over") for one in ("lea", "leo")}
        asked = [run.execute_update("take_over", message, result_type=Outcome) for message in messages.values()]
        outcomes = dict(zip(messages, await asyncio.gather(*asked), strict=True))
        status = await until_state(run, State.HUMAN_TAKEOVER)
    (winner,) = [one for one, outcome in outcomes.items() if outcome.ruling == Ruling.ACCEPTED]
    (loser,) = outcomes.keys() - {winner}
    assert outcomes[loser].ruling == Ruling.STALE_CONTROL
    assert f"control is with {winner} since" in outcomes[loser].detail
    assert (status.control, status.control_version) == (winner, 2)
    assert len(records(installation, "control.changed")) == 1


@pytest.mark.guarantee("G28")
async def test_a_second_taker_who_has_looked_learns_who_holds_it(sqlite_installation: Installation) -> None:
    async with sqlite_installation.workers():
        run = await owned(sqlite_installation)
        other = await command(sqlite_installation, run, "leo", "take_over")
        again = await command(sqlite_installation, run, "lea", "take_over")
    assert (other.ruling, again.ruling) == (Ruling.HELD, Ruling.HELD)
    assert "lea is in control since" in other.detail
    assert "you are in control since" in again.detail


@pytest.mark.guarantee("G06", "G09", "G19", "G21")
async def test_whoever_may_not_take_over_changes_nothing(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    installation.enrol("zoe", "lead")
    stranger = new_key_of_nobody(installation)
    async with installation.workers():
        run = await proposed(installation)
        demoted, inactive = (installation.command("op-1", one, "take_over") for one in ("leo", "zoe"))
        installation.demote("leo", "reviewer")
        gone = PersonChange(person="zoe", standing=Standing(roles=frozenset({"lead"}), active=False))
        installation.decree(DirectoryChange(persons=(gone,)))
        messages: dict[str, Any] = {
            "without the role": installation.command("op-1", "bob", "take_over"),
            "the requester": installation.command("op-1", "rita", "take_over"),
            "demoted since": demoted,
            "inactive": inactive,
            "of another tenant": installation.command("op-1", "lea", "take_over", tenant="globex"),
            "of nobody that the tenant knows": installation.command("op-1", stranger, "take_over"),
            "by name alone": {"command": "take_over", "person": "lea"},
        }
        rulings = {
            who: (await run.execute_update("take_over", message, result_type=Outcome)).ruling
            for who, message in messages.items()
        }
        status = await until_state(run, State.WAITING_APPROVAL)
    role_missing = ["without the role", "the requester", "demoted since"]
    assert [rulings[who] for who in role_missing] == [Ruling.ROLE_MISSING] * 3
    assert rulings["inactive"] in {Ruling.ROLE_MISSING, Ruling.BAD_STATEMENT}
    assert rulings["of another tenant"] in {Ruling.NOT_THIS_APPROVAL, Ruling.BAD_STATEMENT}
    assert rulings["of nobody that the tenant knows"] == Ruling.BAD_STATEMENT
    assert rulings["by name alone"] == Ruling.MALFORMED
    assert (status.control, status.control_version, status.refused) == ("agent", 1, len(messages))
    assert approval(installation).status == ApprovalStatus.PENDING


def new_key_of_nobody(installation: Installation) -> str:
    """A person who signs well, and whom the tenant's directory does not have."""
    installation.keys["eve"] = Ed25519PrivateKey.generate()
    return "eve"
