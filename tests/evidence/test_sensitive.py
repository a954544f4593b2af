"""Which queries read a sensitive column: none that shows anything of it may be told to read nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.domain.errors import DataRefused, QueryRefused
from countersign.domain.report import ColumnSchema
from countersign.evidence.dataset import Dataset
from tests.evidence.opening import opened

SCHEMA = {"columns": {"Salary": {"type": "number", "sensitive": True}, "name": {"type": "text", "sensitive": True}}}
STAFF = "region,Salary,name,age\nNorth,4100,Ada,31\nSouth,5200,Bo,45\nNorth,6300,Cy,52\n"
OTHERS = "region,Salary,name,age\nNorth,9900,Xi,31\nSouth,100,Yo,45\nNorth,7,Zed,52\n"
"""The same but for what is sensitive."""

BOTH, SALARY, NAME, NONE = ("Salary", "name"), ("Salary",), ("name",), ()
QUERIES = {
    "SELECT count(*) FROM data": NONE,
    "SELECT region, sum(age) FROM data GROUP BY ALL ORDER BY 2": NONE,
    "SELECT 'Salary' FROM data": NONE,
    "SELECT * FROM (SELECT region, avg(age) AS years FROM data GROUP BY 1)": NONE,
    "WITH t AS (SELECT region, age FROM data) SELECT * FROM t ORDER BY age": NONE,
    "SELECT * EXCLUDE (salary, NAME) FROM data": NONE,
    "SELECT DISTINCT region FROM data": NONE,
    "SELECT a.region FROM data a JOIN data b ON a.age < b.age": NONE,
    "SELECT sum(salary) FROM data": SALARY,
    'SELECT "SALARY" FROM data': SALARY,
    "SELECT data.Salary FROM data": SALARY,
    "SELECT main.data.salary FROM data": SALARY,
    "SELECT s FROM (SELECT salary AS s FROM data)": SALARY,
    "WITH t(s) AS (SELECT salary FROM data) SELECT max(s) FROM t": SALARY,
    "SELECT region FROM data WHERE salary > 5000": SALARY,
    "SELECT region FROM data ORDER BY salary": SALARY,
    "SELECT region FROM data ORDER BY salary LIMIT 1": SALARY,
    "SELECT count(*) FILTER (WHERE salary > 5000) FROM data": SALARY,
    "SELECT arg_max(region, salary) FROM data": SALARY,
    "SELECT region, count(*) FROM data GROUP BY region HAVING max(salary) > 5500": SALARY,
    "SELECT row_number() OVER (ORDER BY salary), region FROM data": SALARY,
    "SELECT region FROM data WINDOW w AS (ORDER BY salary) QUALIFY rank() OVER w = 1": SALARY,
    "SELECT region, age FROM data LIMIT (SELECT count(*) FROM data WHERE salary > 5000)": SALARY,
    "SELECT age FROM data a WHERE EXISTS (SELECT 1 FROM data b WHERE b.salary > 9000 AND b.age = a.age)": SALARY,
    "SELECT count(*) FROM data JOIN (SELECT 4100 AS salary) USING (salary)": SALARY,
    "SELECT region FROM data UNION ALL SELECT salary::VARCHAR FROM data": SALARY,
    "SELECT CASE WHEN salary > 5000 THEN 1 ELSE 0 END FROM data": SALARY,
    "SELECT DISTINCT ON (region) age FROM data ORDER BY region, salary": SALARY,
    "SELECT * EXCLUDE (name) FROM data": SALARY,
    "SELECT * EXCLUDE (salary) FROM data": NAME,
    "SELECT * EXCLUDE (salary, name) REPLACE (salary AS age) FROM data": SALARY,
    "SELECT * FROM data": BOTH,
    "FROM data": BOTH,
    "TABLE data": BOTH,
    "SELECT data.* FROM data": BOTH,
    "SELECT d.* FROM data d": BOTH,
    "SELECT * RENAME (salary AS pay) FROM data": BOTH,
    "SELECT * EXCLUDE (data.salary) FROM data": BOTH,
    "SELECT * REPLACE (1 AS salary) FROM data": BOTH,
    "SELECT * FROM (SELECT * FROM data)": BOTH,
    "WITH t AS (FROM data) SELECT t.* FROM t": BOTH,
    "SELECT b FROM data AS t(a, b, c, d)": BOTH,
    "SELECT * EXCLUDE (salary, name) FROM data AS t(salary, pay, name, age)": BOTH,
    "SELECT data::VARCHAR FROM data": BOTH,
    "SELECT count(DISTINCT t) FROM data t": BOTH,
    "SELECT min(t)::VARCHAR FROM data t": BOTH,
    "SELECT count(*) FROM data NATURAL JOIN (SELECT 4100 AS salary)": BOTH,
    "SELECT t::VARCHAR FROM (FROM data) t": BOTH,
}  # fmt: skip
REFUSED = (
    "SELECT COLUMNS('S.*') FROM data", "SELECT COLUMNS(*) FROM data", "SELECT #2 FROM data", "SELECT data.salary.x()",
    "SELECT (data).salary FROM data", "SELECT data['salary'] FROM data", "SELECT * LIKE 'S%' FROM data GROUP BY x(",
    "SELECT unnest(data) FROM data", "SUMMARIZE data", "DESCRIBE data", "PIVOT data ON salary", "SELECT 1; SELECT 2",
    "FROM data POSITIONAL JOIN data", "DROP TABLE data", f"SELECT {'abs(' * 900}salary{')' * 900} FROM data",
)  # fmt: skip


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, Dataset]]:
    """Two datasets that differ in nothing but what is sensitive."""
    first, second = tmp_path_factory.mktemp("staff"), tmp_path_factory.mktemp("others")
    with opened(first, STAFF, SCHEMA) as staff, opened(second, OTHERS, SCHEMA) as others:
        yield staff, others


@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_is_told_to_read_what_it_reads(pair: tuple[Dataset, Dataset], sql: str) -> None:
    assert pair[0].sensitive(sql) == QUERIES[sql]


@pytest.mark.parametrize("sql", [sql for sql, columns in QUERIES.items() if not columns])
def test_a_query_that_waits_for_nobody_shows_nothing_of_what_is_sensitive(
    pair: tuple[Dataset, Dataset], sql: str
) -> None:
    staff, others = (sorted(map(str, dataset.query(sql).rows)) for dataset in pair)
    assert staff == others


@pytest.mark.parametrize("sql", REFUSED)
def test_a_query_of_which_it_cannot_be_told_is_refused_and_run_by_nobody(
    pair: tuple[Dataset, Dataset], sql: str
) -> None:
    with pytest.raises(QueryRefused):
        pair[0].sensitive(sql)
    with pytest.raises(QueryRefused):
        pair[0].query(sql)


def test_a_description_names_a_sensitive_column_and_shows_nothing_of_it(pair: tuple[Dataset, Dataset]) -> None:
    region, salary, *_ = pair[0].describe().columns
    assert (salary.name, salary.type, salary.sensitive, salary.blanks) == ("Salary", "number", True, 0)
    assert (salary.minimum, salary.maximum, salary.distinct, salary.samples) == (None, None, None, ())
    assert (region.sensitive, region.samples) == (False, ("North", "South"))
    assert pair[0].describe() == pair[1].describe()
    assert any(note.startswith("Salary: sensitive") for note in pair[0].describe().notes)


def test_a_currency_column_is_not_sensitive_since_every_amount_tells_it(tmp_path: Path) -> None:
    columns = {"pay": {"type": "number", "currency_column": "cur"}, "cur": {"type": "text", "sensitive": True}}
    with (
        pytest.raises(DataRefused, match="'cur' is declared sensitive"),
        opened(tmp_path, "pay,cur\n1,EUR\n", {"columns": columns}),
    ):
        pass


def test_a_request_from_before_is_the_same_request() -> None:
    assert "sensitive" not in ColumnSchema(type="text").model_dump()
    assert ColumnSchema(type="text", sensitive=True).model_dump()["sensitive"] is True


NAMED = {
    "as it is": "iban",
    "other case": "IBAN",
    "full width": "\uff29\uff22\uff21\uff2e",
    "a hidden character": "ib\u200ban",
    "blanks around": " iban ",
    "something between": "i-b_a.n",
    "look-alike letters": "ib\u0430n",
    "another capital letter": "lBAN",
}


@pytest.mark.parametrize("name", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("declared", [None, {"type": "text"}], ids=["undeclared", "declared"])
def test_a_column_that_the_policy_names_is_sensitive_however_the_file_and_its_schema_put_it(
    tmp_path: Path, name: str, declared: dict[str, str] | None
) -> None:
    data, schema = f"region,{name}\nNorth,DE11\nSouth,DE22\n", {"columns": {name: declared} if declared else {}}
    with opened(tmp_path, data, schema, sensitive=["Iban"]) as dataset:
        assert dataset.sensitive(f'SELECT b FROM (SELECT "{name}" AS b FROM data)') == (name,)
        assert dataset.sensitive("SELECT t::VARCHAR FROM data t") == (name,)
        assert dataset.sensitive("SELECT region FROM data") == ()
        region, iban = dataset.describe().columns
        assert (region.sensitive, iban.sensitive, iban.minimum, iban.samples) == (False, True, None, ())


def test_what_only_resembles_a_name_of_the_policy_is_not_sensitive(tmp_path: Path) -> None:
    with opened(tmp_path, "iban2,ibans,%\na,b,c\n", sensitive=["iban"]) as dataset:
        assert dataset.sensitive("FROM data") == ()


def test_a_currency_column_is_not_sensitive_by_the_policy_either(tmp_path: Path) -> None:
    columns = {"pay": {"type": "number", "currency_column": "Cur"}}
    with (
        pytest.raises(DataRefused, match="currency_column 'Cur' is sensitive by the policy"),
        opened(tmp_path, "pay,Cur\n1,EUR\n", {"columns": columns}, sensitive=["cur"]),
    ):
        pass
