"""The README says what is: its tables are the program's, and its lines work as they stand there."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path
from shutil import copytree

import pytest

from countersign.cli.demos.dev_server import UI_OFFSET, free_port
from tests.cli.office import ROOT
from tests.support.processes import Processes
from tests.support.readme import README, regenerated

PAYMENTS_PORT = "8090"
"""Where the README and the shipped channels have the example's payment service."""


def test_commands_and_settings_are_the_programs() -> None:
    text = README.read_text(encoding="utf-8")

    assert text == regenerated(text), "run: python -m tests.support.readme"


def test_every_path_it_names_is_there() -> None:
    text = README.read_text(encoding="utf-8")
    tree = text.partition("## Find your way around")[2].partition("Words:")[0]

    named = re.findall(r"`([a-z_]+/[\w./-]*)`", tree)

    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def steps_of(name: str) -> list[str]:
    """The shell lines of each step of a part, as they stand in the README."""
    text = README.read_text(encoding="utf-8")
    part = text.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in re.findall(r"```sh\n(.*?)```", part, re.DOTALL)]


def port_with_room_above() -> int:
    """A free port whose web UI port is free too."""
    while True:
        port = free_port()
        if port + UI_OFFSET > 65535:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port + UI_OFFSET))
            except OSError:
                continue
            return port


def checkout(folder: Path) -> Path:
    """This checkout as a folder of its own: the same code and environment, no data yet, no settings of this machine."""
    for path in ROOT.iterdir():
        if path.name not in {"var", ".env", ".git"}:
            (folder / path.name).symlink_to(path)
    return folder


def with_own_payments(folder: Path) -> str:
    """The port of a payment service in place of the example's, which may be taken; the checkout's channels name it."""
    port = str(free_port())
    (folder / "policies").unlink()
    copytree(ROOT / "policies", folder / "policies")
    channels = folder / "policies" / "channels.yaml"
    channels.write_text(channels.read_text().replace(PAYMENTS_PORT, port))
    return port


@pytest.mark.timeout(400)
def test_the_run_by_hand_works_verbatim(processes: Processes, tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    checkout(folder)
    payments_port = with_own_payments(folder)
    env = {"TEMPORAL_ADDRESS": f"localhost:{port_with_room_above()}", "DATABASE_URL": "", "OPENAI_API_KEY": ""}
    govern = ["sh", "-ec", *steps_of("who may decide")]
    server, worker, prepare, start, decide = (["sh", "-ec", lines] for lines in steps_of("by hand"))

    processes.start(server, name="server", env=env, cwd=folder).wait_for_line("Temporal server at")
    until_listening(env["TEMPORAL_ADDRESS"])
    working = processes.start(worker, name="worker", env=env, cwd=folder)
    working.wait_for_line("role gateway", timeout=90)
    working.wait_for_line("role agent", timeout=90)
    own, back, hold = (["sh", "-ec", lines] for lines in steps_of("step in"))
    steps = {"prepare": prepare, "start": start, "decide": decide, "own": own, "back": back, "hold": hold}
    service, *refund = steps_of("a refund")
    service = service.replace(PAYMENTS_PORT, payments_port)
    payments = processes.start(["sh", "-ec", service], name="payments", env=env, cwd=folder)
    payments.wait_for_line("payments at")
    steps["refund"] = ["sh", "-ec", "".join(refund)]
    for name, step in {**steps, "govern": govern}.items():
        done = processes.start(step, name=name, env=env, cwd=folder)
        assert done.wait(100) == 0, done.output

    assert re.search(r"^carl +reviewer +yes", done.output, re.MULTILINE)
    published = folder / "var" / "published" / "public" / "acme"
    assert (published / "first-half.md").read_text().startswith("# ")
    assert "opening" in (published / "stepped-in.md").read_text()
    assert "249.00 EUR" in (folder / "var/published/messages/acme/charged-twice.message.txt").read_text()
    assert sys.executable.startswith(str(ROOT)) or (folder / ".venv").exists()


def until_listening(address: str) -> None:
    host, _, port = address.rpartition(":")
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            continue
        return
