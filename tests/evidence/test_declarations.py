"""What a schema declares about a whole file: blank texts and the delimiter, applied only where they are declared."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pydantic import ValidationError

from countersign.domain.errors import DataRefused
from countersign.domain.report import DatasetSchema
from countersign.evidence.dataset import Dataset

ROWS = "date,delay,note\n2013-01-01,2,ok\n2013-01-02,NA,NA\n2013-01-03,-3,n/a\n"


def opened(tmp_path: Path, text: str, **schema: object) -> Dataset:
    path = tmp_path / "flights.csv"
    path.write_text(text)
    sha256 = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    return Dataset.open(path, sha256, DatasetSchema.model_validate(schema), cache=tmp_path / "cache")


@pytest.mark.parametrize("quoted", [False, True], ids=["plain", "quoted"])
def test_declared_texts_are_blank_cells_in_every_column(tmp_path: Path, quoted: bool) -> None:
    text = ROWS.replace("ok", '"ok, but late"') if quoted else ROWS
    dataset = opened(tmp_path, text, blank=("NA",))
    delay, note = dataset.describe().columns[1:]
    assert (delay.type, delay.blanks, note.blanks) == ("number", 1, 1)
    assert dataset.single_value("SELECT sum(delay) FROM data").text == "-1"
    dataset.close()


def test_only_the_declared_spelling_is_blank(tmp_path: Path) -> None:
    dataset = opened(tmp_path, ROWS, blank=("NA",))
    assert dataset.single_value("SELECT note FROM data WHERE note = 'n/a'").text == "n/a"
    dataset.close()


def test_undeclared_it_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(DataRefused, match=r"row 2 .*'delay': 'NA'.*blank: \[NA\]"):
        opened(tmp_path, ROWS)


@pytest.mark.parametrize("text", ["", " ", "a b", 'N"A', "N,A", "x" * 21])
def test_a_blank_text_is_one_short_word(text: str) -> None:
    with pytest.raises(ValidationError):
        DatasetSchema(blank=(text,))


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_header_that_is_one_name_with_another_delimiter_in_it_is_refused(tmp_path: Path, mark: str) -> None:
    with pytest.raises(DataRefused, match="declare delimiter"):
        opened(tmp_path, f"day{mark}amount\n2026-01-01{mark}2\n")
