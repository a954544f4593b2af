"""The demo: one command that shows the whole job, asks the person at the terminal, and leaves nothing running."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.cli.office import ROOT, STARTER, starter
from tests.support.processes import Processes


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {
        "COUNTERSIGN_HOME": str(tmp_path),
        "DATABASE_URL": "",
        "OPENAI_API_KEY": "",
        "TEMPORAL_ADDRESS": "nowhere:1",
    }


def left_running(home: dict[str, str]) -> list[str]:
    """Command lines of processes that still work in this installation, from the process table."""
    mark = f"COUNTERSIGN_HOME={home['COUNTERSIGN_HOME']}/demo".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.timeout(240)
def test_the_demo_publishes_what_was_approved_and_verifies_it(home: dict[str, str]) -> None:
    first = starter(home, "demo", "--yes")
    second = starter(home, "demo", answer="s\nmaybe\ny\n")

    for shown in (first, second):
        assert shown.returncode == 0, shown.stdout + shown.stderr
        found = re.search(r"^report +(\S+\.md)$", shown.stdout, re.MULTILINE)
        assert found
        assert Path(found[1]).read_text().startswith("# ")
        assert re.search(r"^receipt +channel public, key [0-9a-f]{64}, content sha256:", shown.stdout, re.MULTILINE)
        assert re.search(r"^audit +\d+ records of acme verified", shown.stdout, re.MULTILINE)
        assert "web UI" in shown.stdout
    assert second.stdout.count("DOCUMENT (sha256:") == 2
    assert "answer 'maybe' is not one of y, n, s" in second.stdout
    assert left_running(home) == []


@pytest.mark.timeout(120)
def test_what_the_person_declines_is_not_published(home: dict[str, str], tmp_path: Path) -> None:
    shown = starter(home, "demo", answer="n\n")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert re.search(r"^result +REJECTED", shown.stdout, re.MULTILINE)
    assert list(tmp_path.rglob("*.md")) == []


@pytest.mark.timeout(120)
def test_without_anybody_at_the_terminal_it_says_so(home: dict[str, str], tmp_path: Path) -> None:
    shown = starter(home, "demo")

    assert shown.returncode == 1
    assert "stays pending in " in shown.stderr
    assert "and nothing was published" in shown.stderr
    assert shown.stderr.strip().endswith("give --yes where nobody can be asked")
    assert list(tmp_path.rglob("*.md")) == []
    assert left_running(home) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_alone_and_when_interrupted_stops_all_that_it_started(
    processes: Processes, home: dict[str, str], number: signal.Signals
) -> None:
    demo = processes.start([*STARTER, "demo"], env=home, cwd=ROOT)
    demo.wait_for_line("is registered and started")

    second = starter(home, "demo", "--yes")
    os.kill(demo.popen.pid, number)

    assert second.returncode == 1
    assert second.stderr.startswith("error: another demo is running in ")
    assert demo.wait(60) == 130
    assert "Traceback" not in demo.output
    assert left_running(home) == []


@pytest.mark.timeout(120)
def test_it_brings_no_persons_into_the_ledger_of_another_installation(home: dict[str, str], tmp_path: Path) -> None:
    in_use = home | {"DATABASE_URL": f"sqlite:///{tmp_path / 'in-use.db'}"}
    assert starter(in_use, "directory", "apply", "policies/directory.yaml", "--yes").returncode == 0
    before = starter(in_use, "audit", "show", "--tenant", "acme").stdout

    shown = starter(in_use, "demo", "--yes")

    assert shown.returncode == 1
    assert "installation" in shown.stderr
    assert starter(in_use, "audit", "show", "--tenant", "acme").stdout == before
    assert left_running(home) == []
