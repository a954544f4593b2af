"""Rows that a schema declares unique and that are not: refused with both rows and what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from countersign.domain.errors import DataRefused, EvidenceContradictsItself
from tests.evidence.opening import opened, rows

DATA = "id,region,amount\n1,North,10.00\n2,South,20.00\n1,North,12.50\n3,,5.00\n3,,5.00\n"


@pytest.mark.parametrize(
    ("unique", "words"),
    [
        (["id"], ["row 1 (line 2) and row 3 (line 4)", "'id' '1'", "'amount' is '10.00' and '12.50'"]),
        (["id", "region"], ["row 1 (line 2) and row 3", "'region' 'North'"]),
        (["id", "region", "amount"], ["row 4 (line 5) and row 5 (line 6)", "'region' blank", "the same row twice"]),
    ],
)
def test_two_rows_with_one_identity_are_refused_with_both(tmp_path: Path, unique: list[str], words: list[str]) -> None:
    with pytest.raises(EvidenceContradictsItself) as refusal:
        rows(tmp_path, DATA, {"unique": unique})
    assert refusal.value.code == "EVIDENCE_CONTRADICTS_ITSELF"
    for word in words:
        assert word in refusal.value.message


def test_without_the_declaration_or_with_a_true_one_it_is_read(tmp_path: Path) -> None:
    assert len(rows(tmp_path, DATA)) == 5
    assert len(rows(tmp_path, "id,a\n1,x\n2,x\n", {"unique": ["id"]})) == 2


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataRefused, match="'order'"):
        rows(tmp_path, DATA, {"unique": ["order"]})


def test_texts_are_each_column_and_the_cells_that_match(tmp_path: Path) -> None:
    data = "id,note\n1,éasy\n2,other\n3,éasy\n"
    with opened(tmp_path, data) as dataset:
        assert dataset.texts("easy", "nothing", longest=100) == (("id", "id"), ("note", "note"), ("note", "éasy"))
