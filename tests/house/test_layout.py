"""The house itself: what is imported is this repository's, every module says what it is, nothing names one machine."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Built from parts, so that this file does not contain what it looks for.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"(?:files\.)?python" + r"hosted\.org",
            r"pypi" + r"\.org",
            r"registry\." + r"npmjs",
            r"file:///" + r"\w",
            r"(?<![\w.-])/" + r"(?:work|root|home|Users)/\w",
            r"(?<![\w.-])/" + r"(?:tmp|opt)/\w",
        ]
    )
)


def tracked_files() -> list[Path]:
    """The files that a clone has or will have: tracked ones, and new ones that are not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(ROOT / name for name in names if name and (ROOT / name).is_file())


@pytest.mark.parametrize("package", ["activities", "countersign", "workflows"])
def test_packages_come_from_this_repository(package: str) -> None:
    """`llama-index-workflows` installs a top-level `workflows`: ours has to win."""
    origin = importlib.import_module(package).__file__

    assert origin is not None
    assert Path(origin).parent == ROOT / package


def test_every_module_starts_with_a_sentence() -> None:
    without = []
    for path in tracked_files():
        if path.suffix == ".py":
            docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            if not re.match(r"[^\n]{20,}[.:;]", docstring.split("\n\n")[0].replace("\n", " ")):
                without.append(str(path.relative_to(ROOT)))

    assert without == []


def test_no_file_names_a_registry_or_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in tracked_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if FORBIDDEN.search(line)
    ]

    assert found == []


def test_what_runs_write_is_ignored_by_git() -> None:
    written = [".venv/bin/python", "var/ledger.sqlite", "countersign/__pycache__/x.pyc", ".mypy_cache/x", ".coverage"]
    ignored = subprocess.run(["git", "check-ignore", *written], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ignored.stdout.split() == written
