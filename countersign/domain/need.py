"""Who must agree before an action may happen, who counts when nobody answers in time, and whether enough have. Pure.

Apart from policies, which say when a need applies: here is only what one comes to once it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from countersign.domain.directory import Person, Role
from countersign.domain.durations import Duration, duration
from countersign.domain.errors import InputRefused
from countersign.domain.values import Value

DecisionKind = Literal["approve", "edit", "reject"]
"""What a policy can let people decide about a proposal."""

_YES: frozenset[DecisionKind] = frozenset({"approve", "edit"})

Decisions = Annotated[tuple[DecisionKind, ...], Field(strict=False, min_length=1)]


class Tier(Value):
    """A further line of people, who are asked too once nobody has decided for so long."""

    after: Duration
    """From the proposal on."""
    role: Role
    """Who then counts towards the need as well; those who were asked before still do."""
    decisions: Decisions
    """What this line may decide."""
    tell: Annotated[tuple[Role, ...], Field(strict=False)] = ()
    """Roles that hear of it beside the tier's own."""
    extends: Duration | None = None
    """How long people have from then on, where the deadline would be earlier; nothing: the deadline stays."""


class Ladder(Value):
    """What happens while nobody decides: reminders, further lines of people, and what the last of them ends in.

    It never lowers the number of approvals, and never ends in an execution.
    """

    remind: Annotated[tuple[Duration, ...], Field(strict=False)] = ()
    """When whoever is asked by then is reminded; from the proposal on."""
    tiers: Annotated[tuple[Tier, ...], Field(strict=False)] = ()
    then: Literal["expire", "freeze"] = "expire"
    """At the deadline: the run ends as expired, or is held until a person takes it over or ends it."""


def _goes_unsaid(ladder: Ladder) -> bool:
    return ladder == Ladder()


class Need(Value):
    """Who must agree before the action may happen."""

    role: Role
    approvals: Annotated[int, Field(ge=1, le=9)]
    """How many different persons must approve."""
    decisions: Decisions
    decide_within: Duration
    """From proposal to deadline, unless a tier extends it."""
    execute_within: Duration
    """From the deciding vote to the latest moment of execution (G25)."""
    distinct: bool = False
    """Whether whoever counts here counts for no other distinct need: two roles then mean two persons."""
    ladder: Annotated[Ladder, Field(exclude_if=_goes_unsaid)] = Ladder()
    """Not written down where it is empty, so that policies from before there were ladders keep their labels."""

    @model_validator(mode="after")
    def _ladder_in_order(self) -> Need:
        """Each tier begins after the one before, and before the deadline that holds until then."""
        ends, before = duration(self.decide_within), timedelta(0)
        for tier in self.ladder.tiers:
            begins = duration(tier.after)
            if begins <= before:
                raise ValueError(f"ladder: the tier after {tier.after} does not come after the one before")
            if begins >= ends:
                raise ValueError(f"ladder: the tier after {tier.after} begins when the time to decide is over")
            ends, before = _extended(ends, tier), begins
        if any(duration(moment) >= ends for moment in self.ladder.remind):
            raise ValueError("ladder: a reminder comes when the time to decide is over")
        return self

    def __str__(self) -> str:
        return f"{self.approvals} of role {self.role}"

    def open_for(self) -> timedelta:
        """From the proposal to the deadline, the tiers' extensions included."""
        ends = duration(self.decide_within)
        for tier in self.ladder.tiers:
            ends = _extended(ends, tier)
        return ends

    def lines(self, waited: timedelta) -> tuple[tuple[Role, frozenset[DecisionKind]], ...]:
        """The roles that are asked once people have waited so long, and what each may decide; the first line first."""
        open_tiers = (tier for tier in self.ladder.tiers if duration(tier.after) <= waited)
        lines = ((self.role, self.decisions), *((tier.role, tier.decisions) for tier in open_tiers))
        return tuple((role, frozenset(decisions)) for role, decisions in lines)

    def roles(self, waited: timedelta) -> tuple[Role, ...]:
        """The roles that are asked once people have waited so long, each once."""
        return tuple(dict.fromkeys(role for role, _ in self.lines(waited)))

    def offered(self, waited: timedelta) -> frozenset[DecisionKind]:
        """What any of the lines may decide by then."""
        return frozenset[DecisionKind]().union(*(decisions for _, decisions in self.lines(waited)))

    def allowed(self, person: Person, waited: timedelta) -> frozenset[DecisionKind]:
        """What a person may decide by then: all that the lines they belong to may, the need's own where they belong to
        none."""
        own = [decisions for role, decisions in self.lines(waited) if person.may(role)]
        return frozenset[DecisionKind]().union(*own) if own else frozenset(self.decisions)


