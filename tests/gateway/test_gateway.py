"""The gateway's flow, judged by what happened outside: how often, with what content, and what the record says."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Conflict, Unavailable
from countersign.domain.execution import Execution, ExecutionStatus
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.gateway import CLAIM_MARGIN
from countersign.gateway.http_channel import HttpChannel
from countersign.ledger import engines
from tests.gateway.asking import code, execute, in_parallel, reconcile
from tests.gateway.conftest import TOKEN
from tests.gateway.world import DOCUMENT, TENANT, World
from tests.support.publisher import Publisher

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN


def status_of(world: World, approval: Approval) -> ApprovalStatus:
    return world.ledger.approvals.get(TENANT, approval.proposal.approval_id).status


def test_a_granted_action_is_executed_and_recorded(world: World, press: HttpChannel, publisher: Publisher) -> None:
    approval = world.granted()
    result = execute(world.gateway(press), approval)
    key = approval.proposal.action.idempotency_key()
    assert publisher.effects() == [(key, DOCUMENT)]
    assert result.status == EXECUTED
    assert result.receipt is not None
    assert (result.receipt.key, result.receipt.content_hash) == (key, sha256_hex(DOCUMENT))
    assert world.audit_types() == ["effect.intended", "effect.executed"]
    assert status_of(world, approval) == ApprovalStatus.CONSUMED


def test_an_action_that_the_policy_grants_by_rule_needs_nobody(world: World, tmp_path: Path) -> None:
    channel = FileChannel("internal", tmp_path / "published", "internal_publication")
    approval = world.granted(channel="internal", by_persons=())
    assert execute(world.gateway(channel), approval).status == EXECUTED
    assert (tmp_path / "published" / "q2-report.md").read_bytes() == DOCUMENT


@pytest.mark.guarantee("G33")
def test_a_finished_execution_answers_with_the_stored_receipt_for_ever(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    approval = world.granted()
    gateway = world.gateway(press)
    first = execute(gateway, approval)
    world.now += timedelta(days=400)
    world.revoke_key("bob")
    assert execute(gateway, approval) == first
    assert reconcile(gateway, approval) == first
    assert (len(publisher.calls("POST")), publisher.calls("GET")) == (1, [])


@pytest.mark.guarantee("G33")
@pytest.mark.guarantee("G23")
def test_another_run_of_the_same_action_makes_no_second_effect(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    first = execute(world.gateway(press), world.granted())
    again = world.propose(operation="q2-report", target="press:q2-report.md")
    assert again.proposal.action_hash == world.ledger.executions.get(TENANT, "q2-report").action_hash  # type: ignore[union-attr]
    assert execute(world.gateway(press), again) == first
    assert len(publisher.effects()) == 1


@pytest.mark.guarantee("G31")
@pytest.mark.parametrize("channel_kind", ["press", "internal"])
def test_many_threads_make_one_call(
    world: World, press: HttpChannel, publisher: Publisher, tmp_path: Path, channel_kind: str
) -> None:
    approval = world.granted(channel=channel_kind, by_persons=("bob",) if channel_kind == "press" else ())
    internal = FileChannel("internal", tmp_path / "published", "internal_publication")
    results = in_parallel(8, lambda number: execute(world.gateway(press, internal), approval))
    assert {result.status for result in results} <= {EXECUTED, UNKNOWN}
    assert all(code(result) == "in_progress" for result in results if result.status == UNKNOWN)
    assert execute(world.gateway(press, internal), approval).status == EXECUTED
    assert len(publisher.calls("POST")) == (1 if channel_kind == "press" else 0)
    assert world.audit_types() == ["effect.intended", "effect.executed"]


@pytest.mark.guarantee("G31")
def test_many_threads_make_one_call_on_both_databases(
    ledger_url: str, tmp_path: Path, press: HttpChannel, publisher: Publisher
) -> None:
    world = World(tmp_path, ledger_url)
    world.populate()
    approval = world.granted()
    in_parallel(8, lambda number: execute(world.gateway(press), approval))
    assert execute(world.gateway(press), approval).status == EXECUTED
    assert len(publisher.calls("POST")) == 1
    world.close()


@pytest.mark.guarantee("G31")
def test_while_another_attempt_holds_the_claim_nothing_is_sent_or_looked_up(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    approval = world.granted()
    claim = world.ledger.executions.claim(
        approval, approval.proposal.action.idempotency_key(), world.now, world.now + timedelta(seconds=30)
    )
    for ask in (execute, reconcile):
        result = ask(world.gateway(press), approval)
        assert (result.status, code(result)) == (UNKNOWN, "in_progress")
        assert claim.claimed_until.isoformat() in result.reason
    assert publisher.calls("POST") + publisher.calls("GET") == []


@pytest.mark.guarantee("G31", "G33")
def test_another_attempt_that_finishes_while_this_one_is_told_to_wait_is_the_answer(
    world: World, press: HttpChannel, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval = world.granted()
    other, claim = world.gateway(press), world.ledger.executions.claim

    def held_and_then_finished(*claimed: Any, **how: Any) -> Execution:
        monkeypatch.setattr(world.ledger.executions, "claim", claim)
        execute(other, approval)
        raise Unavailable("held by another attempt when it was asked for")

    monkeypatch.setattr(world.ledger.executions, "claim", held_and_then_finished)
    assert execute(world.gateway(press), approval).status == EXECUTED
    assert len(publisher.calls("POST")) == 1


@pytest.mark.guarantee("G31")
def test_another_attempt_that_finishes_while_this_one_verifies_has_done_it_for_both(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    approval = world.granted()
    first = []

    def verify(tenant: str, sha256: str) -> None:
        first.append(execute(world.gateway(press), approval))

    assert execute(world.gateway(press, verify_evidence=verify), approval) == first[0]
    assert (len(publisher.calls("POST")), publisher.calls("GET")) == (1, [])


def test_a_claim_outlasts_a_look_up_and_a_send_at_their_limits(world: World, press: HttpChannel) -> None:
    until = []
    approval = world.granted()

    def look(step: str) -> None:
        held = world.ledger.executions.get(TENANT, "q2-report")
        until.append(held.claimed_until if held else None)

    execute(world.gateway(press, on_step=look), approval)
    assert until[0] == world.now + 2 * press.time_limit + CLAIM_MARGIN


class TestAnotherHash:
    """G32: one operation has at most one effect, whatever its actions are."""

    def both(self, world: World) -> tuple[Approval, Approval]:
        """Two actions of one operation, both granted, which only somebody at the database can bring about."""
        first = world.granted()
        content_hash = world.ledger.documents.put(TENANT, b"another text")
        second = world.granted(content_hash=content_hash, by_persons=("ben",))
        world.tamper("approvals", "status", lambda _: "granted", f"approval_id = '{first.proposal.approval_id}'")
        return first, second

    @pytest.mark.guarantee("G32")
    @pytest.mark.parametrize("fault", ["error_after", "error_before"])
    def test_is_not_sent_while_the_first_is_there_or_may_still_land(
        self, world: World, press: HttpChannel, publisher: Publisher, fault: str
    ) -> None:
        gateway = world.gateway(press)
        first, second = self.both(world)
        publisher.fail_next(fault)
        assert execute(gateway, first).status == UNKNOWN
        has_happened = fault == "error_after"
        answer = execute(gateway, second)
        assert (answer.status, code(answer)) == ((EXECUTED, "") if has_happened else (NOT_SENT, "may_still_land"))
        assert len(publisher.calls("POST")) == 1
        assert reconcile(gateway, first).status == (EXECUTED if has_happened else NOT_SENT)
        world.now += timedelta(minutes=10)
        assert execute(gateway, second).status == EXECUTED
        assert len(publisher.effects()) == 1

    @pytest.mark.guarantee("G32")
    def test_is_never_sent_once_the_first_is_executed(
        self, world: World, press: HttpChannel, publisher: Publisher
    ) -> None:
        gateway = world.gateway(press)
        first, second = self.both(world)
        done = execute(gateway, first)
        assert execute(gateway, second) == done
        assert len(publisher.calls("POST")) == 1

    @pytest.mark.guarantee("G32")
    def test_is_not_even_put_before_people_while_the_first_is_unknown(
        self, world: World, press: HttpChannel, publisher: Publisher
    ) -> None:
        gateway, first = world.gateway(press), world.granted()
        publisher.fail_next("error_before")
        assert execute(gateway, first).status == UNKNOWN
        another = world.ledger.documents.put(TENANT, b"another text")
        with pytest.raises(Conflict, match="may have taken effect"):
            world.propose(content_hash=another)
        assert reconcile(gateway, first).status == NOT_SENT
        world.propose(content_hash=another)


@pytest.mark.guarantee("G34")
def test_what_was_surely_not_sent_is_sent_later_under_the_same_key(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    gateway = world.gateway(press)
    approval = world.granted()
    publisher.fail_next("rate_limited")
    assert (execute(gateway, approval).status, status_of(world, approval)) == (NOT_SENT, ApprovalStatus.GRANTED)
    assert reconcile(gateway, approval).status == NOT_SENT
    assert execute(gateway, approval).status == EXECUTED
    assert len(set(publisher.calls("POST"))) == 1
    assert publisher.calls("GET") == []
    assert len(publisher.effects()) == 1


@pytest.mark.guarantee("G34")
def test_a_service_that_is_down_costs_nothing(world: World, address: str, publisher: Publisher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        nobody = f"http://127.0.0.1:{probe.getsockname()[1]}/reports"
    approval = world.granted()
    down = HttpChannel("press", nobody, SecretStr(TOKEN), "external_publication")
    result = execute(world.gateway(down), approval)
    assert (result.status, code(result)) == (NOT_SENT, "unreachable")
    up = HttpChannel("press", address, SecretStr(TOKEN), "external_publication")
    assert execute(world.gateway(up), approval).status == EXECUTED


@pytest.mark.guarantee("G25")
@pytest.mark.parametrize("late", [timedelta(hours=1), timedelta(days=30)])
def test_a_grant_that_was_not_used_in_its_window_is_void(
    world: World, press: HttpChannel, publisher: Publisher, late: timedelta
) -> None:
    approval = world.granted()
    world.now += late
    result = execute(world.gateway(press), approval)
    assert (result.status, result.voided, code(result)) == (None, True, "window_closed")
    assert publisher.calls("POST") == []
    assert world.audit_types() == ["effect.refused"]
    assert status_of(world, approval) == ApprovalStatus.VOIDED


@pytest.mark.guarantee("G25")
def test_the_last_instant_of_the_window_still_counts(world: World, press: HttpChannel) -> None:
    approval = world.granted()
    world.now += timedelta(hours=1, microseconds=-1)
    assert execute(world.gateway(press), approval).status == EXECUTED


@pytest.mark.guarantee("G25")
def test_a_grant_by_rule_has_a_window_too(world: World, tmp_path: Path) -> None:
    channel = FileChannel("internal", tmp_path / "published", "internal_publication")
    approval = world.granted(channel="internal", by_persons=())
    world.now = approval.proposal.execute_by
    assert code(execute(world.gateway(channel), approval)) == "window_closed"
    assert not (tmp_path / "published" / "q2-report.md").exists()


class TestLedgerAway:
    """A part of our own that is away is no outcome: the caller repeats the step."""

    @pytest.fixture
    def locked(self, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
        """The same installation, whose database another program keeps locked for writing."""
        world.granted()
        monkeypatch.setattr(engines, "WAIT_SECONDS", 0.1)
        impatient = World(world.folder)
        other = sqlite3.connect(world.folder / "ledger.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        yield impatient
        other.close()
        impatient.close()

    @pytest.mark.guarantee("G45")
    def test_nothing_is_sent_when_the_intent_cannot_be_recorded(
        self, locked: World, press: HttpChannel, publisher: Publisher
    ) -> None:
        approval = locked.ledger.approvals.current(TENANT, "q2-report")
        assert approval is not None
        with pytest.raises(Unavailable, match="ledger"):
            execute(locked.gateway(press), approval)
        assert publisher.calls("POST") == []


def test_an_approval_that_nobody_knows_is_refused_and_recorded(world: World, publisher: Publisher) -> None:
    result = world.gateway().execute(TENANT, "apr-forged")
    assert (result.status, code(result)) == (None, "approval_not_found")
    refused = [record for record in world.ledger.audit.records(TENANT) if record.type == "effect.refused"]
    assert [record.detail["approval_id"] for record in refused] == ["apr-forged"]


@pytest.mark.guarantee("G09")
def test_another_tenants_approval_is_as_good_as_none(world: World, press: HttpChannel, publisher: Publisher) -> None:
    approval = world.granted()
    gateway = world.gateway(press)
    theirs = gateway.execute("globex", approval.proposal.approval_id)
    nobodys = gateway.execute("globex", "apr-forged")
    assert theirs.status is None
    assert code(theirs) == code(nobodys) == "approval_not_found"
    assert publisher.calls("POST") == []
