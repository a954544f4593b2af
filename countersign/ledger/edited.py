"""An edited action's approval: the editor's vote is carried over, where the policy lets an edit count as one.

Apart from opening because here alone a vote comes into being without a message: it must be the very edit that was
signed, of the very action that is opened (G02, G16).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from countersign.domain.decision import approvers, approving
from countersign.domain.edit import edit_counts
from countersign.domain.errors import Conflict
from countersign.domain.need import unmet
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, Vote
from countersign.ledger.approval_rows import cast, find, names, set_status
from countersign.ledger.authority import load_persons
from countersign.ledger.store import Writing
from countersign.ledger.tables import approvals


def carry_over(writing: Writing, approval: Approval, run_id: str, now: datetime) -> Approval:
    """The approval, which the caller has just opened, as it stands once the edit was counted, or was not.

    Raises:
        Conflict: nobody edited the approval it names.
    """
    proposal = approval.proposal
    edited, edit = _edit(writing, proposal)
    # What the editor signed is what is opened, unless the policy that it pins was changed in between.
    counts = (
        edit.edited_action == proposal.action_hash
        and edit_counts(edited, edit.person, proposal.action, proposal.assessment)
        and _same_run(writing, proposal, run_id)
    )
    if approval.status != ApprovalStatus.PENDING or not counts:
        return approval
    cast(writing, approval, edit)
    detail = {**names(proposal), "statement_id": edit.statement_id}
    from_where = {**detail, "edited_from": proposal.edited_from}
    writing.record("decision.carried_over", proposal.operation, edit.person, now, **from_where)
    status = _status_with(writing, proposal, edit)
    if status == ApprovalStatus.GRANTED:
        set_status(writing, proposal.approval_id, status, now)
        writing.record("approval.granted", proposal.operation, edit.person, now, **detail)
    return approval.model_copy(update={"status": status, "votes": (edit,)})


def _edit(writing: Writing, proposal: Proposal) -> tuple[Proposal, Vote]:
    edited = find(writing.connection, writing.tenant, proposal.edited_from)
    if edited is not None and edited.status == ApprovalStatus.EDITED:
        # From the last one: the edit that it came from can have been carried over as its first vote.
        for vote in reversed(edited.votes):
            if vote.decision == "edit" and edited.proposal.operation == proposal.operation:
                return edited.proposal, vote
    raise Conflict(f"nobody edited approval {proposal.edited_from[:80]}; propose the action as it is")


def _same_run(writing: Writing, proposal: Proposal, run_id: str) -> bool:
    """A run that was reset or started anew takes over nobody's vote (G23)."""
    is_it = (approvals.c.tenant == writing.tenant) & (approvals.c.approval_id == proposal.edited_from)
    return writing.connection.execute(select(approvals.c.run_id).where(is_it)).scalar() == run_id


def _status_with(writing: Writing, proposal: Proposal, edit: Vote) -> ApprovalStatus:
    needs = proposal.assessment.needs
    persons = load_persons(writing.connection, writing.tenant, [edit.person])
    agreed = approvers(approving([edit], needs), proposal, persons)
    return ApprovalStatus.PENDING if unmet(needs, agreed) else ApprovalStatus.GRANTED
