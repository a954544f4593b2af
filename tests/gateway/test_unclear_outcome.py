"""Outcomes that nobody knows: looked up by the same key, never sent again blindly, else left to a person."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from countersign.domain.execution import ExecutionStatus, Receipt
from countersign.gateway.channels import Channel, OutcomeUnknown
from countersign.gateway.gateway import CLAIM_MARGIN
from countersign.gateway.http_channel import HttpChannel, Limits
from tests.gateway.asking import code, execute, reconcile
from tests.gateway.conftest import TOKEN
from tests.gateway.world import DOCUMENT, World
from tests.support.publisher import Publisher

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN


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


def test_a_key_that_was_used_for_another_document_is_left_to_a_person(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    approval = world.granted()
    key = approval.proposal.action.idempotency_key()
    publisher.begin(key, b"somebody else's")
    publisher.publish(key, b"somebody else's")
    result = execute(world.gateway(press), approval)
    assert (result.status, code(result)) == (UNKNOWN, "outside_conflict")
    assert world.audit_types() == ["effect.intended", "effect.unknown"]


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
        self.name, self.side_effect, self.takes = channel.name, channel.side_effect, channel.takes
        self.time_limit, self.keys_kept = channel.time_limit, channel.keys_kept
        self.lands_within = channel.lands_within
        self._channel, self._meanwhile, self._loses_its_answer = channel, meanwhile, loses_its_answer

    def send(self, *arguments: Any) -> Receipt:
        receipt = self._channel.send(*arguments)
        self._meanwhile()
        if self._loses_its_answer:
            raise OutcomeUnknown("no_answer", "the answer was lost")
        return receipt

    def look_up(self, key: str) -> Receipt | None:
        return self._channel.look_up(key)

    def held(self) -> Iterable[Receipt] | None:
        return self._channel.held()

    def reversing(self) -> Channel | None:
        return self._channel.reversing()


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
