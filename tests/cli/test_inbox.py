"""What waits for a person: all of it, nothing that is not theirs, and the nearest deadline first."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from countersign.cli.session import now
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
