"""Following a run: its events as they come, each once and in order, from any of them on, until it has ended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from countersign.cli.reading import watch
from countersign.cli.session import now
from countersign.domain.progress import ProgressKind
from countersign.domain.state import State
from tests.cli.asking import OPERATION, called, out_of_budget
from tests.cli.desk import ACME, TENANT, Desk

DOCUMENTED = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.fixture(autouse=True)
def begun(desk: Desk) -> None:
    desk.register(OPERATION)
    happened(desk, ProgressKind.DRAFTING)
    happened(desk, ProgressKind.MODEL_CALLED, "gpt\u202e", "call 1")


def happened(desk: Desk, kind: ProgressKind, name: str = "", detail: str = "") -> None:
    desk.ledger.progress.add(TENANT, OPERATION, kind, 1, name, detail, now())


def meanwhile(desk: Desk, *steps: Callable[[], None]) -> None:
    """What happens each time the command waits; it never waits longer."""
    left = iter(steps)
    desk.cli.monkeypatch.setattr("countersign.cli.reading.watch.time.sleep", lambda _: next(left)())


def numbers(out: str) -> list[int]:
    return [int(line.split()[0]) for line in out.splitlines()]


def test_events_are_told_as_they_come_and_the_end_of_the_run_ends_it(desk: Desk) -> None:
    def end() -> None:
        happened(desk, ProgressKind.DRAFTED)
        desk.stands(OPERATION, State.FAILED, "step_failed")

    meanwhile(desk, lambda: happened(desk, ProgressKind.MODEL_ANSWERED, "gpt", "912 ms"), lambda: None, end)

    told = desk.cli.done("watch", OPERATION, *ACME).out

    assert numbers(told) == [1, 2, 3, 4]
    assert re.search(r"^ +2  \S+Z  v1 +model called +gpt\\u\{202e\}  call 1$", told, re.MULTILINE)
    assert re.search(r"^ +3  \S+Z  v1 +model answered +gpt  912 ms$", told, re.MULTILINE)


def test_more_events_than_one_look_holds_are_all_told(desk: Desk) -> None:
    desk.cli.monkeypatch.setattr(watch, "BATCH", 2)
    for _ in range(3):
        happened(desk, ProgressKind.TOOL_CALLED, "query_dataset")
    desk.stands(OPERATION, State.FAILED, "step_failed")

    assert numbers(desk.cli.done("watch", OPERATION, *ACME).out) == [1, 2, 3, 4, 5]


def test_whoever_breaks_off_is_told_where_to_go_on_and_sees_each_event_once(desk: Desk) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    meanwhile(desk, interrupt)
    broken_off = desk.cli("watch", OPERATION, *ACME)
    happened(desk, ProgressKind.DRAFTED)
    desk.stands(OPERATION, State.FAILED, "step_failed")
    rest = desk.cli.done("watch", OPERATION, *ACME, "--from", "2").out

    assert (broken_off.code, numbers(broken_off.out)) == (130, [1, 2])
    assert broken_off.err == f"go on with: .venv/bin/python starter.py watch {OPERATION} --tenant acme --from 2\n"
    assert numbers(rest) == [3]


def test_its_json_is_one_documented_object_a_line(desk: Desk) -> None:
    desk.stands(OPERATION, State.FAILED, "step_failed")

    lines = [json.loads(line) for line in desk.cli.done("watch", OPERATION, *ACME, "--json").out.splitlines()]

    part = DOCUMENTED.read_text().partition("## `watch`")[2].partition("## ")[0]
    assert list(lines[0]) == re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)
    assert [(one["number"], one["kind"]) for one in lines] == [(1, "drafting"), (2, "model_called")]


@pytest.mark.guarantee("G09")
def test_another_tenants_run_cannot_be_followed(desk: Desk) -> None:
    theirs, none = (desk.cli("watch", name, "--tenant", "globex") for name in (OPERATION, "nope"))

    assert (theirs.code, theirs.out) == (1, "")
    assert theirs.err.replace(OPERATION, "nope") == none.err


def keys_of(line: str) -> list[str]:
    return list(json.loads(line))


def test_a_run_that_is_out_of_budget_says_so_once_and_whom_it_waits_for(desk: Desk) -> None:
    def end() -> None:
        desk.stands(OPERATION, State.CANCELLED, "cancelled_by_operator")

    meanwhile(desk, lambda: out_of_budget(desk), lambda: None, end)
    told = desk.cli.done("watch", OPERATION, *ACME).out.splitlines()

    assert [line.split()[0] for line in told] == ["1", "2", "--"]
    assert re.search(r"escalated +BUDGET_EXCEEDED  role lead, to raise its budget, take it over or end it", told[2])


def test_what_is_no_event_has_the_form_of_one_and_the_number_of_the_last(desk: Desk) -> None:
    out_of_budget(desk)
    meanwhile(desk, lambda: desk.stands(OPERATION, State.CANCELLED, "cancelled_by_operator"))

    lines = desk.cli.done("watch", OPERATION, *ACME, "--json").out.splitlines()

    assert keys_of(lines[2]) == keys_of(lines[0])
    assert [(one["number"], one["kind"]) for one in map(json.loads, lines[1:])] == [
        (2, "model_called"),
        (2, "escalated"),
    ]


def test_events_that_were_deleted_after_the_end_are_said_to_be(desk: Desk) -> None:
    desk.register("old")
    called(desk, None, operation="old")
    desk.stands("old", State.CANCELLED, "cancelled_by_operator")
    desk.register("never-drafted")
    desk.stands("never-drafted", State.CANCELLED, "cancelled_by_operator")

    told, nothing = (desk.cli.done("watch", name, *ACME).out for name in ("old", "never-drafted"))

    assert "deleted        what went on was deleted" in told
    assert nothing == ""
