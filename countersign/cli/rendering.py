"""How answers look: plain lines for people, one JSON document for programs.

Apart from the commands, because text from models, data and people is shown here and must not be able to move the
cursor, hide itself or turn around on a reviewer's screen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import typer

from countersign.domain.differences import Difference
from countersign.domain.errors import InputRefused
from countersign.domain.strict_json import parse
from countersign.domain.visible import escaped
from countersign.ports import Documents

MAX_VIEW = 4_000_000
_EMPTY = '""'

PYTHON = ".venv/bin/python"
"""As hints name it, so that a line of theirs works pasted into a shell where no virtual environment is active."""
STARTER = f"{PYTHON} starter.py"
WORKER = f"{PYTHON} worker.py"
TEMPORAL = ".venv/bin/temporal"


def visible_line(text: str) -> str:
    """The text on one line, with what cannot be seen written out; line feeds are escaped too."""
    return escaped(text).replace("\n", "\\n")


def say(line: str = "") -> None:
    """One line (or several) for the person, on standard output, with what cannot be seen written out."""
    typer.echo(escaped(line))


def warn(line: str) -> None:
    """One line on standard error: it went on, but something is to be known."""
    typer.echo(f"warning: {visible_line(line)}", err=True)


def complain(line: str) -> None:
    """One line on standard error: it was refused, or failed."""
    typer.echo(f"error: {visible_line(' '.join(line.split()))}", err=True)


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
    """Names and values, one line each, values in one column; empty values are left out."""
    listed = [(visible_line(name), value) for name, value in pairs if value]
    width = max((len(name) for name, _ in listed), default=0) + 2
    return "\n".join(f"{indent}{name:<{width}}{visible_line(value)}" for name, value in listed)


def quoted(text: str) -> list[str]:
    """A text that others wrote, whole, each line behind `| `: none of it can pose as a line of ours."""
    return [f"| {visible_line(line)}" for line in text.split("\n")]


def escaped_lines(lines: Iterable[str]) -> list[str]:
    """Lines of a text, each on one line of its own, with what cannot be seen written out."""
    return [f"  {visible_line(line)}" for line in lines]


def difference_lines(found: Iterable[Difference]) -> list[str]:
    """Each place that differs, whole: as it was behind `-`, as it is to be behind `+`."""
    lines = []
    for one in found:
        lines.append(f"  {visible_line(one.place)}")
        lines += [
            f"    {sign} {visible_line(value) or _EMPTY}"
            for sign, value in (("-", one.before), ("+", one.after))
            if value is not None
        ]
    return lines


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
