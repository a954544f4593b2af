"""Amounts of different currencies are never put together, whichever way a query tries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.domain.errors import QueryRefused
from countersign.evidence.dataset import Dataset
from tests.evidence.opening import opened

DATA = "shop,currency,amount,fee,eur,usd,share\n" + (
    "A,EUR,10.50,1,5,7,10%\nB,USD,20.25,2,6,8,20%\nA,USD,1.25,,7,9,30%\nC,EUR,3.00,1,8,10,40%\n"
)
SCHEMA = {
    "columns": {
        "amount": {"type": "number", "currency_column": "currency"},
        "fee": {"type": "number", "currency_column": "currency"},
        "eur": {"type": "number", "currency": "EUR"},
        "usd": {"type": "number", "currency": "USD"},
        "share": {"type": "number", "number": {"percent": True}},
    }
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Four rows in two currencies."""
    with opened(tmp_path_factory.mktemp("money"), DATA, SCHEMA) as found:
        yield found


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Money of one currency beside a share, pieces and a column that nothing is declared for."""
    columns = {name: SCHEMA["columns"][name] for name in ("usd", "share")} | {
        "pieces": {"type": "number", "unit": "pieces"}
    }
    data = "shop,usd,share,pieces,plain\nA,7,10%,1,2\nB,8,20%,3,4\n"
    with opened(tmp_path_factory.mktemp("mixture"), data, {"columns": columns}) as found:
        yield found


ONE_CURRENCY = [
    ("SELECT sum(amount) FROM data WHERE currency = 'EUR'", "13.50", "EUR"),
    ("SELECT sum(amount) FROM data d WHERE d.currency = 'USD' AND shop <> 'x'", "21.50", "USD"),
    ("SELECT sum(amount + fee) FROM data WHERE 'EUR' = currency", "15.50", "EUR"),
    ("SELECT max(amount) - min(amount) FROM data WHERE currency = 'EUR'", "7.50", "EUR"),
    ("SELECT shop FROM data WHERE currency = 'EUR' GROUP BY shop ORDER BY sum(amount) DESC LIMIT 1", "A", None),
    ("SELECT 100 * sum(amount) / (SELECT sum(eur) FROM data) FROM data WHERE currency = 'USD' AND false", None, None),
    (
        "WITH t AS (SELECT shop, sum(amount) AS s FROM data WHERE currency = 'EUR' GROUP BY shop) SELECT max(s) FROM t",
        "10.50",
        "EUR",
    ),
    (
        "SELECT (SELECT sum(amount) FROM data WHERE currency = 'EUR') - (SELECT max(amount) FROM data WHERE"
        " currency = 'EUR')",
        "3.00",
        "EUR",
    ),
    ("SELECT sum(eur) FROM data", "26", "EUR"),
    ("SELECT round(avg(usd), 1) FROM data", "8.5", "USD"),
    ("SELECT max(amount) FROM (SELECT shop AS x, amount FROM data WHERE currency = 'USD')", "20.25", "USD"),
    ("SELECT sum(share) FROM data", "100", "%"),
    ("SELECT count(amount) FROM data", "4", ""),
    ("SELECT count(*) FROM data WHERE fee IS NULL", "1", ""),
    ("SELECT count(DISTINCT currency) FROM data", "2", ""),
]


@pytest.mark.parametrize(("sql", "text", "unit"), ONE_CURRENCY)
def test_amounts_of_one_currency_are_computed_with_their_unit(
    dataset: Dataset, sql: str, text: str | None, unit: str | None
) -> None:
    if text is None:
        with pytest.raises(QueryRefused):
            dataset.single_value(sql)
        return
    value = dataset.single_value(sql)
    assert (value.text, value.unit) == (text, unit)


SEPARATE = [
    (
        "SELECT currency, sum(amount) FROM data GROUP BY currency ORDER BY currency",
        (("EUR", "13.50"), ("USD", "21.50")),
    ),
    ("SELECT currency, max(amount - fee) FROM data GROUP BY currency HAVING sum(amount) > 15", (("USD", "18.25"),)),
    ("SELECT amount, currency FROM data WHERE shop = 'A'", (("10.50", "EUR"), ("1.25", "USD"))),
    ("SELECT sum(eur), sum(usd) FROM data", (("26", "34"),)),
    ("SELECT 'EUR' AS currency, sum(amount) FROM data WHERE currency = 'USD'", (("EUR", "21.50"),)),
    ("SELECT max('x') AS currency, sum(amount) FROM data GROUP BY currency", (("x", "13.50"), ("x", "21.50"))),
]


@pytest.mark.parametrize(("sql", "rows"), SEPARATE)
def test_currencies_side_by_side_are_fine(dataset: Dataset, sql: str, rows: tuple[tuple[str, ...], ...]) -> None:
    assert dataset.query(sql).rows == rows


MIXED = [
    "SELECT sum(amount) FROM data",
    "SELECT SUM(AMOUNT) FROM DATA",
    'SELECT sum("amount") FROM data',
    "SELECT sum(data.amount) FROM data",
    "SELECT sum(d.amount) FROM data AS d",
    "SELECT avg(amount) FROM data",
    "SELECT max(amount) FROM data",
    "SELECT median(amount) FROM data",
    "SELECT arg_max(shop, amount) FROM data",
    "SELECT sum(amount) FROM data WHERE currency IN ('EUR', 'USD')",
    "SELECT sum(amount) FROM data WHERE currency = 'EUR' OR true",
    "SELECT sum(amount) FROM data WHERE NOT (currency = 'EUR')",
    "SELECT sum(amount) FROM data WHERE currency <> 'EUR'",
    "SELECT sum(amount) FROM data WHERE currency = currency",
    "SELECT sum(amount) FROM data WHERE shop = 'A'",
    "SELECT sum(amount) FILTER (WHERE currency = 'EUR') + sum(amount) FILTER (WHERE currency = 'USD') FROM data",
    "SELECT sum(CASE WHEN currency = 'EUR' THEN amount ELSE 0 END) FROM data",
    "SELECT shop, sum(amount) FROM data GROUP BY shop",
    "SELECT currency, sum(amount) FROM data GROUP BY ALL",
    "SELECT lower(shop) AS currency, sum(amount) FROM data GROUP BY shop",
    "SELECT 'EUR' AS currency, sum(amount) FROM data GROUP BY ALL",
    "SELECT currency, sum(amount) FROM data GROUP BY 1",
    "SELECT currency, sum(amount) FROM data GROUP BY ROLLUP (currency)",
    "SELECT currency, sum(amount) FROM data GROUP BY GROUPING SETS ((currency), ())",
    "SELECT lower(currency), sum(amount) FROM data GROUP BY lower(currency)",
    "SELECT sum(s) FROM (SELECT currency, sum(amount) AS s FROM data GROUP BY currency)",
    "WITH t AS (SELECT currency, sum(amount) AS s FROM data GROUP BY currency) SELECT sum(s) FROM t",
    "SELECT currency, sum(sum(amount)) OVER () FROM data GROUP BY currency",
    "SELECT sum(amount) OVER () FROM data",
    "SELECT amount - lag(amount) OVER (ORDER BY shop) FROM data",
    "SELECT (SELECT sum(amount) FROM data WHERE currency = 'EUR') + (SELECT sum(fee) FROM data WHERE currency = 'USD')",
    "SELECT sum(amount) FROM data WHERE currency = 'EUR' UNION ALL SELECT sum(amount) FROM data WHERE currency = 'USD'",
    "SELECT (SELECT sum(i.amount) FROM data i WHERE o.currency = 'EUR') FROM data o WHERE currency = 'EUR' LIMIT 1",
    "SELECT sum(a.amount) FROM data a JOIN data b ON true WHERE currency = 'EUR'",
    "SELECT sum(b.amount) FROM data a, data b WHERE a.currency = 'EUR'",
    "SELECT sum(x) FROM data AS d(s, c, x) WHERE c = 'EUR'",
    "SELECT sum(x) FROM data AS d(s, c, x)",
    "SELECT sum(currency_amount) FROM (SELECT * RENAME (amount AS currency_amount) FROM data)",
    "SELECT sum(d.x) FROM (SELECT amount AS x FROM data) d",
    "SELECT max(d) FROM data d",
    "SELECT max(data) FROM data",
    "SELECT sum(amount) FROM (FROM data)",
    "SELECT amount FROM data ORDER BY amount DESC LIMIT 1",
    "SELECT shop, amount AS a FROM data ORDER BY a",
    "SELECT amount FROM data ORDER BY 1",
    "SELECT amount AS currency FROM data ORDER BY currency",
    "SELECT DISTINCT ON (shop) amount FROM data ORDER BY currency, amount",
    "SELECT count(*) FROM data WHERE amount > 5",
    "SELECT amount + eur FROM data",
    "SELECT eur + usd FROM data",
    "SELECT sum(eur) + sum(usd) FROM data",
    "SELECT sum(eur) / sum(usd) FROM data",
    "SELECT greatest(eur, usd) FROM data",
    "SELECT coalesce(eur, usd) FROM data",
    "SELECT CASE WHEN shop = 'A' THEN eur ELSE usd END FROM data",
    "SELECT eur AS a, usd AS b, a + b FROM data",
    "SELECT eur AS a, usd AS b FROM data ORDER BY a + b",
    "SELECT shop FROM data WHERE eur > usd",
    "SELECT sum(x) FROM (SELECT eur AS x FROM data UNION ALL SELECT usd FROM data)",
    "SELECT sum(amount) + sum(usd) FROM data WHERE currency = 'EUR'",
    "SELECT count(*) FROM data a JOIN data b USING (amount)",
    "SELECT count(*) FROM data a NATURAL JOIN data b",
    "SELECT sum(eur) FROM data HAVING sum(eur) > sum(usd)",
    "SELECT count(eur + usd) FROM data",
]


@pytest.mark.parametrize("sql", MIXED)
def test_a_query_that_could_mix_currencies_is_refused(dataset: Dataset, sql: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        dataset.query(sql)
    assert "the query fails" not in refusal.value.message


UNITS = [
    ("sum(usd) * 1", "USD"),
    ("-1 * sum(usd)", "USD"),
    ("sum(usd)::DOUBLE", "USD"),
    ("round(sum(usd) / count(*), 2)", "USD"),
    ("sum(usd * pieces)", "USD"),
    ("sum(usd * plain)", "USD"),
    ("sum(usd) / sum(pieces)", "USD"),
    ("sum(usd) - avg(usd)", "USD"),
    ("sum(CASE WHEN shop = 'A' THEN usd ELSE NULL END)", "USD"),
    ("sum(if(shop = 'A', usd, NULL))", "USD"),
    ("coalesce(max(usd), min(usd))", "USD"),
    ("greatest(max(usd), min(usd))", "USD"),
    ("max_by(usd, shop)", "USD"),
    ("nullif(sum(usd), 0)", "USD"),
    ("max(sum(usd)) OVER ()", "USD"),
    ("sum(usd) FILTER (WHERE shop = 'A')", "USD"),
    ("100 * sum(usd) FILTER (WHERE shop = 'A') / sum(usd)", "%"),
    ("sum(usd) FILTER (WHERE shop = 'A') * 100.0 / sum(usd)", "%"),
    ("round(sum(usd) FILTER (WHERE shop = 'A') / sum(usd), 4) * 100", "%"),
    ("(max(usd) / min(usd) - 1) * 100", "%"),
    ("100 * (max(usd) - min(usd)) / min(usd)", "%"),
    ("100 * count(*) FILTER (WHERE shop = 'A') / count(*)", "%"),
    ("100 * sum(plain) FILTER (WHERE shop = 'A') / sum(plain)", "%"),
    ("avg(share)", "%"),
    ("max(share) - min(share)", "%"),
    ("sum(usd) FILTER (WHERE shop = 'A') / sum(usd)", ""),
    ("max(usd) / min(usd) - 1", ""),
    ("count(*)", ""),
    ("count(DISTINCT usd)", ""),
    ("count(*) / count(DISTINCT shop)", ""),
    ("sum(pieces)", "pieces"),
    ("sum(pieces) / count(*)", "pieces"),
    ("sum(plain)", None),
    ("sum(usd * usd)", None),
    ("sum(usd * share)", None),
    ("count(*) / sum(usd)", None),
    ("100 * sum(usd) / count(*)", None),
    ("100 * sum(usd) / sum(plain)", None),
    ("100 * sum(usd) / sum(pieces)", None),
    ("sum(pieces) / sum(plain)", None),
    ("variance(usd)", None),
    ("sqrt(sum(usd))", None),
]


@pytest.mark.parametrize(("expression", "unit"), UNITS)
def test_a_unit_is_carried_through_an_expression(mixture: Dataset, expression: str, unit: str | None) -> None:
    assert mixture.single_value(f"SELECT {expression} FROM data").unit == unit


INSIDE = [
    ("SELECT sum(usd) FROM (SELECT usd FROM data)", "USD"),
    ("SELECT sum(x) FROM (SELECT usd AS x FROM data)", "USD"),
    ("SELECT sum(t.x) FROM (SELECT usd FROM data) AS t(x)", "USD"),
    ("SELECT max(s) FROM (SELECT sum(usd) s FROM data)", "USD"),
    ("SELECT sum(usd) FROM (SELECT * FROM data)", "USD"),
    ("SELECT * FROM (SELECT max(usd) FROM data)", "USD"),
    ("SELECT sum(a.usd) FROM data a JOIN data b USING (shop)", "USD"),
    ("WITH t AS (SELECT shop, sum(usd) AS s FROM data GROUP BY shop) SELECT max(s) - min(s) FROM t", "USD"),
    ("WITH t(x) AS (SELECT usd FROM data), u AS (SELECT sum(x) AS y FROM t) SELECT max(y) FROM u", "USD"),
    ("WITH t AS (SELECT usd FROM data) SELECT 100 * (SELECT max(usd) FROM t) / sum(usd) FROM t", "%"),
    ("WITH t AS (SELECT count(*) AS usd FROM data) SELECT max(usd) FROM t", ""),
    ("SELECT max(usd) FROM (SELECT count(*) AS usd FROM data)", ""),
    ("SELECT max(x) FROM (SELECT usd AS x FROM data UNION ALL SELECT usd FROM data)", "USD"),
    ("SELECT max(x) FROM (SELECT usd AS x FROM data UNION ALL SELECT plain FROM data)", None),
    (
        "SELECT max(x) FROM (SELECT usd AS x, plain AS y FROM data"
        " UNION ALL BY NAME SELECT usd AS y, plain AS x FROM data)",
        None,
    ),
    ("SELECT max(usd) FROM (SELECT * RENAME (plain AS p) FROM data)", None),
    ("SELECT (SELECT o.usd FROM data i LIMIT 1) FROM data o LIMIT 1", "USD"),
]


@pytest.mark.parametrize(("sql", "unit"), INSIDE)
def test_a_unit_is_carried_out_of_a_query_inside(mixture: Dataset, sql: str, unit: str | None) -> None:
    assert mixture.single_value(sql).unit == unit


def test_a_claim_in_an_unknown_currency_is_refused(dataset: Dataset) -> None:
    with pytest.raises(QueryRefused, match="currency"):
        dataset.single_value("SELECT amount FROM data ORDER BY currency LIMIT 1")


def test_units_of_a_result_are_given_where_certain(dataset: Dataset) -> None:
    result = dataset.query(
        "SELECT shop, sum(amount), count(*), sum(eur) FROM data WHERE currency = 'EUR' GROUP BY shop"
    )
    assert result.units == ("", "EUR", "", "EUR")
    assert dataset.query("FROM data").units == ("", "", "", "", "EUR", "USD", "%")


def test_a_currency_column_with_one_currency_restricts_nothing(tmp_path: Path) -> None:
    schema = {"columns": {"amount": {"type": "number", "currency_column": "currency"}}}
    with opened(tmp_path, "currency,amount\nCHF,1.5\nCHF,2\nUSD,\n", schema) as found:
        value = found.single_value("SELECT sum(amount) FROM data")
        assert (value.text, value.unit) == ("3.5", "CHF")
