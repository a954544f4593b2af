"""The whole run through the commands, on a real server with a real worker process."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from countersign.domain.audit import AuditRecord, verify_chain
from countersign.domain.decision import Ruling
from tests.cli.command_line import CommandLine
from tests.cli.office import ROOT, Office
from tests.support.temporal import installed_program

pytestmark = pytest.mark.long

REQUEST = ROOT / "examples" / "request.yaml"
ACME = ("--tenant", "acme")


def started(cli: CommandLine, operation: str) -> str:
    """An operation on the example that waits for a reviewer."""
    cli.done("start", REQUEST, "--operation", operation)
    cli.done("wait", operation, *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
    return operation


def published(cli: CommandLine, operation: str) -> bool:
    return (cli.home / "published" / "public" / "acme" / f"{operation}.md").exists()


def test_an_approved_report_is_published_and_its_audit_verifies(cli: CommandLine) -> None:
    operation = started(cli, "approved")
    proposed = cli.done("show", operation, *ACME, "--json").json()["approval"]["proposal"]

    answer = cli.done("approve", operation, *ACME, "--as", "bob", "--comment", "well done")

    assert proposed["action_hash"] in answer.out
    assert "accepted: it counts; the proposal is granted" in answer.out
    ended = cli.done("wait", operation, *ACME, "--timeout", "5m")
    assert str(cli.home / "published" / "public" / "acme" / "approved.md") in ended.out
    assert published(cli, operation)
    assert "records verified" in cli.done("audit", "verify", *ACME).out


def test_a_rejected_report_is_not_published(cli: CommandLine) -> None:
    operation = started(cli, "rejected")

    cli.done("reject", operation, *ACME, "--as", "bob")

    assert cli("wait", operation, *ACME, "--timeout", "5m").code == 3
    assert not published(cli, operation)


def test_the_same_start_again_answers_with_the_first_run(cli: CommandLine) -> None:
    first = cli.done("start", REQUEST, "--json").json()
    again = cli.done("start", REQUEST, "--json").json()

    assert (first["first"], again["first"]) == (True, False)
    assert (first["run"], again["run"]) == ("started", "already running")
    assert again["operation"] == first["operation"]
    assert again["operation"].startswith("report-")
    cli.done("wait", first["operation"], *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
    assert "already running: WAITING_APPROVAL" in cli.done("start", REQUEST).out
    cli.done("reject", first["operation"], *ACME, "--as", "carl")
    cli("wait", first["operation"], *ACME, "--timeout", "5m")
    assert "finished: REJECTED" in cli.done("start", REQUEST).out


def test_a_terminated_run_is_started_again_by_the_same_command(cli: CommandLine, office: Office) -> None:
    operation = started(cli, "cut-short")
    subprocess.run(
        [installed_program("temporal"), "workflow", "terminate", "--workflow-id", f"acme:{operation}", "--address",
         office.environment["TEMPORAL_ADDRESS"]], capture_output=True, check=True,
    )  # fmt: skip

    told = cli.done("status", operation, *ACME).out
    again = cli.done("start", REQUEST, "--operation", operation)

    assert "start it again with the same command" in told
    assert re.search(r"^state +started: \w+ \(the same request was registered before", again.out, re.MULTILINE)
    assert "already running: " in cli.done("start", REQUEST, "--operation", operation).out


def test_another_request_under_the_same_id_is_a_conflict(cli: CommandLine, tmp_path: Path) -> None:
    cli.done("start", REQUEST, "--operation", "taken")
    other = tmp_path / "other.yaml"
    other.write_text(REQUEST.read_text().replace("Sales in", "Revenue in").replace("sales.", f"{ROOT}/examples/sales."))

    answer = cli("start", other, "--operation", "taken")

    assert answer.code == 1
    assert answer.err.startswith("error: ")
    assert "taken" in answer.err


def test_an_internal_report_needs_nobody(cli: CommandLine, tmp_path: Path) -> None:
    data = tmp_path / "orders.csv"
    data.write_text("day,amount\n2026-01-05,10.50\n2026-02-06,-2.25\n")
    schema = tmp_path / "orders.yaml"
    schema.write_text("columns: {day: {type: date}, amount: {type: number, currency: EUR}}\n")
    request: list[str | Path] = [
        "--question",
        "What came in?",
        "--channel",
        "internal",
        "--data",
        data,
        "--schema",
        schema,
    ]

    cli.done("start", *ACME, "--as", "rita", *request, "--operation", "by-rule")
    cli.done("wait", "by-rule", *ACME, "--timeout", "5m")

    report = (cli.home / "published" / "internal" / "acme" / "by-rule.md").read_text()
    assert "8.25" in report


@pytest.mark.guarantee("G02")
@pytest.mark.parametrize(
    ("person", "ruling"), [("rita", Ruling.REQUESTER_MAY_NOT_DECIDE), ("dora", Ruling.ROLE_MISSING)]
)
def test_who_may_not_decide_is_refused_here_and_by_the_run_which_records_it(
    cli: CommandLine, person: str, ruling: Ruling
) -> None:
    operation = started(cli, f"not-for-{person}")

    here = cli("approve", operation, *ACME, "--as", person)
    # As a client would send it that does not look first.
    cli.monkeypatch.setattr("countersign.cli.deciding.decision_message.require_open_to", lambda *_: None)
    answer = cli("approve", operation, *ACME, "--as", person)

    assert (here.code, here.out) == (1, "")
    assert f"this approve would be refused: {ruling.value}: " in here.err
    assert answer.code == 1
    assert answer.err.startswith(f"error: refused: {ruling.value}: ")
    records = cli.done("timeline", operation, *ACME, "--json").json()
    assert [record["detail"]["ruling"] for record in records if record["type"] == "decision.refused"] == [ruling.value]
    assert cli.done("status", operation, *ACME, "--json").json()["temporal"]["refused"] == 1


@pytest.mark.guarantee("G10")
def test_a_settled_proposal_takes_no_second_decision(cli: CommandLine) -> None:
    operation = started(cli, "settled")
    cli.done("reject", operation, *ACME, "--as", "bob")

    answer = cli("approve", operation, *ACME, "--as", "carl")

    assert answer.code == 1
    stands = "its run is REJECTED (rejected), its proposal rejected"
    assert answer.err == f"error: operation settled: {stands}; nothing waits for a decision\n"


@pytest.mark.guarantee("G09")
@pytest.mark.parametrize(
    "command",
    [
        ["status"], ["timeline"], ["show", "--review"], ["approve", "--as", "zoe"], ["wait"],
        ["sign", "approve", "--as", "zoe", "--out", "never-written.json"],
    ],
)  # fmt: skip
def test_another_tenants_operation_looks_like_none(cli: CommandLine, command: list[str]) -> None:
    cli.done("start", REQUEST, "--operation", "mine")
    words = command[:2] if command[0] == "sign" else command[:1]
    rest = command[len(words) :]

    theirs = cli(*words, "mine", "--tenant", "other", *rest)
    nothing = cli(*words, "nope", "--tenant", "other", *rest)

    assert (theirs.code, nothing.code) == (1, 1)
    assert theirs.err.replace("mine", "nope") == nothing.err


def test_a_signed_file_is_sent_by_the_plain_temporal_command(cli: CommandLine, office: Office, tmp_path: Path) -> None:
    operation = started(cli, "by-signal")
    message = tmp_path / "decision.json"
    told = cli.done("sign", "approve", operation, *ACME, "--as", "bob", "--out", message).out

    line = next(line for line in told.splitlines() if "temporal workflow signal" in line).split()
    assert line[0] == ".venv/bin/temporal"
    sent = subprocess.run(
        [installed_program("temporal"), *line[1:], "--address", office.environment["TEMPORAL_ADDRESS"]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert sent.returncode == 0, sent.stderr
    assert cli("wait", operation, *ACME, "--timeout", "5m").code == 0
    assert published(cli, operation)


def test_a_revoked_key_no_longer_signs(cli: CommandLine, tmp_path: Path) -> None:
    operation = started(cli, "revoked")
    key = tmp_path / "second.pem"
    made = cli.done("keys", "new", "bob", *ACME, "--out", key, "--as", "ada", "--operation", "second-key").out.split()[
        1
    ]
    agreed(cli, "second-key")
    cli.done("keys", "revoke", "bob", made, *ACME, "--as", "ada", "--operation", "no-second-key")
    agreed(cli, "no-second-key")

    answer = cli("approve", operation, *ACME, "--as", "bob", "--key", key)

    assert answer.code == 1
    assert f"key {made} in {key} is not good now: revoked at " in answer.err
    listed = {one["id"]: one for one in cli.done("keys", "list", *ACME, "--json").json()}
    assert listed[made]["revoked_at"] is not None


def agreed(cli: CommandLine, operation: str) -> None:
    """Two admins approve a change of authority, and it is made."""
    cli.done("wait", operation, *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
    for person in ("ben", "cleo"):
        cli.done("approve", operation, *ACME, "--as", person)
    cli.done("wait", operation, *ACME, "--timeout", "5m")


def test_an_exported_audit_verifies_without_the_ledger(cli: CommandLine, tmp_path: Path) -> None:
    cli.done("start", REQUEST, "--operation", "exported")
    out = tmp_path / "audit.jsonl"
    cli.done("audit", "export", *ACME, "--out", out)

    lines = [json.loads(line) for line in out.read_text().splitlines()]
    records = [AuditRecord.model_validate(line) for line in lines if "sequence" in line]

    count, _ = verify_chain(records, tenant="acme", origin="local", checkpoint=None)
    assert count == len(records) > 0


def test_the_queue_is_a_list_query_away(cli: CommandLine, office: Office) -> None:
    operation = started(cli, "in-the-queue")
    query = (
        "CountersignState = 'WAITING_APPROVAL' AND CountersignTenant = 'acme' AND CountersignRequiredRole = 'reviewer'"
    )

    listed = subprocess.run(
        [installed_program("temporal"), "workflow", "list", "--query", query, "--address",
         office.environment["TEMPORAL_ADDRESS"]], capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert f"acme:{operation}" in listed.stdout
