"""The gateway's flow, judged by what happened outside: how often, with what content, and what the record says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Unavailable
from countersign.domain.execution import EffectResult, ExecutionStatus, Receipt
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.gateway.channels import OutcomeUnknown
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.gateway import CLAIM_MARGIN, Gateway
from countersign.gateway.http_channel import HttpChannel, Limits
from countersign.ledger import engines
from tests.gateway.conftest import TOKEN
from tests.gateway.world import DOCUMENT, TENANT, World
from tests.support.publisher import Publisher

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN


def execute(gateway: Gateway, approval: Approval) -> EffectResult:
    return gateway.execute(TENANT, approval.proposal.approval_id)


def reconcile(gateway: Gateway, approval: Approval) -> EffectResult:
    return gateway.reconcile(TENANT, approval.proposal.approval_id)


def code(result: EffectResult) -> str:
    return result.reason.partition(":")[0]


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
    world.ledger.directory.revoke_key(TENANT, "bob", "bob-1", "test", world.now)
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
    results = in_threads(8, lambda: execute(world.gateway(press, internal), approval))
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
    in_threads(8, lambda: execute(world.gateway(press), approval))
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


@pytest.mark.guarantee("G31")
def test_another_attempt_that_finishes_while_this_one_verifies_has_done_it_for_both(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    approval = world.granted()
    first = []

    def verify(tenant: str, sha256: str) -> None:
        first.append(execute(world.gateway(press), approval))

    assert execute(world.gateway(press, verify_evidence=verify), approval) == first[0]
    assert len(publisher.calls("POST")) == 1


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

    def second(self, world: World) -> Approval:
        """Another action of the same operation, granted as well."""
        content_hash = world.ledger.documents.put(TENANT, b"another text")
        return world.granted(content_hash=content_hash, by_persons=("ben",))

    @pytest.mark.guarantee("G32")
    @pytest.mark.parametrize("fault", ["error_after", "error_before"])
    def test_is_refused_until_the_first_is_settled(
        self, world: World, press: HttpChannel, publisher: Publisher, fault: str
    ) -> None:
        gateway = world.gateway(press)
        first = world.granted()
        publisher.fail_next(fault)
        assert execute(gateway, first).status == UNKNOWN
        second = self.second(world)
        refused = execute(gateway, second)
        assert (refused.status, code(refused)) == (None, "claim_refused")
        assert len(publisher.calls("POST")) == 1
        settled = reconcile(gateway, first).status
        assert settled == (EXECUTED if fault == "error_after" else NOT_SENT)
        assert execute(gateway, second).status == (None if settled == EXECUTED else EXECUTED)
        assert len(publisher.effects()) == 1

    @pytest.mark.guarantee("G32")
    def test_is_refused_for_ever_once_the_first_is_executed(
        self, world: World, press: HttpChannel, publisher: Publisher
    ) -> None:
        gateway = world.gateway(press)
        execute(gateway, world.granted())
        assert execute(gateway, self.second(world)).status is None
        assert len(publisher.calls("POST")) == 1


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


UNCLEAR = ["unavailable", "error_before", "error_after", "bad_gateway_after", "close_before", "close_after", "garbage",
           "huge", "redirect", "accepted", "request_timeout", "other_hash", "other_key"]  # fmt: skip


@pytest.mark.parametrize("repeat", [execute, reconcile])
@pytest.mark.parametrize("fault", UNCLEAR)
@pytest.mark.guarantee("G36")
def test_an_unclear_outcome_is_looked_up_and_never_makes_two_effects(
    world: World, press: HttpChannel, publisher: Publisher, fault: str, repeat: Any
) -> None:
    gateway = world.gateway(press)
    approval = world.granted()
    publisher.fail_next(fault)
    assert execute(gateway, approval).status == UNKNOWN
    has_happened = len(publisher.effects()) == 1
    result = repeat(gateway, approval)
    assert publisher.calls("GET"), "it was not looked up"
    if has_happened:
        assert result.status == EXECUTED
        assert len(publisher.calls("POST")) == 1, "it was posted again blindly"
    elif repeat is reconcile:
        assert result.status == NOT_SENT
        assert len(publisher.calls("POST")) == 1, "reconciling sent something"
    assert execute(gateway, approval).status == EXECUTED
    assert [body for _, body in publisher.effects()] == [DOCUMENT]
    assert set(publisher.calls("POST")) == {approval.proposal.action.idempotency_key()}


@pytest.mark.guarantee("G36")
def test_a_timeout_after_sending_is_unknown_until_it_is_found(
    world: World, impatient_press: HttpChannel, publisher: Publisher
) -> None:
    gateway = world.gateway(impatient_press)
    approval = world.granted()
    publisher.fail_next("answer_late")
    assert execute(gateway, approval).status == UNKNOWN
    assert execute(gateway, approval).status == EXECUTED
    assert (len(publisher.calls("POST")), len(publisher.effects())) == (1, 1)


@pytest.mark.parametrize("fault", ["lookup_unavailable", "lookup_close", "lookup_garbage", "lookup_redirect"])
@pytest.mark.parametrize("repeat", [execute, reconcile])
@pytest.mark.guarantee("G36")
def test_while_the_look_up_fails_it_stays_unknown_and_nothing_is_sent(
    world: World, press: HttpChannel, publisher: Publisher, fault: str, repeat: Any
) -> None:
    gateway = world.gateway(press)
    approval = world.granted()
    publisher.fail_next("error_before", *[fault] * 3)
    results = [execute(gateway, approval), *[repeat(gateway, approval) for _ in range(3)]]
    assert [result.status for result in results] == [UNKNOWN] * 4
    assert len(publisher.calls("POST")) == 1
    assert execute(gateway, approval).status == EXECUTED


@pytest.mark.guarantee("G36")
def test_another_document_under_our_key_waits_for_a_person(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    gateway = world.gateway(press)
    approval = world.granted()
    publisher.fail_next("error_before")
    execute(gateway, approval)
    key = approval.proposal.action.idempotency_key()
    publisher.begin(key, b"somebody else's")
    publisher.publish(key, b"somebody else's")
    for ask in (execute, reconcile, execute):
        result = ask(gateway, approval)
        assert (result.status, code(result)) == (UNKNOWN, "outside_conflict")
    assert len(publisher.calls("POST")) == 1


def test_a_key_that_was_used_for_another_document_is_refused_for_good(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    approval = world.granted()
    publisher.begin(approval.proposal.action.idempotency_key(), b"somebody else's")
    result = execute(world.gateway(press), approval)
    assert (result.status, code(result)) == (None, "outside_conflict")
    assert world.audit_types() == ["effect.intended", "effect.not_sent"]
    assert publisher.effects() == []


@pytest.mark.guarantee("G35")
@pytest.mark.parametrize("repeat", [execute, reconcile])
def test_a_key_that_the_outside_may_have_forgotten_is_not_sent_again(
    world: World, address: str, publisher: Publisher, repeat: Any
) -> None:
    limits = Limits(keys_kept=timedelta(minutes=30))
    gateway = world.gateway(HttpChannel("press", address, SecretStr(TOKEN), "external_publication", limits))
    approval = world.granted()
    publisher.fail_next("close_after")
    execute(gateway, approval)
    publisher.forget()
    world.now += timedelta(minutes=30)
    result = repeat(gateway, approval)
    assert (result.status, code(result)) == (UNKNOWN, "key_forgotten")
    assert (len(publisher.calls("POST")), len(publisher.effects())) == (1, 1)


@pytest.mark.guarantee("G35")
def test_a_key_that_the_outside_still_keeps_may_be_sent_again(world: World, address: str, publisher: Publisher) -> None:
    limits = Limits(keys_kept=timedelta(minutes=30))
    gateway = world.gateway(HttpChannel("press", address, SecretStr(TOKEN), "external_publication", limits))
    approval = world.granted()
    publisher.fail_next("close_before")
    execute(gateway, approval)
    world.now += timedelta(minutes=29)
    assert execute(gateway, approval).status == EXECUTED


@pytest.mark.guarantee("G25")
@pytest.mark.parametrize("late", [timedelta(hours=1), timedelta(days=30)])
def test_a_grant_that_was_not_used_in_its_window_is_void(
    world: World, press: HttpChannel, publisher: Publisher, late: timedelta
) -> None:
    approval = world.granted()
    world.now += late
    result = execute(world.gateway(press), approval)
    assert (result.status, code(result)) == (None, "window_closed")
    assert publisher.calls("POST") == []
    assert world.audit_types() == ["effect.refused"]


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


@pytest.mark.guarantee("G36")
def test_a_window_that_closes_over_an_unknown_outcome_leaves_it_to_be_looked_up(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    gateway = world.gateway(press)
    approval = world.granted()
    publisher.fail_next("close_after")
    execute(gateway, approval)
    world.now += timedelta(hours=2)
    result = execute(gateway, approval)
    assert (result.status, code(result)) == (UNKNOWN, "window_closed")
    assert reconcile(gateway, approval).status == EXECUTED
    assert len(publisher.effects()) == 1


def test_reconciling_what_was_never_executed_sends_nothing(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    result = reconcile(world.gateway(press), world.granted())
    assert (result.status, code(result)) == (NOT_SENT, "never_sent")
    assert publisher.calls("POST") + publisher.calls("GET") == []


def test_a_channel_that_was_taken_away_leaves_the_outcome_unknown(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    approval = world.granted()
    publisher.fail_next("close_after")
    execute(world.gateway(press), approval)
    result = reconcile(world.gateway(), approval)
    assert (result.status, code(result)) == (UNKNOWN, "channel_unknown")


class SlowChannel:
    """A real channel whose answer arrives only after the claim has ended, as after a long pause of the process."""

    def __init__(self, channel: HttpChannel, meanwhile: Any, loses_its_answer: bool) -> None:
        self.name, self.side_effect = channel.name, channel.side_effect
        self.time_limit, self.keys_kept = channel.time_limit, channel.keys_kept
        self._channel, self._meanwhile, self._loses_its_answer = channel, meanwhile, loses_its_answer

    def send(self, *arguments: Any) -> Receipt:
        receipt = self._channel.send(*arguments)
        self._meanwhile()
        if self._loses_its_answer:
            raise OutcomeUnknown("no_answer", "the answer was lost")
        return receipt

    def look_up(self, key: str) -> Receipt | None:
        return self._channel.look_up(key)


@pytest.mark.parametrize("loses_its_answer", [False, True])
@pytest.mark.guarantee("G37")
def test_an_attempt_that_outlived_its_claim_cannot_overwrite_what_a_later_one_recorded(
    world: World, press: HttpChannel, publisher: Publisher, loses_its_answer: bool
) -> None:
    approval = world.granted()
    results = []

    def later_attempt() -> None:
        world.now += 2 * press.time_limit + CLAIM_MARGIN
        results.append(execute(world.gateway(press), approval))

    slow = SlowChannel(press, later_attempt, loses_its_answer)
    results.append(execute(world.gateway(slow), approval))
    assert [result.status for result in results] == [EXECUTED, EXECUTED]
    assert results[0] == results[1]
    assert len(publisher.effects()) == 1
    assert world.audit_types() == ["effect.intended", "effect.intended", "effect.executed"]


class TestLedgerAway:
    """A part of our own that is away is no outcome: the caller repeats the step."""

    @pytest.fixture
    def locked(self, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
        """The same installation, whose database another program keeps locked for writing."""
        import sqlite3

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


def in_threads(count: int, do: Any) -> list[Any]:
    """The results of calls that start together; a failure fails the test."""
    barrier, results = threading.Barrier(count), []

    def run() -> None:
        barrier.wait()
        results.append(do())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == count
    return results
