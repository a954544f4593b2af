"""The story of an operation as text for a terminal: record by record, nothing of it cut short.

Apart from the facts themselves: here it is only said how they look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from countersign.cli.rendering import fields, quoted, visible_line

Facts = Mapping[str, Any]


def story_text(story: Facts) -> str:
    """All of it: head, records in order, what the ledger lacks, and what does not fit."""
    return "\n".join([
        fields(_head(story)),
        *(line for entry in story["entries"] for line in _entry(entry)),
        *_section("WHAT THE LEDGER LACKS", story["lacks"], "nothing that it names"),
        *_section("WHAT NO RECORD BINDS", story["unbound"], "nothing of it"),
        *_section("WHAT DOES NOT FIT", story["wrong"], "nothing: every link, hash and signature named above holds"),
    ])  # fmt: skip


def _head(story: Facts) -> list[tuple[str, str]]:
    operation = story["operation"]
    return [
        ("operation", f"{operation['operation']} of tenant {operation['tenant']} ({operation['case']})"),
        ("requester", operation["requester"]),
        ("state", f"{operation['state']} {operation['reason']}".rstrip()),
        ("follows", operation["follows"]),
        ("followed by", ", ".join(story["followers"])),
        ("audit", story["audit"]),
    ]


def _entry(entry: Facts) -> Iterable[str]:
    yield ""
    yield f"#{entry['sequence']} {entry['at'][:19]}Z {entry['type']} by {visible_line(entry['subject'])}"
    yield from (f"    {visible_line(name)}: {_value(value)}" for name, value in entry["detail"].items() if _told(value))
    if entry["proof"]:
        yield f"    {visible_line(entry['proof'])}"
    yield from (f"    {visible_line(sentence)}" for sentence in entry["said"])
    yield from (f"    LACKS {visible_line(sentence)}" for sentence in entry["lacks"])
    yield from (f"    DOES NOT FIT {visible_line(sentence)}" for sentence in entry["wrong"])
    for text in entry["texts"]:
        yield f"    {visible_line(text['name'])}:"
        yield from (f"    {line}" for line in quoted(text["text"]))


def _told(value: Any) -> bool:
    return value not in ("", None, [], {})


def _value(value: Any) -> str:
    """Whole, unlike in a timeline: hashes are what an auditor compares."""
    return visible_line(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def _section(head: str, sentences: Iterable[str], nothing: str) -> list[str]:
    found = [f"  {visible_line(sentence)}" for sentence in sentences]
    return ["", head, *(found or [f"  {nothing}"])]