class Approver(NamedTuple):
    """A person who approved, and when: whoever voted before their tier began does not count for it."""

    person: Person
    waited: timedelta
    """From the proposal to their vote."""

    def may(self, need: Need) -> bool:
        """Whether they count towards `need`: by a role that was asked by then, and may let the action happen."""
        lines = need.lines(self.waited)
        return any(self.person.may(role) for role, decisions in lines if decisions & _YES)


class Tick(NamedTuple):
    """A moment at which something is due while people have not decided."""

    at: datetime
    kind: Literal["remind", "tier"]
    roles: tuple[Role, ...]
    """Who is told."""


def ticks(needs: Iterable[Need], proposed_at: datetime, deadline: datetime) -> tuple[Tick, ...]:
    """All reminders and tiers of these needs before the deadline, in their order; the same needs give the same ones."""
    found = {tick for need in needs for tick in _ticks(need, proposed_at) if tick.at < deadline}
    return tuple(sorted(found))


def freezes(needs: Iterable[Need]) -> bool:
    """Whether a proposal that nobody decided holds its run, rather than ending it: if any of the needs says so."""
    return any(need.ladder.then == "freeze" for need in needs)


def unmet(needs: tuple[Need, ...], approvers: Mapping[str, Approver]) -> tuple[Need, ...]:
    """The needs that these approvers, by person id, do not meet yet.

    A person counts for every need that asked a role of theirs by then, but for one distinct need only; who counts where
    is chosen so that as much as possible is met.

    Raises:
        InputRefused: for no needs at all, which nobody can meet: "nothing is unmet" must not read as a grant (G01).
    """
    if not needs:
        raise InputRefused("no need of people applies, so no approval can meet it; only a rule can grant this")
    wanted = Counter(need for need in needs if need.distinct)
    counted = _distinct_counts(wanted, approvers)
    return tuple(
        need for need in needs
        if (counted[need] < need.approvals * wanted[need] if need.distinct
            else len(_eligible(need, approvers)) < need.approvals)
    )  # fmt: skip


def asks_two_persons(needs: Iterable[Need]) -> bool:
    """Whether these needs are a two-person rule, for which only signed votes count."""
    return any(need.approvals > 1 or need.distinct for need in needs)


def _eligible(need: Need, approvers: Mapping[str, Approver]) -> list[str]:
    return [name for name, approver in approvers.items() if approver.may(need)]


def _distinct_counts(needs: Counter[Need], approvers: Mapping[str, Approver]) -> Counter[Need]:
    """How many persons each distinct need gets when nobody serves two: a largest matching of persons to open seats."""
    seats = [need for need in needs.elements() for _ in range(need.approvals)]
    holder: dict[int, str] = {}

    def seated(person: str, tried: set[int]) -> bool:
        for seat, need in enumerate(seats):
            if seat in tried or not approvers[person].may(need):
                continue
            tried.add(seat)
            if seat not in holder or seated(holder[seat], tried):
                holder[seat] = person
                return True
        return False

    for person in sorted(approvers):
        seated(person, set())
    return Counter(seats[seat] for seat in holder)


def _extended(ends: timedelta, tier: Tier) -> timedelta:
    return ends if tier.extends is None else max(ends, duration(tier.after) + duration(tier.extends))


def _ticks(need: Need, proposed_at: datetime) -> Iterator[Tick]:
    for moment in need.ladder.remind:
        yield Tick(proposed_at + duration(moment), "remind", need.roles(duration(moment)))
    for tier in need.ladder.tiers:
        yield Tick(proposed_at + duration(tier.after), "tier", tuple(dict.fromkeys((tier.role, *tier.tell))))
