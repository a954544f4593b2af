"""What the policies say of an action: the one in force, and, where it follows an earlier version, that one's as well.

Apart from proposing, because an edit is shown, and ruled on, by the same assessment that its proposal will then have.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from countersign.domain.action import Action
from countersign.domain.errors import DeniedByPolicy
from countersign.domain.need import Need
from countersign.domain.policy import Answer, Assessment, Policy, Spent, assess, kept_under, read_pinned
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal
from countersign.ports import Ledger


class Assessed(NamedTuple):
    """An assessment with what it was made from."""

    assessment: Assessment
    spent: tuple[Spent, ...]
    floor: tuple[Need, ...]


def policy_in_force(ledger: Ledger, tenant: str, case: str) -> Policy:
    """The tenant's policy of that name; without one nothing is allowed (G01)."""
    policy = ledger.directory.policies(tenant).get(case)
    if policy is None:
        raise DeniedByPolicy(f"tenant {tenant}: no policy {case!r} is in force, so nothing of that case is allowed")
    return policy


def assessed(ledger: Ledger, policy: Policy, action: Action, earlier: Approval | None, now: datetime) -> Assessed:
    """What `policy` says of an action, and at the least what the version before it wanted (G12).

    Args:
        ledger: where earlier amounts and pinned policies are found.
        policy: the one in force.
        action: what is to be proposed.
        earlier: the version that it follows: edited, asked anew, or taken over, where there is one.
        now: until when amounts count.

    Raises:
        DeniedByPolicy: the policy under which the earlier version was proposed does not allow it.
    """
    spent = ledger.approvals.spent(action, policy.windows(), None, now)
    floor = _floor(ledger, policy, action, earlier, now) if earlier is not None else ()
    return Assessed(assess(policy, action, spent).and_also(floor), spent, floor)


def _floor(ledger: Ledger, policy: Policy, action: Action, earlier: Approval, now: datetime) -> tuple[Need, ...]:
    before = earlier.proposal
    if earlier.status == ApprovalStatus.VOIDED:
        return before.assessment.needs
    if before.action.policy_version == policy.label():
        return before.floor
    pinned = pinned_policy(ledger, before)
    spent = ledger.approvals.spent(action, pinned.windows(), None, now)
    then = assess(pinned, action, spent).and_also(before.floor)
    if then.answer == Answer.DENIED:
        raise DeniedByPolicy(f"policy {pinned.policy}, under which it was proposed, does not allow this action")
    return then.needs


def pinned_policy(ledger: Ledger, proposal: Proposal) -> Policy:
    """The policy that a proposal pins, kept in the ledger under its hash; else as in `read_pinned`."""
    label = proposal.action.policy_version
    return read_pinned(label, ledger.documents.get(proposal.tenant, kept_under(label)))
