"""No order of votes, edits, demotions, revocations, repeats and policy changes lets anything out without a quorum.

A machine does at random what people, administrators, the run and time can do, and has it counted by hand (tally.py);
whenever the gateway executes something, that count must hold a quorum.

CI plays a few dozen courses; AUTHORITY_ROUNDS=100 in the environment plays a hundred times as many.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.signing.statements import sign_decision
from tests.authority.house import House, Tenant, private_key
from tests.authority.people import POLICIES, ROLES
from tests.authority.tally import SEATS, Ask, Tally

EXAMPLES, STEPS = 20, 25
DECIDERS = ["bob", "carl", "dora", "lois", "lena", "olga", "otto", "omar", "rita"]
CHANGING_ROLES = ["reviewer", "lawyer", "officer"]
TITLES = ["Sales", "Sales of Q2", "Sales of Q3"]
MINUTES = [1, 20, 40, 59, 60, 5_000]


class Everything(RuleBasedStateMachine):
    """All that can happen to one operation of one tenant."""

    house: ClassVar[House]
    effects: ClassVar[list[Ask]]
    """What was executed, in all courses together."""
    numbers: ClassVar[itertools.count[int]] = itertools.count(1)

    @initialize(policy=st.sampled_from([name for name in sorted(SEATS) if name != "one"]))
    def begin(self, policy: str) -> None:
        """Rita asks, under that policy."""
        self.tenant = Tenant(self.house, f"any-{next(self.numbers)}", POLICIES[policy])
        self.tenant.ask()
        self.tally = Tally(policy, {name: set(ROLES[name].split()) for name in DECIDERS})
        self.tokens: list[str] = []
        self.messages = 0
        self.executed = 0
        self._asked([policy], set())

    @rule(
        what=st.sampled_from(
            "approve approve approve all_approve glass both_break edit edit edit end old another_name repeat repeat "
            "role role leave_or_return revoke adopt wait wait another_run execute finish finish finish finish "
            "amend amend".split()
        ),
        who=st.sampled_from(DECIDERS),
        which=st.integers(0, 8),
    )
    def happen(self, what: str, who: str, which: int) -> None:
        """One move; `which` says which version, role, title, policy or time, where the move has several."""
        moves: dict[str, Callable[[str, int], None]] = {
            "approve": lambda who, _: self._send(who, "approve"), "all_approve": self.all_approve,
            "glass": lambda who, _: self._send(who, "break_glass"), "both_break": self.both_break, "edit": self.edit,
            "end": self.end, "old": self.old, "another_name": self.another_name, "repeat": self.repeat,
            "role": self.role, "leave_or_return": self.leave_or_return, "revoke": self.revoke, "adopt": self.adopt,
            "wait": self.wait, "another_run": self.another_run, "execute": self.execute, "finish": self.finish,
            "amend": self.amend,
        }  # fmt: skip
        moves[what](who, which)

    @invariant()
    def at_most_one_effect(self) -> None:
        """Whatever happened: one publication at the most, and none that was not counted."""
        published = self.tenant.house.published(f"{self.tenant.name}.md")
        assert len(published) == self.executed <= 1

    # What people do.

    def all_approve(self, who: str, which: int) -> None:
        """From this person on, so many say yes, one after the other."""
        first = DECIDERS.index(who)
        for one in [*DECIDERS[first:], *DECIDERS[:first]][: which + 1]:
            self._send(one, "approve")

    def both_break(self, who: str, which: int) -> None:
        """The officers, and one more, break the glass, in one order or another."""
        for person in list(itertools.permutations(["olga", "otto", who]))[which % 6]:
            self._send(person, "break_glass")

    def edit(self, who: str, which: int) -> None:
        """Somebody edits the title; where that is accepted, the run asks again."""
        tenant, was = self.tenant, self.tally.newest
        action = tenant.edited(title=TITLES[which % 3])
        tenant.keep(action)
        token = self._signed(who, "edit", tenant.current, edited_action=action.hash())
        if self._receive(token).ruling == Ruling.ACCEPTED:
            self.tally.accepted(who, "edit", tenant.now)
            tenant.ask_again()
            # What was asked before is asked of the edited action too.
            self._asked([*was.asked_of, self.tally.in_force], {*was.authors, who})
            assert self.tally.newest.action_hash == action.hash(), "another action was asked for than was signed"
            self.tally.edited(who, tenant.now)

    def end(self, who: str, which: int) -> None:
        """Somebody says no; not too often."""
        if which < 2:
            self._send(who, "reject")

    def old(self, who: str, which: int) -> None:
        """Somebody says yes to a version that they saw before."""
        self._send(who, "approve", self._version(which))

    def another_name(self, who: str, which: int) -> None:
        """Somebody signs in another's name with their own key."""
        other = DECIDERS[which]
        if other != who:
            said = self.tenant.statement(other, "approve")
            assert self._receive(sign_decision(said, private_key(f"{who}-1"))).ruling == Ruling.BAD_STATEMENT

    def repeat(self, who: str, which: int) -> None:
        """Somebody sends again what was sent before."""
        for token in self.tokens[-which:][:1]:
            assert self._receive(token).ruling != Ruling.ACCEPTED

    # What administrators do.

    def role(self, who: str, which: int) -> None:
        """Somebody gets a role, or loses it."""
        self.tally.roles[who] ^= {CHANGING_ROLES[which % 3]}
        self.tenant.move(who, roles=frozenset(self.tally.roles[who]))

    def leave_or_return(self, who: str, which: int) -> None:
        """Somebody leaves, or comes back."""
        self.tally.away ^= {who}
        self.tenant.move(who, active=who not in self.tally.away)

    def revoke(self, who: str, which: int) -> None:
        """Somebody's only key is revoked."""
        if who not in self.tally.revoked:
            self.tally.revoked.add(who)
            self.tenant.revoke(f"{who}-1")

    def adopt(self, who: str, which: int) -> None:
        """Another policy comes in force."""
        self.tally.in_force = sorted(SEATS)[which]
        self.tenant.adopt(POLICIES[self.tally.in_force])

    # What time and the run do.

    def wait(self, who: str, which: int) -> None:
        """Time passes; a deadline too."""
        self.tenant.now += timedelta(minutes=MINUTES[which % 6])

    def another_run(self, who: str, which: int) -> None:
        """The run is reset or started anew, and asks for the same under the policy in force."""
        tenant = self.tenant
        self.tally.newest.over |= tenant.current.status in (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)
        tenant.ask_anew()
        self._asked([self.tally.in_force], set())

    def execute(self, who: str, which: int) -> None:
        """Somebody asks the gateway, mostly for the newest version; where that is void, the run asks again."""
        tenant = self.tenant
        approval = self._version(which) if which < 2 else tenant.asked[-1]
        ask = self.tally.asks[tenant.asked.index(approval)]
        result = tenant.execute(approval)
        if len(tenant.house.published(f"{tenant.name}.md")) > self.executed:
            self.executed += 1
            self.effects.append(ask)
            assert self.tally.has_quorum(ask, tenant.now), f"executed without a quorum: {ask} in {self.tally}"
        if result.voided:
            ask.over = True
            if ask is self.tally.newest:
                tenant.ask_again()
                self._asked([*ask.asked_of, self.tally.in_force], ask.authors)

    def finish(self, who: str, which: int) -> None:
        """As many as it takes agree, something may come between, and the newest version is to be executed."""
        (self.both_break if which == 0 else self.all_approve)(who, 8)
        between = {1: self.role, 2: self.leave_or_return, 3: self.revoke, 4: self.wait, 5: self.edit}
        between.get(which, self.at_once)(who, which)
        self.execute(who, 8)

    def amend(self, who: str, which: int) -> None:
        """Another policy comes in force, somebody edits the title, and as many as it takes agree to that."""
        self.adopt(who, which)
        self.edit(who, 1 + which % 2)
        self.all_approve(who, 8)
        self.execute(who, 8)

    def at_once(self, who: str, which: int) -> None:
        """Nothing comes between."""

    # How it is done.

    def _asked(self, asked_of: list[str], authors: set[str]) -> None:
        proposal = self.tenant.asked[-1].proposal
        self.tally.asks.append(Ask(proposal.action_hash, proposal.deadline, asked_of, authors))

    def _version(self, which: int) -> Approval:
        return self.tenant.asked[which % len(self.tenant.asked)]

    def _message(self) -> str:
        self.messages += 1
        return f"m-{self.messages}"

    def _signed(self, who: str, kind: str, about: Approval, **said: str) -> str:
        token = sign_decision(self.tenant.statement(who, kind, about, **said), private_key(f"{who}-1"))
        self.tokens.append(token)
        return token

    def _receive(self, token: str) -> Outcome:
        return self.tenant.receive(token, self._message())

    def _send(self, who: str, kind: str, about: Approval | None = None) -> None:
        newest = self.tenant.asked[-1]
        if self._receive(self._signed(who, kind, about or newest)).ruling == Ruling.ACCEPTED:
            assert about in (None, newest), "an old version was decided"
            self.tally.accepted(who, kind, self.tenant.now)


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G03")
@pytest.mark.guarantee("G04")
@pytest.mark.guarantee("G05")
@pytest.mark.guarantee("G06")
@pytest.mark.guarantee("G10")
@pytest.mark.guarantee("G11")
@pytest.mark.guarantee("G12")
@pytest.mark.guarantee("G14")
@pytest.mark.guarantee("G16")
@pytest.mark.guarantee("G17")
@pytest.mark.guarantee("G25")
@pytest.mark.timeout(0)
def test_nothing_goes_out_without_a_quorum_on_exactly_that(house: House) -> None:
    Everything.house, Everything.effects = house, []
    rounds = int(os.environ.get("AUTHORITY_ROUNDS", "1"))
    run_state_machine_as_test(
        Everything,
        settings=settings(
            max_examples=EXAMPLES * rounds, stateful_step_count=STEPS, deadline=None, database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
    # A gateway that refuses everything would keep the promise too.
    assert Everything.effects
