"""What a ruling on a command needs to know, as the ledger has it: under the operation's lock, or to be tried.

Apart from the commands because here everything is only read: who asks, what the policy in force says, what is sent.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from countersign.domain.command import Command, Situation
from countersign.domain.directory import Person
from countersign.domain.durations import duration
from countersign.domain.escalation import Escalation
from countersign.domain.execution import ExecutionStatus
from countersign.domain.need import freezes
from countersign.domain.operation import Operation
from countersign.domain.policy import Policy, Terms
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import Asked, QuestionStatus
from countersign.domain.state import State
from countersign.ledger import escalations
from countersign.ledger.approval_rows import newest
from countersign.ledger.authority import load_persons, load_policies
from countersign.ledger.control_rows import control_of
from countersign.ledger.drafts import latest_version
from countersign.ledger.operations import find_operation, stored_operation
from countersign.ledger.question_rows import newest as newest_question
from countersign.ledger.settlements import unsettled
from countersign.ledger.store import ending_of
from countersign.ledger.tables import executions
from countersign.ports import Amendment

_OPEN_OR_FINAL = (ApprovalStatus.PENDING, ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED)


class Heard(NamedTuple):
    """A command's operation and signer, with the situation that it came to."""

    operation: Operation
    signer: Person
    """As the directory has them now."""
    situation: Situation

    def lease_until(self, now: datetime) -> datetime | None:
        """When a lease that begins now is over; where no policy speaks of taking over any more, as before."""
        takeover = self.situation.takeover
        if takeover is None:
            return self.situation.control.lease_until
        return None if takeover.lease is None else now + duration(takeover.lease)


def heard(
    connection: Connection, tenant: str, said: Command, signer: Person, amendment: Amendment | None, now: datetime
) -> Heard:
    """Everything that the ruling on `said` needs; whoever acts upon it holds the operation's lock.

    `amendment`: what its content comes to; nothing: it is not given yet, and taken to be in order.
    """
    operation = stored_operation(connection, tenant, said.operation)
    ending = ending_of(connection, tenant, said.operation)
    policy = load_policies(connection, tenant).get(operation.case)
    persons = load_persons(connection, tenant, [signer.id, said.to])
    asked = newest_question(connection, tenant, said.operation)
    # A question is answered late, or in time; for whoever commands anything else, the run is over with it.
    over = None if said.command == "answer" else _nobody_answered(asked, now)
    before = _before_people(connection, operation)
    situation = Situation(
        control=control_of(connection, tenant, said.operation),
        # People, or the clock, have ended it, though its run may not have come to it yet.
        state=over or _time_is_up(connection, operation, now) or operation.state if ending is None else ending.state,
        takeover=None if policy is None else policy.takeover,
        escalated_to=None if before is None else before.role,
        requester=operation.requester,
        requester_may_withdraw=_terms(connection, operation, policy).requester_may_withdraw,
        on_its_way=_on_its_way(connection, operation),
        draft_version=latest_version(connection, tenant, said.operation),
        receiver=persons.get(said.to),
        successor=_wrong_successor(connection, said, operation) if said.command == "supersede" else "",
        problem="" if amendment is None else _problem(said, amendment),
        now=now,
        unsettled=unsettled(connection, operation, now) if said.command == "settle" else None,
        asked=asked,
        answers=None if amendment is None else amendment.answers,
        out_of_budget=before is not None and before.out_of_budget,
    )
    # As they are now: whoever was demoted since the signature was verified has nothing to say any more.
    present = persons.get(signer.id, signer.model_copy(update={"roles": frozenset(), "active": False}))
    return Heard(operation, present, situation)


def _problem(said: Command, amendment: Amendment) -> str:
    if not amendment.problem and said.command == "amend" and amendment.draft is None:
        return "no draft came with it; give one"
    if not amendment.problem and said.command == "raise_budget" and amendment.budget is None:
        return "no budget came with it; give one"
    return amendment.problem


def _nobody_answered(asked: Asked | None, now: datetime) -> State | None:
    """How a run ends whose agent nobody answered in time; nothing where it is held, or goes on."""
    if asked is None or asked.question.freezes:
        return None
    is_due = asked.status == QuestionStatus.PENDING and asked.question.deadline <= now
    return State.EXPIRED if is_due or asked.status == QuestionStatus.EXPIRED else None


def _time_is_up(connection: Connection, operation: Operation, now: datetime) -> State | None:
    """How a run ends that people rejected, or that nobody did anything about in time; nothing where it goes on.

    A no stands, whoever commands something before the run has come to its end by it (G10).
    """
    approval = newest(connection, operation.tenant, operation.operation)
    if approval is not None and approval.status in _OPEN_OR_FINAL:
        is_held = freezes(approval.proposal.assessment.needs)
        if approval.status == ApprovalStatus.REJECTED:
            return State.REJECTED
        if approval.status == ApprovalStatus.PENDING or not is_held:
            return State.EXPIRED if approval.proposal.deadline <= now and not is_held else None
    if operation.state != State.ESCALATED:
        return None
    found = escalations.of_operation(connection, operation.tenant, operation.operation)
    deadlines = [one.deadline for one in found if one.outcome == "open" and one.deadline is not None]
    return State.FAILED if any(deadline <= now for deadline in deadlines) else None


def _before_people(connection: Connection, operation: Operation) -> Escalation | None:
    """Before whom the run is at present; whoever looked at it before it went on has nothing to do there any more."""
    if operation.state not in (State.ESCALATED, State.OUTCOME_UNKNOWN):
        return None
    found = escalations.of_operation(connection, operation.tenant, operation.operation)
    return next((one for one in reversed(found) if one.outcome == "open"), None)


def _terms(connection: Connection, operation: Operation, policy: Policy | None) -> Terms:
    """Those that a pending proposal has pinned, else the policy's in force (G12)."""
    approval = newest(connection, operation.tenant, operation.operation)
    if approval is not None and approval.status == ApprovalStatus.PENDING:
        return approval.proposal.terms
    return Terms() if policy is None else policy.terms


def _on_its_way(connection: Connection, operation: Operation) -> bool:
    claimed = select(executions.c.status).where(
        executions.c.tenant == operation.tenant, executions.c.operation == operation.operation
    )
    latest: str | None = connection.execute(claimed.order_by(executions.c.number.desc()).limit(1)).scalar()
    return latest not in (None, ExecutionStatus.NOT_SENT.value)


def _wrong_successor(connection: Connection, said: Command, operation: Operation) -> str:
    """Why the operation named cannot take this one's place, in a sentence; empty if it can."""
    name = said.successor
    found = find_operation(connection, operation.tenant, name) if name else None
    if found is None:
        return f"operation {name or '(none named)'} is not registered; register it first"
    if found.operation == operation.operation:
        return "an operation cannot take its own place; name another one"
    if (found.case, found.requester) != (operation.case, operation.requester):
        return f"operation {name} is not of the same case and requester; name one that is"
    if found.state.terminal or ending_of(connection, operation.tenant, name) is not None:
        return f"operation {name} has ended; name one that runs"
    return ""
