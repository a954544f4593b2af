"""`starter.py live` against a provider over real HTTP: the whole run, and the file that tells what it came to."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.demos.dev_server import free_port
from countersign.cli.demos.live_run import KNOWN_NOTHING
from tests.cli.command_line import CommandLine
from tests.cli.office import ROOT, STARTER, starter
from tests.cli.test_demo import left_running
from tests.cli.test_reading import documented
from tests.support import asking_model
from tests.support.asking_model import PROSE, total
from tests.support.model_server import Turn, running_model_server
from tests.support.processes import Processes
from tests.workflow.scripted_model import API_KEY, DESCRIBE, TOTAL, grade, is_grading

QUESTION = "Is Mrs Lindqvist's region counted?"
INVENTED = "999999.99"


def draft(figure: str) -> Turn:
    """The stand-in's report with one figure, by a model that answers under the name of a day."""
    return replace(asking_model.draft(figure), model="writer-2026-11-30")


def scripted(drafts: Sequence[Turn]) -> Any:
    """Describe, ask and query at once, deliver; every grade is a pass, its first call answered 429."""
    state = {"grades": 0}

    def answer(number: int, request: dict[str, Any]) -> Turn:
        if is_grading(request):
            state["grades"] += 1
            return Turn(status=429, headers=(("Retry-After", "0"),)) if state["grades"] == 1 else grade()
        answered = sum(message["role"] == "assistant" for message in request["messages"])
        asking = Turn(calls=(("ask_user", {"question": QUESTION}), ("query_dataset", {"sql": TOTAL})), usage=False)
        turn: Turn = (DESCRIBE, asking, *drafts)[min(answered, len(drafts) + 1)]
        return turn

    return answer


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {
        "COUNTERSIGN_HOME": str(tmp_path), "DATABASE_URL": "", "TEMPORAL_ADDRESS": "nowhere:1",
        "OPENAI_API_KEY": API_KEY, "COUNTERSIGN_DRAFT_MODEL": "writer", "COUNTERSIGN_GRADE_MODEL": "critic",
        "COUNTERSIGN_MODEL_STREAMING": "true",
    }  # fmt: skip


def result_file(home: Path) -> Path:
    (path,) = (home / "live").glob("live-*.json")
    return path


@pytest.mark.guarantee("G46")
@pytest.mark.timeout(120)
def test_one_report_goes_through_draft_question_grading_and_approval(home: dict[str, str], tmp_path: Path) -> None:
    with running_model_server(scripted([draft(total())])) as server:
        shown = starter(home | {"OPENAI_BASE_URL": server.url}, "live", answer="Yes, it is.\ny\n")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    path = result_file(tmp_path)
    result = json.loads(path.read_text())
    assert (result["state"], result["reason"], result["effect"]) == ("SUCCEEDED", "", "executed")
    assert [call["decision"] for question in result["questions"] for call in question["calls"]] == ["respond"]
    assert (result["checks"], [one["verdict"] for one in result["grades"]]) == (
        [{"draft_version": 1, "violations": []}], ["satisfied"]
    )  # fmt: skip
    assert (result["decisions"], result["streamed"]) == (["approve"], True)
    per_call = [
        (each["role"], each["asked"], each["answered"], each["outcome"], each["attempt"], each["input_tokens"])
        for each in result["calls"]
    ]
    assert per_call == [
        ("draft", "writer", "writer", "answered", 1, 10),
        ("draft", "writer", "writer", "answered", 1, None),
        ("draft", "writer", "writer-2026-11-30", "answered", 1, 10),
        ("grade", "critic", "", "failed", 1, None),
        ("grade", "critic", "critic", "answered", 2, 10),
    ]
    assert all(each["milliseconds"] >= 0 for each in result["calls"])
    assert (result["sums"]["calls"], result["sums"]["failed"], result["sums"]["unknown_tokens"]) == (5, 1, 2)
    assert result["versions"]["openai"]
    assert set(result) == documented()["live"]
    live_section = (ROOT / "docs" / "json.md").read_text(encoding="utf-8").partition("\n## `live`\n")[2]
    told_of_calls = live_section.partition("| `calls` |")[2].partition("\n")[0]
    assert set(re.findall(r"`(\w+)`", told_of_calls)) == {*result["calls"][0]}
    written = path.read_text()
    for private in (
        API_KEY,
        server.url,
        "127.0.0.1",
        QUESTION,
        "Lindqvist",
        "Yes, it is",
        PROSE,
        total(),
        "bob",
        "lea",
    ):
        assert private not in written
    assert "Yes, it is." in json.dumps(server.requests[2]), "the model was not told"
    assert len(list((tmp_path / "live" / "published" / "public" / "acme").glob("*.md"))) == 1
    assert left_running(home) == []


