"""A ledger that was restored from a backup: what it no longer knows is looked up before anything is sent (G37)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from countersign.cli.proving.rebuild_rows import compared
from countersign.domain.errors import InputRefused
from countersign.domain.execution import EffectResult, ExecutionStatus, Receipt
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.gateway.channels import NotSent, Refused
from countersign.gateway.http_channel import HttpChannel, Limits
from countersign.gateway.tools import Tools
from countersign.ledger.columns import moment_text
from tests.gateway.asking import code
from tests.gateway.attempt import Attempt
from tests.gateway.conftest import TOKEN
from tests.gateway.world import DOCUMENT, START, TENANT, World
from tests.support.publisher import Publisher

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN
LOST_SINCE, LOST_UNTIL = START - timedelta(minutes=40), START + timedelta(minutes=1)


def restored(world: World, since: datetime = LOST_SINCE, until: datetime = LOST_UNTIL) -> None:
    """Have the ledger say that it knows nothing of a time."""
    with closing(sqlite3.connect(world.folder / "ledger.sqlite")) as connection, connection:
        connection.execute(
            "INSERT INTO restores VALUES (?, ?, ?, ?)", (TENANT, 1, moment_text(since), moment_text(until))
        )


def sent_in_the_lost_time(approval: Approval, publisher: Publisher) -> None:
    """The effect lies outside, and the ledger has no execution of it."""
    key = approval.proposal.action.idempotency_key()
    publisher.begin(key, DOCUMENT)
    publisher.publish(key, DOCUMENT)


@pytest.mark.guarantee("G31", "G37")
class TestRestored:
    def test_what_was_executed_in_the_lost_time_is_found_and_not_sent_again(
        self, world: World, attempt: Attempt
    ) -> None:
        approval = world.granted()
        sent_in_the_lost_time(approval, attempt.publisher)
        restored(world)
        assert attempt.execute(approval).status == EXECUTED
        assert attempt.publisher.calls("POST") == []
        assert world.approval(approval).status == ApprovalStatus.CONSUMED

    def test_it_is_found_also_where_it_has_changed_itself_what_the_grant_rests_on(
        self, world: World, attempt: Attempt
    ) -> None:
        approval = world.granted()
        sent_in_the_lost_time(approval, attempt.publisher)
        restored(world)

        def changed(tenant: str, sha256: str) -> None:
            raise InputRefused("it is no longer what it was")

        assert attempt.execute(approval, verify_evidence=changed).status == EXECUTED
        assert attempt.publisher.calls("POST") == []

    def test_while_the_outside_cannot_be_asked_it_is_unknown_and_nothing_is_sent(
        self, world: World, attempt: Attempt
    ) -> None:
        approval = world.granted()
        sent_in_the_lost_time(approval, attempt.publisher)
        restored(world)
        attempt.publisher.fail_next("lookup_unavailable")
        assert attempt.execute(approval).status == UNKNOWN
        assert attempt.execute(approval).status == EXECUTED
        assert attempt.publisher.calls("POST") == []

    def test_what_is_surely_not_there_is_sent(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        restored(world)
        assert attempt.execute(approval).status == EXECUTED
        assert len(attempt.publisher.calls("POST")) == len(attempt.publisher.effects()) == 1

    @pytest.mark.guarantee("G35")
    @pytest.mark.parametrize(("after", "status"), [(timedelta(minutes=30), UNKNOWN), (timedelta(hours=24), EXECUTED)])
    def test_a_key_that_the_outside_may_have_forgotten_since_the_loss_began_is_not_sent(
        self, world: World, address: str, publisher: Publisher, after: timedelta, status: ExecutionStatus
    ) -> None:
        """What was registered after the restore, by contrast, cannot have been sent in the lost time."""
        limits = Limits(keys_kept=timedelta(minutes=30))
        press = HttpChannel("press", address, SecretStr(TOKEN), "external_publication", limits)
        approval = world.granted()
        restored(world, until=START - timedelta(hours=1) if after > timedelta(hours=1) else LOST_UNTIL)
        result = world.gateway(press).execute(TENANT, approval.proposal.approval_id)
        assert result.status == status
        assert status == EXECUTED or code(result) == "key_forgotten"
        assert len(publisher.calls("POST")) == (status == EXECUTED)

    def test_a_ledger_that_was_never_restored_is_believed_that_nothing_was_sent(
        self, world: World, attempt: Attempt
    ) -> None:
        assert attempt.execute(world.granted()).status == EXECUTED
        assert attempt.publisher.calls("GET") == []


@pytest.mark.guarantee("G31", "G37")
class TestLapsed:
    """The backup is of a time when people were still asked: what they granted, and what was sent, came after it."""

    @pytest.fixture(params=["pending", "expired"])
    def approval(self, request: pytest.FixtureRequest, world: World) -> Approval:
        asked = world.propose()
        if request.param == "expired":
            after = asked.proposal.deadline + timedelta(seconds=1)
            world.ledger.approvals.settle(TENANT, asked.proposal.approval_id, ApprovalStatus.EXPIRED, after)
        return world.approval(asked)

    def test_what_was_sent_is_found_and_is_the_outcome(
        self, world: World, attempt: Attempt, approval: Approval
    ) -> None:
        sent_in_the_lost_time(approval, attempt.publisher)
        restored(world)
        attempt.publisher.fail_next("lookup_unavailable")
        assert reconciled(world, attempt, approval).status == UNKNOWN
        assert reconciled(world, attempt, approval).status == EXECUTED
        assert world.approval(approval).status == ApprovalStatus.CONSUMED
        assert world.ledger.executions.of_operation(TENANT, "q2-report")[0].receipt is not None
        assert attempt.publisher.calls("POST") == []

    def test_where_surely_nothing_was_sent_people_can_be_asked(
        self, world: World, attempt: Attempt, approval: Approval
    ) -> None:
        restored(world)
        result = reconciled(world, attempt, approval)
        assert (result.status, result.voided, code(result)) == (None, True, "lost_time")
        assert world.ledger.executions.get(TENANT, "q2-report") is None
        another = world.granted(content_hash=world.ledger.documents.put(TENANT, b"another text"))
        assert attempt.execute(another).status == EXECUTED

    def test_what_the_outside_may_have_forgotten_can_be_settled_by_people(
        self, world: World, address: str, approval: Approval
    ) -> None:
        limits = Limits(keys_kept=timedelta(minutes=30))
        press = HttpChannel("press", address, SecretStr(TOKEN), "external_publication", limits)
        restored(world)
        for _ in range(2):
            result = world.gateway(press).reconcile(TENANT, approval.proposal.approval_id)
            assert (result.status, code(result)) == (UNKNOWN, "key_forgotten")
        assert world.audit_types() == ["effect.unknown"]
        (execution,) = world.ledger.executions.of_operation(TENANT, "q2-report")
        assert (execution.status, execution.key) == (UNKNOWN, approval.proposal.action.idempotency_key())
        rows, records = world.ledger.audit.rows(TENANT, "q2-report"), world.ledger.audit.records(TENANT, "q2-report")
        assert [one for one in compared(rows, records, "q2-report").wrong if "execution" in one] == []

    def test_a_ledger_that_was_not_restored_since_the_registration_knows_that_nothing_was_sent(
        self, world: World, attempt: Attempt, approval: Approval
    ) -> None:
        restored(world, until=START - timedelta(minutes=1))
        assert code(reconciled(world, attempt, approval)) == "never_sent"
        assert attempt.publisher.calls("GET") == []


@pytest.mark.guarantee("G37")
def test_a_grant_that_the_backup_has_stays_good_where_nothing_was_sent(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    restored(world)
    result = reconciled(world, attempt, approval)
    assert (result.status, result.voided) == (NOT_SENT, False)
    assert world.approval(approval).status == ApprovalStatus.GRANTED


def reconciled(world: World, attempt: Attempt, approval: Approval) -> EffectResult:
    return world.gateway(attempt.press).reconcile(TENANT, approval.proposal.approval_id)


class Refusing(HttpChannel):
    """An outside that will not do it, however often it is asked."""

    def send(self, *_: Any) -> Receipt:
        raise Refused("account_closed", "the account is closed")


@pytest.mark.guarantee("G34")
def test_what_the_outside_refuses_voids_the_grant_and_another_action_can_be_proposed(
    world: World, address: str, attempt: Attempt
) -> None:
    refusing = Refusing("press", address, SecretStr(TOKEN), "external_publication")
    approval = world.granted()
    result = world.gateway(refusing).execute(TENANT, approval.proposal.approval_id)
    assert (result.status, result.voided, code(result)) == (None, True, "outside_refused")
    assert "account_closed: the account is closed" in result.reason
    assert world.approval(approval).status == ApprovalStatus.VOIDED
    assert world.audit_types() == ["effect.intended", "effect.not_sent"]

    other = world.ledger.documents.put(TENANT, b"another text")
    another = world.granted(content_hash=other, by_persons=("ben",))
    assert another.proposal.action.idempotency_key() != approval.proposal.action.idempotency_key()
    assert attempt.execute(another).status == EXECUTED
    assert len(attempt.publisher.effects()) == 1


class TestUnreadableFacts:
    @pytest.fixture(autouse=True)
    def unreadable(self, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
        monkeypatch.setattr(Tools, "check_evidence", _unread)
        return monkeypatch

    @pytest.mark.guarantee("G34")
    def test_nothing_was_sent_and_it_is_tried_again(
        self, world: World, attempt: Attempt, unreadable: pytest.MonkeyPatch
    ) -> None:
        approval = world.granted()
        result = attempt.execute(approval)
        assert (result.status, result.voided, code(result)) == (NOT_SENT, False, "facts_unreadable")
        attempt.nothing_happened()
        assert world.audit_types() == ["effect.held"]
        unreadable.undo()
        assert attempt.execute(approval).status == EXECUTED

    @pytest.mark.guarantee("G36")
    def test_what_an_earlier_attempt_may_have_sent_stays_unknown(
        self, world: World, attempt: Attempt, unreadable: pytest.MonkeyPatch
    ) -> None:
        approval = world.granted()
        unreadable.undo()
        attempt.publisher.fail_next("close_after")
        assert attempt.execute(approval).status == UNKNOWN
        unreadable.setattr(Tools, "check_evidence", _unread)
        result: EffectResult = attempt.execute(approval)
        assert (result.status, code(result)) == (UNKNOWN, "facts_unreadable")


def _unread(*_: Any) -> None:
    raise NotSent("facts_unreadable", "the order cannot be read now")
