"""What a policy would ask before it is in force, and what it does ask about a real proposal: by name, with reasons."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.administration import DirectoryChange, KeyRevocation
from countersign.domain.authority_differences import with_amounts
from countersign.domain.policy import Policy
from countersign.strict_yaml import load
from tests.cli.command_line import CommandLine
from tests.cli.desk import Desk
from tests.cli.office import ROOT

ACME = ("--tenant", "acme")
REFUNDS = """
policy: report
version: 7
rules:
  - id: small
    when: {tool: refund, environment: [dev, production]}
    amount: {up_to: 100.00 EUR, window: {within: 24h}}
    grant: by_rule
  - id: large
    when: {tool: refund}
    amount: {over: 100.00 EUR, window: {within: 24h}}
    need: {role: reviewer, approvals: 2, decisions: [approve, reject], decide_within: 72h, execute_within: 1h}
"""


@pytest.fixture
def refunds(tmp_path: Path) -> Path:
    """A policy by amounts."""
    path = tmp_path / "refunds.yaml"
    path.write_text(REFUNDS)
    return path


def answers(answer: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Each example's answer, and the rules that applied."""
    return [(one["answer"], [rule["rule"] for rule in one["rules"] if rule["applies"]]) for one in answer["examples"]]


def test_each_rule_has_an_example_that_it_applies_to(bare: CommandLine, refunds: Path) -> None:
    found = bare.done("policy", "check", refunds, "--json").json()

    assert answers(found) == [("granted_by_rule", ["small"]), ("needs_people", ["large"])]
    assert [one["amount"] for one in found["examples"]] == ["100.00 EUR", "100.01 EUR"]
    assert found["examples"][1]["needs"][0]["role"] == "reviewer"


def test_the_columns_that_are_sensitive_everywhere_are_named(bare: CommandLine, refunds: Path) -> None:
    assert bare.done("policy", "check", refunds, "--json").json()["sensitive_columns"] == []
    assert "sensitive" not in bare.done("policy", "check", refunds).out
    refunds.write_text(REFUNDS + "sensitive_columns: [iban, Salary]\n")
    assert bare.done("policy", "check", refunds, "--json").json()["sensitive_columns"] == ["iban", "Salary"]
    assert re.search(r"^sensitive in every dataset +iban, Salary$", bare.done("policy", "check", refunds).out, re.M)
    for wrong, said in (("[iban, IB-AN]", "'iban' and 'IB-AN' look alike"), ("['%']", "has no letter or digit")):
        refunds.write_text(REFUNDS + f"sensitive_columns: {wrong}\n")
        assert said in bare("policy", "check", refunds).err


@pytest.mark.parametrize(
    ("options", "answer", "rules"),
    [
        ("--environment dev --amount 100.00_EUR", "granted_by_rule", ["small"]),
        ("--environment dev --amount 60.00_EUR --spent 50.00_EUR", "needs_people", ["large"]),
        ("--environment staging --amount 60.00_EUR", "denied", []),
        ("--environment dev --amount 60.00_USD", "denied", []),
        ("--environment dev", "denied", []),
    ],
)
def test_an_example_of_ones_own_is_answered(
    bare: CommandLine, refunds: Path, options: str, answer: str, rules: list[str]
) -> None:
    words = [word.replace("_", " ") for word in options.split()]

    found = bare.done("policy", "check", refunds, "--tool", "refund", *words, "--json").json()

    assert answers(found) == [(answer, rules)]


def test_the_answer_says_who_and_why(bare: CommandLine, refunds: Path) -> None:
    money = ("--amount", "60.00 EUR", "--spent", "50.00 EUR")

    people = bare.done("policy", "check", refunds, "--tool", "refund", "--environment", "dev", *money).out
    nobody = bare.done("policy", "check", refunds, "--tool", "publish_report").out

    assert "needs    2 of role reviewer, who can approve, reject, within 72h" in people
    assert "large applies: tool is refund, amount 60.00 EUR, with 50.00 EUR before per tenant within 24h," in people
    assert "answer   denied: no rule applies, so nobody is asked" in nobody
    assert "small does not apply: tool is publish_report, not refund, environment is not given" in nobody


def test_earlier_amounts_of_another_currency_are_refused(bare: CommandLine, refunds: Path) -> None:
    answer = bare("policy", "check", refunds, "--tool", "refund", "--amount", "1.00 EUR", "--spent", "1.00 USD")

    assert answer.err == "error: --spent: 1.00 USD is added to the amount; give --amount in USD\n"


