"""The step of a retention: the agents' stored threads of operations that ended long enough ago go."""

from __future__ import annotations

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.failures import faults
from activities.interfaces import Retaining
from countersign.domain.errors import NotFound
from countersign.domain.retention import Forgotten, RetentionOrder
from countersign.ports import Clock, Retainer


class RetainingSteps(Retaining):
    """Has them deleted. Whoever may start workflows can ask for it: what has ended needs none of it any more."""

    def __init__(self, retainer: Retainer, clock: Clock) -> None:
        self._retainer = retainer
        self._clock = clock

    @activity.defn
    def forget_threads(self, order: RetentionOrder) -> Forgotten:
        """See Retaining."""
        with faults("forget_threads"):
            try:
                return self._retainer.forget(order, "clock", self._clock())
            except NotFound as refused:
                raise ApplicationError(
                    "forget_threads: no such tenant", type=refused.code, non_retryable=True
                ) from None
