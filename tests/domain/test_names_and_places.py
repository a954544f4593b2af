"""Names of documents, and the words of a publication that are made from them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from countersign.domain.document_names import MAX_NAME, checked_document_name, folded
from countersign.domain.errors import InputRefused
from countersign.domain.publication import PublishReport


@pytest.mark.parametrize("name", ["a", "report-1.md", "0", "q2_report.v1.md", "x" * MAX_NAME, "console.md"])
def test_a_document_name_is_plain(name: str) -> None:
    assert checked_document_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "A", "Report.md", ".hidden", "-x", "a/b", "..", "a.", "a b", "a\n", "é", "x" * (MAX_NAME + 1), "ａ",
     "con", "con.md", "nul", "com1.txt", "lpt9"],
)  # fmt: skip
def test_any_other_spelling_is_refused(name: str) -> None:
    with pytest.raises(InputRefused, match="document name"):
        checked_document_name(name)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("report.md", "REPORT.md", True),
        ("e\u0301.md", "é.md", True),
        ("ﬁle", "file", True),
        ("a.md", "b.md", False),
    ],
)
def test_names_that_are_one_file_somewhere_fold_to_one(one: str, other: str, same: bool) -> None:
    assert (folded(one) == folded(other)) is same


ARGS: dict[str, Any] = {"channel": "public", "name": "report-1.md", "title": "Sales"}


@pytest.mark.guarantee("G14")
def test_the_target_is_channel_and_name() -> None:
    assert PublishReport.model_validate(ARGS).target == "public:report-1.md"


@pytest.mark.parametrize(
    "changes", [{"name": "../x"}, {"name": "con"}, {"channel": "Public"}, {"title": ""}, {"note": "x"}, {"title": 1}]
)
def test_other_arguments_are_no_publication(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PublishReport.model_validate({**ARGS, **changes})
