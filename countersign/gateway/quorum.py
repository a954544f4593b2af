"""What the votes of a grant add up to now: enough, no longer enough, or never enough. Pure.

Apart from the votes themselves, because the last two look the same in numbers and mean the opposite: people are asked
anew where somebody lost a role, and an alarm is raised where the ledger calls granted what nobody granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from countersign.domain.decision import approving, break_glass_needs
from countersign.domain.durations import duration
from countersign.domain.errors import Drifted, NotAuthorised
from countersign.domain.need import Approver, Need, unmet
from countersign.domain.proposal import Proposal
from countersign.gateway.votes import Cast


class Quorum(NamedTuple):
    """Votes and the needs that they go towards."""

    needs: tuple[Need, ...]
    cast: tuple[Cast, ...]
    by_breaking_glass: bool

    def closes(self) -> datetime:
        """From when on the grant is void (G25)."""
        decided = max(one.vote.decided_at for one in self.cast)
        return min(decided + duration(need.execute_within) for need in self.needs)


def quorum(proposal: Proposal, cast: tuple[Cast, ...]) -> Quorum:
    """The votes that carry the proposal, by its needs or else by breaking the glass.

    Raises:
        Drifted: they did carry it, and no longer do.
        NotAuthorised: they never did.
    """
    possible = tuple(_possible(proposal, cast))
    for one in possible:
        counting = one._replace(cast=tuple(cast for cast in one.cast if not _lapse(cast, proposal, one.needs)))
        if not unmet(one.needs, {cast.signer.id: _approver(cast, proposal) for cast in counting.cast}):
            return counting
    for one in possible:
        if not unmet(one.needs, _with_every_role(one, proposal)):
            raise _no_longer(one, proposal)
    raise NotAuthorised("quorum", "too few people approved for what the policy asks; nothing was sent")


def _possible(proposal: Proposal, cast: tuple[Cast, ...]) -> Iterator[Quorum]:
    needs = proposal.assessment.needs
    towards = approving((one.vote for one in cast), needs)
    yield Quorum(needs, tuple(one for one in cast if one.vote in towards), by_breaking_glass=False)
    glass = break_glass_needs(proposal)
    if glass:
        breaking = (one for one in cast if one.vote.decision == "break_glass" and one.vote.assurance == "signed")
        yield Quorum(glass, tuple(breaking), by_breaking_glass=True)


def _approver(cast: Cast, proposal: Proposal) -> Approver:
    return Approver(cast.signer, proposal.waited(cast.vote.decided_at))


def _with_every_role(one: Quorum, proposal: Proposal) -> dict[str, Approver]:
    """The voters as they may have been when they voted, at the most: with all roles that were asked by then."""
    found = {}
    for cast in one.cast:
        approver = _approver(cast, proposal)
        everything = {"roles": frozenset(_asked(one.needs, approver.waited)), "active": True}
        found[cast.signer.id] = approver._replace(person=cast.signer.model_copy(update=everything))
    return found


def _asked(needs: Iterable[Need], waited: timedelta) -> tuple[str, ...]:
    return tuple(dict.fromkeys(role for need in needs for role in need.roles(waited)))


def _lapse(cast: Cast, proposal: Proposal, needs: Iterable[Need]) -> str:
    """Why a vote counts no longer; empty if it counts."""
    roles = _asked(needs, proposal.waited(cast.vote.decided_at))
    if cast.lapse or any(cast.signer.may(role) for role in roles):
        return cast.lapse
    return f"no longer has the role {' or '.join(roles)}"


def _no_longer(one: Quorum, proposal: Proposal) -> Drifted:
    lapses = [f"{cast.signer.id}: {lapse}" for cast in one.cast if (lapse := _lapse(cast, proposal, one.needs))]
    found = "; ".join(lapses) or "the roles that they have now do not meet the policy's needs together"
    expected = ", ".join(map(str, one.needs))
    return Drifted("roles", f"a vote counts no longer: {found}", expected=expected, found=found)
