"""Who may do what is changed by two persons through a run like any other, and by nothing else (G13)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from temporalio.client import WorkflowHandle

from countersign.domain.administration import DirectoryChange, KeyRevocation, PersonChange, PolicyChange
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.directory import Standing
from countersign.domain.errors import NotAuthorised
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.run import RunResult
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import eventually, until_state
from workflows.governed_action import GovernedAction

Run = WorkflowHandle[GovernedAction, RunResult]
DAN = DirectoryChange(persons=(PersonChange(person="dan", standing=Standing(roles=frozenset({"reviewer"}))),))


async def asked(installation: Installation, operation: str, change: DirectoryChange | PolicyChange) -> Run:
    run = await installation.start_unchecked(installation.register_change(operation, change))
    await until_state(run, State.WAITING_APPROVAL)
    return run


async def decide(installation: Installation, run: Run, person: str, decision: str = "approve") -> Outcome:
    proposal = installation.proposal(run.id.partition(":")[2])
    message = installation.decision(proposal, person, decision)  # type: ignore[arg-type]
    outcome: Outcome = await run.execute_update("decide", message, result_type=Outcome)
    return outcome


@pytest.mark.guarantee("G13", "G04")
async def test_a_person_is_added_by_two_administrators_and_the_audit_names_the_operation(
    installation: Installation,
) -> None:
    async with installation.workers():
        run = await asked(installation, "add-dan", DAN)
        own = await decide(installation, run, "ada")
        outsider = await decide(installation, run, "bob")
        first = await decide(installation, run, "ben")
        assert installation.ledger.directory.person("acme", "dan") is None
        second = await decide(installation, run, "cleo")
        result = await run.result()
    assert (own.ruling, outsider.ruling) == (Ruling.REQUESTER_MAY_NOT_DECIDE, Ruling.ROLE_MISSING)
    assert (first.status, second.status) == (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)
    assert result.state == State.SUCCEEDED
    dan = installation.ledger.directory.person("acme", "dan")
    assert dan is not None
    assert dan.roles == {"reviewer"}
    (changed,) = [
        record for record in installation.ledger.audit.records("acme")
        if record.type == "directory.person_changed" and record.detail["person"] == "dan"
    ]  # fmt: skip
    assert changed.detail["basis"] == "add-dan"


@pytest.mark.guarantee("G13")
async def test_once_the_set_up_is_closed_nothing_changes_the_directory_directly(installation: Installation) -> None:
    installation.register("op-1")
    with pytest.raises(NotAuthorised):
        installation.ledger.directory.set_up("acme", DAN, "operator", datetime.now(UTC))
    assert installation.ledger.directory.person("acme", "dan") is None


@pytest.mark.guarantee("G13", "G12")
async def test_a_policy_comes_into_force_for_the_next_operation_when_two_have_approved_it(
    sqlite_installation: Installation,
) -> None:
    installation = sqlite_installation
    installation.register("op-0")
    policy = installation.ledger.directory.policies("acme")["report"]
    rules = tuple(rule for rule in policy.rules if rule.id != "internal-by-rule")
    changed_to = {"version": policy.version + 1, "rules": rules, "escalations": {}}
    change = PolicyChange(policy=policy.model_copy(update=changed_to))
    async with installation.workers():
        run = await asked(installation, "no-rule", change)
        for person in ("ben", "cleo"):
            await decide(installation, run, person)
        changed = await run.result()
        refused = await (await installation.start("op-1", channel="internal")).result()
    assert changed.state == State.SUCCEEDED
    assert (refused.state, refused.reason) == (State.FAILED, "denied_by_policy")
    assert installation.published("internal") == []


@pytest.mark.guarantee("G13", "G14")
async def test_of_two_changes_of_one_entry_the_second_is_asked_anew_on_what_the_first_made(
    sqlite_installation: Installation,
) -> None:
    installation = sqlite_installation
    lead = DirectoryChange(
        persons=(PersonChange(person="dan", standing=Standing(roles=frozenset({"reviewer", "lead"}))),)
    )
    async with installation.workers():
        one, other = await asked(installation, "one", DAN), await asked(installation, "other", lead)
        for person in ("ben", "cleo"):
            await decide(installation, one, person)
        await one.result()
        for person in ("ben", "cleo"):
            await decide(installation, other, person)
        await eventually(lambda: installation.proposal("other").approval_version == 2)
        await until_state(other, State.WAITING_APPROVAL)
    dan = installation.ledger.directory.person("acme", "dan")
    assert dan is not None
    assert dan.roles == {"reviewer"}
    assert "evidence" in installation.proposal("other").asked_again


@pytest.mark.guarantee("G13")
async def test_a_change_that_would_lock_everyone_out_is_not_even_proposed(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    change = DirectoryChange(keys_revoked=(KeyRevocation(person="cleo", key_id="cleo-1"),))
    async with installation.workers("agent"):
        run = await installation.start_unchecked(installation.register_change("revoke", change))
        result = await run.result()
    assert (result.state, result.reason) == (State.FAILED, "input_refused")


@pytest.mark.guarantee("G02", "G13")
async def test_whoever_is_no_administrator_cannot_ask_for_a_change(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await installation.start_unchecked(installation.register_change("add-dan", DAN, requester="bob"))
        result = await run.result()
    assert (result.state, result.reason) == (State.FAILED, "not_authorised")
    assert installation.ledger.approvals.current("acme", "add-dan") is None
