"""What a query may do to the evidence: read it, in bounds, with the same answer each time, and nothing else."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from countersign.domain.errors import QueryRefused
from countersign.evidence.dataset import Dataset
from tests.evidence.opening import opened

DATA = "region,day,amount,units\n" + "".join(
    f"{region},2026-0{month}-01,{month * 10 + place}.50,{month}\n"
    for month in (1, 2, 3)
    for place, region in enumerate(("north", "south"))
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Six rows that all tests here ask about."""
    with opened(tmp_path_factory.mktemp("evidence"), DATA) as found:
        yield found


ANSWERED = [
    ("SELECT count(*) FROM data", "6"),
    ("SELECT sum(amount) FROM data;", "126.00"),
    ("SELECT sum(amount) FROM data -- all of it", "126.00"),
    ("WITH t AS (SELECT region, sum(amount) AS s FROM data GROUP BY region) SELECT max(s) FROM t", "64.50"),
    ("SELECT region FROM data GROUP BY region ORDER BY sum(amount) DESC LIMIT 1", "south"),
    ("SELECT sum(amount) FILTER (WHERE region = 'north') FROM data", "61.50"),
    ("SELECT round(100.0 * sum(units) / (SELECT sum(units) FROM data), 1) FROM data WHERE month(day) = 3", "50"),
    ("SELECT min(day) FROM data WHERE day BETWEEN DATE '2026-02-01' AND DATE '2026-02-28'", "2026-02-01"),
    (
        "WITH m AS (SELECT date_trunc('month', day) AS m, sum(amount) AS s FROM data GROUP BY 1), c AS"
        " (SELECT m, s - lag(s) OVER (ORDER BY m) AS d FROM m) SELECT max(d) FROM c",
        "20.00",
    ),
    ("SELECT strftime(max(day), '%Y-%m') FROM data", "2026-03"),
    ("SELECT count(DISTINCT region) FROM data WHERE region IN ('north', 'south') AND NOT region LIKE 'x%'", "2"),
    ("SELECT CASE WHEN count(*) > 5 THEN max(region) ELSE min(region) END FROM data", "south"),
    ("SELECT sum(a.units) FROM data a JOIN data b ON a.region = b.region AND a.day = b.day", "12"),
    ("SELECT sum(s) FROM (SELECT units AS s FROM data UNION ALL SELECT units FROM data)", "24"),
    ("SELECT sum(units) / 0 FROM data WHERE false OR units > 0 LIMIT 1 OFFSET 0", None),
]


