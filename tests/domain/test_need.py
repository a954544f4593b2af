"""Ladders: who is asked from when on, what they may decide, when something is due, and when the time is over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from countersign.domain.directory import Person
from countersign.domain.need import Approver, Need, freezes, ticks, unmet
from countersign.domain.policy import Answer, Assessment
from tests.domain.samples import DEADLINE, NOW, a_need, a_person, a_policy, approvers, by_people

pytestmark = pytest.mark.guarantee("G27")

MINUTE, HOUR, MOMENT = timedelta(minutes=1), timedelta(hours=1), timedelta(microseconds=1)


def a_tier(after: str, role: str = "lead", **more: Any) -> dict[str, Any]:
    return {"after": after, "role": role, "decisions": ["approve", "reject"], **more}


def laddered(*tiers: dict[str, Any], approvals: int = 1, remind: Any = (), then: str = "expire", **need: Any) -> Need:
    ladder = {"tiers": tiers, "remind": remind, "then": then}
    return a_need(approvals=approvals, ladder=ladder, **need)


MALFORMED: list[tuple[Any, dict[str, Any], str]] = [
    # the tiers, what else the need says, what is wrong
    ([a_tier("2h"), a_tier("1h")], {}, "the tier after 1h does not come after the one before"),
    ([a_tier("1h"), a_tier("60m")], {}, "the tier after 60m does not come after the one before"),
    ([a_tier("72h")], {}, "the tier after 72h begins when the time to decide is over"),
    ([a_tier("73h")], {}, "the tier after 73h begins when the time to decide is over"),
    # A tier that extends reaches no further than its own extension.
    ([a_tier("71h", extends="4h"), a_tier("75h")], {}, "the tier after 75h begins when the time to decide is over"),
    ([a_tier("1h", extends="2h"), a_tier("73h")], {}, "the tier after 73h begins when the time to decide is over"),
    ([], {"remind": ["72h"]}, "a reminder comes when the time to decide is over"),
    ([a_tier("71h", extends="4h")], {"remind": ["75h"]}, "a reminder comes when the time to decide is over"),
    ([a_tier("1h", decisions=[])], {}, "at least 1 item"),
    ([a_tier("1h", decisions=["break_glass"])], {}, "Input should be"),
    ([a_tier("1h", approvals=1)], {}, "Extra inputs"),
    ([a_tier("0h")], {}, "is no time"),
    ([a_tier("1h", role="Lead")], {}, "is not allowed"),
    ([], {"then": "execute"}, "'expire' or 'freeze'"),
    ([], {"then": "approve"}, "'expire' or 'freeze'"),
]


@pytest.mark.parametrize(("tiers", "more", "problem"), MALFORMED, ids=[case[2] for case in MALFORMED])
def test_a_ladder_that_could_not_be_climbed_or_would_end_in_a_yes_is_refused(
    tiers: Any, more: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        laddered(*tiers, **more)


TIMES = [
    # tiers, how long people have
    ([], 72 * HOUR),
    ([a_tier("48h")], 72 * HOUR),
    ([a_tier("48h", extends="48h")], 96 * HOUR),
    # It gives more time and never takes any.
    ([a_tier("48h", extends="1h")], 72 * HOUR),
    ([a_tier("48h", extends="48h"), a_tier("95h", role="chief", extends="24h")], 119 * HOUR),
]


@pytest.mark.parametrize(("tiers", "open_for"), TIMES)
def test_a_deadline_is_one_instant_and_later_only_where_a_tier_says_so(tiers: Any, open_for: timedelta) -> None:
    need = laddered(*tiers)

    assert need.open_for() == open_for
    times = Assessment(answer=Answer.PEOPLE, rules=("r",), needs=(need,)).times(NOW)
    assert times == (NOW + open_for, NOW + open_for + HOUR)


def test_of_several_needs_the_shortest_time_counts_extended_or_not() -> None:
    longer = laddered(a_tier("48h", extends="48h"))

    assert Assessment(answer=Answer.PEOPLE, rules=("r",), needs=(longer, a_need("lawyer"))).times(NOW)[0] == DEADLINE


FIRE = laddered(
    a_tier("5m", "duty_lead"),
    a_tier("15m", "incident", tell=["operator", "incident"], decisions=["reject"]),
    remind=["2m", "10m"], then="freeze", decide_within="30m",
)  # fmt: skip
"""0 to 5 minutes the first line, 5 to 15 the duty lead too, then whoever handles incidents, who can only stop it."""


@pytest.mark.parametrize(
    ("waited", "asked"),
    [
        (-MINUTE, "reviewer"),
        (0 * MINUTE, "reviewer"),
        (5 * MINUTE - MOMENT, "reviewer"),
        (5 * MINUTE, "reviewer duty_lead"),
        (15 * MINUTE - MOMENT, "reviewer duty_lead"),
        (15 * MINUTE, "reviewer duty_lead incident"),
        (30 * MINUTE, "reviewer duty_lead incident"),
    ],
)
def test_a_line_is_asked_from_its_time_on_and_the_earlier_ones_still_are(waited: timedelta, asked: str) -> None:
    assert FIRE.roles(waited) == tuple(asked.split())


def test_each_reminder_and_tier_is_due_once_and_tells_those_it_is_about() -> None:
    assert [(tick.at - NOW, tick.kind, tick.roles) for tick in ticks([FIRE], NOW, NOW + FIRE.open_for())] == [
        (2 * MINUTE, "remind", ("reviewer",)),
        (5 * MINUTE, "tier", ("duty_lead",)),
        (10 * MINUTE, "remind", ("reviewer", "duty_lead")),
        (15 * MINUTE, "tier", ("incident", "operator")),
    ]


def test_two_rules_with_the_same_ladder_are_due_once_and_nothing_is_due_from_the_deadline_on() -> None:
    twice = ticks([FIRE, FIRE], NOW, NOW + 15 * MINUTE)

    assert [tick.at - NOW for tick in twice] == [2 * MINUTE, 5 * MINUTE, 10 * MINUTE]
    assert ticks([a_need()], NOW, DEADLINE) == ()


@pytest.mark.guarantee("G24")
def test_a_run_is_held_at_the_deadline_if_any_need_says_so() -> None:
    assert freezes([a_need(), FIRE])
    assert not freezes([a_need(), laddered(a_tier("1h"))])
    assert not freezes([])


LEAD, INCIDENT = a_person("lea", "duty_lead"), a_person("ian", "incident")


@pytest.mark.guarantee("G06")
def test_whoever_voted_before_their_line_was_asked_does_not_count_later() -> None:
    assert unmet((FIRE,), approvers(LEAD, waited=5 * MINUTE - MOMENT)) == (FIRE,)
    assert unmet((FIRE,), approvers(LEAD, waited=5 * MINUTE)) == ()
    assert unmet((FIRE,), approvers(a_person("bob"), waited=-MINUTE)) == ()


def test_a_line_that_can_only_stop_it_never_counts_towards_a_yes() -> None:
    assert unmet((FIRE,), approvers(INCIDENT, waited=20 * MINUTE)) == (FIRE,)


ALLOWED = [
    # who, how long people have waited, what they may decide
    (a_person("bob"), 0 * MINUTE, "approve reject"),
    (a_person("bob"), 20 * MINUTE, "approve reject"),
    (LEAD, 20 * MINUTE, "approve reject"),
    (INCIDENT, 20 * MINUTE, "reject"),
    # All that any of their lines may.
    (a_person("ida", "incident", "reviewer"), 20 * MINUTE, "approve reject"),
    # Who belongs to no line is held to the need's own, in case another need asks them.
    (a_person("nora", "lawyer"), 20 * MINUTE, "approve reject"),
    (INCIDENT, 14 * MINUTE, "approve reject"),
]


@pytest.mark.parametrize(("person", "waited", "allowed"), ALLOWED)
def test_a_line_may_decide_what_the_policy_gives_it(person: Person, waited: timedelta, allowed: str) -> None:
    assert FIRE.allowed(person, waited) == set(allowed.split())


def test_what_is_offered_is_what_any_line_may_by_then() -> None:
    need = laddered(a_tier("1h", decisions=["edit"]), decisions=("approve",))

    assert need.offered(HOUR - MOMENT) == {"approve"}
    assert need.offered(HOUR) == {"approve", "edit"}


ROLES = ["reviewer", "lead", "chief", "lawyer"]
TIERS = st.lists(st.tuples(st.integers(1, 71), st.sampled_from(ROLES)), max_size=3, unique_by=lambda tier: tier[0])
WAITED = st.integers(-60, 80 * 60).map(lambda minutes: minutes * MINUTE)


@pytest.mark.guarantee("G04")
@given(
    approvals=st.integers(1, 3),
    distinct=st.booleans(),
    tiers=TIERS,
    voters=st.lists(st.tuples(st.sets(st.sampled_from(ROLES)), WAITED), max_size=4),
)
def test_no_ladder_lets_fewer_persons_suffice_nor_a_line_count_before_its_time(
    *, approvals: int, distinct: bool, tiers: list[tuple[int, str]], voters: list[tuple[set[str], timedelta]]
) -> None:
    written = [a_tier(f"{hours}h", role) for hours, role in sorted(tiers)]
    need = laddered(*written, approvals=approvals, distinct=distinct)
    agreed = {
        f"p{number}": Approver(a_person(f"p{number}", *(roles or {"nobody"})), waited)
        for number, (roles, waited) in enumerate(voters)
    }
    entitled = [
        roles for roles, waited in voters
        if "reviewer" in roles or any(role in roles and waited >= hours * HOUR for hours, role in tiers)
    ]  # fmt: skip

    assert (unmet((need,), agreed) == ()) == (len(entitled) >= approvals)


def test_a_policy_from_before_there_were_ladders_keeps_its_label() -> None:
    """It is pinned in proposals that may be pending still, and in grants."""
    policy = a_policy(by_people("r", {"tool": "t"}))

    assert policy.label() == "report/1@sha256:6009f09da326c6163b8a6b9429db1bbe4c1fa1c5f305328c7d66ede47dce252a"
    assert not {"takeover", "escalations"} & policy.model_dump(mode="json").keys()
    assert "ladder" not in policy.model_dump(mode="json")["rules"][0]["need"]
