"""How a run stands in words: the time that matters now, who is in control, and who is asked, or no longer is."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from countersign.cli.rendering import moment
from countersign.cli.session import now
from countersign.cli.standing import tick_line
from countersign.cli.starting.start import next_lines
from countersign.domain.administration import DirectoryChange, PersonChange
from countersign.domain.canonical import sha256_hex
from countersign.domain.directory import Standing
from countersign.domain.need import Tick
from countersign.domain.operation import Operation
from countersign.domain.state import State
from tests.cli.desk import ACME, TENANT, Desk

OPERATION = "report-7"
LEA = (*ACME, "--as", "lea")


def line(name: str, text: str) -> str:
    found = re.search(rf"^{name}  +(.*)$", text, re.MULTILINE)
    return "" if found is None else found[1]


@pytest.mark.guarantee("G25")
def test_a_grant_is_shown_with_its_own_end_and_not_with_the_deadline_for_votes(desk: Desk) -> None:
    made = desk.asked()
    before = desk.cli.done("status", OPERATION, *ACME).out
    desk.vote(made, "bob")
    desk.stands(OPERATION, State.EXECUTING)

    shown = {name: desk.cli.done(name, OPERATION, *ACME).out for name in ("status", "show")}
    brief = desk.cli.done("brief", OPERATION, *ACME).out

    (vote,) = desk.ledger.approvals.get(TENANT, made.approval_id).votes
    policy_says = vote.decided_at + timedelta(hours=1)
    assert made.assessment.needs[0].execute_within == "1h"
    assert line("deadline", before) == moment(made.deadline)
    assert [line("deadline", one) for one in shown.values()] == ["", ""]
    assert all(line("good until", one).startswith(moment(policy_says)) for one in shown.values())
    assert f": granted, good until {moment(policy_says)}" in brief


def test_of_a_run_that_has_ended_nobody_is_in_control_and_nobody_is_asked(desk: Desk) -> None:
    desk.asked()
    desk.carry()
    desk.cli.done("cancel", OPERATION, *LEA)
    desk.stands(OPERATION, State.CANCELLED, "cancelled_by_operator")

    status, brief = desk.cli.done("status", OPERATION, *ACME), desk.cli.done("brief", OPERATION, *LEA).out

    assert line("in control", status.out) == "nobody any more: the run has ended"
    assert "OPEN TO lea\n  nothing: the run has ended; to have it done after all, ask again" in brief
    review = desk.review()
    assert "WHO MAY DECIDE\n  nobody any more: the proposal is cancelled" in review
    assert line("  asked now", review) == ""
    assert "this take-over would be refused" in desk.cli("take-over", OPERATION, *LEA).err


def test_tiers_tell_apart_who_is_asked_and_who_only_hears_of_it(desk: Desk) -> None:
    made = desk.asked()
    tick = Tick(made.deadline, "tier", ("lead", "requester"))

    assert tick_line(tick) == f"{moment(made.deadline)}: further people are asked: lead; told: requester"


def test_no_agent_is_named_where_nothing_is_drafted(desk: Desk) -> None:
    desk.cli.done("freeze", *LEA, "--reason", "figures look wrong")
    desk.cli("unfreeze", "1", *ACME, "--as", "ada", "--operation", "thaw")

    assert (
        line("in control", desk.cli.done("status", "thaw", *ACME).out) == "no agent: ada asked, and nothing is drafted"
    )


def test_whoever_is_in_control_reads_why_what_they_asked_for_was_refused(desk: Desk) -> None:
    desk.asked()
    desk.carry()
    desk.cli.done("take-over", OPERATION, *LEA)
    detail = {"code": "denied_by_policy", "sentence": desk.put("no rule of the policy applies to this")}
    desk.ledger.audit.append(TENANT, "step.failed", OPERATION, "propose", {**detail}, now())
    desk.stands(OPERATION, State.HUMAN_TAKEOVER, "denied_by_policy")

    refused = line("refused", desk.cli.done("status", OPERATION, *ACME).out)

    assert refused.startswith("what was asked for last: no rule of the policy applies to this; all of it: ")
    assert refused.endswith(f"starter.py brief {OPERATION} --tenant acme")


def test_where_nobody_else_may_have_control_the_brief_says_so(desk: Desk) -> None:
    desk.asked()
    desk.carry()
    desk.cli.done("take-over", OPERATION, *LEA)
    desk.stands(OPERATION, State.HUMAN_TAKEOVER, "taken_over")
    standing = Standing(roles=frozenset({"reviewer"}))
    desk.change(DirectoryChange(persons=(PersonChange(person="max", standing=standing),)))

    brief = desk.cli.done("brief", OPERATION, *LEA).out

    assert "  hand over: no: there is nobody else who could be handed control\n" in brief


def test_resuming_what_has_ended_says_that_nothing_was_started_and_what_to_do(desk: Desk) -> None:
    desk.asked()
    desk.stands(OPERATION, State.CANCELLED, "cancelled_by_operator")

    told = desk.cli.done("resume", OPERATION, *ACME).out

    assert line("state", told) == "finished: CANCELLED"
    assert line("note", told).startswith("nothing was started: the run has ended, and what came of it stands; to ask")


@pytest.mark.parametrize(
    ("case", "waits"),
    [("report", "report-7 --tenant acme --until WAITING_APPROVAL"), ("refund", "report-7 --tenant acme")],
)
def test_after_a_start_people_are_waited_for_only_where_they_are_sure_to_be_asked(case: str, waits: str) -> None:
    operation = Operation(
        tenant=TENANT, operation=OPERATION, case=case, request_hash=sha256_hex(b""), requester="rita",
        statement="a.b.c", registered_at=now(),
    )  # fmt: skip
    first, asking, _ = next_lines(operation)
    assert first[1].partition("starter.py wait ")[2] == waits
    assert asking[0] == "if it says WAITING_ANSWER", "it may wait for an answer before"
    assert asking[1].endswith("starter.py answer report-7 --tenant acme --as PERSON")