@pytest.mark.parametrize(("sql", "expected"), ANSWERED)
def test_plain_questions_are_answered(dataset: Dataset, sql: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(QueryRefused):
            dataset.single_value(sql)
    else:
        assert dataset.single_value(sql).text == expected


ATTACKS = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT content FROM read_text('http://127.0.0.1/')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM read_parquet('s3://bucket/x')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT getenv('HOME')",
    "SELECT current_setting('temp_directory')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_tables",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM main.data",
    "SELECT * FROM temp.sample",
    "SELECT * FROM sample",
    "WITH sqlite_master AS (SELECT * FROM sqlite_master) SELECT * FROM sqlite_master",
    "SELECT (WITH duckdb_tables AS (SELECT 1) SELECT 1), name FROM duckdb_tables",
    "WITH data AS (SELECT 1 AS amount) SELECT sum(amount) FROM data",
    "COPY data TO './stolen.csv'",
    "COPY (SELECT * FROM data) TO './stolen.csv'",
    "EXPORT DATABASE './stolen'",
    "ATTACH './other.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA version",
    "PRAGMA database_list",
    "SET memory_limit = '1TB'",
    "RESET memory_limit",
    "CALL pragma_version()",
    "USE memory",
    "CHECKPOINT",
    "INSERT INTO data VALUES ('x', NULL, 1, 1)",
    "UPDATE data SET amount = 0",
    "DELETE FROM data",
    "DROP TABLE data",
    "CREATE TABLE other AS SELECT 1",
    "CREATE MACRO sum(x) AS 0",
    "ALTER TABLE data DROP COLUMN amount",
    "WITH x AS (INSERT INTO data VALUES ('x', NULL, 1, 1) RETURNING *) SELECT * FROM x",
    "WITH x AS (DELETE FROM data RETURNING *) SELECT count(*) FROM x",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE data",
    "SELECT 1 /* x */; -- y\nDROP TABLE data",
    "BEGIN; SELECT 1",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "DESCRIBE data",
    "SUMMARIZE data",
    "SHOW TABLES",
    "SELECT * FROM (DESCRIBE data)",
    "PREPARE p AS SELECT 1",
    "SELECT ?",
    "SELECT $1",
    "VALUES (1)",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
    "SELECT * FROM range(10000000000)",
    "SELECT * FROM generate_series(1, 10)",
    "SELECT unnest(range(1000000000))",
    "SELECT repeat('x', 10000000000)",
    "SELECT replace(region, 'north', 'northnorth') FROM data",
    "SELECT region || region FROM data",
    "SELECT concat(region, region) FROM data",
    "SELECT concat_ws(region, region, region) FROM data",
    "SELECT rpad(region, 1000000000, 'y') FROM data",
    "SELECT regexp_replace(region, '.', 'xx', 'g') FROM data",
    "SELECT format('{}{}', region, region) FROM data",
    "SELECT printf('%s%s', region, region) FROM data",
    "SELECT translate(region, 'n', 'm') FROM data",
    "SELECT lpad('x', 1000000000, 'y')",
    "SELECT list(amount) FROM data",
    "SELECT string_agg(region, ',') FROM data",
    "SELECT array_agg(region) FROM data",
    "SELECT [1, 2, 3]",
    "SELECT {'a': 1}",
    "SELECT row(1, 2)",
    "SELECT list_transform([1], x -> x)",
    "SELECT CAST('[1]' AS INTEGER[])",
    "SELECT random()",
    "SELECT setseed(0.5)",
    "SELECT uuid()",
    "SELECT gen_random_uuid()",
    "SELECT now()",
    "SELECT today()",
    "SELECT current_date",
    "SELECT CURRENT_TIMESTAMP",
    "SELECT localtime",
    "SELECT get_current_timestamp()",
    "SELECT age(DATE '2020-01-01')",
    "SELECT txid_current()",
    "SELECT nextval('s')",
    "SELECT version()",
    "SELECT sum(amount) FROM data TABLESAMPLE 50%",
    "SELECT sum(amount) FROM data USING SAMPLE 2 ROWS",
    "SELECT * FROM data POSITIONAL JOIN data b",
    "SELECT * FROM data AT (VERSION => 1)",
    "PIVOT data ON region USING sum(amount)",
    "SELECT COLUMNS('.*') FROM data",
    "SELECT query('SELECT 1')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('data')",
    "SELECT main.sum(amount) FROM data",
    "SELECT error('x')",
    "SELECT x'00'",
    "SELECT INTERVAL 1 MONTH",
    "SELECT 1 AT TIME ZONE 'UTC'",
    "SELECT '2026-01-01'::TIMESTAMPTZ",
    "SELECT #1 FROM data",
    "SELECT amount FROM nowhere",
    "SELECT nothing FROM data",
    "",
    ";",
    "hello",
    "SELECT 1\0",
    "SELECT '\ud800'",
    "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "SELECT " + "-" * 2500 + "1",
    "SELECT " + "+".join(["1"] * 4000),
    "SELECT '" + "x" * 10_001 + "'",
]


