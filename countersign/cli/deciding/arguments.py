"""Values as a person changes them: arguments by `--set`, those or a draft as JSON in their editor. Nothing is guessed.

Apart from `edit` and `amend`, which decide nothing about forms: an argument that is text takes text, any other JSON.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from countersign.cli.errors import Unreadable
from countersign.domain.errors import CountersignError, InputRefused
from countersign.domain.money import amount
from countersign.domain.strict_json import check_text, parse
from countersign.domain.visible import is_hidden

MAX_BYTES = 1_000_000
MONEY, CURRENCY = "amount", "currency"
"""The arguments of a tool that moves money: minor units, and the currency that they are of."""


def assigned(args: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """The arguments with the assignments `FIELD=VALUE` made; money as `50.00 USD`, or in minor units.

    Raises:
        Unreadable: an assignment without `=`, or of a field that has one already.
        InputRefused: a value that is not of the argument's form, or money in another currency than the arguments'.
    """
    changed: dict[str, Any] = {}
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        if not separator or not name:
            raise Unreadable(f"--set: {assignment[:60]!r} is no assignment; write FIELD=VALUE")
        if name in changed:
            raise Unreadable(f"--set: {name[:60]!r} is set twice; set it once")
        money = name == MONEY and text[-1:].isalpha() and isinstance(args.get(CURRENCY), str)
        changed[name] = _minor(text, args[CURRENCY]) if money else _value(name, text, args.get(name, ""))
    return {**args, **changed}


@contextmanager
def from_editor(
    args: Mapping[str, Any], what: str = "arguments", instead: str = "--set FIELD=VALUE"
) -> Iterator[dict[str, Any]]:
    """The values as the person leaves them in the editor that VISUAL or EDITOR names.

    The file is gone at the end; where what was typed is refused, here or inside, it is kept and named.

    Args:
        args: as they are before.
        what: what they are called.
        instead: how to do without an editor.

    Raises:
        InputRefused: no editor, one that fails, or a file that is no JSON object.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    if not editor.strip():
        raise InputRefused(f"EDITOR is not set; set it to your editor, or give {instead}")
    file, kept = Path(tempfile.mkdtemp(prefix="countersign-edit-")) / f"{what}.json", False
    try:
        file.write_text(editable(args), encoding="utf-8")
        _run(editor, file, instead)
        yield json_object(file.read_bytes(), f"edited {what}")
    except CountersignError as refused:
        kept = file.exists() and file.read_bytes() != editable(args).encode()
        raise InputRefused(f"{refused.message}; your text is kept in {file}") if kept else refused from None
    finally:
        if not kept:
            shutil.rmtree(file.parent)


def json_object(data: bytes, where: str) -> dict[str, Any]:
    """A JSON object, read strictly; InputRefused names `where` otherwise."""
    value = parse(data, where=where, max_bytes=MAX_BYTES)
    if not isinstance(value, dict):
        raise InputRefused(f"{where}: expected a JSON object, FIELD: VALUE for each field")
    return value


def editable(args: Mapping[str, Any]) -> str:
    """Indented JSON that reads well in any language; what cannot be seen is written as `\\uXXXX`."""
    text = json.dumps(args, ensure_ascii=False, indent=2)
    return "".join(_written_out(letter) if letter != "\n" and is_hidden(letter) else letter for letter in text) + "\n"


def _value(name: str, text: str, before: Any) -> Any:
    if not isinstance(before, str):
        return parse(text.encode("utf-8", "surrogatepass"), where=f"--set {name[:60]}")
    check_text(text, f"--set {name[:60]}")
    return text


def _minor(text: str, currency: str) -> int:
    """What an amount with its currency is in minor units; a currency is not changed by the way."""
    money = amount(text)
    if money.currency != currency:
        raise InputRefused(f"--set {MONEY}: {money} is in another currency; the action's is {currency}")
    return money.minor


def _written_out(letter: str) -> str:
    return json.dumps(letter)[1:-1]


def _run(editor: str, file: Path, instead: str) -> None:
    try:
        code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise InputRefused(
            f"EDITOR {editor[:80]!r} cannot be run: {error}; set another one, or give {instead}"
        ) from None
    if code:
        raise InputRefused(f"EDITOR {editor[:80]!r} ended with code {code}; nothing was changed")
