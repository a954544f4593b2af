"""While no worker answers, a decision is left with the run as a signal and counts once; a missing gateway is named."""

from __future__ import annotations

import re
import sys
from datetime import timedelta

import pytest

from tests.cli.command_line import CommandLine
from tests.cli.office import ROOT, environment_of
from tests.support.processes import Processes, RunningProcess
from tests.support.temporal import running_dev_server

ACME = ("--tenant", "acme")


def working(processes: Processes, env: dict[str, str], *role: str) -> RunningProcess:
    worker = processes.start([sys.executable, "worker.py", *role], name="worker", env=env, cwd=ROOT)
    worker.wait_for_line("role agent", timeout=90)
    return worker


@pytest.mark.guarantee("G17")
@pytest.mark.timeout(180)
@pytest.mark.long
def test_it_is_sent_as_a_signal_and_counts_once(bare: CommandLine, processes: Processes) -> None:
    with running_dev_server() as address:
        env = environment_of(bare.home, address)
        for name, value in env.items():
            bare.monkeypatch.setenv(name, value)
        bare.monkeypatch.setattr("countersign.cli.temporal_run.ANSWER_WITHIN", timedelta(seconds=2))
        bare.done("directory", "apply", ROOT / "policies" / "directory.yaml", "--yes")
        bare.done("keys", "new", "rita", "bob", "ada", "ben", "cleo", *ACME)
        worker = working(processes, env)
        bare.done("start", ROOT / "examples" / "request.yaml", "--operation", "alone")
        bare.done("wait", "alone", *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
        worker.kill()

        answer = bare.done("approve", "alone", *ACME, "--as", "bob")
        working(processes, env)

        assert "sent as signal; not ruled on yet" in answer.out
        assert "It counts if one rules on it before the deadline." in answer.out
        assert bare("wait", "alone", *ACME, "--timeout", "5m").code == 0
        votes = bare.done("show", "alone", *ACME, "--json").json()["approval"]["votes"]
        assert [vote["person"] for vote in votes] == ["bob"]
        # It was asked first, for a worker had polled just now, and then left as a signal: the same statement twice.
        ruled = [one["type"] for one in bare.done("timeline", "alone", *ACME, "--json").json()]
        assert ("decision.accepted" in ruled, "decision.refused" in ruled) == (True, False)
        assert bare.done("status", "alone", *ACME, "--json").json()["temporal"]["refused"] == 0
        processes.close()


@pytest.mark.timeout(180)
def test_a_granted_run_without_a_gateway_says_what_it_waits_for(bare: CommandLine, processes: Processes) -> None:
    with running_dev_server() as address:
        env = environment_of(bare.home, address)
        for name, value in env.items():
            bare.monkeypatch.setenv(name, value)
        bare.done("directory", "apply", ROOT / "policies" / "directory.yaml", "--yes")
        bare.done("keys", "new", "rita", "bob", "ada", "ben", "cleo", *ACME)
        working(processes, env, "--role", "agent")
        bare.done("start", ROOT / "examples" / "request.yaml", "--operation", "alone")
        bare.done("wait", "alone", *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
        bare.done("approve", "alone", *ACME, "--as", "bob")
        bare.done("wait", "alone", *ACME, "--until", "EXECUTING", "--timeout", "5m")

        waited, status = bare("wait", "alone", *ACME, "--timeout", "1s"), bare.done("status", "alone", *ACME)

        missing = "no worker polls the task queue countersign-gateway; start one with"
        assert (waited.code, waited.out.splitlines()[-1]) == (7, "time is up; waits for: a gateway worker")
        assert waited.err.startswith(f"warning: {missing}")
        assert re.search(r"^waits for +a gateway worker$", status.out, re.MULTILINE)
        assert missing in status.out
        processes.close()
