"""A claim's value comes from the data: a query that states a value of its own supports no claim."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from countersign.domain.errors import QueryRefused
from countersign.evidence.dataset import Dataset
from tests.evidence.opening import opened

DATA = 'region,day,usd,orders,q1_sales,"O\'Hara 35 %"\n' + (
    "north,2026-01-05,10.50,4,1,a\nsouth,2026-02-05,20.00,6,2,b\nnorth,2026-03-05,-4.50,10,3,c\n"
)
SCHEMA = {"columns": {"usd": {"type": "number", "currency": "USD"}}}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Three rows in two regions."""
    with opened(tmp_path_factory.mktemp("provenance"), DATA, SCHEMA) as found:
        yield found


FROM_DATA = [
    ("SELECT sum(usd) FROM data", "26.00"),
    ("SELECT -sum(usd) FROM data", "-26.00"),
    ("SELECT -1 * sum(usd) FROM data", "-26.00"),
    ("SELECT count(*) FROM data", "3"),
    ("SELECT count(1) FROM data WHERE orders > 5", "2"),
    ("SELECT round(100.0 * sum(usd) FILTER (WHERE region = 'south') / sum(usd), 1) FROM data", "76.9"),
    ("SELECT sum(orders) FILTER (WHERE region = 'south') * 100 / sum(orders) FROM data", "30"),
    ("SELECT round(sum(orders) FILTER (WHERE region = 'south') / sum(orders) * 100.0, 2) FROM data", "30"),
    ("SELECT (max(orders) / min(orders) - 1) * 100 FROM data", "150"),
    ("SELECT 100 * (1 - min(orders) / max(orders)) FROM data", "60"),
    ("SELECT 100::DOUBLE * count(*) FILTER (WHERE orders > 9) / nullif(count(*), 0) FROM data WHERE usd < 15", "50"),
    ("SELECT sum(usd) * 1.0 / count(*) FROM data WHERE orders < 10", "15.25"),
    ("SELECT sum(CASE WHEN region = 'north' THEN usd END) FROM data", "6.00"),
    ("SELECT coalesce(max(usd) FILTER (WHERE region = 'west'), min(usd)) FROM data", "-4.50"),
    ("SELECT year(max(day)) FROM data", "2026"),
    ("SELECT strftime(max(day), '%Y-%m') FROM data", "2026-03"),
    ("SELECT date_diff('day', min(day), max(day)) FROM data", "59"),
    ("SELECT region FROM data GROUP BY region ORDER BY sum(usd) DESC LIMIT 1", "south"),
    ("SELECT quantile_disc(orders, 0.5) FROM data", "6"),
    ("SELECT (SELECT max(usd) FROM data) - (SELECT min(usd) FROM data)", "24.50"),
    ("WITH t AS (SELECT region, sum(usd) AS s FROM data GROUP BY 1) SELECT s - lag(s, 1) OVER (ORDER BY s) AS d"
     " FROM t ORDER BY d LIMIT 1", "14.00"),
    ("SELECT max(s) FROM (SELECT sum(usd) AS s FROM data GROUP BY region HAVING count(*) > 1)", "6.00"),
    ("SELECT count(*) FROM data WHERE usd < (SELECT avg(usd) - 5 FROM data) OR EXISTS (SELECT 1 WHERE false)", "1"),
    ("SELECT usd FROM data WHERE region = 'south' UNION SELECT usd FROM data WHERE usd = 20", "20.00"),
    ("SELECT * FROM (SELECT max(region) FROM data)", "south"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "text"), FROM_DATA)
def test_what_is_computed_from_the_data_supports_a_claim(dataset: Dataset, sql: str, text: str) -> None:
    assert dataset.single_value(sql).text == text