def test_a_real_proposal_is_explained_by_name(cli: CommandLine) -> None:
    cli.done("start", ROOT / "examples" / "request.yaml", "--operation", "explained")
    cli.done("wait", "explained", *ACME, "--until", "WAITING_APPROVAL", "--timeout", "5m")

    asked = cli.done("policy", "explain", "explained", *ACME, "--json").json()
    text = cli.done("policy", "explain", "explained", *ACME).out
    cli.done("approve", "explained", *ACME, "--as", "bob")
    granted = cli.done("policy", "explain", "explained", *ACME, "--json").json()

    assert asked["can_approve"] == ["bob", "carl"]
    reasons = {one["person"]: one["why"].split(":")[0] for one in asked["cannot_approve"]}
    assert reasons == {
        "rita": "requester_may_not_decide", "dora": "role_missing", "ada": "role_missing", "ben": "role_missing",
        "cleo": "role_missing", "lea": "role_missing", "max": "role_missing", "fay": "role_missing",
        "finn": "role_missing",
    }  # fmt: skip
    (missing,) = asked["missing"]
    assert missing.startswith("1 of role reviewer, who can approve, edit, reject, within 72h; reminded after 24h; ")
    assert "after 48h role lead too, who can approve, reject" in missing
    assert (asked["asked_now"], asked["next_tick"]["kind"]) == (["1 of role reviewer"], "remind")
    assert asked["pinned_policy"] == asked["policy_in_force"]
    assert "external-needs-a-reviewer applies: tool is publish_report, side_effect is external_publication" in text
    assert "can approve    bob, carl" in text
    assert (granted["approved"], granted["missing"], granted["can_approve"]) == (["bob"], [], [])


def test_a_policy_is_shown_whole_and_can_be_read_again(desk: Desk, tmp_path: Path) -> None:
    shown = desk.cli.done("policy", "show", "report", *ACME).out
    (tmp_path / "shown.yaml").write_text(shown)

    for line in ("asked_by: requester", "  requester_may_withdraw: true", "  break_glass: null", "    distinct: false"):
        assert line in shown.splitlines() or f"  {line}" in shown.splitlines()
    assert load(tmp_path / "shown.yaml", Policy) == desk.ledger.directory.policies("acme")["report"]


def test_amounts_are_shown_as_people_write_them(refunds: Path) -> None:
    shown = with_amounts(load(refunds, Policy).model_dump(mode="json"))

    assert shown["rules"][0]["amount"]["up_to"] == "100.00 EUR"


def test_where_nobody_could_approve_it_says_so(desk: Desk) -> None:
    desk.asked("report-7")
    for name in ("bob", "carl"):
        desk.change(DirectoryChange(keys_revoked=(KeyRevocation(person=name, key_id=f"{name}-1"),)))

    assert "can approve    nobody; " in desk.cli.done("policy", "explain", "report-7", *ACME).out


def test_a_check_says_what_it_read_of_answering_and_budgets(bare: CommandLine, refunds: Path) -> None:
    shipped = bare.done("policy", "check", ROOT / "policies" / "report.yaml").out
    silent = bare.done("policy", "check", refunds).out

    for line in (
        r"answering +role lead, or whoever asked for the operation where it is a plain question; at most 10 questions"
        r" of one run; reminded after 4h; unanswered after 24h the run ends as expired",
        r"budget of a run +60 calls, 1h of waiting for models",
        r"of the tenant +2000 calls within 24h",
        r"when used up +role lead is asked, until 72h later",
    ):
        assert re.search(rf"^{line}$", shipped, re.MULTILINE), line
    assert re.search(r"^answering +nobody: whatever the agent would ask is refused to it$", silent, re.MULTILINE)
    assert re.search(r"^budgets +not limited$", silent, re.MULTILINE)


def test_money_that_is_a_number_is_told_the_form(bare: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "report.yaml"
    shipped = (ROOT / "policies" / "report.yaml").read_text()
    path.write_text(shipped.replace("{calls: 60, time: 1h}", "{calls: 60, money: 1.00}"))

    refused = bare("policy", "check", path)

    assert refused.code == 1
    assert "budgets.run.money" in refused.err
    assert "names no currency; write it as 1000.00 EUR: digits, a blank, a currency" in refused.err
    assert len(refused.err.splitlines()) == 1
