"""Shelves: tenants apart, readings shared, and none kept that nobody uses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from countersign.domain.errors import DataRefused, NotFound
from countersign.domain.report import DatasetRef, DatasetSchema
from countersign.evidence.shelves import KEPT_OPEN, Shelves


@pytest.fixture
def shelves(tmp_path: Path) -> Shelves:
    return Shelves(tmp_path / "evidence")


def stored(shelves: Shelves, tmp_path: Path, rows: str, tenant: str = "acme") -> DatasetRef:
    source = tmp_path / "source.csv"
    source.write_text(rows)
    return DatasetRef(sha256=shelves.put(tenant, source), name="source.csv", schema=DatasetSchema())


def readings_on_disk(tmp_path: Path) -> int:
    return len(list((tmp_path / "evidence" / "acme" / "readings").iterdir()))


@pytest.mark.guarantee("G09")
def test_another_tenants_data_is_not_there(shelves: Shelves, tmp_path: Path) -> None:
    dataset = stored(shelves, tmp_path, "a\n1\n")
    with pytest.raises(NotFound) as of_other:
        shelves.open("other", dataset)
    unknown = dataset.model_copy(update={"sha256": "sha256:" + "0" * 64})
    with pytest.raises(NotFound) as of_nobody:
        shelves.open("acme", unknown)
    assert of_other.value.message.replace(dataset.sha256, "X") == of_nobody.value.message.replace(unknown.sha256, "X")


def test_many_users_of_one_dataset_share_one_reading(shelves: Shelves, tmp_path: Path) -> None:
    dataset = stored(shelves, tmp_path, "a\n1\n2\n")
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda _: shelves.open("acme", dataset), range(8)))
    assert readings_on_disk(tmp_path) == 1
    opened[0].close()
    opened[0].close()
    assert [each.single_value("SELECT sum(a) FROM data").text for each in opened[1:]] == ["3"] * 7


def test_a_reading_tells_of_sensitive_columns_as_each_user_was_told_they_are(shelves: Shelves, tmp_path: Path) -> None:
    dataset = stored(shelves, tmp_path, "a\n1\n")
    free, guarded = shelves.open("acme", dataset), shelves.open("acme", dataset, ["A"])
    assert [each.sensitive("FROM data") for each in (free, guarded)] == [(), ("a",)]


def test_readings_that_nobody_uses_are_closed_but_for_the_latest(shelves: Shelves, tmp_path: Path) -> None:
    for number in range(KEPT_OPEN + 3):
        shelves.open("acme", stored(shelves, tmp_path, f"a\n{number}\n")).close()
    assert readings_on_disk(tmp_path) == KEPT_OPEN


def test_a_reading_in_use_stays_open_whatever_comes_after(shelves: Shelves, tmp_path: Path) -> None:
    used = shelves.open("acme", stored(shelves, tmp_path, "a\n7\n"))
    for number in range(KEPT_OPEN + 3):
        shelves.open("acme", stored(shelves, tmp_path, f"a\n{number}{number}\n")).close()
    assert used.single_value("SELECT a FROM data").text == "7"


def test_refused_data_is_refused_every_time_and_leaves_nothing(shelves: Shelves, tmp_path: Path) -> None:
    dataset = stored(shelves, tmp_path, "a,b\n1\n")
    for _ in range(2):
        with pytest.raises(DataRefused):
            shelves.open("acme", dataset)
    assert readings_on_disk(tmp_path) == 0


@pytest.mark.guarantee("G14")
def test_evidence_changed_after_the_first_reading_is_not_opened_again(shelves: Shelves, tmp_path: Path) -> None:
    dataset = stored(shelves, tmp_path, "a\n1\n")
    reading = shelves.open("acme", dataset)
    digest = dataset.sha256.removeprefix("sha256:")
    place = tmp_path / "evidence" / "acme" / digest[:2] / digest
    place.chmod(0o600)
    place.write_text("a\n2\n")
    with pytest.raises(DataRefused, match="was changed"):
        shelves.open("acme", dataset)
    assert reading.single_value("SELECT a FROM data").text == "1"
