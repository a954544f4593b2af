"""What a demo runs on: its own folder, Temporal dev server and worker, all of it stopped at the end."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from countersign.cli.demos.dev_server import free_port, server_command
from countersign.cli.rendering import STARTER
from countersign.domain.errors import Conflict, Unavailable
from countersign.settings import ROOT, Settings, load_settings

HOST = "127.0.0.1"
START_SECONDS = 30.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.05


class Program(NamedTuple):
    """A program that can be started."""

    name: str
    command: list[str]
    log: Path
    port: int | None = None
    """Where it listens on this machine, if it does."""
    secrets: Mapping[str, str] | None = None
    """What its environment alone has."""


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
def stage(settings: Settings, *others: Program) -> Iterator[Stage]:
    """Start server, what else is needed, and worker, in a folder that this process has `alone`.

    All is stopped at the end, also on Ctrl-C and SIGTERM.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as parts:
        port, ui_port = free_port(), free_port()
        _environment(settings, f"{HOST}:{port}")
        command = server_command(HOST, port, ui_port, settings.home / "temporal.db")
        for program in (Program("Temporal server", command, settings.home / "server.log", port), *others):
            parts.enter_context(_running(program))
        worker = Program("worker", [sys.executable, "worker.py"], settings.home / "worker.log")
        yield Stage(settings, f"{HOST}:{port}", f"http://{HOST}:{ui_port}", parts.enter_context(_running(worker)))


def demo_settings(folder: str) -> Settings:
    """The settings of an installation in a folder of its own below the home folder."""
    given = load_settings()
    home = (given.home / folder).resolve()
    home.mkdir(parents=True, exist_ok=True)
    # An installation of its own: a ledger that DATABASE_URL names and that is in use refuses the demo's persons.
    return given.model_copy(update={"home": home, "policies": given.policies.resolve(), "installation": "demo"})


def elsewhere(settings: Settings) -> str:
    """`starter.py` as it is called in another terminal of this checkout, about this installation."""
    given = {
        "COUNTERSIGN_HOME": str(settings.home),
        "COUNTERSIGN_INSTALLATION": settings.installation,
        # PostgreSQL's is not for the screen: a password may be in it. It is the one thing to be set there as here.
        "DATABASE_URL": settings.database_url if settings.database_url.startswith("sqlite") else "",
        "COUNTERSIGN_POLICIES": str(settings.policies) if settings.policies != ROOT / "policies" else "",
    }
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in given.items() if value), STARTER])


def _environment(settings: Settings, address: str) -> None:
    """What this process and the worker go by; whatever server the user's own profile names is left alone."""
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        del os.environ[name]
    os.environ.update(
        COUNTERSIGN_HOME=str(settings.home),
        COUNTERSIGN_INSTALLATION=settings.installation,
        COUNTERSIGN_POLICIES=str(settings.policies),
        DATABASE_URL=settings.ledger_url,
        TEMPORAL_ADDRESS=address,
        TEMPORAL_CONFIG_FILE=os.devnull,
    )


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Refuse a second demo on one folder, with Conflict: both would share one server database."""
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"another demo is running in {home}; wait for its end, or set COUNTERSIGN_HOME") from None
        yield


@contextmanager
def _running(program: Program) -> Iterator[Part]:
    """Start it, and wait until it listens; stop it at the end."""
    with program.log.open("wb") as output:
        # A session of its own: Ctrl-C at the terminal reaches this process only, which then stops the parts in order.
        process = subprocess.Popen(
            program.command, cwd=ROOT, env={**os.environ, **(program.secrets or {})}, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    part = Part(program.name, process, program.log)
    try:
        if program.port is not None:
            _wait_for_port(part, program.port)
        yield part
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for_port(part: Part, port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        part.require_running()
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise Unavailable(f"the {part.name} does not listen on port {port}; see {part.log}") from None
            time.sleep(POLL_SECONDS)
        else:
            return
