"""How answers look: plain lines for people, one JSON document for programs.

Apart from the commands, because text from models, data and people is shown here and must not be able to move the
cursor, hide itself or turn around on a reviewer's screen.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import typer

from countersign.domain.errors import InputRefused
from countersign.domain.strict_json import parse
from countersign.domain.visible import is_hidden
from countersign.ports import Documents

MAX_VIEW = 4_000_000

PYTHON = ".venv/bin/python"
"""As hints name it, so that a line of theirs works pasted into a shell where no virtual environment is active."""
STARTER = f"{PYTHON} starter.py"
WORKER = f"{PYTHON} worker.py"
TEMPORAL = ".venv/bin/temporal"


def visible(text: str) -> str:
    """`text` with every character that shows as nothing, or acts on the screen, written as `\\u{...}`.

    Line feeds are kept. Variation selectors and blanks wider than a space are escaped too: two texts that look the
    same here are the same.
    """
    return "".join(character if _shows(character) else f"\\u{{{ord(character):04x}}}" for character in text)


def visible_line(text: str) -> str:
    """The same on one line: line feeds are escaped too."""
    return visible(text).replace("\n", "\\n")


def _shows(character: str) -> bool:
    if character in "\n ":
        return True
    return not is_hidden(character) and unicodedata.category(character) != "Zs"


def say(line: str = "") -> None:
    """One line (or several) for the person, on standard output."""
    typer.echo(line)


def warn(line: str) -> None:
    """One line on standard error: it went on, but something is to be known."""
    typer.echo(f"warning: {line}", err=True)


def say_json(value: Any) -> None:
    """One JSON document on standard output, indented, keys in the order given; non-ASCII and controls escaped."""
    typer.echo(json.dumps(value, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return moment(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def moment(value: datetime) -> str:
    """UTC to the second: `2026-11-30T09:00:00Z`."""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


def fields(pairs: Iterable[tuple[str, str]], indent: str = "") -> str:
    """Names and values, one line each, values in one column."""
    listed = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in listed), default=0) + 2
    return "\n".join(f"{indent}{name:<{width}}{visible_line(value)}" for name, value in listed)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their heads, columns as wide as their widest cell."""
    shown = [list(head), *([visible_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in shown) for column in range(len(head))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown)
    return "\n".join(lines)


def document(documents: Documents, tenant: str, sha256: str) -> Any:
    """A JSON document of the ledger, read strictly; the ledger has checked its hash."""
    return parse(documents.get(tenant, sha256), where=f"document {sha256[:20]}", max_bytes=MAX_VIEW)


def detail(values: Mapping[str, Any]) -> str:
    """A record's details on one line: `name=value name=value`."""
    return " ".join(f"{name}={_short(value)}" for name, value in values.items() if value not in ("", None, [], {}))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{text[:19]}..." if text.startswith("sha256:") else text


def one_of(answer: str, allowed: Sequence[str]) -> str:
    """A person's answer at the terminal as one of the allowed letters."""
    letter = answer.strip().lower()[:1]
    if letter not in allowed:
        raise InputRefused(f"answer {answer[:20]!r} is not one of {', '.join(allowed)}")
    return letter