STATED = [
    "SELECT 1000000",
    "SELECT 'four million'",
    "SELECT count(*)",
    "SELECT 77 FROM data LIMIT 1",
    "SELECT 0x4D FROM data LIMIT 1",
    "SELECT 1 FROM data LIMIT 1",
    "SELECT 100 FROM data LIMIT 1",
    "SELECT max(1) FROM data",
    "SELECT sum(1) FROM data",
    "SELECT true FROM data LIMIT 1",
    "SELECT '35 %' FROM data LIMIT 1",
    "SELECT 'Acme has gone bankrupt' FROM data LIMIT 1",
    "SELECT 'Q1_SALES' FROM data LIMIT 1",
    "SELECT 'q1_sales' || 'x' FROM data LIMIT 1",
    "SELECT 'q1_sales'",
    "SELECT max('q1_sales') FROM data",
    "SELECT CAST('77' AS BIGINT) FROM data LIMIT 1",
    "SELECT DATE '2026-06-30' FROM data LIMIT 1",
    "SELECT make_date(2026, 6, 30) FROM data LIMIT 1",
    "SELECT sum(usd) * 0 + 77 FROM data",
    "SELECT sum(usd) * 0 FROM data",
    "SELECT sum(usd) + 0.0 FROM data",
    "SELECT sum(usd) + 1 FROM data",
    "SELECT count(*) + 1 FROM data",
    "SELECT sum(usd) * 100 FROM data",
    "SELECT count(*) * 100 FROM data",
    "SELECT 100 * 100 * sum(usd) / sum(orders) FROM data",
    "SELECT 100 * (100 * sum(orders) / sum(usd)) FROM data",
    "SELECT sum(orders) / sum(usd) * 100 * 100 FROM data",
    "SELECT sum(orders) / sum(usd) + 1 + 1 FROM data",
    "SELECT 1 + 1 + sum(orders) / sum(usd) FROM data",
    "SELECT 100 * (count(*) + sum(orders) / sum(usd)) FROM data",
    "SELECT sum(usd) / 100 FROM data",
    "SELECT 1 / sum(usd) FROM data",
    "SELECT sum(usd) * -(77) FROM data",
    "SELECT round(sum(usd), -2) FROM data",
    "SELECT round(77, 0) + sum(usd) FROM data",
    "SELECT coalesce(usd, 77) FROM data LIMIT 1",
    "SELECT greatest(max(usd), 100) FROM data",
    "SELECT least(max(usd), 1) FROM data",
    "SELECT if(sum(usd) > 1, 77, 78) FROM data",
    "SELECT CASE WHEN sum(usd) > 1 THEN 77 ELSE sum(usd) END FROM data",
    "SELECT CASE WHEN sum(usd) > 1 THEN 'many' ELSE max(region) END FROM data",
    "SELECT max(CASE WHEN region = 'north' THEN usd ELSE 0 END) FROM data",
    "SELECT lag(usd, 1, 77) OVER (ORDER BY day) FROM data LIMIT 1",
    "SELECT nullif(77, usd) FROM data LIMIT 1",
    "SELECT pow(sum(orders), 6) FROM data",
    "SELECT sum(orders) ^ 6 FROM data",
    "SELECT sum(orders) % 7 FROM data",
    "SELECT sum(orders) // 7 FROM data",
    "SELECT sum(usd) > 5 FROM data",
    "SELECT max(usd > 5) FROM data",
    "SELECT sum(usd)::BOOLEAN::INT FROM data",
    "SELECT sum(CAST(usd AS BOOL)::INT) FROM data",
    "SELECT (sum(usd) IS NOT NULL)::INT FROM data",
    "SELECT EXISTS (SELECT 1 FROM data) FROM data LIMIT 1",
    "SELECT max(region) LIKE 'n%' FROM data",
    "SELECT strftime(max(day), 'four million') FROM data",
    "SELECT strftime(max(day), '%Y 77') FROM data",
    "SELECT concat('x', max(region)) FROM data",
    "SELECT concat(max(region), min(region)) FROM data",
    "SELECT max(region) || min(region) FROM data",
    "SELECT left(max(region), 2) FROM data",
    "SELECT substr(max(region), count(*)) FROM data",
    "SELECT replace(max(region), 'south', 'Mars') FROM data",
    "SELECT reverse(max(region)) FROM data",
    "SELECT (SELECT 77) + sum(usd) FROM data",
    "SELECT (SELECT 77)",
    "SELECT (SELECT count(*)) FROM data LIMIT 1",
    "SELECT max(x) FROM (SELECT 77 AS x FROM data)",
    "SELECT max(x) FROM (SELECT 77 AS x)",
    "WITH t AS (SELECT 77 AS x FROM data) SELECT max(x) FROM t",
    "WITH t AS (SELECT 77 AS x) SELECT max(x) FROM data, t",
    "SELECT max(x) FROM data JOIN (SELECT 77 AS x) ON true",
    "SELECT usd FROM data WHERE false UNION SELECT 77 FROM data",
    "SELECT max(usd) FROM (SELECT * REPLACE (77 AS usd) FROM data)",
    "SELECT (WITH t AS (SELECT 77 AS x FROM data) SELECT max(x) FROM t) FROM data LIMIT 1",
]


@pytest.mark.parametrize("sql", STATED)
def test_what_the_query_states_itself_supports_no_claim(dataset: Dataset, sql: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        dataset.single_value(sql)
    assert "the query fails" not in refusal.value.message
    assert "\n" not in refusal.value.message


@pytest.mark.parametrize("name", ["q1_sales", "O'Hara 35 %"])
def test_the_name_of_a_column_is_data(dataset: Dataset, name: str) -> None:
    quoted = name.replace("'", "''")
    assert dataset.single_value(f"SELECT '{quoted}' FROM data LIMIT 1").text == name


def test_a_refusal_says_what_to_write(dataset: Dataset) -> None:
    with pytest.raises(QueryRefused, match=r"\(77\); write 100 only as in 100 \* a / b"):
        dataset.single_value("SELECT sum(usd) * 77 FROM data")
    with pytest.raises(QueryRefused, match=r"ask for a column's cell"):
        dataset.single_value("SELECT max('x') FROM data")


def test_an_agent_may_ask_what_no_claim_may_say(dataset: Dataset) -> None:
    assert dataset.query("SELECT sum(orders) // 7, left(max(region), 2) FROM data").rows == (("2", "so"),)
