"""Edits, withdrawals and unsigned decisions in real runs: what people change is what is published, once."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.cli.office import ROOT, enrol, environment_of
from tests.support.processes import Processes
from tests.support.temporal import running_dev_server

REQUEST = ROOT / "examples" / "request.yaml"
ACME = ("--tenant", "acme")


def started(cli: CommandLine, operation: str) -> str:
    """An operation on the example that waits for a reviewer."""
    cli.done("start", REQUEST, "--operation", operation)
    cli.done("wait", operation, *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
    return operation


@pytest.mark.guarantee("G14")
def test_an_edited_title_is_what_is_published_and_the_review_tells_the_way(cli: CommandLine) -> None:
    operation = started(cli, "retitled")
    before = cli.done("show", operation, *ACME, "--json").json()["approval"]["proposal"]

    answer = cli.done("edit", operation, *ACME, "--as", "bob", "--set", "title=Sales by region", "--yes")

    assert "accepted: it counts; the proposal is edited, and granted with it" in answer.out
    assert cli.done("wait", operation, *ACME, "--timeout", "5m").code == 0
    published = (cli.home / "published" / "public" / "acme" / f"{operation}.md").read_text()
    assert published.startswith("# Sales by region\n")
    after = cli.done("show", operation, *ACME, "--json").json()["approval"]["proposal"]
    assert (after["approval_version"], after["edited_from"], after["authors"]) == (2, before["approval_id"], ["bob"])
    review = cli.done("show", operation, *ACME, "--review").out
    assert f"CHANGES SINCE {before['approval_id']}" in review
    assert "    + Sales by region" in review
    assert re.search(r"version 1 .*: edited\n +edit by bob at \S+ statement \S+\n", review.replace(",", ""))


def test_a_withdrawn_run_ends_with_a_code_of_its_own(cli: CommandLine) -> None:
    operation = started(cli, "withdrawn")

    refused = cli("withdraw", operation, *ACME, "--as", "bob")
    withdrawn = cli.done("withdraw", operation, *ACME, "--as", "rita", "--comment", "asked too early", "--json").json()

    assert "only_requester_withdraws" in refused.err
    assert (withdrawn["decision"], withdrawn["assurance"]) == ("withdraw", "signed")
    assert cli("wait", operation, *ACME, "--timeout", "5m").code == 8
    assert not (cli.home / "published" / "public" / "acme" / f"{operation}.md").exists()


@pytest.mark.guarantee("G04")
@pytest.mark.timeout(240)
@pytest.mark.long
def test_a_trial_without_signatures_is_marked_from_beginning_to_end(
    bare: CommandLine, processes: Processes, tmp_path: Path
) -> None:
    with running_dev_server() as address:
        env = environment_of(bare.home, address) | {"COUNTERSIGN_PROFILE": "dev"}
        for name, value in env.items():
            bare.monkeypatch.setenv(name, value)
        enrol(env, tmp_path)
        worker = processes.start([sys.executable, "worker.py"], name="worker", env=env, cwd=ROOT)
        for role in ("role agent", "role gateway"):
            worker.wait_for_line(role, timeout=90)
        operation = started(bare, "trial")

        answer = bare.done("approve", operation, *ACME, "--as", "bob", "--unsigned", "--json").json()

        assert (answer["assurance"], answer["outcome"]["status"]) == ("namespace-only", "granted")
        assert bare("wait", operation, *ACME, "--timeout", "5m").code == 0
        votes = bare.done("show", operation, *ACME, "--json").json()["approval"]["votes"]
        assert [(vote["person"], vote["assurance"]) for vote in votes] == [("bob", "namespace-only")]
        for command in (["show", operation], ["show", operation, "--review"], ["status", operation],
                        ["timeline", operation], ["audit", "show"]):  # fmt: skip
            assert "namespace-only" in bare.done(*command, *ACME).out, command
        processes.close()
