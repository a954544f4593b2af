"""Claims against the evidence: each difference is found, with its own code and place."""

from __future__ import annotations

import pytest

from countersign.cases.report.checks import check_draft
from countersign.domain.errors import DataRefused, Unavailable
from countersign.domain.report import Claim, Draft
from tests.report.sample import (
    BODY,
    CLAIMS,
    READING,
    ROWS,
    Cell,
    claim,
    codes,
    draft,
    evidence,
    findings,
    request,
    with_claim,
)


def test_the_clean_draft_has_no_finding() -> None:
    assert findings(draft()) == ()


@pytest.mark.parametrize(
    ("claim_id", "changes", "code", "part"),
    [
        ("total", {"value": "-1234.51"}, "value_mismatch", "value"),
        ("total", {"value": "-1234.5000001"}, "value_mismatch", "value"),
        ("total", {"value": "1234.50"}, "value_mismatch", "value"),
        ("total", {"value": "-1,234.50"}, "value_mismatch", "value"),
        ("total", {"value": "NaN"}, "value_mismatch", "value"),
        ("rows", {"value": "43"}, "value_mismatch", "value"),
        ("last", {"value": "2026-06-29"}, "value_mismatch", "value"),
        ("region", {"value": "Region 8"}, "value_mismatch", "value"),
        ("total", {"unit": "EUR", "shown": "-1,234.50"}, "unit_mismatch", "unit"),
        ("total", {"unit": "", "shown": "-1,234.50"}, "unit_mismatch", "unit"),
        ("total", {"shown": "-1,234.50 EUR"}, "unit_mismatch", "shown"),
        ("total", {"shown": "-€1,234.50"}, "unit_mismatch", "shown"),
        ("total", {"shown": "1,234.50 USD"}, "sign_mismatch", "shown"),
        ("total", {"shown": "-1.2M USD"}, "scale_mismatch", "shown"),
        ("total", {"shown": "-1,234.40 USD"}, "shown_mismatch", "shown"),
        ("total", {"shown": "about -1,234.50 USD"}, "unreadable_number", "shown"),
        ("growth", {"shown": "-4.2"}, "unit_mismatch", "shown"),
        ("rows", {"shown": "dozens"}, "unreadable_number", "shown"),
        ("last", {"shown": "29 June 2026"}, "shown_mismatch", "shown"),
        ("last", {"unit": "days"}, "unit_mismatch", "unit"),
        ("region", {"shown": "Region 7"}, "shown_mismatch", "shown"),
    ],
)
def test_each_difference_has_its_code(claim_id: str, changes: dict[str, str], code: str, part: str) -> None:
    assert (code, f"claims.{claim_id}.{part}") in codes(with_claim(claim_id, **changes))


@pytest.mark.parametrize(
    ("claim_id", "changes"),
    [
        ("total", {"value": "-1234.5"}),
        ("total", {"shown": "-$1,234.50"}),
        ("total", {"shown": "($1,234.50)"}),
        ("total", {"shown": "-1.2k USD"}),
        ("total", {"shown": "-1,235 dollars"}),
        ("total", {"unit": "usd", "shown": "-1,234.50"}),
        ("rows", {"shown": "forty-two"}),
        ("rows", {"shown": "四十二"}),
        ("growth", {"shown": "-4 %"}),
        ("last", {"shown": "2026-06-30"}),
        ("last", {"shown": "2026年6月30日"}),
    ],
)
def test_other_ways_of_showing_the_same_figure_are_fine(claim_id: str, changes: dict[str, str]) -> None:
    assert findings(with_claim(claim_id, **changes)) == ()


def test_a_refused_query_is_a_finding_that_carries_the_refusal() -> None:
    (found,) = findings(with_claim("rows", query="DROP TABLE data"))
    assert (found.code, found.place) == ("query_refused", "claims.rows.query")
    assert "DROP TABLE data" in found.found


def test_refused_data_is_a_finding_and_an_unreachable_reader_is_not() -> None:
    def refuse(query: str):
        raise DataRefused("row 3 is short")

    def away(query: str):
        raise Unavailable("the reader is gone")

    assert {found.code for found in check_draft(draft(), request(), READING._replace(recompute=refuse))} == {
        "query_refused"
    }
    with pytest.raises(Unavailable):
        check_draft(draft(), request(), READING._replace(recompute=away))


def test_an_id_twice_an_unknown_and_an_unused_claim_are_found() -> None:
    twice = draft(claims=(*CLAIMS, CLAIMS[1]))
    unknown = draft(body=BODY + "See {{nothing}}.")
    unused = draft(claims=(*CLAIMS, claim("spare", ROWS, "42", "", "42")))
    assert codes(twice) == [("duplicate_claim_id", "claims.rows")]
    assert codes(unknown) == [("unknown_claim", "body:7:5")]
    assert codes(unused) == [("unused_claim", "claims.spare")]


