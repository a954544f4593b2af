"""What points into the documents finds something there, and each reason for which a run stops is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.domain.escalation import REASONS
from countersign.settings import ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAM = [
    path
    for folder in ("countersign", "activities", "workflows", "policies", "examples")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".yaml", ".html"}
]
NAMED = re.compile(r"docs/([\w-]+\.md)(?:#([\w-]+))?")
LINK = re.compile(r"\]\(([\w./-]*\.md)?(?:#([\w-]+))?\)")


def anchors(document: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    heads = re.findall(r"^#+ +(.+?)\s*$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def pointers() -> Iterator[tuple[str, Path, str]]:
    """Where it stands, the document and the anchor, of every pointer in documents and program."""
    for path in DOCUMENTS:
        for name, anchor in LINK.findall(path.read_text(encoding="utf-8")):
            yield path.name, path.parent / name if name else path, anchor
    for path in [*PROGRAM, ROOT / "Makefile"]:
        for name, anchor in NAMED.findall(path.read_text(encoding="utf-8")):
            yield path.name, ROOT / "docs" / name, anchor


def test_every_document_and_anchor_that_is_pointed_to_is_there() -> None:
    found = list(pointers())
    lacking = [
        (where, target.name, anchor)
        for where, target, anchor in found
        if not target.is_file() or (anchor and anchor not in anchors(target))
    ]

    assert lacking == []
    assert ("live_run.py", ROOT / "docs" / "live.md", "") in found, "the program's own pointers were not looked at"


@pytest.mark.parametrize("code", REASONS)
def test_operations_says_of_each_code_that_stops_a_run_what_to_do_under_its_reason(code: str) -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.partition("### Why a run could not go on: the codes\n")[2].partition("\n**Notices**")[0]
    under = section.partition(f"| **`{REASONS[code]}`** |")[2].partition("| **`")[0]

    assert re.search(rf"^\| `{code}` \| .+ \| .+ \|$", under, re.MULTILINE)
