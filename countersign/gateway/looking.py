"""Looking up what lies outside under an action's key, and whether what is said of it can be relied on.

Apart from acting on a claim, since what was sent for an operation's other actions is looked up by the same rules.
"""

from __future__ import annotations

from datetime import datetime

from countersign.domain.execution import KEY_FORGOTTEN, OUTSIDE_CONFLICT, Receipt
from countersign.domain.proposal import Approval
from countersign.gateway.channels import OutcomeUnknown
from countersign.gateway.tool import Call
from countersign.ports import Clock, Ledger

CONTESTING = frozenset({KEY_FORGOTTEN, OUTSIDE_CONFLICT})
"""Codes of a look-up that tells of something outside: whoever says that it was not executed says so against that."""


class Looking:
    """Looks up; it records nothing."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        """See `Gateway`."""
        self._ledger = ledger
        self._clock = clock

    def look(self, approval: Approval, call: Call) -> Receipt | None:
        """What the outside holds of the approved action; nothing where surely nothing is there, else OutcomeUnknown."""
        receipt = call.channel.look_up(call.key)
        if receipt is not None:
            return checked(receipt, approval, call)
        kept = call.channel.keys_kept
        if kept is not None and self._clock() - self._earliest_send(approval) >= kept:
            raise OutcomeUnknown(
                KEY_FORGOTTEN, f"the outside keeps keys for {kept} only, so a person must look there"
            )  # fmt: skip
        return None

    def _earliest_send(self, approval: Approval) -> datetime:
        """When something can have been sent first: in a time of which the ledger knows nothing, from its beginning."""
        proposal = approval.proposal
        granted = max((vote.decided_at for vote in approval.votes), default=proposal.proposed_at)
        registered = self._ledger.operations.get(proposal.tenant, proposal.operation).registered_at
        restores = self._ledger.audit.restores(proposal.tenant)
        return min([granted, *(restore.since for restore in restores if restore.until > registered)])


def checked(receipt: Receipt, approval: Approval, call: Call) -> Receipt:
    """The receipt, if it is of the approved bytes under the action's key; OutcomeUnknown otherwise."""
    wanted = (call.key, approval.proposal.action.content_hash)
    if (receipt.key, receipt.content_hash) != wanted:
        other = f"the outside holds another document under this key ({receipt.content_hash}); a person must look"
        raise OutcomeUnknown(OUTSIDE_CONFLICT, other)
    return receipt
