"""`reconcile` names every disagreement, what to do next, and what it could not compare; `resume` brings runs back."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from countersign.gateway.file_channel import FileChannel
from tests.cli.command_line import Answer, CommandLine
from tests.cli.desk import ACME, Desk
from tests.cli.office import ROOT, Office
from tests.support.temporal import installed_program

REQUEST = ROOT / "examples" / "request.yaml"
HASH = "sha256:" + "0" * 64
DISAGREE, NOT_ALL_COMPARED = 3, 4


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look follows the first one without a pause."""
    monkeypatch.setattr("countersign.cli.proving.reconcile.AGAIN_SECONDS", 0.0)


def lines(answer: Answer, kind: str) -> list[str]:
    return [line for line in answer.out.splitlines() if line.startswith(kind)]


def published(cli: CommandLine, operation: str) -> Path:
    """A report that was approved and published by the office."""
    cli.done("start", REQUEST, "--operation", operation)
    cli.done("wait", operation, *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
    cli.done("approve", operation, *ACME, "--as", "bob")
    cli.done("wait", operation, *ACME, "--timeout", "5m")
    return cli.home / "published" / "public" / "acme" / f"{operation}.md"


def terminate(office: Office, operation: str) -> None:
    subprocess.run(
        [installed_program("temporal"), "workflow", "terminate", "--workflow-id", f"acme:{operation}", "--address",
         office.environment["TEMPORAL_ADDRESS"]], capture_output=True, check=True,
    )  # fmt: skip


def test_a_server_that_does_not_answer_is_said_and_is_no_agreement(desk: Desk) -> None:
    desk.asked()
    answer = desk.cli("reconcile", *ACME)
    assert answer.code == NOT_ALL_COMPARED
    (server,) = lines(answer, "not compared  Temporal: ")
    assert "no Temporal server answers at 127.0.0.1:1" in server
    assert answer.out.splitlines()[-1].startswith(
        "1 operations and 1 actions compared, disagreements: 0, not compared: "
    )
    assert desk.cli("reconcile", *ACME, "--json").json()["not_compared"][-1]["part"] == "Temporal"


def test_an_effect_that_the_ledger_does_not_know_of_is_named_with_its_key(desk: Desk) -> None:
    action = desk.asked().action
    document = desk.ledger.documents.get("acme", action.content_hash)
    public = FileChannel("public", desk.settings.reports_folder / "public" / "acme", "external_publication")
    public.send(action.idempotency_key(), "report-7.md", document, action.content_hash)
    public.send("f" * 64, "other.md", document, action.content_hash)

    answer = desk.cli("reconcile", *ACME)

    assert answer.code == DISAGREE
    (unrecorded,) = lines(answer, "effect_unrecorded  report-7: public holds ")
    assert f"and the ledger says: never sent (key {action.idempotency_key()}); next: " in unrecorded
    (stray,) = lines(answer, "effect_unknown  acme: public holds ")
    assert f"(key {'f' * 64}); next: ask for nothing like it" in stray
    told = desk.cli("reconcile", "report-7", *ACME, "--json").json()["disagreements"]
    assert [(one["kind"], one["operation"]) for one in told] == [("effect_unrecorded", "report-7")]
    assert "starter.py resume report-7 --tenant acme" in told[0]["next"]


def test_it_changes_nothing(desk: Desk) -> None:
    desk.asked()
    before = desk.ledger.audit.verify("acme")
    desk.cli("reconcile", *ACME)
    assert desk.ledger.audit.verify("acme") == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--tenant", "acmee"), "'acmee' is not there"), (("nothing", *ACME), "nothing"), (("No!", *ACME), "'No!'")],
)
def test_what_is_not_there_is_refused(desk: Desk, arguments: tuple[str, ...], said: str) -> None:
    answer = desk.cli("reconcile", *arguments)
    assert (answer.code, answer.out) == (1, "")
    assert said in answer.err


def test_a_run_to_its_end_agrees_everywhere_until_somebody_removes_what_it_did(cli: CommandLine) -> None:
    file = published(cli, "agreeing")
    agrees = cli.done("reconcile", "agreeing", *ACME)
    assert agrees.out == "1 operations and 1 actions compared, disagreements: 0, not compared: 0\n"

    file.unlink()

    answer = cli("reconcile", "agreeing", *ACME)
    assert answer.code == DISAGREE
    assert re.fullmatch(
        rf"effect_gone  agreeing: the ledger has it executed as {file}, and public holds nothing \(key \w{{64}}\);"
        r" next: .* starter.py rebuild agreeing --tenant acme",
        answer.out.splitlines()[0],
    )


def test_a_run_that_was_cut_short_is_named_and_resumed_without_the_request(cli: CommandLine, office: Office) -> None:
    cli.done("start", REQUEST, "--operation", "lost-run")
    cli.done("wait", "lost-run", *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
    terminate(office, "lost-run")

    (told,) = lines(cli("reconcile", "lost-run", *ACME), "run_closed  lost-run: the ledger says WAITING_APPROVAL, ")
    assert "is closed (TERMINATED, WAITING_APPROVAL); next: .venv/bin/python starter.py resume lost-run" in told

    assert re.search(r"^state +started: ", cli.done("resume", "lost-run", *ACME).out, re.MULTILINE)
    assert cli.done("resume", "lost-run", *ACME, "--json").json()["run"] == "already running"
    cli.done("wait", "lost-run", *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
    cli.done("reconcile", "lost-run", *ACME)


def test_what_has_ended_is_not_resumed(cli: CommandLine) -> None:
    published(cli, "ended-well")
    assert cli.done("resume", "ended-well", *ACME, "--json").json()["run"] == "finished"


def test_a_run_that_nobody_registered_is_named(cli: CommandLine, office: Office) -> None:
    order = json.dumps({"tenant": "acme", "operation": "by-hand", "case": "report", "request_hash": HASH})
    subprocess.run(
        [installed_program("temporal"), "workflow", "start", "--type", "GovernedAction", "--task-queue", "countersign",
         "--workflow-id", "acme:by-hand", "--input", order, "--address", office.environment["TEMPORAL_ADDRESS"]],
        capture_output=True, check=True,
    )  # fmt: skip
    found = cli("reconcile", *ACME, "--json").json()["disagreements"]
    assert [one["kind"] for one in found if one["operation"] == "by-hand"] == ["run_unknown"]
