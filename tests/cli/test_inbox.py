"""What waits for a person: all of it, nothing that is not theirs, and the nearest deadline first."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from countersign.cli.session import now
from countersign.domain.need import Ladder, Need, Tier
from countersign.domain.policy import Answer, Assessment
from countersign.domain.state import State
from tests.cli.desk import ACME, Desk


def waiting(desk: Desk, person: str) -> list[str]:
    listed = desk.cli.done("inbox", *ACME, "--as", person, "--json").json()
    return [one["operation"] for one in listed]


def test_its_json_is_as_documented(desk: Desk) -> None:
    desk.asked()
    (one,) = desk.cli.done("inbox", *ACME, "--as", "bob", "--json").json()
    documented = (Path(__file__).parents[2] / "docs" / "json.md").read_text().partition("## `inbox`")[2]
    assert set(one) == set(re.findall(r"^\| `(\w+)` \|", documented.partition("## ")[0], re.MULTILINE))


def test_the_nearest_deadline_comes_first_and_next_shows_exactly_that(desk: Desk) -> None:
    for operation, hours in (("later", 60), ("soon", 2), ("between", 30)):
        deadline = now() + timedelta(hours=hours)
        desk.asked(operation, deadline=deadline, execute_by=deadline + timedelta(hours=1))
    assert waiting(desk, "bob") == ["soon", "between", "later"]
    shown = desk.cli.done("next", *ACME, "--as", "bob").out
    assert "public:soon.md" in shown
    assert "starter.py approve soon --tenant acme --as bob" in shown
    assert "2 more after this" in shown


@pytest.mark.guarantee("G02", "G04")
def test_nothing_waits_for_whoever_may_not_decide_it(desk: Desk) -> None:
    made = desk.asked("report-7", approvals=2)
    assert waiting(desk, "rita") == []
    assert waiting(desk, "ada") == []
    assert waiting(desk, "bob") == waiting(desk, "carl") == ["report-7"]
    desk.vote(made, "bob")
    assert waiting(desk, "bob") == []
    assert waiting(desk, "carl") == ["report-7"]


@pytest.mark.guarantee("G24")
def test_what_has_expired_waits_for_nobody(desk: Desk) -> None:
    desk.asked("gone", deadline=now() - timedelta(seconds=1), execute_by=now() + timedelta(hours=1))
    assert "nothing waits for bob" in desk.cli.done("inbox", *ACME, "--as", "bob").out
    assert "nothing waits for bob" in desk.cli.done("next", *ACME, "--as", "bob").out


@pytest.mark.guarantee("G09")
def test_a_person_of_no_tenant_or_another_is_not_there(desk: Desk) -> None:
    desk.asked()
    unknown = desk.cli("inbox", *ACME, "--as", "nobody")
    elsewhere = desk.cli("inbox", "--tenant", "globex", "--as", "bob")
    assert (unknown.code, elsewhere.code) == (1, 1)
    assert "nobody is not in the directory of tenant acme" in unknown.err
    assert "bob is not in the directory of tenant globex" in elsewhere.err


def laddered(desk: Desk, operation: str, *, minutes_ago: int) -> None:
    """A proposal for which the leads are asked too after five minutes, and everybody is reminded after one hour."""
    tier = Tier(after="5m", role="lead", decisions=("approve", "reject"))
    need = Need(
        role="reviewer", approvals=1, decisions=("approve", "edit", "reject"), decide_within="2h", execute_within="1h",
        ladder=Ladder(remind=("1h",), tiers=(tier,)),
    )  # fmt: skip
    at = now() - timedelta(minutes=minutes_ago)
    assessment = Assessment(answer=Answer.PEOPLE, rules=("external",), needs=(need,))
    deadline, execute_by = assessment.times(at)
    desk.asked(operation, assessment=assessment, proposed_at=at, deadline=deadline, execute_by=execute_by)
    desk.stands(operation, State.WAITING_APPROVAL)


@pytest.mark.guarantee("G27")
def test_a_further_line_is_asked_from_its_time_on_and_the_first_still_is(desk: Desk) -> None:
    laddered(desk, "early", minutes_ago=1)
    laddered(desk, "waited", minutes_ago=10)

    assert waiting(desk, "bob") == ["waited", "early"]
    (one,) = desk.cli.done("inbox", *ACME, "--as", "lea", "--json").json()
    assert (one["operation"], one["decisions"]) == ("waited", ["approve", "reject"])
    assert "you are asked from " in desk.cli("approve", "early", *ACME, "--as", "lea").err


@pytest.mark.guarantee("G27")
def test_who_is_asked_now_and_what_comes_next_is_told_in_the_same_words_everywhere(desk: Desk) -> None:
    laddered(desk, "early", minutes_ago=1)
    laddered(desk, "waited", minutes_ago=10)

    for operation, roles, tick in (("early", "reviewer", "further people are asked: lead"),
                                   ("waited", "reviewer or lead", "reminded: reviewer, lead")):  # fmt: skip
        status = desk.cli.done("status", operation, *ACME).out
        explained = desk.cli.done("policy", "explain", operation, *ACME).out
        review = desk.review(operation)
        assert re.search(rf"^waits for +1 of role {roles}$", status, re.MULTILINE)
        assert re.search(rf"^asked now +1 of role {roles}$", explained, re.MULTILINE)
        for shown in (status, explained, review):
            assert re.search(rf"^ *next +\S+Z: {tick}$", shown, re.MULTILINE)
        assert re.search(rf"^  asked now +{roles.replace(' or ', ', ')}$", review, re.MULTILINE)
