"""What the demo runs on: its own folder, Temporal dev server and worker, all of it stopped at the end."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from countersign.cli.dev_server import free_port, server_command
from countersign.domain.errors import Conflict, Unavailable
from countersign.settings import ROOT, Settings, load_settings

HOST = "127.0.0.1"
START_SECONDS = 30.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.05


class Part(NamedTuple):
    """One started program and where its output goes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def require_running(self) -> None:
        """Unavailable, with its last words, if it has ended."""
        code = self.process.poll()
        if code is not None:
            lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
            raise Unavailable(f"the {self.name} ended with code {code}: {last[:300]} (log: {self.log})")


class Stage(NamedTuple):
    """A running demo installation."""

    settings: Settings
    address: str
    web: str
    worker: Part


@contextmanager
def stage() -> Iterator[Stage]:
    """Start server and worker on free ports; stop both at the end, also on Ctrl-C and SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = _settings()
    with ExitStack() as parts:
        parts.enter_context(_alone(settings.home))
        port, ui_port = free_port(), free_port()
        _environment(settings, f"{HOST}:{port}")
        command = server_command(HOST, port, ui_port, settings.home / "temporal.db")
        server = parts.enter_context(_running("Temporal server", command, settings.home / "server.log"))
        _wait_for_port(server, port)
        command = [sys.executable, "worker.py"]
        worker = parts.enter_context(_running("worker", command, settings.home / "worker.log"))
        yield Stage(settings, f"{HOST}:{port}", f"http://{HOST}:{ui_port}", worker)


def _settings() -> Settings:
    given = load_settings()
    home = (given.home / "demo").resolve()
    home.mkdir(parents=True, exist_ok=True)
    # An installation of its own: a ledger that DATABASE_URL names and that is in use refuses the demo's persons.
    return given.model_copy(update={"home": home, "policies": given.policies.resolve(), "installation": "demo"})


def _environment(settings: Settings, address: str) -> None:
    """What this process and the worker go by; whatever server the user's own profile names is left alone."""
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        del os.environ[name]
    os.environ.update(
        COUNTERSIGN_HOME=str(settings.home),
        COUNTERSIGN_INSTALLATION=settings.installation,
        COUNTERSIGN_POLICIES=str(settings.policies),
        TEMPORAL_ADDRESS=address,
        TEMPORAL_CONFIG_FILE=os.devnull,
    )


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Two demos on one folder would share one server database."""
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"another demo is running in {home}; wait for its end, or set COUNTERSIGN_HOME") from None
        yield


@contextmanager
def _running(name: str, command: list[str], log: Path) -> Iterator[Part]:
    with log.open("wb") as output:
        # A session of its own: Ctrl-C at the terminal reaches this process only, which then stops the parts in order.
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield Part(name, process, log)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for_port(server: Part, port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        server.require_running()
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise Unavailable(f"the {server.name} does not listen on port {port}; see {server.log}") from None
            time.sleep(POLL_SECONDS)
        else:
            return
