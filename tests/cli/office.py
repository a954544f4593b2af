"""The parts of the office: its processes, its environment, and what is often asked of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import Processes, RunningProcess
from tests.support.temporal import running_dev_server

ROOT = Path(__file__).resolve().parents[2]
STARTER = [sys.executable, str(ROOT / "starter.py")]
DIRECTORY = """
tenants:
  acme:
    rita: [requester]
    bob: [reviewer]
    carl: [reviewer]
    dora: [bookkeeper]
    fay: {roles: [finance], limits: [{each: 20000.00 EUR}]}
    finn: {roles: [finance], limits: [{each: 20000.00 EUR}]}
    lea: [lead, operator]
    max: [lead]
    ada: [admin]
    ben: [admin]
    cleo: [admin]
  other:
    zoe: [requester, reviewer, lead]
    xia: [finance]
    yan: [finance]
    uma: [admin]
    vic: [admin]
    wes: [admin]
"""
PERSONS = {
    "acme": ["rita", "bob", "carl", "dora", "fay", "finn", "lea", "max", "ada", "ben", "cleo"],
    "other": ["zoe", "xia", "yan", "uma", "vic", "wes"],
}


@dataclass(frozen=True)
class Office:
    """A running installation."""

    home: Path
    environment: Mapping[str, str]
    worker: RunningProcess

    def run(self, *arguments: str | Path, answer: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as a process of its own, `answer` at its terminal."""
        return starter(self.environment, *arguments, answer=answer)


def starter(
    environment: Mapping[str, str], *arguments: str | Path, answer: str = "", cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run `starter.py` as a process of its own."""
    return subprocess.run(
        [*STARTER, *map(str, arguments)], cwd=cwd, env={**os.environ, **environment}, input=answer,
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip


def environment_of(home: Path, address: str) -> dict[str, str]:
    """The settings of an installation under `home`, apart from everything this machine has set."""
    return {
        "COUNTERSIGN_HOME": str(home),
        "COUNTERSIGN_POLICIES": str(ROOT / "policies"),
        "DATABASE_URL": "",
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_CONFIG_FILE": os.devnull,
    }


@contextmanager
def running_office(folder: Path) -> Iterator[Office]:
    """Start server and worker, register persons and keys; stop all at the end."""
    processes = Processes(folder)
    try:
        with running_dev_server() as address:
            environment = environment_of(folder / "home", address)
            enrol(environment, folder)
            worker = processes.start([sys.executable, "worker.py"], name="worker", env=environment, cwd=ROOT)
            worker.wait_for_line("role agent", timeout=90)
            worker.wait_for_line("role gateway", timeout=90)
            yield Office(folder / "home", environment, worker)
            processes.close()
    finally:
        processes.close()


def enrol(environment: Mapping[str, str], folder: Path) -> None:
    """Put the persons into the directory and make a key for each: the first set-up, which the first start ends."""
    file = folder / "directory.yaml"
    file.write_text(DIRECTORY)
    commands: list[list[str | Path]] = [["directory", "apply", file, "--yes"]]
    commands += [["keys", "new", *names, "--tenant", tenant] for tenant, names in PERSONS.items()]
    for command in commands:
        done = starter(environment, *command)
        assert done.returncode == 0, done.stderr
