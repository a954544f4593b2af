"""What the freezes of a tenant hold at this moment, and what was asked for to let it go.

Apart from the commands, since `freezes`, `inbox` and `status` all tell of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from countersign.cli.rendering import document, moment
from countersign.cli.session import Session
from countersign.domain.administration import ADMINISTRATION, changes_authority
from countersign.domain.execution import ExecutionStatus
from countersign.domain.freeze import Freeze
from countersign.domain.operation import Operation
from countersign.domain.proposal import ApprovalStatus


class Hold(NamedTuple):
    """A freeze in force, or one that was."""

    freeze: Freeze
    operations: tuple[str, ...]
    """What was granted and is not sent because of it."""
    lifting: tuple[str, ...]
    """The operations that ask for its end and have none of their own yet."""

    @property
    def what(self) -> str:
        """`every effect`, or the one tool."""
        return f"tool {self.freeze.tool}" if self.freeze.tool else "every effect"

    def told(self) -> str:
        """In a line, with what comes of it."""
        one = self.freeze
        asked = f"its end is asked for by {', '.join(self.lifting)}" if self.lifting else "nobody asked for its end yet"
        return (
            f"freeze {one.number} by {one.person} since {moment(one.since)} holds {self.what}"
            f" ({', '.join(self.operations) or 'no operation yet'}); {asked}; reason: {one.reason}"
        )


def holds(session: Session, tenant: str) -> Sequence[Hold]:
    """Every freeze of a tenant, those in force first, with what each holds."""
    found = sorted(session.ledger.freezes.of_tenant(tenant), key=lambda one: not one.in_force)
    if not any(one.in_force for one in found):
        return [Hold(one, (), ()) for one in found]
    running = [one for one in session.ledger.operations.list(tenant) if not one.state.terminal]
    ready, asked = _ready(session, running), _asked(session, running)
    return [_hold(one, ready, asked) for one in found]


def holding_tool(session: Session, tenant: str, tool: str) -> Sequence[Freeze]:
    """All freezes that hold an effect of this tool: it goes on only once none of them does."""
    found = session.ledger.freezes.of_tenant(tenant)
    return [one for one in found if one.holds(tool, changes_authority=changes_authority(tool))]


def _hold(one: Freeze, ready: Sequence[tuple[str, str]], asked: Sequence[tuple[str, int]]) -> Hold:
    held = [name for name, tool in ready if one.holds(tool, changes_authority=changes_authority(tool))]
    return Hold(one, tuple(held), tuple(name for name, number in asked if one.in_force and number == one.number))


def _ready(session: Session, running: Sequence[Operation]) -> list[tuple[str, str]]:
    """Operations that were granted and of which nothing was sent, each with its tool."""
    found = []
    for one in running:
        approval = session.ledger.approvals.current(one.tenant, one.operation)
        execution = session.ledger.executions.get(one.tenant, one.operation)
        sent = execution is not None and execution.status != ExecutionStatus.NOT_SENT
        if approval is not None and approval.status == ApprovalStatus.GRANTED and not sent:
            found.append((one.operation, approval.proposal.action.tool))
    return found


def _asked(session: Session, running: Sequence[Operation]) -> list[tuple[str, int]]:
    """Operations that ask for the end of a freeze, each with its number."""
    requests = (
        (one.operation, document(session.ledger.documents, one.tenant, one.request_hash)["change"])
        for one in running
        if one.case == ADMINISTRATION
    )
    return [(name, change["freeze"]) for name, change in requests if change["kind"] == "unfreeze"]
