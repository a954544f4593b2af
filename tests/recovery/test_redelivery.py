"""Whatever is delivered twice, to whomever: one effect outside. Those killed over it are in `gateway/test_killed`."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from temporalio.testing import ActivityEnvironment

from activities.executing import ExecutingSteps
from activities.interfaces import EffectOrder
from activities.runs import Runs
from countersign.domain.execution import EffectResult, ExecutionStatus
from countersign.gateway.http_channel import HttpChannel
from tests.gateway.world import DOCUMENT, TENANT, World
from tests.support.publisher import Publisher

EXECUTED = ExecutionStatus.EXECUTED


class Delivery:
    """An approval whose effect is asked for again and again."""

    def __init__(self, world: World, press: HttpChannel) -> None:
        self.world, self.press = world, press
        self.approval_id = world.granted().proposal.approval_id

    def delivered(self, world: World | None = None) -> EffectResult:
        """One delivery of the step's task to a worker."""
        own = world or self.world
        steps = ExecutingSteps(own.gateway(self.press), Runs(own.ledger, lambda: own.now))
        result: EffectResult = ActivityEnvironment().run(
            steps.execute, EffectOrder(tenant=TENANT, operation="q2-report", approval_id=self.approval_id)
        )
        return result


def again_and_again(delivery: Delivery) -> None:
    first = delivery.delivered()
    assert [delivery.delivered() for _ in range(3)] == [first] * 3


def at_a_barrier(delivery: Delivery) -> None:
    """Two workers, each with a connection of its own to the ledger, begin at the same instant."""
    barrier = threading.Barrier(2)

    def work() -> None:
        own = World(delivery.world.folder)
        own.now = delivery.world.now
        barrier.wait()
        delivery.delivered(own)
        own.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


@pytest.mark.guarantee("G31", "G33")
@pytest.mark.parametrize("redelivered", [again_and_again, at_a_barrier])
def test_redelivery_makes_no_second_effect(
    world: World, press: HttpChannel, publisher: Publisher, redelivered: Callable[[Delivery], None]
) -> None:
    delivery = Delivery(world, press)

    redelivered(delivery)

    assert delivery.delivered().status == EXECUTED
    assert [body for _, body in publisher.effects()] == [DOCUMENT]
    assert len(publisher.calls("POST")) == 1
    assert world.audit_types().count("effect.executed") == 1
    world.ledger.audit.verify(TENANT)
