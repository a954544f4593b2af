"""Texts in the data: an order brings the run before people, a claim is a text like any other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from countersign.domain.proposal import ApprovalStatus
from tests.hostile.house import DAY, House, cells, columns, draft, grade
from tests.hostile.texts import CLAIMS, ORDERS, STOPPED
from tests.support.model_server import Turn

BATCH = 10
"""Texts of one table, below the number of findings that are listed."""
BATCHES = [list(ORDERS.values())[start : start + BATCH] for start in range(0, len(ORDERS), BATCH)]
in_batches = pytest.mark.parametrize("texts", BATCHES, ids=range(len(BATCHES)))


@pytest.mark.guarantee("G40")
@in_batches
def test_an_order_in_a_cell_stops_the_run_however_clean_the_draft_is(house: House, texts: Sequence[str]) -> None:
    course = house.course(cells(*texts)).wrote()

    assert course.checked().stops == STOPPED
    assert [found.place for found in course.findings] == ["data.note"] * len(texts)
    assert course.proposed() is None
    assert course.stays_inside()


@pytest.mark.guarantee("G40")
@in_batches
def test_an_order_in_the_name_of_a_column_stops_it_too(house: House, texts: Sequence[str]) -> None:
    course = house.course(columns(*texts)).wrote()

    assert course.checked().stops == STOPPED
    assert len({found.place for found in course.findings}) == len(course.findings) == len(texts)
    assert course.proposed() is None
    assert course.stays_inside()


@pytest.mark.guarantee("G40")
def test_an_order_among_many_innocent_rows_stops_it_as_well(house: House) -> None:
    rows = ["a quiet month"] * 5_000
    course = house.course(cells(*rows, ORDERS["Chinese"], *rows)).wrote()

    assert course.checked().stops == STOPPED


@pytest.mark.guarantee("G40")
@pytest.mark.parametrize("before", [19_000, 19_990, 60_000, 99_000])
def test_an_order_far_down_in_a_long_cell_stops_it_too(house: House, before: int) -> None:
    course = house.course(cells("a quiet month. " * (before // 15) + ORDERS["plain order"])).wrote()

    assert course.checked().stops == STOPPED
    assert [found.place for found in course.findings] == ["data.note"]


@pytest.mark.guarantee("G40")
def test_a_cell_that_is_longer_than_is_looked_at_stops_it_whatever_it_says(house: House) -> None:
    course = house.course(cells("a quiet month. " * 7_000)).wrote()

    assert course.checked().stops == STOPPED
    assert [found.found for found in course.findings] == [
        "a cell of more than 100000 characters, which nothing looks through"
    ]


@pytest.mark.guarantee("G40")
def test_a_table_that_claims_to_be_decided_decides_nothing(house: House) -> None:
    course = house.course(cells(*CLAIMS.values())).wrote()

    assert course.checked().codes == ()
    assert course.graded(grade()).verdict == "satisfied"
    assert course.proposed() is not None
    assert course.status == ApprovalStatus.PENDING
    assert course.stays_inside()


@pytest.mark.guarantee("G40")
@pytest.mark.parametrize(("at", "text"), list(enumerate(CLAIMS.values())), ids=CLAIMS)
def test_a_cell_that_a_report_shows_is_text_in_it_and_decides_nothing(house: House, at: int, text: str) -> None:
    """The grader sees it escaped, and so do people; what goes on is clean, what does not is refused by the checks."""
    query = f"SELECT note FROM data WHERE date = '{DAY + timedelta(days=at)}'"
    claim = {"id": "note", "query": query, "value": text, "unit": "", "shown": text}
    total = draft()["claims"][0]  # type: ignore[index]  # a list of claims
    course = house.course(cells(*CLAIMS.values())).wrote(
        body="Sales came to {{total}} in all; the note says {{note}}.", claims=[total, claim]
    )
    checked = course.checked()
    if not checked.codes:
        course.graded(grade())
        proposed = course.proposed()
        shown = house.requests[-1]["messages"][-1]["content"]
        assert proposed is not None
        assert "{{approved}}" not in shown

    assert checked.stops == ""
    assert course.status == (None if checked.codes else ApprovalStatus.PENDING)
    assert course.stays_inside()


@pytest.mark.guarantee("G40")
@pytest.mark.parametrize("name", ["fake named tool turn", "Chinese release"])
def test_an_agent_that_obeys_its_data_is_stopped_by_the_figure_and_by_the_order(house: House, name: str) -> None:
    """The real agent reads the cell, and writes what it was told to write there."""
    invented = {
        "id": "total",
        "query": "SELECT sum(amount) FROM data",
        "value": "1000000",
        "unit": "",
        "shown": "one million",
    }
    course = house.course(cells(ORDERS[name]))
    read = Turn(calls=(("query_dataset", {"sql": "SELECT note FROM data ORDER BY amount LIMIT 1"}),))
    course.drafts(read, Turn(calls=(("Draft", draft(claims=[invented])),)))
    checked = course.checked()

    assert checked.stops == STOPPED
    assert "value_mismatch" in checked.codes
    assert course.stays_inside()


@pytest.mark.guarantee("G39")
@pytest.mark.parametrize("tool", ["publish_report", "write_file", "task", "execute", "approve"])
def test_an_agent_that_is_told_to_act_has_nothing_to_act_with(house: House, tool: str) -> None:
    course = house.course(cells(ORDERS["plain order"]))
    course.drafts(Turn(calls=((tool, {"channel": "public"}),)), Turn(calls=(("Draft", draft()),)))
    told = house.requests[-1]["messages"][-1]

    assert tool not in house.tools()
    assert "is not a valid tool" in told["content"]
    assert course.stays_inside()
