"""People step into real runs: taking over, amending, proposing, releasing, superseding, freezing; nothing is lost."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.cli.office import ROOT, Office
from tests.support.temporal import installed_program

REQUEST = ROOT / "examples" / "request.yaml"
ACME = ("--tenant", "acme")
LEA = (*ACME, "--as", "lea")
EDITOR = "sed -i.before s/first.half/opening/"


def started(cli: CommandLine, operation: str, *more: str) -> str:
    """An operation on the example that waits for a reviewer."""
    cli.done("start", REQUEST, "--operation", operation, *more)
    return proposed(cli, operation)


def proposed(cli: CommandLine, operation: str) -> str:
    cli.done("wait", operation, *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
    return operation


def taken(cli: CommandLine, operation: str) -> str:
    """Lea is in control, and the run says so."""
    cli.done("take-over", operation, *LEA)
    cli.done("wait", operation, *ACME, "--until", "HUMAN_TAKEOVER", "--timeout", "5m")
    return operation


def published(cli: CommandLine, operation: str) -> str | None:
    file = cli.home / "published" / "public" / "acme" / f"{operation}.md"
    return file.read_text() if file.exists() else None


@pytest.mark.guarantee("G30")
@pytest.mark.timeout(240)
@pytest.mark.long
def test_what_a_person_wrote_and_proposed_is_published_once_others_approved_it(cli: CommandLine) -> None:
    operation = taken(cli, started(cli, "stepped-in"))
    cli.monkeypatch.setenv("EDITOR", EDITOR)

    cli.done("amend", operation, *LEA, "--yes")
    cli.done("grade", operation, *LEA, "--version", "2")
    cli.done("propose", operation, *LEA, "--version", "2")
    proposed(cli, operation)
    herself = cli("approve", operation, *LEA)
    cli.done("approve", operation, *ACME, "--as", "bob")

    assert cli("wait", operation, *ACME, "--timeout", "5m").code == 0
    assert herself.code == 1
    text = published(cli, operation)
    assert text is not None
    assert "opening" in text
    told = cli.done("brief", operation, *ACME, "--json").json()
    assert [(one["version"], one["author"]) for one in told["drafts"]] == [(1, "agent"), (2, "lea")]
    assert [(one["proposed_by"], one["status"]) for one in told["proposals"]] == [
        ("agent", "superseded"), ("lea", "consumed"),
    ]  # fmt: skip


@pytest.mark.timeout(240)
def test_a_released_run_goes_on_from_the_version_that_was_named(cli: CommandLine) -> None:
    operation = taken(cli, started(cli, "given-back"))
    cli.monkeypatch.setenv("EDITOR", EDITOR)
    cli.done("amend", operation, *LEA, "--yes")

    cli.done("release", operation, *LEA, "--version", "2")

    proposed(cli, operation)
    made = cli.done("show", operation, *ACME, "--json").json()["approval"]["proposal"]
    assert (made["draft_version"], made["proposed_by"], made["authors"]) == (2, "agent", ["lea"])
    assert made["control_version"] == 3


@pytest.mark.timeout(240)
def test_a_cancelled_run_ends_as_cancelled_and_says_by_whom(cli: CommandLine) -> None:
    operation = started(cli, "called-off")

    cli.done("cancel", operation, *LEA, "--comment", "wrong quarter")

    ended = cli("wait", operation, *ACME, "--timeout", "5m")
    assert (ended.code, published(cli, operation)) == (5, None)
    assert "ended: cancelled by a person who may end runs" in ended.out


@pytest.mark.timeout(240)
def test_a_superseding_operation_starts_only_in_place_of_the_old_one(cli: CommandLine) -> None:
    old = started(cli, "older")
    stranger = cli("start", REQUEST, "--operation", "newer", "--supersedes", "no-such")
    again = ("start", REQUEST, "--operation", "newer", "--supersedes", old)

    assert stranger.code == 1
    assert "newer" not in cli.done("list", *ACME).out
    begun = cli.done(*again).out
    assert re.search(r"^you sign +supersede as rita$", begun, re.MULTILINE)
    assert re.search(r"^pending proposal +\S+ is superseded, its votes void$", begun, re.MULTILINE)
    assert f"{old}: accepted: the run ends, superseded by newer; nothing was executed" in begun
    assert re.search(r"^state +started: ", begun, re.MULTILINE)
    ended = cli("wait", old, *ACME, "--timeout", "5m")
    assert (ended.code, published(cli, old)) == (5, None)
    assert "superseded: another operation of the same requester took its place" in ended.out
    proposed(cli, "newer")
    assert cli.done(*again, "--json").json()["run"] == "already running"
    for command in ("show", "brief"):
        assert re.search(r"^superseded by +newer$", cli.done(command, old, *ACME).out, re.MULTILINE)
        assert re.search(rf"^supersedes +{old}$", cli.done(command, "newer", *ACME).out, re.MULTILINE)
    refused = cli("start", REQUEST, "--operation", "newest", "--supersedes", old)
    assert "would be refused: ended: the run has ended as CANCELLED" in refused.err


@pytest.mark.timeout(240)
def test_a_takeover_can_be_sent_by_the_plain_temporal_command(cli: CommandLine, office: Office, tmp_path: Path) -> None:
    operation, message = started(cli, "by-plain-signal"), tmp_path / "take-over.json"
    told = cli.done("sign", "take-over", operation, *LEA, "--out", message).out

    line = next(line for line in told.splitlines() if "temporal workflow signal" in line).split()
    sent = subprocess.run(
        [installed_program("temporal"), *line[1:], "--address", office.environment["TEMPORAL_ADDRESS"]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert sent.returncode == 0, sent.stderr
    cli.done("wait", operation, *ACME, "--until", "HUMAN_TAKEOVER", "--timeout", "5m")
    assert re.search(r"^in control +lea since ", cli.done("status", operation, *ACME).out, re.MULTILINE)


@pytest.mark.timeout(300)
def test_a_freeze_holds_what_was_approved_until_two_others_lift_it(cli: CommandLine) -> None:
    operation = started(cli, "held")
    number = cli.done("freeze", *LEA, "--reason", "the feed is under suspicion", "--json").json()["number"]

    try:
        cli.done("approve", operation, *ACME, "--as", "bob")
        cli.done("wait", operation, *ACME, "--until", "WAITING_RETRY", "--timeout", "2m")
        assert published(cli, operation) is None
        held = cli.done("status", operation, *ACME).out
        assert f"freeze {number} (the feed is under suspicion) to be lifted; nothing was sent" in held
    finally:
        cli.done("unfreeze", str(number), *ACME, "--as", "ada", "--operation", "thaw")
        proposed(cli, "thaw")
        for person in ("ben", "cleo"):
            cli.done("approve", "thaw", *ACME, "--as", person)
        assert cli("wait", "thaw", *ACME, "--timeout", "5m").code == 0

    assert cli("wait", operation, *ACME, "--timeout", "2m").code == 0
    assert published(cli, operation) is not None
    assert [one["in_force"] for one in cli.done("freezes", *ACME, "--json").json()] == [False]