def test_a_second_claim_of_one_id_cannot_smuggle_another_figure() -> None:
    smuggled = Claim(id="rows", query=ROWS, value="42", unit="", shown="43")
    found = codes(draft(claims=(CLAIMS[0], smuggled, *CLAIMS[1:])))
    assert found == [("duplicate_claim_id", "claims.rows"), ("shown_mismatch", "claims.rows.shown")]


def test_findings_come_in_a_fixed_order_and_none_is_dropped() -> None:
    broken: Draft = draft(title="Sales 5", body="{{rows}} 6 6 {{rows}}", source="elsewhere", limitations=("7", "7"))
    found = check_draft(broken, request(), READING)
    assert [each.place for each in found] == [
        "claims.total",
        "claims.growth",
        "claims.last",
        "claims.region",
        "title:1:7",
        "body:1:10",
        "body:1:12",
        "limitations.0:1:1",
        "limitations.1:1:1",
        "source",
    ]
    assert found == check_draft(broken, request(), READING)


def test_a_finding_reads_as_one_line() -> None:
    (found,) = findings(with_claim("rows", value="43"))
    assert found.sentence() == "claims.rows.value: value_mismatch: expected 42, found 43"


@pytest.mark.parametrize("unit", ["million", "k orders", "k", "M", "万", "thousand orders", "成", "2 orders"])
def test_a_scale_cannot_hide_in_a_unit(unit: str) -> None:
    assert ("unsupported_number", "claims.rows.unit") in codes(with_claim("rows", unit=unit, shown=f"42 {unit}"))


@pytest.mark.parametrize(
    "unit",
    [
        *"- \u2212 minus negative (loss) loss ~ mln Mio Mrd MUSD TEUR kUSD USDm k€ M$ grand score gross kk".split(),
        *["打", "折", "ooo", ",ooo", "负", "\u043a", "USD m", "bn USD", "Mio EUR", "hundred", "orders (k)"],
    ],
)
def test_a_sign_or_scale_cannot_pose_as_a_unit(unit: str) -> None:
    assert ("unsupported_number", "claims.rows.unit") in codes(with_claim("rows", unit=unit, shown=f"42 {unit}"))


@pytest.mark.parametrize("unit", ["orders", "kg", "m", "m²", "千克", "个地区", "tCO2e", "days"])
def test_a_plain_or_declared_unit_is_fine(unit: str) -> None:
    stated = "USD"
    assert findings(with_claim("rows", unit=unit, shown=f"42 {unit}").model_copy(update={"unit": stated})) == ()


@pytest.mark.parametrize("known", ["", None])
@pytest.mark.parametrize(
    ("unit", "shown"),
    [("USD", "$42"), ("$", "$42"), ("yen", "42 yen"), ("元", "42元"), ("dollars of sales", "42 dollars of sales"),
     ("%", "42 %"), ("percent", "42 percent"), ("% of orders", "42 % of orders"), ("pp", "42 pp"), ("‰", "42 ‰"),
     ("bps", "42 bps")],
)  # fmt: skip
def test_money_and_per_cent_are_stated_only_where_the_query_yields_them(
    known: str | None, unit: str, shown: str
) -> None:
    def recompute(query: str) -> Cell:
        return Cell("42", unit=known) if query == ROWS else evidence(query)

    found = check_draft(with_claim("rows", unit=unit, shown=shown), request(), READING._replace(recompute=recompute))
    assert ("unit_mismatch", "claims.rows.unit") in [(each.code, each.place) for each in found]


@pytest.mark.parametrize("shown", ["$42", "42 USD", "42 %", "42元", "¥42"])
def test_a_unit_left_out_cannot_stand_in_what_is_shown(shown: str) -> None:
    assert ("unit_mismatch", "claims.rows.shown") in codes(with_claim("rows", unit="", shown=shown))


def test_a_difference_of_per_cents_may_be_in_points_and_in_nothing_else() -> None:
    assert findings(with_claim("growth", unit="percentage points", shown="-4.2 percentage points")) == ()
    assert ("unit_mismatch", "claims.growth.unit") in codes(with_claim("growth", unit="bps", shown="-4.2 bps"))


@pytest.mark.parametrize("result", ["NaN", "inf", "-Infinity", "1e308", "9" * 101, ""])
def test_a_result_that_is_no_finite_number_never_passes(result: str) -> None:
    def recompute(query: str) -> Cell:
        return Cell(result) if query == ROWS else evidence(query)

    stated = with_claim("rows", value=result or "0")
    assert "claims.rows.query" in [
        found.place for found in check_draft(stated, request(), READING._replace(recompute=recompute))
    ]
