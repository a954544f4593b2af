"""Breaking the glass: off by default, two persons, never the requester, and a record of its own (G11)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.signing.statements import sign_decision
from tests.gateway.attempt import Attempt
from tests.gateway.rules import breakable, policy
from tests.gateway.tampering import merged_json
from tests.gateway.world import TENANT, World, unsigned_text

EXECUTED = ExecutionStatus.EXECUTED
REASON = sha256_hex(b"the site is down and nobody else is awake")


def broken(world: World, *persons: str) -> Approval:
    """A proposal for which these persons broke the glass."""
    approval = world.propose(by=breakable())
    for person in persons:
        world.decide(approval, person, "break_glass", comment_hash=REASON)
    return world.approval(approval)


@pytest.mark.guarantee("G11")
def test_two_persons_are_enough_and_it_is_on_record_before_it_happens(world: World, attempt: Attempt) -> None:
    approval = broken(world, "cora", "carl")
    assert approval.status == ApprovalStatus.GRANTED
    assert attempt.execute(approval).status == EXECUTED
    (record,) = attempt.records("break_glass.executing")
    assert (record.operation, record.detail["break_glass"]) == ("q2-report", True)
    assert record.detail["key"] == approval.proposal.action.idempotency_key()
    (executed,) = attempt.records("effect.executed")
    assert record.sequence < executed.sequence


@pytest.mark.guarantee("G11")
def test_what_the_rules_carry_is_no_emergency(world: World, attempt: Attempt) -> None:
    approval = world.granted(by=breakable(), by_persons=("bob", "ben"))
    assert attempt.execute(approval).status == EXECUTED
    assert attempt.records("break_glass.executing") == []


@pytest.mark.guarantee("G11")
def test_an_approval_before_does_not_stand_in_the_way(world: World, attempt: Attempt) -> None:
    approval = world.granted(by=breakable(), by_persons=("bob",))
    for person in ("cora", "carl"):
        world.decide(approval, person, "break_glass", comment_hash=REASON)
    assert attempt.execute(approval).status == EXECUTED
    assert len(attempt.records("break_glass.executing")) == 1


@pytest.mark.guarantee("G11")
def test_one_person_is_not_enough(world: World, attempt: Attempt) -> None:
    approval = broken(world, "cora")
    assert approval.status == ApprovalStatus.PENDING
    world.tamper("approvals", "status", lambda _: "granted")
    attempt.is_forged(approval, "quorum")


@pytest.mark.guarantee("G11")
def test_one_who_breaks_it_and_one_who_approves_are_not_two(world: World, attempt: Attempt) -> None:
    approval = broken(world, "cora")
    world.decide(approval, "bob")
    world.tamper("approvals", "status", lambda _: "granted")
    attempt.is_forged(approval, "quorum")


@pytest.mark.guarantee("G11")
@pytest.mark.guarantee("G02")
def test_the_requester_is_neither_of_them(world: World, attempt: Attempt) -> None:
    """Rita is a chief, too; the ledger refuses her, and written there all the same she is refused here."""
    approval = broken(world, "cora", "rita")
    assert approval.status == ApprovalStatus.PENDING
    forge_second(world, approval, "rita")
    attempt.is_forged(approval, "own_vote")


@pytest.mark.guarantee("G11")
@pytest.mark.guarantee("G22")
def test_it_is_off_where_the_policy_has_none(world: World, attempt: Attempt) -> None:
    approval = world.granted(by=policy(2, approvals=2), by_persons=("bob", "ben"))
    for person in ("bob", "ben"):
        statement = world.statement(approval, person, "break_glass", comment_hash=REASON)
        told = {
            "decision": "break_glass", "comment_hash": REASON, "statement_id": statement.id,
            "statement": sign_decision(statement, world.keys[person]),
        }  # fmt: skip
        world.tamper("votes", "vote", merged_json(told), where=f"person = '{person}'")
    attempt.is_forged(approval, "quorum")


@pytest.mark.guarantee("G11")
@pytest.mark.guarantee("G22")
def test_it_needs_a_reason(world: World, attempt: Attempt) -> None:
    approval = broken(world, "cora", "carl")
    statement = world.statement(approval, "carl", "break_glass")
    told = {"comment_hash": "", "statement": sign_decision(statement, world.keys["carl"])}
    world.tamper("votes", "vote", merged_json(told), where="person = 'carl'")
    attempt.is_forged(approval, "vote_forged")


@pytest.mark.guarantee("G04")
@pytest.mark.guarantee("G11")
def test_nobody_who_did_not_sign_is_one_of_the_two(world: World, attempt: Attempt) -> None:
    approval = broken(world, "cora", "carl")
    text = unsigned_text(world.statement(approval, "carl", "break_glass", comment_hash=REASON))
    told = {"assurance": "namespace-only", "statement": text}
    world.tamper("votes", "vote", merged_json(told), where="person = 'carl'")
    attempt.is_forged(approval, "quorum", unsigned=True)


@pytest.mark.guarantee("G06")
@pytest.mark.guarantee("G11")
@pytest.mark.parametrize(
    "change",
    [
        lambda world: world.move("carl", roles=frozenset({"reviewer"})),
        lambda world: world.move("carl", active=False),
        lambda world: world.revoke_key("carl"),
    ],
)
def test_one_of_the_two_who_counts_no_longer(world: World, attempt: Attempt, change: Callable[[World], None]) -> None:
    approval = broken(world, "cora", "carl")
    change(world)
    assert str(attempt.is_voided(approval, "roles").detail["found"]).startswith("carl: ")


@pytest.mark.guarantee("G11")
@pytest.mark.guarantee("G12")
def test_a_policy_that_was_changed_meanwhile_takes_it_away(world: World, attempt: Attempt) -> None:
    approval = broken(world, "cora", "carl")
    world.adopt(policy(3, approvals=2))
    attempt.is_voided(approval, "policy")


class TestPutInLater:
    """G12: a policy that gains break-glass after a proposal gives no way around what that proposal wanted."""

    @pytest.fixture
    def void(self, world: World, attempt: Attempt) -> Approval:
        """A void grant by two, under a policy without it that one with it has replaced."""
        approval = world.granted(by=policy(2, approvals=2), by_persons=("bob", "ben"))
        world.adopt(breakable(3))
        attempt.is_voided(approval, "policy")
        return world.approval(approval)

    def by_chiefs(self, world: World, approval: Approval) -> Approval:
        """Two chiefs break the glass, or try to."""
        for person in ("cora", "carl"):
            world.decide(approval, person, "break_glass", comment_hash=REASON)
        return world.approval(approval)

    @pytest.mark.guarantee("G11")
    @pytest.mark.guarantee("G12")
    def test_two_chiefs_cannot_break_the_glass(self, world: World, attempt: Attempt, void: Approval) -> None:
        again = self.by_chiefs(world, world.propose_again(void))
        assert (again.status, again.votes) == (ApprovalStatus.PENDING, ())
        world.tamper("approvals", "status", lambda _: "granted", "approval_version = 2")
        result = attempt.execute(again)
        assert (result.status, result.reason.partition(":")[0]) == (None, "quorum")
        attempt.nothing_happened()

    @pytest.mark.guarantee("G11")
    @pytest.mark.guarantee("G22")
    def test_a_proposal_that_takes_it_all_the_same(self, world: World, attempt: Attempt, void: Approval) -> None:
        """The ledger grants it; the gateway knows the version before and raises the alarm."""
        again = self.by_chiefs(world, world.propose_again(void, terms=breakable(3).terms))
        assert again.status == ApprovalStatus.GRANTED
        result = attempt.execute(again)
        assert (result.status, result.voided, result.reason.partition(":")[0]) == (None, False, "terms")
        assert [record.detail["reason"] for record in attempt.records("alarm.raised")] == [result.reason]
        attempt.nothing_happened()

    @pytest.mark.guarantee("G12")
    def test_the_people_whom_it_wanted_still_carry_it(self, world: World, attempt: Attempt, void: Approval) -> None:
        again = world.propose_again(void)
        world.decide(again, "bob")
        world.decide(again, "ben")
        assert attempt.execute(again).status == EXECUTED

    @pytest.mark.guarantee("G11")
    def test_what_was_there_from_the_first_stays(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(by=breakable(2), by_persons=("bob", "ben"))
        world.adopt(breakable(3))
        attempt.is_voided(approval, "policy")
        again = self.by_chiefs(world, world.propose_again(world.approval(approval)))
        assert attempt.execute(again).status == EXECUTED


@pytest.mark.guarantee("G11")
@pytest.mark.guarantee("G25")
def test_its_window_closes_too(world: World, attempt: Attempt) -> None:
    approval = broken(world, "cora", "carl")
    later = approval.votes[-1].decided_at
    world.now = later.replace(hour=later.hour + 1)
    attempt.is_voided(approval, "window_closed")


def forge_second(world: World, approval: Approval, person: str) -> None:
    """Write a second break-glass vote with a good signature into the ledger, and call it granted."""
    statement = world.statement(approval, person, "break_glass", comment_hash=REASON)
    told = {
        "person": person, "statement_id": statement.id, "statement": sign_decision(statement, world.keys[person]),
    }  # fmt: skip
    world.insert_vote(TENANT, approval.proposal.approval_id, approval.votes[0].model_copy(update=told))
    world.tamper("approvals", "status", lambda _: "granted")