@pytest.mark.parametrize("sql", ATTACKS, ids=[f"{number}" for number in range(len(ATTACKS))])
def test_anything_but_a_pure_select_on_the_data_is_refused(dataset: Dataset, sql: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        dataset.query(sql)
    assert "\n" not in refusal.value.message
    assert dataset.single_value("SELECT sum(amount) FROM data").text == "126.00"


def test_below_the_guard_duckdb_itself_is_sealed(dataset: Dataset, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    cursor = dataset._connection.cursor()
    for sql in (
        f"FROM read_csv('{secret}')",
        f"COPY data TO '{secret}'",
        "SET enable_external_access = true",
        "INSTALL x",
    ):
        with pytest.raises(duckdb.Error):
            cursor.execute(sql)
    assert secret.read_text() == "a\n1\n"


BOMBS = [
    "SELECT count(*) FROM data a, data b, data c, data d, data e, data f, data g, data h, data i, data j, data k,"
    " data l, data m, data n, data o, data p",
    "SELECT count(DISTINCT a.amount + b.amount * 7 + c.amount * 77 + d.units * e.amount / f.amount + g.units)"
    " FROM data a, data b, data c, data d, data e, data f, data g, data h, data i, data j, data k, data l",
]


@pytest.mark.parametrize("sql", BOMBS)
def test_a_query_without_end_is_stopped(dataset: Dataset, sql: str) -> None:
    with pytest.raises(QueryRefused, match=r"longer than 0\.3 seconds|more memory"):
        dataset.query(sql, max_seconds=0.3)
    assert dataset.single_value("SELECT count(*) FROM data").text == "6"


def test_a_stopped_query_stops_no_other(dataset: Dataset) -> None:
    answers: list[str] = []
    asking = threading.Thread(
        target=lambda: answers.extend(dataset.single_value("SELECT sum(units) FROM data").text for _ in range(50))
    )
    asking.start()
    with pytest.raises(QueryRefused):
        dataset.query(BOMBS[0], max_seconds=0.3)
    asking.join()
    assert answers == ["12"] * 50


def test_rows_are_bounded_and_say_so(dataset: Dataset) -> None:
    result = dataset.query("SELECT region, amount FROM data ORDER BY amount", max_rows=2)
    assert (result.columns, result.truncated) == (("region", "amount"), True)
    assert result.rows == (("north", "10.50"), ("south", "11.50"))
    assert not dataset.query("FROM data", max_rows=6).truncated


def test_texts_are_bounded(tmp_path: Path) -> None:
    long = "x" * 3_000
    with opened(tmp_path, f"a,b\n{long},1\n" + "".join(f"{long[:1900]},{n}\n" for n in range(150))) as found:
        with pytest.raises(QueryRefused, match="left"):
            found.query("SELECT a FROM data LIMIT 1")
        with pytest.raises(QueryRefused, match="left"):
            found.query("SELECT a FROM data WHERE length(a) < 2000")
        assert found.query("SELECT left(a, 3) FROM data LIMIT 1").rows == (("xxx",),)


NO_SINGLE_VALUE = [
    ("SELECT region FROM data", "several rows"),
    ("SELECT region FROM data WHERE false", "0 rows"),
    ("SELECT max(units), min(units) FROM data", "2 columns"),
    ("SELECT max(amount) FROM data WHERE false", "NULL"),
    ("SELECT to_days(max(units)::INT) FROM data", "exact text"),
]


@pytest.mark.parametrize(("sql", "words"), NO_SINGLE_VALUE)
def test_a_claim_has_exactly_one_value(dataset: Dataset, sql: str, words: str) -> None:
    with pytest.raises(QueryRefused, match=words):
        dataset.single_value(sql)


KINDS = [
    ("SELECT max(units) FROM data", "3", "number"),
    ("SELECT min(amount) FROM data", "10.50", "number"),
    ("SELECT pow(min(amount), sum(units) + sum(units)) FROM data", f"{Decimal(repr(10.5**24)):f}", "number"),
    ("SELECT max(units) / sum(units) FROM data", "0.25", "number"),
    ("SELECT exp(-sum(units)) FROM data", f"{Decimal(repr(math.exp(-12))):f}", "number"),
    ("SELECT max(day) FROM data", "2026-03-01", "date"),
    ("SELECT max(region) FROM data", "south", "text"),
    ("SELECT max(day)::TIMESTAMP FROM data", "2026-03-01 00:00:00", "text"),
]


@pytest.mark.parametrize(("sql", "text", "kind"), KINDS)
def test_a_value_is_exact_text_with_its_kind(dataset: Dataset, sql: str, text: str, kind: str) -> None:
    value = dataset.single_value(sql)
    assert (value.text, value.kind) == (text, kind)


def test_sums_beyond_64_bits_stay_exact_and_never_wrap(tmp_path: Path) -> None:
    data = f"a,b\n{2**62},{'9' * 38}\n{2**62},{'9' * 38}\n{2**62},1\n"
    with opened(tmp_path, data) as found:
        assert found.single_value("SELECT sum(a) FROM data").text == str(3 * 2**62)
        with pytest.raises(QueryRefused, match="the query fails"):
            found.query("SELECT sum(b) FROM data")
        with pytest.raises(QueryRefused, match="the query fails"):
            found.query("SELECT a * a * a FROM data")


def test_float_sums_are_the_same_each_time(tmp_path: Path) -> None:
    data = "a,b\n" + "".join(f"{n % 977}.{n % 10},{n % 89 + 1}\n" for n in range(200_000))
    with opened(tmp_path, data) as first:
        once = {first.single_value("SELECT sum(a / b) FROM data").text for _ in range(5)}
    with opened(tmp_path, data) as second:
        again = {second.single_value("SELECT sum(a / b) FROM data").text for _ in range(5)}
    assert len(once | again) == 1
