"""`inbox` and `next`: what waits for a person's decision, the nearest deadline first.

Apart from the commands about one operation: this looks at all of a tenant's pending proposals, and asks of each what
this person may decide about it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, get_args

import typer

from countersign.cli import options
from countersign.cli.rendering import STARTER, moment, say, say_json, table
from countersign.cli.session import Session, known_person, now, opened
from countersign.cli.show import whole_review
from countersign.domain.decision import Ruling, may
from countersign.domain.directory import Person
from countersign.domain.policy import DecisionKind
from countersign.domain.proposal import Approval


class Waiting(NamedTuple):
    """A pending proposal with the decisions that are open to the person who asks."""

    approval: Approval
    decisions: tuple[DecisionKind, ...]


def inbox(tenant: options.Tenant, person: options.Signer, as_json: options.AsJson = False) -> None:
    """List what waits for a person's decision, the nearest deadline first."""
    with opened() as session:
        waiting = waiting_for(session, tenant, person)
    if as_json:
        say_json([_json(one) for one in waiting])
    elif waiting:
        say(table(["OPERATION", "UNTIL", "WHAT", "TARGET", "YOU MAY"], [_cells(one) for one in waiting]))
    else:
        say(f"nothing waits for {person} in tenant {tenant}")


def next_waiting(tenant: options.Tenant, person: options.Signer) -> None:
    """Show all that a person decides about next, and the commands to decide it."""
    with opened() as session:
        waiting = waiting_for(session, tenant, person)
        if not waiting:
            say(f"nothing waits for {person} in tenant {tenant}")
            raise typer.Exit(0)
        first = waiting[0]
        say(whole_review(session, first.approval, person))
    name = f"{first.approval.proposal.operation} --tenant {tenant} --as {person}"
    for decision in first.decisions:
        say(f"  {STARTER} {decision} {name}")
    say(f"{len(waiting) - 1} more after this")


def waiting_for(session: Session, tenant: str, name: str) -> list[Waiting]:
    """The tenant's pending proposals about which `name` may decide now; NotFound for somebody who is not there."""
    person, at = known_person(session, tenant, name), now()
    pending = [one for one in session.ledger.approvals.pending(tenant) if at < one.proposal.deadline]
    asked = [Waiting(one, _open_to(session, person, one, at)) for one in pending]
    return [one for one in asked if one.decisions]


def _open_to(session: Session, person: Person, approval: Approval, at: datetime) -> tuple[DecisionKind, ...]:
    action = approval.proposal.action
    used = 0 if action.amount is None else session.ledger.approvals.approved_by(person, action, at)
    kinds: tuple[DecisionKind, ...] = get_args(DecisionKind)
    return tuple(kind for kind in kinds if may(kind, person, approval, used).ruling == Ruling.ACCEPTED)


def _cells(waiting: Waiting) -> list[str]:
    proposal = waiting.approval.proposal
    return [
        proposal.operation, moment(proposal.deadline), proposal.summary, proposal.action.target,
        ", ".join(waiting.decisions),
    ]  # fmt: skip


def _json(waiting: Waiting) -> dict[str, object]:
    proposal = waiting.approval.proposal
    return {
        "operation": proposal.operation, "approval_id": proposal.approval_id,
        "approval_version": proposal.approval_version, "action_hash": proposal.action_hash,
        "deadline": proposal.model_dump(mode="json")["deadline"], "summary": proposal.summary,
        "target": proposal.action.target, "decisions": [*waiting.decisions],
    }  # fmt: skip
