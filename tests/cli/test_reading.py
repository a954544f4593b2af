"""What the reading commands show: documented JSON, the whole view, hidden characters; with or without a server."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.rendering import complain, say, visible_line, warn
from countersign.domain.visible import escaped
from tests.cli.command_line import CommandLine
from tests.cli.office import ROOT

ACME = ("--tenant", "acme")
OPERATION = "looked-at"
SPOIL_VIEWS = """
    UPDATE documents SET data = CAST(data || ' ' AS BLOB) WHERE CAST(data AS TEXT) LIKE '{"claims":%'
"""


@pytest.fixture
def looked_at(cli: CommandLine) -> CommandLine:
    """The office with an operation that was approved and published."""
    first = cli.done("start", ROOT / "examples" / "request.yaml", "--operation", OPERATION, "--json").json()
    if first["first"]:
        cli.done("wait", OPERATION, *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")
        cli.done("approve", OPERATION, *ACME, "--as", "bob", "--comment", "figures \u200bchecked")
        cli.done("wait", OPERATION, *ACME, "--timeout", "5m")
    return cli


def documented() -> dict[str, set[str]]:
    """The field names that docs/json.md lists for each command."""
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    parts = re.findall(r"^## `(.+?)`\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return {command: set(re.findall(r"^\| `([\w.]+)` \|", body, re.MULTILINE)) for command, body in parts}


def keys_of(value: Any) -> set[str]:
    return set(value[0]) if isinstance(value, list) else set(value)


COMMANDS: dict[str, list[str]] = {
    "start": ["start", str(ROOT / "examples" / "request.yaml"), "--operation", OPERATION],
    "list": ["list", *ACME],
    "status": ["status", OPERATION, *ACME],
    "timeline": ["timeline", OPERATION, *ACME],
    "rebuild": ["rebuild", OPERATION, *ACME],
    "wait": ["wait", OPERATION, *ACME],
    "show": ["show", OPERATION, *ACME],
    "audit show": ["audit", "show", *ACME],
    "audit verify": ["audit", "verify", *ACME],
    "keys list": ["keys", "list", *ACME],
    "directory show": ["directory", "show", *ACME],
    "policy check": ["policy", "check", str(ROOT / "policies" / "report.yaml")],
    "policy explain": ["policy", "explain", OPERATION, *ACME],
    "policy show": ["policy", "show", *ACME],
    "doctor": ["doctor"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_as_documented(looked_at: CommandLine, command: str) -> None:
    assert keys_of(looked_at.done(*COMMANDS[command], "--json").json()) == documented()[command]


@pytest.mark.guarantee("G15")
def test_the_review_shows_every_byte_that_goes_out_and_all_that_is_signed(looked_at: CommandLine) -> None:
    shown = looked_at.done("show", OPERATION, *ACME, "--review").out
    proposal = looked_at.done("show", OPERATION, *ACME, "--json").json()["approval"]["proposal"]

    published = (looked_at.home / "published" / "public" / "acme" / f"{OPERATION}.md").read_text()
    assert "".join(f"| {line}\n" for line in published.split("\n")) in shown
    wanted = ["approval_id", "action_hash", "summary", "reason", "requester", "reversibility", "checks", "verdict",
              "rubric_version", "model_version"]  # fmt: skip
    for value in [proposal[name] for name in wanted] + list(proposal["action"].values())[:3]:
        assert str(value) in shown
    for value in (
        proposal["action"]["policy_version"],
        proposal["action"]["evidence_hash"],
        "reviewer",
        "nobody any more: the proposal is consumed",
    ):
        assert value in shown
    assert proposal["deadline"][:19] in shown


def test_a_reviewers_comment_is_shown_with_the_vote(looked_at: CommandLine) -> None:
    shown = looked_at.done("show", OPERATION, *ACME).out
    votes = looked_at.done("show", OPERATION, *ACME, "--json").json()["approval"]["votes"]

    assert re.search(r"^vote +approve by bob .*\ncomment +figures \\u\{200b\}checked$", shown, re.MULTILINE)
    assert [vote["comment"] for vote in votes] == ["figures \u200bchecked"]


@pytest.mark.guarantee("G15")
def test_a_view_that_does_not_fit_its_hash_is_not_shown(looked_at: CommandLine, tmp_path: Path) -> None:
    spoilt_copy(looked_at, tmp_path, SPOIL_VIEWS)

    answer = looked_at("show", OPERATION, *ACME, "--review")

    assert answer.code == 1
    assert "was changed in the ledger" in answer.err
    assert answer.out == ""


@pytest.mark.guarantee("G42")
def test_verify_names_the_first_bad_record(looked_at: CommandLine, tmp_path: Path) -> None:
    spoilt_copy(looked_at, tmp_path, "UPDATE audit_records SET subject = 'carl' WHERE tenant = 'acme' AND sequence = 7")

    answer = looked_at("audit", "verify", *ACME)

    assert answer.code == 1
    assert answer.err == "error: audit record 7 was changed: its hash does not fit its content\n"


def test_without_a_server_answers_come_from_the_ledger(looked_at: CommandLine) -> None:
    looked_at.monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")

    status = looked_at.done("status", OPERATION, *ACME)

    assert "SUCCEEDED" in status.out
    assert "not there, shown from the ledger: no Temporal server answers at 127.0.0.1:1" in status.out
    assert "run.succeeded" in looked_at.done("timeline", OPERATION, *ACME).out
    assert "CLAIMS" in looked_at.done("show", OPERATION, *ACME, "--review").out
    assert looked_at.done("wait", OPERATION, *ACME).code == 0


def test_a_run_that_the_server_has_forgotten_is_said_so(looked_at: CommandLine) -> None:
    looked_at.monkeypatch.setenv("TEMPORAL_NAMESPACE", "temporal-system")

    assert "no run of this name" in looked_at.done("status", OPERATION, *ACME).out


def test_waiting_gives_up_when_its_time_is_up(cli: CommandLine) -> None:
    cli.done("start", ROOT / "examples" / "request.yaml", "--operation", "endless")

    cli.done("wait", "endless", *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")

    answer = cli("wait", "endless", *ACME, "--timeout", "1s")

    assert (answer.code, answer.out.splitlines()[-1]) == (7, "time is up; waits for: 1 of role reviewer")
    assert re.search(r"^waits for +1 of role reviewer$", cli.done("status", "endless", *ACME).out, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("safe\u202etxt.exe", "safe\\u{202e}txt.exe"),
        ("a\u200bb\ufeffc", "a\\u{200b}b\\u{feff}c"),
        ("\x1b[2Jgone", "\\u{001b}[2Jgone"),
        ("back\rover", "back\\u{000d}over"),
        ("1\u00a0000", "1\\u{00a0}000"),
        ("x\ufe0f\U000e0041", "x\\u{fe0f}\\u{e0041}"),
        ("\u3164\u00ad", "\\u{3164}\\u{00ad}"),
        ("销售额 1.2万, naïve €", "销售额 1.2万, naïve €"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_a_field_cannot_fake_a_second_line() -> None:
    assert visible_line("approved\nby: everyone") == "approved\\nby: everyone"


@pytest.mark.guarantee("G15")
def test_no_answer_of_any_command_can_act_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    text = "gone\x1b[2J\u202e\u200b\ud800"
    for tell in (say, warn, complain):
        tell(text)

    said = capsys.readouterr()
    written = "gone\\u{001b}[2J\\u{202e}\\u{200b}\\u{d800}\n"
    assert (said.out, said.err) == (written, f"warning: {written}error: {written}")


def spoilt_copy(cli: CommandLine, tmp_path: Path, change: str) -> None:
    """The commands go on in a copy of the installation, spoilt as whoever owns the database could spoil it."""
    home = tmp_path / "copy"
    home.mkdir()
    with closing(sqlite3.connect(cli.home / "ledger.db")) as database:
        database.execute("VACUUM INTO ?", (str(home / "ledger.db"),))
    with closing(sqlite3.connect(home / "ledger.db", isolation_level=None)) as database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{trigger}"')
        assert database.execute(change).rowcount > 0
    for part in ("keys", "checkpoints"):
        shutil.copytree(cli.home / part, home / part)
    cli.monkeypatch.setenv("COUNTERSIGN_HOME", str(home))
