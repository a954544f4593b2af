"""What was done to a tenant's proposals, counted by hand: whether what goes out had a quorum.

Apart from the machine that does it, and written from the promises alone: nothing of `countersign` says here who counts,
who is barred, or what a policy asks.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

Seat = tuple[str, bool]
SEATS: dict[str, list[Seat]] = {
    "one": [("reviewer", False)],
    "two": [("reviewer", True), ("reviewer", True)],
    "both-distinct": [("reviewer", True), ("lawyer", True)],
    "two-and-lawyer": [("reviewer", True), ("reviewer", True), ("lawyer", False)],
    "edit": [("reviewer", False)],
    "edit-two": [("reviewer", True), ("reviewer", True)],
    "edit-counts-of-two": [("reviewer", True), ("reviewer", True)],
    "glass": [("reviewer", True), ("reviewer", True)],
    "glass-edit": [("reviewer", True), ("reviewer", True)],
}
"""What each policy of people.py asks: a role per seat, and whether whoever takes it takes no other such seat."""
EDITS_COUNT = {"edit": "for one", "edit-two": "for one", "edit-counts-of-two": "always", "glass-edit": "never"}
"""Whether an edit of the title is itself an approval: where one person suffices, or always."""
BREAKABLE = ("glass", "glass-edit")
WINDOW = timedelta(hours=1)
REQUESTER = "rita"


@dataclass
class Ask:
    """One version of the proposal, and what was done about it."""

    action_hash: str
    deadline: datetime
    asked_of: list[str]
    """The policies whose seats must all be filled, the one that it was asked under last: what an ask before it wanted,
    be it void by now or edited, is wanted still."""
    authors: set[str]
    yes: dict[str, datetime] = field(default_factory=dict)
    """Who signed a yes to exactly this action, and when; its editor too, where the edit is one."""
    glass: dict[str, datetime] = field(default_factory=dict)
    over: bool = False
    """Whether it was rejected, edited, superseded or found void."""


@dataclass
class Tally:
    """Who is who at the moment, and what was asked, newest last."""

    in_force: str
    roles: dict[str, set[str]]
    away: set[str] = field(default_factory=set)
    revoked: set[str] = field(default_factory=set)
    asks: list[Ask] = field(default_factory=list)

    @property
    def newest(self) -> Ask:
        """What people are asked now."""
        return self.asks[-1]

    def accepted(self, who: str, kind: str, now: datetime) -> None:
        """Count a decision that was accepted, and say where it should not have been."""
        ask = self.newest
        assert not ask.over, "it was over"
        assert now < ask.deadline, "it was too late"
        assert who != REQUESTER, "requesters decide nothing"
        assert who not in {*self.away, *self.revoked}, "they could not sign"
        if kind in ("reject", "edit"):
            ask.over = True
        else:
            assert who not in {*ask.authors, *ask.yes, *ask.glass}, "they had decided, or edited it"
            (ask.yes if kind == "approve" else ask.glass)[who] = now

    def edited(self, who: str, now: datetime) -> None:
        """Count an edit as a yes to the version that it made, which is the newest, where the policy lets it be one."""
        before, asked = self.asks[-2].asked_of, self.newest.asked_of
        word = EDITS_COUNT[before[-1]]
        is_one = word == "always" or (word == "for one" and all(len(SEATS[policy]) == 1 for policy in asked))
        if is_one and who not in self.asks[-2].authors and not _seats_of(asked) - _seats_of(before):
            self.newest.yes[who] = now

    def has_quorum(self, ask: Ask, now: datetime) -> bool:
        """Whether it may go out now: enough people, each of them there, with a key and the role, in time."""
        if ask.over or REQUESTER in {*self.away, *self.revoked}:
            return False
        agreed = self._counting(ask.yes)
        # What is in force now is asked too, whatever it was when they voted.
        enough = all(self._seated(SEATS[policy], agreed) for policy in (*ask.asked_of, self.in_force))
        if enough and _is_fresh(ask.yes, agreed, now):
            return True
        officers = [who for who in self._counting(ask.glass) if "officer" in self.roles[who]]
        # Glass that is put in later is not there to be broken.
        may_break = all(policy in BREAKABLE for policy in ask.asked_of)
        return may_break and len(officers) >= 2 and _is_fresh(ask.glass, officers, now)

    def _counting(self, said: Iterable[str]) -> list[str]:
        return [who for who in said if who not in {*self.away, *self.revoked, REQUESTER}]

    def _seated(self, seats: list[Seat], people: list[str]) -> bool:
        """Whether every seat can be taken, those that are one person's alone each by another person."""
        alone = [role for role, own in seats if own]
        shared = [role for role, own in seats if not own]
        return all(any(role in self.roles[who] for who in people) for role in shared) and any(
            all(role in self.roles[who] for role, who in zip(alone, chosen, strict=True))
            for chosen in itertools.permutations(people, len(alone))
        )


def _seats_of(policies: Iterable[str]) -> Counter[Seat]:
    """All seats that some policy among them asks for, as often as the one that asks most often."""
    return reduce(or_, (Counter(SEATS[policy]) for policy in policies), Counter())


def _is_fresh(said: dict[str, datetime], people: list[str], now: datetime) -> bool:
    return bool(people) and now < max(said[who] for who in people) + WINDOW
