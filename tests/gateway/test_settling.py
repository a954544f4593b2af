"""Unknown outcomes that people settle: each by their own signed word with evidence, and never against the outside's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.command import Command
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.execution import EffectResult, ExecutionStatus
from countersign.domain.money import amount
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.settlement import Settlement, Settling
from countersign.ports import Amendment, ReceivedCommand
from countersign.signing.statements import sign_command
from tests.gateway.asking import code
from tests.gateway.attempt import Attempt
from tests.gateway.rules import policy
from tests.gateway.tampering import changed_json
from tests.gateway.world import INSTALLATION, TENANT, World

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN
DOWN = ["lookup_unavailable"] * 9
EVIDENCE = sha256_hex(b"seen in their console")


def unknown(world: World, attempt: Attempt, fault: str = "close_before", **changes: Any) -> Approval:
    """A grant that was sent, nobody knows with what outcome, and the outside cannot be asked; chiefs may settle it."""
    approval = world.granted(by=policy(2, settling=Settling(role="chief", two_over=(amount("50.00 EUR"),))), **changes)
    attempt.publisher.fail_next(fault, *DOWN)
    assert attempt.execute(approval).status == UNKNOWN
    return approval


def of_two(world: World, attempt: Attempt) -> Approval:
    """The same of an amount for which two persons are needed; such an action is only looked up here."""
    rules = policy(2, settling=Settling(role="chief", two_over=(amount("50.00 EUR"),)))
    approval = world.granted(by=rules, amount=amount("60.00 EUR"))
    key = approval.proposal.action.idempotency_key()
    claimed = world.ledger.executions.claim(approval, key, world.now, world.now + timedelta(seconds=30))
    world.ledger.executions.unknown(claimed, "no_answer: the answer was lost", world.now)
    attempt.publisher.fail_next(*DOWN)
    return approval


def signed(world: World, approval: Approval, person: str, finding: str, reference: str = "", **changes: Any) -> Command:
    """What a person would sign about the approval's effect."""
    fields: dict[str, Any] = {
        "installation": INSTALLATION, "person": person, "key_id": f"{person}-1", "tenant": TENANT,
        "operation": approval.proposal.operation, "command": "settle", "control_version": 1,
        "key": approval.proposal.action.idempotency_key(), "finding": finding, "reference": reference,
        "comment_hash": EVIDENCE, "issued_at": world.now, "expires_at": world.now + timedelta(hours=1),
        "id": f"settle-{person}-{world.now:%d%H%M%S}-{finding}{reference}",
    }  # fmt: skip
    return Command(**{**fields, **changes})


def says(world: World, approval: Approval, person: str, *what: str, **changes: Any) -> Outcome:
    """Have a person's word ruled on and kept by the ledger."""
    command = signed(world, approval, person, *what, **changes)
    token = sign_command(command, world.keys[person])
    received = ReceivedCommand(message_id=command.id, transport="signal", command=command, token=token, at=world.now)
    signer = world.ledger.directory.persons(TENANT)[person]
    return world.ledger.controls.command(received, signer, Amendment())


def found(world: World, approval: Approval, person: str, *what: str) -> None:
    """The same, where it is to be accepted."""
    outcome = says(world, approval, person, *what)
    assert outcome.ruling == Ruling.ACCEPTED, outcome.sentence()


