"""A run as design.md tells it, by hand: states, who moves next, and what time and messages do. No server, no ledger.

Nothing here is taken from the transition table or from the rulings of the code that it is compared with.
"""

from __future__ import annotations

from datetime import datetime

from tests.course.terms import LEADS, OPERATOR, REQUESTER, REVIEWERS, Terms
from tests.course.values import Ask, Draft, Said

ENDS = {"SUCCEEDED", "REJECTED", "EXPIRED", "WITHDRAWN", "CANCELLED", "FAILED"}
UNDECIDED = "undecided_at_deadline"


class Model:
    """One run."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.state, self.reason = "RUNNING", ""
        self.trail = [("RUNNING", "")]
        self.in_control, self.version = "agent", 1
        self.lease_until: datetime | None = None
        self.drafts: list[Draft] = []
        self.authors: frozenset[str] = frozenset()
        self.asks: list[Ask] = []
        self.orders: list[Said] = []
        """What the person in control asked for and the run has not done yet."""
        self.called_until: datetime | None = None
        self.agent_writes = True
        """Whether the agent is let go on when it drafts."""
        self.messages = self.refused = self.ticks = self.published = 0

    @property
    def ended(self) -> bool:
        """Whether nobody moves next."""
        return self.state in ENDS

    @property
    def ask(self) -> Ask | None:
        """The newest."""
        return self.asks[-1] if self.asks else None

    @property
    def pending(self) -> Ask | None:
        """The one that people can decide about."""
        return self.ask if self.ask is not None and self.ask.status == "pending" else None

    def due(self) -> datetime | None:
        """When time does something next."""
        if self.ended:
            return None
        if self.state == "HUMAN_TAKEOVER":
            return self.lease_until
        ask = self.pending
        if ask is None:
            return self.called_until
        ticks = self.terms.ticks()
        return ask.proposed_at + (ticks[ask.ticked][0] if ask.ticked < len(ticks) else self.terms.open_for)

    def pass_to(self, now: datetime, *, ticking: bool = True, lapsing: bool = True) -> None:
        """Whatever is due by `now` happens; at the very instant too.

        Not `ticking`: nobody is reminded, or asked in addition; not `lapsing`: no lease is ended. While the workers are
        away it is so; a lead counts then, and a holder does not, by the clock alone.
        """
        while (due := self.due()) is not None and due <= now:
            if (not ticking and self._tick_next()) or (not lapsing and self.state == "HUMAN_TAKEOVER"):
                return
            self._pass(due)

    def skipped(self, now: datetime) -> int:
        """How many reminders and tiers are due by `now` and were not told of."""
        ask = self.pending if self.state != "HUMAN_TAKEOVER" else None
        ticks = self.terms.ticks()[ask.ticked :] if ask is not None else []
        return sum(ask is not None and ask.proposed_at + after <= now for after, _ in ticks)

    def _tick_next(self) -> bool:
        ask = self.pending
        waits = ask is not None and self.state != "HUMAN_TAKEOVER"
        return waits and ask is not None and ask.ticked < len(self.terms.ticks())

    def _pass(self, due: datetime) -> None:
        if self.state == "HUMAN_TAKEOVER":
            self._hands("nobody", None)
            self._held(due, "lease_over")
            return
        ask = self.pending
        if ask is None:
            # That nobody decided is no failure.
            self._move("EXPIRED" if self.reason == UNDECIDED else "FAILED", self.reason)
        elif ask.ticked < len(self.terms.ticks()):
            kind = self.terms.ticks()[ask.ticked][1]
            ask.ticked += 1
            self.ticks += 1
            if kind == "tier":
                self._move("ESCALATED", "nobody_decided")
        else:
            ask.status = "expired"
            if self.terms.held:
                self._held(due, UNDECIDED)
            else:
                self._move("EXPIRED", UNDECIDED)

    def _held(self, at: datetime, reason: str) -> None:
        within = self.terms.called_within
        self.called_until = None if within is None else at + within
        self._move("ESCALATED", reason)

    def hear(self, said: Said, at: datetime) -> bool:
        """Whether what was recorded at `at` is accepted, and what it does; time must have passed to `at` before."""
        self.messages += 1
        accepted = said.kind != "garbage" and not said.repeated and not self.ended and self._heard(said, at)
        self.refused += not accepted
        return accepted

    def _heard(self, said: Said, at: datetime) -> bool:
        if said.kind in ("approve", "reject", "edit"):
            return self._decided(said, at)
        if said.kind in ("withdraw", "supersede", "cancel"):
            return self._ended_by(said, at)
        if said.version != self.version:
            return False
        return self._taken_over(said, at) if said.kind == "take_over" else self._commanded(said, at)

    def _decided(self, said: Said, at: datetime) -> bool:
        ask = self.pending
        if ask is None or said.about != ask.number or at >= ask.proposed_at + self.terms.open_for:
            return False
        lead_asked = any(ask.proposed_at + tier <= at for tier in self.terms.tiers)
        is_asked = said.who in REVIEWERS or (said.who in LEADS and lead_asked)
        if not is_asked or said.who in ask.votes:
            return False
        if said.kind == "edit" and said.who not in REVIEWERS:
            return False
        if said.kind == "approve" and said.who in ask.authors:
            return False
        self._voted(ask, said)
        return True

    def _voted(self, ask: Ask, said: Said) -> None:
        ask.votes.append(said.who)
        if said.kind == "reject":
            ask.status = "rejected"
            self._move("REJECTED", "rejected")
        elif said.kind == "edit":
            ask.status = "edited"
            self.authors |= {said.who}
            self._move("RUNNING", "edited")
        elif len(ask.votes) == self.terms.approvals:
            ask.status = "granted"
            self._move("EXECUTING", "granted")

    def _taken_over(self, said: Said, at: datetime) -> bool:
        held = self.in_control not in ("agent", "nobody") and (self.lease_until is None or at < self.lease_until)
        if said.who not in LEADS or held:
            return False
        self._hands(said.who, at)
        self._move("HUMAN_TAKEOVER", "taken_over")
        return True

    def _commanded(self, said: Said, at: datetime) -> bool:
        if said.who != self.in_control or (self.lease_until is not None and at >= self.lease_until):
            return False
        if said.kind == "hand_over":
            return self._handed_over(said, at)
        latest = len(self.drafts)
        if said.kind in ("amend", "release"):
            if said.draft != latest:
                return False
        elif not 1 <= said.draft <= latest:
            return False
        if said.kind == "release":
            self._hands("agent", at)
            self._move("RUNNING", "released")
            return True
        self._renew(at)
        self._taken_back()
        if said.kind == "amend":
            self.drafts.append(Draft(said.sound))
            self.authors |= {said.who}
        self.orders.append(said)
        return True

    def _taken_back(self) -> None:
        """Whatever the person in control goes on with, what they put before others is theirs again."""
        self._close()
        self.called_until = None
        if self.state != "HUMAN_TAKEOVER":
            self._move("HUMAN_TAKEOVER", "taken_back")

    def _handed_over(self, said: Said, at: datetime) -> bool:
        if said.to not in LEADS or said.to == said.who:
            return False
        self._hands(said.to, at)
        self._move("HUMAN_TAKEOVER", "taken_over")
        return True

    def _worked(self, said: Said, at: datetime) -> None:
        draft = self.drafts[said.draft - 1]
        if said.kind == "amend":
            return
        if said.kind == "grade":
            draft.graded = draft.sound
        elif self.orders:
            # Whatever was asked for after a proposal takes it back.
            self._move("HUMAN_TAKEOVER", "taken_back")
        elif draft.sound and draft.graded:
            self._propose(said.draft, at, self.authors | {said.who}, "needs_people")
        else:
            # They see why not, and go on.
            self._move("HUMAN_TAKEOVER", "conflict")

    def _ended_by(self, said: Said, at: datetime) -> bool:
        if said.kind == "cancel":
            holds = said.who == self.in_control and (self.lease_until is None or at < self.lease_until)
            if said.who not in LEADS and said.who != OPERATOR and not holds:
                return False
        elif said.who != REQUESTER:
            return False
        closed = {"withdraw": "withdrawn", "supersede": "superseded", "cancel": "cancelled"}[said.kind]
        self._close(closed)
        reason = "cancelled_by_operator" if said.kind == "cancel" else closed
        self._move("WITHDRAWN" if said.kind == "withdraw" else "CANCELLED", reason)
        return True

    def cancelled(self) -> None:
        """Temporal's own cancel, of a run that waits."""
        if self.pending is not None:
            self.pending.status = "cancelled"
        self._move("CANCELLED", "cancelled")

    def agent_moves(self, at: datetime) -> None:
        """Whatever the run, its agent and the gateway have to do, where nobody stops them."""
        while self.orders and not self.ended:
            self._taken_back()
            self._worked(self.orders.pop(0), at)
        if self.state == "RUNNING" and self.reason == "edited" and self.ask is not None:
            edited = self.ask
            self._propose(edited.draft, at, self.authors | edited.authors, "edited")
            # Where one suffices, the reviewer's own edit is the approval that it needs.
            if self.terms.approvals == 1:
                self.asks[-1].votes, self.asks[-1].status = [edited.votes[-1]], "granted"
                self._move("EXECUTING", "granted")
        elif self.state == "RUNNING":
            if not self.drafts or not self.drafts[-1].sound:
                if not self.agent_writes:
                    return
                self.drafts.append(Draft(sound=True))
            self.drafts[-1].graded = True
            self._propose(len(self.drafts), at, self.authors, "needs_people")
        if self.state == "EXECUTING" and self.ask is not None:
            self.ask.status = "consumed"
            self.published += 1
            self._move("SUCCEEDED", "")

    def _propose(self, draft: int, at: datetime, authors: frozenset[str], reason: str) -> None:
        self.authors = authors
        self.asks.append(Ask(len(self.asks) + 1, at, draft, authors))
        self._move("WAITING_APPROVAL", reason)

    def _hands(self, who: str, at: datetime | None) -> None:
        self.in_control, self.version = who, self.version + 1
        self.lease_until = self.called_until = None
        self.orders.clear()
        self._close()
        if at is not None and who != "agent":
            self._renew(at)

    def _close(self, status: str = "superseded") -> None:
        if self.ask is not None and self.ask.status in ("pending", "granted"):
            self.ask.status = status

    def _renew(self, at: datetime) -> None:
        self.lease_until = None if self.terms.lease is None else at + self.terms.lease

    def _move(self, state: str, reason: str) -> None:
        self.state, self.reason = state, reason
        self.trail.append((state, reason))
