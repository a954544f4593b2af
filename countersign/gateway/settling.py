"""What people agree on of an effect whose outcome is unknown, from what they signed and not from what the ledger tells.

Apart from acting on it, because this is where such statements are believed: a forged one settles nothing and raises the
alarm; one whose signer may no longer say so is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from countersign.domain.action import Action
from countersign.domain.command import Command
from countersign.domain.directory import Person
from countersign.domain.errors import NotAuthorised, StatementRefused
from countersign.domain.execution import SETTLED, Execution, Receipt
from countersign.domain.policy import Policy
from countersign.domain.proposal import Proposal
from countersign.domain.settlement import Settled, Settlement, Settling, settled
from countersign.ports import Ledger, SignedSettlement
from countersign.signing.statements import LEEWAY, verify_command

TO_DENY = 2
"""How many persons have to say that what the outside's own answer speaks for was not executed."""


class Settlements:
    """Counts what people said of effects."""

    def __init__(self, ledger: Ledger, pinned: Callable[[Proposal], Policy], installation: str) -> None:
        """
        Args:
            ledger: where the signed commands and the persons are read.
            pinned: the policy that a proposal pins; it says who may settle.
            installation: the audience that the commands must name.
        """
        self._ledger = ledger
        self._pinned = pinned
        self._installation = installation

    def agreed(self, proposal: Proposal, execution: Execution, now: datetime, *, contested: bool) -> Settled | None:
        """What enough persons say of what was sent last; nothing where too few do, or they contradict each other.

        `contested`: the outside's own answer speaks for that it was executed, so one person alone cannot deny it.

        Raises:
            NotAuthorised: what the ledger keeps was not said so, or not by somebody who may.
        """
        kept = self._ledger.executions.settlements(execution.tenant, execution.key)
        said = [one for one in kept if not one.spent]
        settling = self._pinned(proposal).settling if said else None
        if settling is None:
            return None
        counted = tuple(self._counting(said, proposal, execution, settling, now))
        agreed = settled(counted, settling.persons(proposal.action.amount))
        denied = agreed is not None and agreed.finding == "not_executed"
        if agreed is not None and denied and contested and len(agreed.persons) < TO_DENY:
            return None
        return agreed

    def _counting(
        self, said: list[SignedSettlement], proposal: Proposal, execution: Execution, settling: Settling, now: datetime
    ) -> Iterator[Settlement]:
        persons = self._ledger.directory.persons(execution.tenant)
        for one in said:
            read = self._read(one, persons)
            if read is None:
                continue
            command, signer = read
            _check_said(one.settlement, command, proposal, execution, now)
            key = signer.key(command.key_id)
            if signer.may(settling.role) and key is not None and key.good_at(now):
                yield one.settlement

    def _read(self, one: SignedSettlement, persons: Mapping[str, Person]) -> tuple[Command, Person] | None:
        """The command as it was good when it was taken in: what was found outside does not lapse with it.

        Nothing where its key was revoked since; every other doubt means that it never was good.
        """
        taken_in = one.settlement.at
        try:
            return verify_command(one.statement, persons, installation=self._installation, now=taken_in)
        except StatementRefused as doubt:
            if doubt.reason == "key_not_valid":
                return None
            raise _forged(one.settlement, doubt.message) from None


def settled_receipt(channel: str, action: Action, agreed: Settled) -> Receipt:
    """What stands for a receipt where people found the effect outside."""
    return Receipt(
        channel=channel,
        key=action.idempotency_key(),
        reference=agreed.reference,
        content_hash=action.content_hash,
        detail=f"settled by {', '.join(agreed.persons)}, who found it outside; no look-up has confirmed it",
    )


def not_executed(agreed: Settled) -> str:
    """The reason that an execution gets by what people found."""
    who = ", ".join(agreed.persons)
    return f"{SETTLED}: {who} found that it was not executed; it may be sent again under the same key"


def _check_said(
    settlement: Settlement, command: Command, proposal: Proposal, execution: Execution, now: datetime
) -> None:
    """Compare what the ledger tells with what was signed, and both with what it must be about."""
    about = (command.command, command.tenant, command.operation, command.key)
    if about != ("settle", execution.tenant, execution.operation, execution.key):
        raise _forged(settlement, "it is for another effect")
    told = (settlement.person, settlement.key, settlement.finding, settlement.reference)
    if told != (command.person, command.key, command.finding, command.reference):
        raise _forged(settlement, "the ledger tells it differently from what was signed")
    if not command.comment_hash:
        raise _forged(settlement, "it names no evidence")
    if settlement.at > now + LEEWAY:
        raise _forged(settlement, "it is from a time that is yet to come")
    if command.person in (proposal.requester, *proposal.authors):
        raise _forged(settlement, "they asked for the action or made it")


def _forged(settlement: Settlement, why: str) -> NotAuthorised:
    said = f"what {settlement.person} is said to have found was never good: {why}; nothing was settled by it"
    return NotAuthorised("settlement_forged", said)
