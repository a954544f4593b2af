"""Which releases these contracts were read against, and that a beta is not kept quiet about.

docs/extending.md says what an upgrade takes.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from deepagents.middleware.rubric import RubricMiddleware

ROOT = Path(__file__).resolve().parents[2]
READ = {"deepagents": "0.7.32", "langchain": "1.5.2", "langgraph": "1.2.24"}
"""Change a version here when every contract of this folder was looked at against that release, not before."""


@pytest.mark.parametrize("package", READ)
def test_what_is_installed_is_what_the_contracts_were_read_against(package: str) -> None:
    assert version(package) == READ[package]


@pytest.mark.parametrize("package", READ)
def test_what_is_locked_is_what_the_contracts_were_read_against(package: str) -> None:
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")

    assert re.findall(rf"^{package}==([^ ;\\]+)", locked, re.MULTILINE) == [READ[package]]


def test_the_middleware_that_grades_is_still_a_beta() -> None:
    """Once it is not, the adapter's own limits can be looked at again. That the warning comes: tests/agents."""
    assert "beta" in str(RubricMiddleware.__doc__).lower()


def test_nothing_of_ours_silences_a_warning() -> None:
    silencers = re.compile(r"filterwarnings|simplefilter|catch_warnings|suppress_langchain|PYTHONWARNINGS")
    programs = [ROOT / "worker.py", ROOT / "starter.py"]
    folders = ("countersign", "activities", "workflows")
    sources = [*programs, *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]

    assert not [str(path) for path in sources if silencers.search(path.read_text(encoding="utf-8"))]
