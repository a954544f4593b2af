"""How long a strict reading with 20 claims takes, as a ratio to DuckDB's own reading and one sum of the same file.

It stands apart from the tests because time is no matter of right and wrong. Prints one line: figure, name, value, aim.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import duckdb

from countersign.domain.report import DatasetSchema
from countersign.evidence.dataset import Dataset
from countersign.evidence.store import EvidenceStore

ROWS = int(os.environ.get("ROWS", "5000000"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
AIM = 1.5

TABLE = """
SELECT i AS order_id, DATE '2024-01-01' + (i % 900)::INT AS day,
       ['north', 'south', 'east', 'west', 'central'][1 + (hash(i) % 5)::INT] AS region,
       'customer ' || (hash(i * 7) % 200000) AS customer, (hash(i * 11) % 40)::INT AS units,
       (((hash(i * 3) % 2000000)::BIGINT - 500000)::DECIMAL(18, 0) * 0.01)::DECIMAL(18, 2) AS amount
FROM range(?) AS rows(i)
"""
REGIONS = ("north", "south", "east", "west", "central")
CLAIMS = (
    "SELECT count(*) FROM data",
    "SELECT min(day) FROM data",
    "SELECT max(day) FROM data",
    "SELECT sum(amount) FROM data",
    "SELECT min(amount) FROM data",
    "SELECT max(amount) FROM data",
    "SELECT avg(amount) FROM data",
    "SELECT sum(units) FROM data",
    "SELECT count(*) FROM data WHERE amount IS NULL",
    "SELECT count(*) FROM data WHERE amount < 0",
    *(f"SELECT sum(amount) FROM data WHERE region = '{region}'" for region in REGIONS),
    *(f"SELECT sum(amount) FROM data WHERE year(day) = {year}" for year in (2024, 2025, 2026)),
    "SELECT region FROM data GROUP BY region ORDER BY sum(amount) DESC LIMIT 1",
    "SELECT count(DISTINCT region) FROM data",
)


def main() -> None:
    """Measure both in turns, take the best of each, print the figure."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "orders.csv")
        target = str(source).replace("'", "''")
        duckdb.connect().execute(f"CREATE TABLE made AS {TABLE}", [ROWS]).execute(f"COPY made TO '{target}' (HEADER)")
        store = EvidenceStore(Path(folder, "evidence"))
        sha256 = store.put(source)
        rounds = [(_ours(store.path(sha256), sha256, Path(folder)), _theirs(source)) for _ in range(ROUNDS)]
    ours, theirs = (min(each) for each in zip(*rounds, strict=True))
    print(f"figure strict_reading_20_claims {ours / theirs:.2f} {AIM}")


def _ours(path: Path, sha256: str, folder: Path) -> float:
    started = time.perf_counter()
    dataset = Dataset.open(path, sha256, DatasetSchema(), cache=folder / "cache")
    for claim in CLAIMS:
        dataset.single_value(claim)
    taken = time.perf_counter() - started
    dataset.close()
    return taken


def _theirs(source: Path) -> float:
    with duckdb.connect() as connection:
        started = time.perf_counter()
        name = str(source).replace("'", "''")
        connection.execute(f"CREATE TABLE data AS FROM read_csv('{name}')")
        connection.execute("SELECT sum(amount) FROM data").fetchall()
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
