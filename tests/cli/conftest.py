"""An office for tests of the command line: a server and a worker process of its own, a directory, and keys.

Made once for all of these tests, since the worker loads for seconds; each test takes an operation of its own.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.cli.desk import Desk
from tests.cli.office import ROOT, Office, running_office


@pytest.fixture(scope="session")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """Server, worker and an installation: in tenant acme rita, bob, carl and admins, in tenant other zoe and admins."""
    with running_office(tmp_path_factory.mktemp("office")) as made:
        yield made


@pytest.fixture
def cli(office: Office, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Commands in the office."""
    for name, value in office.environment.items():
        monkeypatch.setenv(name, value)
    return CommandLine(office.home, capsys, monkeypatch)


@pytest.fixture
def bare(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Commands in an empty installation, where no Temporal server is to be found and nobody sits at the terminal."""
    for name in [name for name in os.environ if name.startswith(("TEMPORAL_", "COUNTERSIGN_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COUNTERSIGN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COUNTERSIGN_POLICIES", str(ROOT / "policies"))
    monkeypatch.setenv("DATABASE_URL", "")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return CommandLine(tmp_path / "home", capsys, monkeypatch)


@pytest.fixture
def desk(bare: CommandLine) -> Iterator[Desk]:
    """A ledger with tenant acme (rita, bob, carl, ivan, three admins) and nothing asked yet; no Temporal server."""
    made = Desk(bare)
    yield made
    made.ledger.close()
