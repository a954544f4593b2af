"""Real processes for tests: started, watched through their output, stopped or killed, and never left behind.

It stands apart because a test of recovery needs `kill -9` on the program itself, with all that it started. Each process
gets its own session, so that ending it ends its children too, and writes to a file, so that a full pipe cannot stop it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.02


class ProcessFailed(AssertionError):
    """A process ended or stayed silent where the test waited for a line; the message carries its output."""


@dataclass(frozen=True)
class RunningProcess:
    """One started program; `output_path` collects its standard output and standard error."""

    name: str
    popen: subprocess.Popen[bytes]
    output_path: Path

    @property
    def output(self) -> str:
        """Everything written so far."""
        return self.output_path.read_text(encoding="utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether the program itself has not ended yet."""
        return self.popen.poll() is None

    def wait_for_line(self, pattern: str, timeout: float = 30.0) -> re.Match[str]:
        """Wait until a line matches `pattern` (searched anywhere in it) and return the first match."""
        deadline = time.monotonic() + timeout
        while True:
            ended = not self.is_running
            found = re.search(pattern, self.output, re.MULTILINE)
            if found:
                return found
            if ended or time.monotonic() > deadline:
                reason = f"ended with {self.popen.returncode}" if ended else f"said nothing of it in {timeout} s"
                raise ProcessFailed(f"{self.name}: waited for {pattern!r}, but it {reason}. Output:\n{self.output}")
            time.sleep(POLL_SECONDS)

    def wait(self, timeout: float = 30.0) -> int:
        """Wait until the program ends by itself and return its exit code."""
        return self.popen.wait(timeout)

    def stop(self, timeout: float = 30.0) -> int:
        """Ask the program to end (SIGTERM) and return its exit code."""
        self.popen.terminate()
        return self.wait(timeout)

    def kill(self) -> None:
        """End the program and all that it started at once (SIGKILL), without a chance to clean up."""
        # The group outlives its leader, so children of a program that has ended are still found by its id.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()


class Processes:
    """Starts programs and, at `close`, kills whatever of them is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[RunningProcess] = []

    def start(
        self,
        arguments: Sequence[str | Path],
        *,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: int | None = None,
    ) -> RunningProcess:
        """Start a program; `env` is added to this process's own environment, `user` is the uid to run it as."""
        name = name or Path(arguments[0]).name
        output_path = self._folder / f"{len(self._started):02d}-{name}.log"
        with output_path.open("wb") as output:
            popen = subprocess.Popen(
                [str(argument) for argument in arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                user=user,
                start_new_session=True,
            )
        process = RunningProcess(name, popen, output_path)
        self._started.append(process)
        return process

    def close(self) -> None:
        """Kill every process that was started here, and everything those started."""
        for process in reversed(self._started):
            process.kill()
