"""Whose step it is, when, and under whose control: what a step is told is compared with Temporal, clock and ledger.

Apart from the steps, since anyone with access to the namespace can have a workflow of their own ask for any of them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio import activity

from activities.interfaces import StepOrder
from countersign.domain.control import Control
from countersign.domain.errors import Conflict, ControlChanged, Unavailable
from countersign.domain.identity import workflow_id
from countersign.ports import Clock, Ledger

AHEAD = timedelta(seconds=60)
"""How far the server's clock may be ahead of this worker's."""


class Runs:
    """Checks of steps against what they are told."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    @property
    def ledger(self) -> Ledger:
        """Where refusals are recorded."""
        return self._ledger

    def now(self) -> datetime:
        """The time at which a step writes something down."""
        return self._clock()

    def own_run(self) -> str:
        """The id of the run that asks for this step."""
        return str(activity.info().workflow_run_id)

    def check_run(self, tenant: str, operation: str, line: str | None = None) -> None:
        """Refuse a step for another workflow than the operation's own run.

        Temporal keeps names single, so one operation has one run; anyone can start another under a name of their own.

        Raises:
            Conflict: it is another workflow; or, where `line` is given, neither the run that began it nor its present
                one.
        """
        asking = str(activity.info().workflow_id)
        if asking != workflow_id(tenant, operation):
            raise Conflict(f"operation {operation}: a run named {asking[:140]!r} is not the one that may carry it out")
        own = self.own_run()
        if line is None or own in (line, self._ledger.operations.present_run(tenant, operation, line)):
            return
        raise Conflict(f"operation {operation}: run {own[:80]} spoke for line {line[:80]}, which it does not carry on")

    def carries(self, tenant: str, operation: str, approval_id: str) -> bool:
        """Whether the asking run is the one that asks people about this approval.

        No other one hears of their votes: a run that was reset, or is somebody's own, takes over nobody's (G23), and
        has no say in when a vote came.
        """
        return self.carries_line(tenant, operation, self._ledger.approvals.line(tenant, approval_id))

    def carries_line(self, tenant: str, operation: str, line: str) -> bool:
        """Whether the asking run is the one that carries a line (ports.Operations.hand_on) now."""
        return self.own_run() == self._ledger.operations.present_run(tenant, operation, line)

    def check_now(self, moment: datetime) -> None:
        """Refuse a time that has not come: a deadline would be over, or lie ahead, by somebody's word.

        Raises:
            Unavailable: this worker's clock is behind, or the time was made up; the step is tried again.
        """
        now = self._clock()
        if moment > now + AHEAD:
            raise Unavailable(
                f"the run says it is {moment.isoformat()}, here it is {now.isoformat()}; set the clocks right"
            )

    def check_control(self, order: StepOrder) -> Control:
        """Who is in control; refuse a step that was begun before control changed hands, or people ended the run.

        Raises:
            ControlChanged: what comes of it would be discarded anyway (G29, G30).
        """
        standing = self._ledger.controls.standing(order.tenant, order.operation)
        if standing.ending is not None:
            raise ControlChanged(
                f"operation {order.operation} was ended as {standing.ending.state.value}; nothing more is done for it"
            )
        control = standing.control
        if control.version != order.control_version:
            raise ControlChanged(
                f"operation {order.operation}: {control.holder()} is in control since {control.since.isoformat()}, "
                f"version {control.version}; what was begun under version {order.control_version} is discarded"
            )
        return control

    def check_agent(self, order: StepOrder) -> None:
        """Refuse whatever only the agent does, unless it is in control (G30); ControlChanged."""
        control = self.check_control(order)
        if control.by != "agent":
            raise ControlChanged(
                f"operation {order.operation}: {control.holder()} is in control, so the agent calls nothing"
            )
