"""Raising a budget: what was spent is shown first, and only whom the run was brought before can add to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import JsonValue

from countersign.cli.session import now
from countersign.domain.model_call import Budget, CallEnd
from countersign.domain.policy import Policy
from countersign.strict_yaml import load
from tests.cli.asking import OPERATION, called, out_of_budget
from tests.cli.desk import ACME, TENANT, Desk
from tests.cli.office import ROOT

LEA = (*ACME, "--as", "lea")
DOCUMENTED = ROOT / "docs" / "questions.md"


@pytest.fixture(autouse=True)
def spent(desk: Desk) -> None:
    """A run that is out of budget; what the commands send arrives."""
    desk.register(OPERATION)
    called(desk, CallEnd(answered="gpt-5.5", input_tokens=100, output_tokens=10, milliseconds=900), 1_250_000)
    called(desk, None)
    out_of_budget(desk)
    desk.carry()


def raises(desk: Desk) -> list[Budget]:
    return [more for _, more in desk.ledger.model_calls.raises(TENANT, OPERATION)]


def test_who_raises_a_budget_sees_what_was_spent_and_signs_exactly_what_is_added(desk: Desk) -> None:
    waits = desk.cli.done("status", OPERATION, *ACME).out
    done = desk.cli.done("raise-budget", OPERATION, *LEA, "--calls", "20", "--time", "30m")

    assert re.search(r"^waits for +role lead, to raise its budget, take it over or end it", waits, re.MULTILINE)
    assert re.search(r"^spent +2 calls, 0 of them failed; 0\.001250000 USD \+ 1 unknown$", done.out, re.MULTILINE)
    assert re.search(r"^budget now +60 calls, 1h of waiting for models$", done.out, re.MULTILINE)
    assert re.search(r"^you add +20 calls, 30m of waiting for models$", done.out, re.MULTILINE)
    assert "accepted: the agent goes on where it stood; no finished call is made again" in done.out
    assert raises(desk) == [Budget(calls=20, time="30m")]
    (last,) = [one for one in desk.ledger.audit.records(TENANT, OPERATION) if one.type == "budget.raised"]
    assert last.subject == "lea"


def test_it_waits_for_whoever_the_policy_names(desk: Desk) -> None:
    (one,) = desk.cli.done("inbox", *LEA, "--json").json()

    assert [line.split()[2] for line in one["commands"]] == ["take-over", "cancel", "raise-budget"]
    assert "nothing waits for bob" in desk.cli.done("inbox", *ACME, "--as", "bob").out


def test_what_would_be_refused_or_change_nothing_is_not_signed(desk: Desk) -> None:
    for given, code, words in (
        ((*ACME, "--as", "bob", "--calls", "5"), 1, "role_missing: raising the budget: the role lead is needed"),
        ((*ACME, "--as", "rita", "--calls", "5"), 1, "role_missing"),
        (LEA, 2, "give one of --calls, --tokens, --money and --time"),
        ((*LEA, "--tokens", "5"), 1, "--tokens: not limited, so adding some changes nothing; the run has 60 calls, 1h"),
        ((*LEA, "--money", "5.00 USD"), 1, "--money: not limited"),
        ((*LEA, "--calls", "1000001"), 1, "--calls: 1000001 calls are more than can be added at once"),
        ((*LEA, "--money", "5.001 USD"), 1, "USD has 2 decimal places"),
        ((*LEA, "--time", "soon"), 2, "--time: 'soon' is no time"),
        ((*LEA, "--calls", "0"), 2, "--calls"),
    ):
        refused = desk.cli("raise-budget", OPERATION, *given)

        assert (refused.code, refused.out, raises(desk)) == (code, "", []), given
        assert words in refused.err
        assert len(refused.err.splitlines()) == 1


def test_where_no_run_is_out_of_budget_nothing_is_raised(desk: Desk, tmp_path: Path) -> None:
    signed = tmp_path / "raise.json"
    desk.cli.done("sign", "raise-budget", OPERATION, *LEA, "--calls", "5", "--out", signed)
    desk.cli.done("raise-budget", OPERATION, *LEA, "--calls", "20")

    late = desk.sent(OPERATION, signed.read_text(), "raise_budget")
    here = desk.cli("raise-budget", OPERATION, *LEA, "--calls", "5")

    assert late.ruling == "budget_not_exceeded"
    assert "this raise-budget would be refused: budget_not_exceeded" in here.err
    assert raises(desk) == [Budget(calls=20)]


def test_who_looks_at_a_run_out_of_budget_sees_which_one_whom_it_waits_for_and_what_to_type(desk: Desk) -> None:
    sentence = desk.put("the run's budget is used up: 60 of 60 calls")
    detail: dict[str, JsonValue] = {"step": "draft", "code": "budget_exceeded", "sentence": sentence}
    desk.ledger.audit.append(TENANT, "step.failed", OPERATION, "run", detail, now())

    for command in ("show", "status"):
        shown = desk.cli.done(command, OPERATION, *ACME).out

        assert re.search(
            r"^waits for +role lead, to raise its budget, take it over or end it .*, until \S+Z$", shown, re.M
        )
        assert re.search(r"^escalated +BUDGET_EXCEEDED \(budget_exceeded\), low$", shown, re.MULTILINE)
        assert re.search(r"^because +the run's budget is used up: 60 of 60 calls$", shown, re.MULTILINE)
    shown = desk.cli.done("show", OPERATION, *ACME).out
    name = f"{OPERATION} --tenant acme --as PERSON"
    typed = [f"raise-budget {name} --calls N", f"take-over {name}", f"cancel {name}"]
    assert [line.partition("starter.py ")[2] for line in shown.splitlines() if "starter.py" in line] == typed


def test_the_documented_command_fits_the_shipped_policy() -> None:
    (line,) = re.findall(r"^\.venv/bin/python starter\.py raise-budget (.+)$", DOCUMENTED.read_text(), re.MULTILINE)
    limits = load(ROOT / "policies" / "report.yaml", Policy).budgets

    assert limits is not None
    given = set(re.findall(r"--(\w+)", line)) & set(Budget.model_fields)
    assert given
    assert all(getattr(limits.run, name) is not None for name in given)