@pytest.mark.guarantee("G40")
@pytest.mark.timeout(120)
def test_a_model_that_invents_a_figure_is_stopped_by_the_checks_and_nothing_is_published(
    home: dict[str, str], tmp_path: Path
) -> None:
    with running_model_server(scripted([draft(INVENTED)])) as server:
        shown = starter(home | {"OPENAI_BASE_URL": server.url}, "live", "--yes")

    assert shown.returncode == 1, shown.stdout + shown.stderr
    result = json.loads(result_file(tmp_path).read_text())
    assert (result["state"], result["reason"]) == ("ESCALATED", "checks_failed")
    assert ["value_mismatch" in one["violations"] for one in result["checks"]] == [True] * 3, "it had all its rounds"
    assert (result["approval"], result["effect"], result["grades"]) == (None, None, [])
    assert KNOWN_NOTHING in json.dumps(server.requests)
    assert f"call-2-0: respond\n    | {KNOWN_NOTHING}" in shown.stdout
    assert list((tmp_path / "live").rglob("published/**/*.md")) == []
    assert INVENTED not in result_file(tmp_path).read_text()


@pytest.mark.timeout(120)
def test_with_yes_it_shows_what_was_asked_what_was_said_and_what_was_approved(
    home: dict[str, str], tmp_path: Path
) -> None:
    with running_model_server(scripted([draft(total())])) as server:
        shown = starter(home | {"OPENAI_BASE_URL": server.url}, "live", "--yes")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    asked, answered, approved = (
        shown.stdout.partition(text)[2] for text in (QUESTION, "Nobody is asked: lea answers this.",
                                                     "Publish this? Nobody is asked: bob approves this.\n| # Sales\n")
    )  # fmt: skip
    assert answered.startswith(f"\n  call-2-0: respond\n    | {KNOWN_NOTHING}\n")
    assert len(asked) > len(answered) > len(approved) > 0, "something was not shown, or not in order"
    assert f"| {PROSE}: sales came to {total()} USD in all" in approved
    assert re.search(r"^title +", approved, re.MULTILINE)


@pytest.mark.timeout(120)
def test_calls_that_fail_are_told_as_they_do_and_so_is_why_the_run_ended(
    processes: Processes, home: dict[str, str], tmp_path: Path
) -> None:
    """A service that is away at first, then busy, then refuses the key."""
    port = free_port()
    away = home | {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    refused = Turn(status=401, error="invalid_api_key")

    live = processes.start([*STARTER, "live", "--yes"], env=away, cwd=ROOT)
    first = (
        "  call 1 of model writer failed: draft v1, attempt 1: UNAVAILABLE, APIConnectionError; it will be tried again"
    )
    try:
        live.wait_for_line(f"^{first}$", timeout=60)
        with running_model_server(lambda number, _: Turn(status=503) if number == 1 else refused, port):
            assert live.wait(60) == 1
    finally:
        live.stop()  # what it started has sessions of its own, and nobody else stops it

    shown = live.output
    assert re.search(r"attempt [2-9]: UNAVAILABLE, HTTP 503 \(scripted\); it will be tried again$", shown, re.MULTILINE)
    assert re.search(r": MODEL_REFUSED, HTTP 401 \(invalid_api_key\); it is not tried again$", shown, re.MULTILINE)
    assert re.search(r"^result +ESCALATED model_refused$", shown, re.MULTILINE)
    sentence = "model writer answered HTTP 401 (invalid_api_key); check the key and its rights"
    assert re.search(rf"^why +{re.escape(sentence)}$", shown, re.MULTILINE)
    command = re.search(r"^all that happened +(.+)$", shown, re.MULTILINE)
    assert command is not None
    assert sentence in in_a_new_terminal(command[1], tmp_path)
    log = (tmp_path / "live" / "worker.log").read_text(encoding="utf-8")
    assert re.search(r"^acme:live-[0-9-]+, attempt 1: draft: UNAVAILABLE; tried again$", log, re.MULTILINE)
    assert re.search(r": MODEL_REFUSED; see the operation's timeline; not tried again$", log, re.MULTILINE)
    assert "Traceback" not in log


def in_a_new_terminal(line: str, home: Path) -> str:
    """What a command says where nothing but the line itself says about which installation it is."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("COUNTERSIGN_", "DATABASE_"))}
    line = line.replace(".venv/bin/python", STARTER[0])
    done = subprocess.run(
        line, shell=True, cwd=ROOT, env={**bare, "HOME": str(home)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_a_key_it_says_what_to_set(bare: CommandLine) -> None:
    bare.monkeypatch.setenv("OPENAI_API_KEY", "")

    refused = bare("live", "--yes")

    assert refused.code == 2
    assert refused.err.startswith("error: OPENAI_API_KEY is not set: ")
    assert refused.err.count("\n") == 1
    assert not (bare.home / "live").exists(), "something was begun"
