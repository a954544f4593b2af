"""How an operation stands in words: whom it waits for, whose votes count so far, and what came of it.

Apart from the commands, because `status`, `wait`, `show` and `policy explain` say it in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from countersign.cli.session import Session
from countersign.domain.administration import ADMINISTRATION
from countersign.domain.decision import approving, break_glass_needs
from countersign.domain.directory import Person
from countersign.domain.execution import Execution
from countersign.domain.policy import Need, unmet
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.state import State

_WORKERS = {
    State.CREATED: "an agent worker",
    State.RUNNING: "an agent worker",
    State.EXECUTING: "a gateway worker",
    State.WAITING_RETRY: "a gateway worker, which tries again",
    State.OUTCOME_UNKNOWN: "a gateway worker, which looks it up",
}


def waits_for(session: Session, state: State, approval: Approval | None) -> str:
    """Who moves next; nobody, as an empty text, where a run has ended."""
    if state != State.WAITING_APPROVAL or approval is None:
        return _WORKERS.get(state, "")
    return ", ".join(map(str, missing(session, approval)))


def counted(session: Session, approval: Approval) -> Mapping[str, Person]:
    """Whose approvals count so far, as the directory has them now."""
    persons = session.ledger.directory.persons(approval.proposal.tenant)
    votes = approving(approval.votes, approval.proposal.assessment.needs)
    return {vote.person: persons[vote.person] for vote in votes if vote.person in persons}


def missing(session: Session, approval: Approval) -> Sequence[Need]:
    """The needs that are not met yet; none where the approval is settled, since nobody is asked any more."""
    needs = approval.proposal.assessment.needs
    if approval.status != ApprovalStatus.PENDING or not needs:
        return ()
    return unmet(needs, counted(session, approval))


def broken_glass(approval: Approval) -> str:
    """How far breaking the glass has come: `1 of 2 of role emergency; amy`; empty where nobody did."""
    voters = [vote.person for vote in approval.votes if vote.decision == "break_glass"]
    wanted = "; ".join(map(str, break_glass_needs(approval.proposal)))
    return f"{len(voters)} of {wanted}; {', '.join(voters)}" if voters else ""


def effect(execution: Execution | None, approval: Approval | None) -> list[tuple[str, str]]:
    """What was done, as a line: where something was published, or which change is in force."""
    if execution is None or execution.receipt is None:
        return []
    if approval is not None and approval.proposal.case == ADMINISTRATION:
        return [("in force", approval.proposal.summary)]
    return [("published", execution.receipt.reference)]
