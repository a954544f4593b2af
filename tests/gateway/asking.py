"""How gateway tests ask, alone or many at once, and what they read of the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from countersign.domain.execution import EffectResult
from countersign.domain.proposal import Approval
from countersign.gateway.gateway import Gateway
from tests.gateway.world import TENANT

Answer = TypeVar("Answer")


def execute(gateway: Gateway, approval: Approval) -> EffectResult:
    """Execute an approval of the tests' tenant."""
    return gateway.execute(TENANT, approval.proposal.approval_id)


def reconcile(gateway: Gateway, approval: Approval) -> EffectResult:
    """Reconcile an approval of the tests' tenant."""
    return gateway.reconcile(TENANT, approval.proposal.approval_id)


def code(result: EffectResult) -> str:
    """The reason code of a result."""
    return result.reason.partition(":")[0]


def in_parallel(count: int, do: Callable[[int], Answer]) -> list[Answer]:
    """The answers of `do(0)` to `do(count - 1)`, in threads that start together; a failure of one fails the test."""
    barrier = threading.Barrier(count)
    answers: list[Answer] = []

    def run(number: int) -> None:
        barrier.wait()
        answers.append(do(number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == count
    return answers
