"""The demo: one command that shows the whole job, asks the person at the terminal, and leaves nothing running."""

from __future__ import annotations

import fcntl
import io
import os
import re
import signal
from pathlib import Path

import pytest

from countersign.cli.demos.demo_steps import Prompt, decided
from countersign.cli.session import Session
from countersign.domain.errors import Unavailable
from countersign.domain.proposal import ApprovalStatus
from tests.cli.command_line import CommandLine
from tests.cli.desk import TENANT, Desk
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
            if any(one.startswith(mark) for one in (process / "environ").read_bytes().split(b"\0")):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.long  # .ci/run plays the same demo
@pytest.mark.timeout(120)
def test_the_demo_publishes_what_was_approved_and_verifies_it(home: dict[str, str]) -> None:
    shown = starter(home, "demo", answer="y\n")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    found = re.search(r"^report +(\S+\.md)$", shown.stdout, re.MULTILINE)
    assert found
    assert Path(found[1]).read_text().startswith("# ")
    assert re.search(r"^receipt +channel public, key [0-9a-f]{64}, content sha256:", shown.stdout, re.MULTILINE)
    assert re.search(r"^audit +\d+ records of acme verified", shown.stdout, re.MULTILINE)
    assert "web UI" in shown.stdout
    assert left_running(home) == []


@pytest.mark.timeout(120)
def test_when_interrupted_it_stops_all_that_it_started_and_its_folder_serves_the_next_one(
    processes: Processes, home: dict[str, str]
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        demo = processes.start([*STARTER, "demo", "--yes"], env=home, cwd=ROOT)
        demo.wait_for_line("is registered and started")
        os.kill(demo.popen.pid, number)

        assert demo.wait(60) == 130
        assert "Traceback" not in demo.output
        assert left_running(home) == []


def test_it_runs_alone_in_its_folder(bare: CommandLine) -> None:
    folder = bare.home / "demo"
    folder.mkdir(parents=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = bare("demo", "--yes")

    assert refused.code == 1
    assert refused.err.startswith(f"error: another demo is running in {folder}; ")
    assert [path.name for path in folder.iterdir()] == ["lock"], "something was begun"


def test_it_brings_no_persons_into_the_ledger_of_another_installation(bare: CommandLine, tmp_path: Path) -> None:
    bare.monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path / 'in-use.db'}")
    bare.done("directory", "apply", ROOT / "policies" / "directory.yaml", "--yes")
    before = bare.done("audit", "show", "--tenant", "acme").out

    refused = bare("demo", "--yes")

    assert refused.code == 1
    assert "installation" in refused.err
    assert bare.done("audit", "show", "--tenant", "acme").out == before
    assert not (bare.home / "demo" / "temporal.db").exists(), "a server was started for it"


def decide_at(desk: Desk, answer: str, *, yes: bool = False) -> ApprovalStatus:
    """What becomes of a pending proposal, about which bob is asked and answers that at the terminal."""
    desk.carry()
    desk.cli.monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    made = desk.asked()
    approval = desk.ledger.approvals.get(TENANT, made.approval_id)
    decided(Session(desk.settings, desk.ledger), approval, Prompt("bob", "Publish this?", yes))
    return desk.ledger.approvals.get(TENANT, made.approval_id).status


def test_whoever_is_asked_sees_the_whole_document_again_before_the_answer_counts(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert decide_at(desk, "s\nmaybe\ny\n") == ApprovalStatus.GRANTED

    shown = capsys.readouterr().out
    assert shown.count("DOCUMENT (sha256:") == 2
    assert "answer 'maybe' is not one of y, n, s" in shown


def test_what_the_person_declines_is_rejected(desk: Desk) -> None:
    assert decide_at(desk, "n\n") == ApprovalStatus.REJECTED


def test_with_yes_nobody_is_asked(desk: Desk) -> None:
    assert decide_at(desk, "", yes=True) == ApprovalStatus.GRANTED


def test_without_anybody_at_the_terminal_it_says_so(desk: Desk) -> None:
    with pytest.raises(Unavailable) as refused:
        decide_at(desk, "")

    assert "the proposal of report-7 stays pending in " in refused.value.message
    assert refused.value.message.endswith("nothing went out for it; give --yes where nobody can be asked")
    (approval,) = [desk.ledger.approvals.current(TENANT, "report-7")]
    assert approval is not None
    assert (approval.status, approval.votes) == (ApprovalStatus.PENDING, ())
