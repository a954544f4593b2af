"""The generated parts of README.md: commands and settings, each between two markers.

`python -m tests.support.readme` writes them anew; a test compares them with the program.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from countersign.cli.app import app
from countersign.settings import Settings

README = Path(__file__).resolve().parents[2] / "README.md"


def commands_block() -> str:
    """One row per command: how it is called, and the first sentence of its help."""
    rows = [f"| `{_called(name, command)}` | {_sentence(command)} |" for name, command in _commands(get_command(app))]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def settings_block() -> str:
    """One row per setting: variable, default, meaning."""
    rows = [f"| `{_variable(name)}` | {_default(name)} | {field.description} |" for name, field in _fields()]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


BLOCKS = {"commands": commands_block, "settings": settings_block}


def regenerated(text: str) -> str:
    """The README's text with every generated block as the program has it now."""
    for name, block in BLOCKS.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, found, rest = text.partition(start)
        _, ended, after = rest.partition(end)
        assert found, f"README.md lacks the marker {start}"
        assert ended, f"README.md lacks the marker {end}"
        text = f"{before}{start}{block()}\n{end}{after}"
    return text


def _commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _called(name: str, command: Any) -> str:
    arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
    options = [_option(one) for one in command.params if one.param_type_name == "option"]
    return " ".join([name, *arguments, *options]).replace("|", "\\|")


def _argument(parameter: Any) -> str:
    return str(parameter.metavar) if parameter.required else f"[{parameter.metavar}]"


def _option(parameter: Any) -> str:
    flag = str(parameter.opts[0])
    text = flag if parameter.metavar is None else f"{flag} {parameter.metavar}"
    return text if parameter.required else f"[{text}]"


def _sentence(command: Any) -> str:
    return inspect.cleandoc(command.help).split("\n\n")[0].replace("\n", " ")


def _fields() -> list[tuple[str, Any]]:
    return list(Settings.model_fields.items())


def _variable(name: str) -> str:
    alias = Settings.model_fields[name].validation_alias
    return str(alias) if alias else f"COUNTERSIGN_{name.upper()}"


def _default(name: str) -> str:
    value = Settings.model_fields[name].default
    return f"`{value}`" if value not in (None, "") else "unset"


if __name__ == "__main__":
    README.write_text(regenerated(README.read_text(encoding="utf-8")), encoding="utf-8")
