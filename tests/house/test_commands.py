"""The commands of the house say what holds: `make guarantees` shows each promise, `make setup` what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from countersign.settings import ROOT
from tests.support.guarantees import OPTION, REQUIRED

PYTEST_INI = "[pytest]\nmarkers = guarantee(id): as in the house\n"


def run_guarantees(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run what `make guarantees` runs on a folder with one test file."""
    (folder / "pytest.ini").write_text(PYTEST_INI, encoding="utf-8")
    (folder / "test_promises.py").write_text(f"import pytest\n\n{tests}", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "guarantee", "-p", "tests.support.guarantees", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def promise(guarantee: str, name: str, body: str) -> str:
    """The source of one marked test."""
    return f"@pytest.mark.guarantee({guarantee!r})\ndef test_{name}():\n    {body}\n\n"


def test_each_promise_has_its_line(tmp_path: Path) -> None:
    tests = promise("G31", "a", "pass") + promise("G14", "b", "pass") + promise("G14", "c", "pass")

    result = run_guarantees(tmp_path, tests + "def test_unmarked():\n    assert False\n")

    assert [line for line in result.stdout.splitlines() if line.startswith("G")] == [
        "G14 pass 2 tests",
        "G31 pass 1 test",
    ]
    assert result.returncode == 0


@pytest.mark.parametrize("body", ["assert False", "pytest.skip('later')", "pytest.xfail('known')"])
def test_a_promise_with_a_failed_or_skipped_test_fails(tmp_path: Path, body: str) -> None:
    result = run_guarantees(tmp_path, promise("G14", "a", "pass") + promise("G14", "b", body))

    assert "G14 fail 1 of 2 tests" in result.stdout.splitlines()
    assert result.returncode != 0


def test_a_required_promise_without_a_test_fails_a_run_of_all_tests(tmp_path: Path) -> None:
    tests = "".join(promise(name, name, "pass") for name in sorted(REQUIRED - {"G21"}))

    whole = run_guarantees(tmp_path, tests, OPTION)
    selection = run_guarantees(tmp_path, tests)
    mended = run_guarantees(tmp_path, tests + promise("G21", "mended", "pass"), OPTION)

    assert "G21 fail 0 tests" in whole.stdout.splitlines()
    assert (whole.returncode, selection.returncode, mended.returncode) == (1, 0, 0)
    assert "G21" not in selection.stdout


@pytest.mark.parametrize("target", ["test", "guarantees"])
def test_what_runs_all_tests_asks_for_every_required_promise(target: str) -> None:
    printed = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert f"-p tests.support.guarantees {OPTION}" in printed


def test_an_unknown_promise_stops_the_run(tmp_path: Path) -> None:
    result = run_guarantees(tmp_path, promise("G48", "a", "pass"))

    assert "'G48' is no guarantee; use G01 to G47." in result.stdout + result.stderr
    assert result.returncode != 0


def make_setup(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run `make setup` in an otherwise empty folder."""
    for name in ("Makefile", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    command = ["make", "setup", f"PYTHON={python}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_setup_without_a_fitting_python_says_so(tmp_path: Path) -> None:
    result = make_setup(tmp_path, "no-such-python")

    assert "make: no Python 3.11, 3.12 or 3.13 among: no-such-python. Install one or name it" in result.stderr
    assert result.returncode != 0


def test_setup_with_a_python_that_lacks_ensurepip_says_so(tmp_path: Path) -> None:
    python = tmp_path / "python-without-ensurepip"
    python.write_text(f'#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)

    result = make_setup(tmp_path, str(python))

    assert "has no ensurepip, which .venv needs: install it" in result.stderr
    assert not (tmp_path / ".venv").exists()
    assert result.returncode != 0
