"""Settling an unknown outcome: what is known is shown first, who may is said, and nothing offers to send it anew."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from countersign.cli.session import new_id, now
from countersign.domain.administration import DirectoryChange, PersonChange
from countersign.domain.canonical import sha256_hex
from countersign.domain.command import Command
from countersign.domain.directory import Limit, Standing
from countersign.domain.execution import Execution, ExecutionStatus
from countersign.domain.money import Amount
from countersign.domain.proposal import Proposal
from countersign.domain.state import State
from countersign.signing.statements import sign_command
from tests.cli.desk import ACME, TENANT, Desk

pytestmark = pytest.mark.long

OPERATION = "report-7"
LEA = (*ACME, "--as", "lea")
FOUND = ("--executed", "--reference", "refund-7", "--evidence", "seen in their console, ticket 12")
NOT_FOUND = ("--not-executed", "--evidence", "their support says so, ticket 12")
NOTHING_ANEW = "nothing may be sent anew, under whatever key, until that is known or settled"


@pytest.fixture
def unknown(desk: Desk) -> Execution:
    """An effect of which nobody knows; what the commands send arrives."""
    return unknown_outcome(desk, desk.asked())


@pytest.fixture
def large(desk: Desk) -> Execution:
    """The same of an action with an amount that no policy lets one person settle alone."""
    amount = Amount(currency="EUR", minor=1)
    limited = Standing(roles=frozenset({"reviewer"}), limits=(Limit(each=amount),))
    desk.change(DirectoryChange(persons=(PersonChange(person="bob", standing=limited),)))
    return unknown_outcome(desk, desk.asked(acting={"amount": amount}))


def unknown_outcome(desk: Desk, made: Proposal) -> Execution:
    desk.vote(made, "bob")
    approval, at = desk.ledger.approvals.get(TENANT, made.approval_id), now()
    key = made.action.idempotency_key()
    claimed = desk.ledger.executions.claim(approval, key, at, at + timedelta(minutes=1))
    desk.ledger.executions.unknown(claimed, "no_answer: the press gave no whole answer", at)
    desk.stands(OPERATION, State.OUTCOME_UNKNOWN, "no_answer")
    desk.carry()
    return claimed


def said(desk: Desk, unknown: Execution) -> list[tuple[str, str, str]]:
    kept = desk.ledger.executions.settlements(TENANT, unknown.key)
    return [(one.settlement.person, one.settlement.finding, one.settlement.reference) for one in kept]


@pytest.mark.guarantee("G36")
def test_what_is_known_is_shown_with_what_nobody_may_do_meanwhile(desk: Desk, unknown: Execution) -> None:
    shown = desk.cli.done("settle", OPERATION, *ACME).out

    for line in (
        rf"key +{unknown.key}", r"channel +public", r"attempts +1", r"\S+Z attempt 1 intended",
        r"\S+Z attempt 1 unknown: no_answer: the press gave no whole answer", rf"not known +whether .*{NOTHING_ANEW}",
        r"settled by +1 of role lead, none of whom asked for it or made it",
    ):  # fmt: skip
        assert re.search(rf"{line}$", shown, re.MULTILINE), line
    assert "--executed --reference REFERENCE --evidence TEXT" in shown
    assert said(desk, unknown) == []


@pytest.mark.guarantee("G36")
@pytest.mark.parametrize(("found", "kept"), [(FOUND, ("executed", "refund-7")), (NOT_FOUND, ("not_executed", ""))])
def test_a_persons_word_is_signed_with_its_evidence_and_settles_nothing_by_itself(
    desk: Desk, unknown: Execution, found: tuple[str, ...], kept: tuple[str, str]
) -> None:
    answer = desk.cli.done("settle", OPERATION, *LEA, *found)

    assert re.search(r"^you sign +settle as lea$", answer.out, re.MULTILINE)
    assert re.search(rf"^evidence +{re.escape(found[-1])}$", answer.out, re.MULTILINE)
    assert "accepted: the gateway counts what was said so far" in answer.out
    assert said(desk, unknown) == [("lea", *kept)]
    stored = desk.ledger.executions.get(TENANT, OPERATION)
    assert stored is not None
    assert stored.status == ExecutionStatus.UNKNOWN
    assert "said so far  lea at" in desk.cli.done("settle", OPERATION, *ACME).out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((*ACME, "--as", "bob", *FOUND), "role_missing: settling an outcome: the role lead is needed"),
        ((*LEA, "--executed", "--evidence", "x"), "give its reference there"),
        ((*LEA, *NOT_FOUND, "--reference", "refund-7"), "has no reference; leave it out"),
        ((*LEA, "--executed", "--reference", "refund-7"), "--evidence: say where and how you saw it outside"),
        ((*LEA, "--executed", *NOT_FOUND), "exactly one of --executed and --not-executed"),
        ((*ACME, *FOUND), "--as: say who settles it"),
    ],
)
def test_what_would_be_refused_is_not_signed(
    desk: Desk, unknown: Execution, given: tuple[str, ...], words: str
) -> None:
    answer = desk.cli("settle", OPERATION, *given)

    assert answer.code != 0
    assert words in answer.err
    assert said(desk, unknown) == []


def test_where_nothing_is_unknown_there_is_nothing_to_settle(desk: Desk) -> None:
    desk.asked()

    answer = desk.cli("settle", OPERATION, *LEA, *FOUND)

    assert (answer.code, answer.out) == (1, "")
    assert "has no effect whose outcome is unknown: nothing was sent" in answer.err


@pytest.mark.guarantee("G36")
def test_evidence_that_nobody_can_read_counts_for_nothing(desk: Desk, unknown: Execution) -> None:
    command = Command(
        installation=desk.settings.installation, person="lea", key_id="lea-1", tenant=TENANT, operation=OPERATION,
        command="settle", control_version=1, key=unknown.key, finding="not_executed",
        comment_hash=sha256_hex(b"nowhere"), issued_at=now(), expires_at=now() + timedelta(hours=1), id=new_id(),
    )  # fmt: skip
    outcome = desk.sent(OPERATION, json.dumps({"statement": sign_command(command, desk.keys["lea"])}), "settle")

    assert (outcome.ruling, outcome.detail.partition(";")[0]) == (
        "content_refused", "the evidence that was signed is not in the ledger",
    )  # fmt: skip
    assert said(desk, unknown) == []


@pytest.mark.guarantee("G17")
def test_it_can_be_signed_into_a_file_and_counts_once(desk: Desk, unknown: Execution, tmp_path: Path) -> None:
    file = tmp_path / "settle.json"
    desk.cli.done("sign", "settle", OPERATION, *LEA, "--out", file, *FOUND)
    assert desk.sent(OPERATION, file.read_text(), "settle").ruling == "accepted"
    assert desk.sent(OPERATION, file.read_text(), "settle").ruling == "replay"
    assert said(desk, unknown) == [("lea", "executed", "refund-7")]


@pytest.mark.guarantee("G36")
def test_it_is_offered_to_whoever_may_and_nothing_else_that_sends(desk: Desk, unknown: Execution) -> None:
    line = f"settle {OPERATION} --tenant {TENANT} --as lea"

    (waiting,) = desk.cli.done("inbox", *LEA, "--json").json()
    assert (waiting["kind"], [one.partition("starter.py ")[2] for one in waiting["commands"]]) == (
        "outcome_unknown", [line],
    )  # fmt: skip
    assert NOTHING_ANEW in waiting["summary"]
    assert line in desk.cli.done("next", *LEA).out
    assert desk.cli.done("inbox", *ACME, "--as", "bob", "--json").json() == []

    brief = desk.cli.done("brief", OPERATION, *LEA).out
    allowed = [one for one in desk.cli.done("brief", OPERATION, *LEA, "--json").json()["open"] if one["allowed"]]
    assert [one["what"] for one in allowed] == ["take_over", "settle"]
    for told in (brief, desk.cli.done("show", OPERATION, *ACME).out):
        assert NOTHING_ANEW in told
    assert "nothing is sent anew until that is known or settled" in desk.cli.done("status", OPERATION, *ACME).out


@pytest.mark.guarantee("G36")
def test_each_person_is_named_once_with_evidence_and_a_contradiction_is_marked(desk: Desk, unknown: Execution) -> None:
    desk.cli.done("settle", OPERATION, *LEA, *NOT_FOUND)
    desk.cli.done("settle", OPERATION, *LEA, *FOUND)
    agreed = [desk.cli.done(name, OPERATION, *ACME).out for name in ("settle", "status", "brief")]
    against = desk.cli.done("settle", OPERATION, *ACME, "--as", "max", *NOT_FOUND)
    divided = [desk.cli.done(name, OPERATION, *ACME).out for name in ("settle", "status", "brief")]

    hers = rf"said so far:? +lea at \S+: executed as refund-7; evidence: {FOUND[-1]}$"
    assert [len(re.findall(hers, one, re.MULTILINE)) for one in agreed] == [1, 1, 1]
    assert not any("not executed;" in one for one in agreed)
    assert "; others say otherwise, and nothing is settled while they do" in against.out
    assert [one.count("[others say otherwise]; evidence: ") for one in divided] == [2, 2, 2]


@pytest.mark.guarantee("G36")
def test_the_answer_says_how_many_more_have_to_say_the_same(desk: Desk, large: Execution) -> None:
    first = desk.cli.done("settle", OPERATION, *LEA, *FOUND).out
    second = desk.cli.done("settle", OPERATION, *ACME, "--as", "max", *FOUND).out

    assert "records what that comes to; one more of role lead has to say the same" in first
    assert "has to say the same" not in second.partition("accepted: ")[2]


def test_its_json_is_documented(desk: Desk, unknown: Execution) -> None:
    told = desk.cli.done("settle", OPERATION, *ACME, "--json").json()

    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text().partition("## `settle`")[2]
    assert set(told) == set(re.findall(r"^\| `(\w+)` \|", text.partition("## ")[0], re.MULTILINE))
    assert (told["role"], told["persons"], told["execution"]["key"]) == ("lead", 1, unknown.key)
