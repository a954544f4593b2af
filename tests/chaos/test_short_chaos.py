"""A few rounds of the kill matrix, the most dangerous first; `make chaos` plays hundreds (G36, G37)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.campaign import Campaign, table, total
from tests.chaos.refunds import FAULTS
from tests.chaos.round import Played
from tests.chaos.scenario import POINTS, scenario
from tests.chaos.world import PARTS

ROUNDS = 5
MATRIX = 200
"""Rounds after which nothing of the matrix is left out."""


@pytest.mark.timeout(300)
@pytest.mark.guarantee("G36", "G37")
async def test_killed_anywhere_an_operation_has_one_effect_after_approval_and_none_without(tmp_path: Path) -> None:
    told: list[Played] = []
    rounds = await Campaign(tmp_path, seed=0, worlds=2).play(range(1, ROUNDS + 1), told.append)
    lines = "\n".join(table(rounds))
    assert total(rounds) == f"chaos rounds={ROUNDS} double=0 lost=0 audit_invalid=0", lines
    assert all(played.struck for played in rounds if played.scenario.point), lines
    assert {played.allowed.refunds for played in rounds} == {0, 1}
    assert len(told) == ROUNDS


def test_the_long_run_leaves_out_no_part_at_any_point_and_no_fault() -> None:
    """Whatever is added to the matrix, or to its mixture, the default number of rounds has to hold all of it."""
    rounds = [scenario(number, 0) for number in range(1, MATRIX + 1)]
    assert {(part, point) for part in PARTS for point in POINTS} <= {(each.part, each.point) for each in rounds}
    assert set(FAULTS) <= {each.fault for each in rounds if each.point is None}
