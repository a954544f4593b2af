"""Plays every row of the specification on a real ledger, with signed statements, through the real gateway."""

from __future__ import annotations

import pytest

from tests.authority.house import House
from tests.authority.script import Row, play, rows


@pytest.mark.parametrize("row", rows())
def test_what_people_decide_and_what_comes_of_it(house: House, row: Row) -> None:
    play(house, row)


@pytest.mark.parametrize("row", rows(first_only=True))
def test_the_first_row_of_each_promise_on_postgres_too(postgres_house: House, row: Row) -> None:
    play(postgres_house, row)


def test_every_row_has_a_name_of_its_own() -> None:
    names = [one.id for one in rows()]

    assert len(set(names)) == len(names) >= 120