def inserted(world: World, approval: Approval, command: Command, signer: str) -> None:
    """Put a statement into the ledger behind its back, as whoever controls the database could."""
    settlement = Settlement(
        person=command.person, key=approval.proposal.action.idempotency_key(), finding="executed",
        reference=command.reference, at=world.now,
    )  # fmt: skip
    token = sign_command(command, world.keys[signer])
    row = (TENANT, settlement.key, 9, command.person, token, settlement.model_dump_json(), 0)
    with closing(sqlite3.connect(world.folder / "ledger.sqlite")) as connection, connection:
        columns = "tenant, key, number, person, statement, settlement, spent"
        connection.execute(f"INSERT INTO settlements ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def reconciled(world: World, attempt: Attempt, approval: Approval) -> EffectResult:
    return world.gateway(attempt.press, attempt.internal).reconcile(TENANT, approval.proposal.approval_id)


def is_still_unknown(world: World, attempt: Attempt, approval: Approval) -> None:
    assert reconciled(world, attempt, approval).status == UNKNOWN
    assert attempt.records("effect.settled") == []


@pytest.mark.guarantee("G36")
class TestSettled:
    def test_as_executed_it_is_recorded_by_their_word_and_never_sent_again(
        self, world: World, attempt: Attempt
    ) -> None:
        approval = unknown(world, attempt)
        found(world, approval, "cora", "executed", "report-77")
        result = reconciled(world, attempt, approval)
        assert result.status == EXECUTED
        assert result.receipt is not None
        assert (result.receipt.reference, result.receipt.channel) == ("report-77", "press")
        assert result.receipt.detail.startswith("settled by cora")
        (record,) = attempt.records("effect.settled")
        assert (record.detail["finding"], record.detail["persons"]) == ("executed", ["cora"])
        assert world.approval(approval).status == ApprovalStatus.CONSUMED
        assert attempt.execute(approval) == result
        assert len(attempt.publisher.calls("POST")) == 1

    def test_as_not_executed_it_is_sent_again_under_the_same_key(self, world: World, attempt: Attempt) -> None:
        approval = unknown(world, attempt)
        found(world, approval, "cora", "not_executed")
        result = reconciled(world, attempt, approval)
        assert (result.status, code(result)) == (NOT_SENT, "settled")
        assert len(attempt.publisher.calls("POST")) == 1
        assert attempt.execute(approval).status == EXECUTED
        assert set(attempt.publisher.calls("POST")) == {approval.proposal.action.idempotency_key()}
        assert len(attempt.publisher.effects()) == 1

    def test_what_was_said_of_one_sending_says_nothing_of_the_next(self, world: World, attempt: Attempt) -> None:
        approval = unknown(world, attempt)
        found(world, approval, "cora", "not_executed")
        assert reconciled(world, attempt, approval).status == NOT_SENT
        attempt.publisher.fail_next("close_after")
        assert attempt.execute(approval).status == UNKNOWN
        assert reconciled(world, attempt, approval).status == UNKNOWN
        assert len(attempt.records("effect.settled")) == 1
        assert len(attempt.publisher.effects()) == 1

    def test_the_step_that_executes_hears_them_too(self, world: World, attempt: Attempt) -> None:
        approval = unknown(world, attempt)
        found(world, approval, "cora", "executed", "report-77")
        assert attempt.execute(approval).status == EXECUTED
        assert len(attempt.publisher.calls("POST")) == 1

    def test_a_receipt_that_is_found_outweighs_their_word(self, world: World, attempt: Attempt) -> None:
        approval = unknown(world, attempt, "close_after")
        found(world, approval, "cora", "not_executed")
        attempt.publisher.take_faults()
        result = reconciled(world, attempt, approval)
        assert result.status == EXECUTED
        assert result.receipt is not None
        assert result.receipt.reference.startswith("https://")
        assert attempt.records("effect.settled") == []

    def test_what_people_found_executed_is_not_sent_again_where_the_outside_no_longer_knows_it(
        self, world: World, attempt: Attempt
    ) -> None:
        approval = unknown(world, attempt, "close_after")
        attempt.publisher.forget()
        attempt.publisher.take_faults()
        found(world, approval, "cora", "executed", "report-77")
        assert reconciled(world, attempt, approval).status == EXECUTED
        assert len(attempt.publisher.calls("POST")) == len(attempt.publisher.effects()) == 1

    def test_where_the_outside_holds_another_document_under_the_key_it_is_not_sent_there_again(
        self, world: World, attempt: Attempt
    ) -> None:
        approval = unknown(world, attempt)
        key = approval.proposal.action.idempotency_key()
        attempt.publisher.begin(key, b"somebody else's")
        attempt.publisher.publish(key, b"somebody else's")
        attempt.publisher.take_faults()
        assert code(reconciled(world, attempt, approval)) == "outside_conflict"
        found(world, approval, "cora", "not_executed")
        assert code(reconciled(world, attempt, approval)) == "outside_conflict", "one person beats what lies outside"
        found(world, approval, "carl", "not_executed")
        result = reconciled(world, attempt, approval)
        assert (result.status, result.voided, code(result)) == (None, True, "outside_refused")
        assert world.approval(approval).status == ApprovalStatus.VOIDED
        assert len(attempt.publisher.calls("POST")) == 1

    def test_nothing_of_it_counts_once_it_is_known(self, world: World, attempt: Attempt) -> None:
        approval = unknown(world, attempt, "close_after")
        attempt.publisher.take_faults()
        assert reconciled(world, attempt, approval).status == EXECUTED
        assert says(world, approval, "cora", "not_executed").ruling == Ruling.NOTHING_UNKNOWN

    def test_while_the_gateway_is_at_it_nobody_settles_it(self, world: World, attempt: Attempt) -> None:
        approval = unknown(world, attempt)
        key = approval.proposal.action.idempotency_key()
        world.ledger.executions.claim(approval, key, world.now, world.now + timedelta(seconds=30))
        assert says(world, approval, "cora", "executed", "x").ruling == Ruling.BEING_LOOKED_UP
        world.now += timedelta(seconds=30)
        found(world, approval, "cora", "executed", "report-77")
        assert reconciled(world, attempt, approval).status == EXECUTED


@pytest.mark.guarantee("G04", "G36")
class TestTwoPersons:
    def test_two_who_say_the_same_settle_it(self, world: World, attempt: Attempt) -> None:
        approval = of_two(world, attempt)
        found(world, approval, "cora", "executed", "report-77")
        is_still_unknown(world, attempt, approval)
        found(world, approval, "carl", "executed", "report-77")
        assert reconciled(world, attempt, approval).status == EXECUTED
        (record,) = attempt.records("effect.settled")
        assert record.detail["persons"] == ["cora", "carl"]

    @pytest.mark.guarantee("G03")
    def test_one_who_says_it_twice_is_one(self, world: World, attempt: Attempt) -> None:
        approval = of_two(world, attempt)
        for minutes in (0, 1):
            world.now += timedelta(minutes=minutes)
            found(world, approval, "cora", "executed", "report-77")
        is_still_unknown(world, attempt, approval)

    @pytest.mark.parametrize("other", [("not_executed",), ("executed", "report-78")])
    def test_two_who_contradict_each_other_settle_nothing_until_one_changes_their_word(
        self, world: World, attempt: Attempt, other: tuple[str, ...]
    ) -> None:
        approval = of_two(world, attempt)
        found(world, approval, "cora", "executed", "report-77")
        found(world, approval, "carl", *other)
        is_still_unknown(world, attempt, approval)
        world.now += timedelta(minutes=1)
        found(world, approval, "carl", "executed", "report-77")
        assert reconciled(world, attempt, approval).status == EXECUTED

    def test_where_one_suffices_two_who_contradict_each_other_settle_nothing(
        self, world: World, attempt: Attempt
    ) -> None:
        approval = unknown(world, attempt)
        found(world, approval, "cora", "executed", "report-77")
        found(world, approval, "carl", "not_executed")
        is_still_unknown(world, attempt, approval)


LOST: list[Callable[[World], None]] = [
    lambda world: world.revoke_key("cora"),
    lambda world: world.move("cora", roles=frozenset({"clerk"})),
    lambda world: world.move("cora", active=False),
]


@pytest.mark.guarantee("G06", "G36")
@pytest.mark.parametrize("lose", LOST, ids=["the key", "the role", "their place"])
def test_whoever_may_no_longer_say_so_counts_no_longer(
    world: World, attempt: Attempt, lose: Callable[[World], None]
) -> None:
    approval = unknown(world, attempt)
    found(world, approval, "cora", "executed", "report-77")
    lose(world)
    is_still_unknown(world, attempt, approval)
    assert attempt.records("alarm.raised") == []


@pytest.mark.guarantee("G36")
def test_a_policy_that_names_nobody_lets_nobody_settle_it(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    attempt.publisher.fail_next("close_before", *DOWN)
    attempt.execute(approval)
    world.adopt(policy(2, settling=Settling(role="chief")))
    assert says(world, approval, "cora", "executed", "report-77").ruling == Ruling.ROLE_MISSING
    inserted(world, approval, signed(world, approval, "cora", "executed", "report-77"), "cora")
    is_still_unknown(world, attempt, approval)


FORGED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "the finding": ("settlement", changed_json("finding", to="not_executed")),
    "the reference": ("settlement", changed_json("reference", to="report-78")),
    "the person": ("settlement", changed_json("person", to="carl")),
    "the time": ("settlement", changed_json("at", to="2026-11-30T08:00:00Z")),
    "the statement": ("statement", lambda _: "no.jws.here"),
}


@pytest.mark.guarantee("G22", "G36")
@pytest.mark.parametrize("what", FORGED)
def test_what_was_not_signed_so_settles_nothing_and_raises_the_alarm(world: World, attempt: Attempt, what: str) -> None:
    approval = unknown(world, attempt)
    found(world, approval, "cora", "executed", "report-77")
    world.tamper("settlements", *FORGED[what])
    for ask in (attempt.execute, lambda one: reconciled(world, attempt, one)):
        result = ask(approval)
        assert (result.status, code(result)) == (UNKNOWN, "settlement_forged")
    assert attempt.records("alarm.raised")
    assert attempt.records("effect.settled") == []
    assert len(attempt.publisher.calls("POST")) == 1


NOT_TO_BE_SAID: dict[str, tuple[str, dict[str, Any], str]] = {
    "by whoever asked": ("rita", {}, "rita"),
    "with another's key": ("cora", {}, "carl"),
    "without evidence": ("cora", {"comment_hash": ""}, "cora"),
    "of another effect": ("cora", {"key": "0" * 64}, "cora"),
    "of another operation": ("cora", {"operation": "q3-report"}, "cora"),
    "as another command": ("cora", {"command": "cancel"}, "cora"),
    "for another installation": ("cora", {"installation": "elsewhere"}, "cora"),
}


@pytest.mark.guarantee("G02", "G22", "G36")
@pytest.mark.parametrize("how", NOT_TO_BE_SAID)
def test_what_could_not_be_said_to_a_run_counts_no_more_when_it_lies_in_the_ledger(
    world: World, attempt: Attempt, how: str
) -> None:
    approval = unknown(world, attempt)
    person, changes, signer = NOT_TO_BE_SAID[how]
    inserted(world, approval, signed(world, approval, person, "executed", "report-77", **changes), signer)
    result = reconciled(world, attempt, approval)
    assert (result.status, code(result)) == (UNKNOWN, "settlement_forged")
    assert attempt.records("effect.settled") == []


@pytest.mark.guarantee("G02")
def test_neither_the_requester_nor_an_author_settles_it(world: World, attempt: Attempt) -> None:
    approval = unknown(world, attempt)
    assert says(world, approval, "rita", "executed", "report-77").ruling == Ruling.NOT_INDEPENDENT
    world.tamper("approvals", "proposal", changed_json("authors", to=["cora"]))
    assert says(world, approval, "cora", "executed", "report-77").ruling == Ruling.NOT_INDEPENDENT
