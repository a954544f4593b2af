"""Commands about a run: refused before anything is signed where the run would refuse, shown whole, done as signed."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.session import now
from countersign.domain.canonical import sha256_hex
from countersign.domain.escalation import Reason, Route, Severity
from countersign.domain.proposal import ApprovalStatus, Proposal
from countersign.domain.state import State
from tests.cli.command_line import Answer
from tests.cli.desk import ACME, TENANT, Desk
from tests.ledger.builders import draft

OPERATION = "report-7"
LEA = (*ACME, "--as", "lea")
RITA = (*ACME, "--as", "rita")


@pytest.fixture
def asked(desk: Desk) -> Proposal:
    """A proposal that waits for a reviewer; what the commands send arrives."""
    made = desk.asked()
    desk.stands(OPERATION, State.WAITING_APPROVAL)
    desk.carry()
    return made


def taken(desk: Desk) -> Desk:
    """Lea is in control, as the run says too."""
    desk.cli.done("take-over", OPERATION, *LEA)
    desk.stands(OPERATION, State.HUMAN_TAKEOVER, "taken_over")
    return desk


def status_of(desk: Desk, made: Proposal) -> ApprovalStatus:
    return desk.ledger.approvals.get(TENANT, made.approval_id).status


def amended(desk: Desk, tmp_path: Path, *more: str, **changes: Any) -> Answer:
    """Lea's amendment of the latest draft, from a file."""
    file = tmp_path / "draft.json"
    file.write_text(json.dumps({**draft(), **changes}))
    return desk.cli("amend", OPERATION, *LEA, "--draft", file, *more)


@pytest.mark.guarantee("G29", "G30")
def test_whoever_takes_over_sees_what_falls_and_is_in_control(desk: Desk, asked: Proposal) -> None:
    answer = desk.cli.done("take-over", OPERATION, *LEA, "--comment", "I know this customer")

    assert re.search(r"^you sign +take over as lea$", answer.out, re.MULTILINE)
    assert re.search(r"^in control +the agent since \S+, version 1$", answer.out, re.MULTILINE)
    assert f"{asked.approval_id} is superseded, its votes void" in answer.out
    assert "accepted: you are in control, version 2; the agent does nothing any more" in answer.out
    assert (desk.control(OPERATION).person, desk.control(OPERATION).version) == ("lea", 2)
    assert status_of(desk, asked) == ApprovalStatus.SUPERSEDED


@pytest.mark.guarantee("G28")
def test_of_two_takers_the_second_learns_who_came_first(desk: Desk, asked: Proposal, tmp_path: Path) -> None:
    signed = tmp_path / "max.json"
    desk.cli.done("sign", "take-over", OPERATION, *ACME, "--as", "max", "--out", signed)
    taken(desk)

    too_late = desk.sent(OPERATION, signed.read_text(), "take_over")
    here = desk.cli("take-over", OPERATION, *ACME, "--as", "max")

    assert too_late.ruling == "stale_control"
    assert "control is with lea since " in too_late.detail
    assert (here.code, here.out) == (1, "")
    assert "would be refused: held: lea is in control since " in here.err
    assert desk.control(OPERATION).person == "lea"


@pytest.mark.parametrize(
    ("person", "command", "ruling"),
    [
        ("bob", ["take-over", OPERATION], "role_missing"),
        ("bob", ["cancel", OPERATION], "role_missing"),
        ("bob", ["withdraw", OPERATION], "only_requester_withdraws"),
        ("lea", ["release", OPERATION, "--version", "1"], "not_in_control"),
        ("lea", ["grade", OPERATION, "--version", "1"], "not_in_control"),
        ("lea", ["propose", OPERATION, "--version", "1"], "not_in_control"),
        ("lea", ["amend", OPERATION], "not_in_control"),
        ("lea", ["hand-over", OPERATION, "--to", "max"], "not_in_control"),
    ],
)
def test_what_the_run_would_refuse_is_refused_before_anything_is_shown_or_signed(
    desk: Desk, asked: Proposal, person: str, command: list[str], ruling: str
) -> None:
    answer = desk.cli(*command, *ACME, "--as", person)

    assert (answer.code, answer.out) == (1, "")
    assert f"would be refused: {ruling}: " in answer.err
    assert status_of(desk, asked) == ApprovalStatus.PENDING
    assert [one for one in desk.ledger.audit.records(TENANT) if one.type.startswith("command.")] == []


def test_an_amendment_stands_beside_the_agents_draft_and_is_shown_before(
    desk: Desk, asked: Proposal, tmp_path: Path
) -> None:
    taken(desk)

    unanswered = amended(desk, tmp_path, title="Sales by region")
    answer = amended(desk, tmp_path, "--yes", title="Sales by region", body="In short, {{c1}}.")

    assert "not confirmed, nothing was done" in unanswered.err
    assert answer.code == 0, answer.err
    assert "CHANGES OF THE TEXT\n" in answer.out
    assert "\n  + In short, {{c1}}.\n" in answer.out
    assert f"  title\n    - {draft()['title']}\n    + Sales by region\n" in answer.out
    assert "accepted: your draft is v2, beside v1" in answer.out
    assert desk.ledger.drafts.get(TENANT, OPERATION, 1) == draft()
    written = desk.ledger.drafts.written(TENANT, OPERATION, 2)
    assert written is not None
    assert (written.author, written.draft["title"]) == ("lea", "Sales by region")


def test_the_hash_of_the_document_is_what_is_signed(desk: Desk, asked: Proposal, tmp_path: Path) -> None:
    taken(desk)

    assert amended(desk, tmp_path, "--yes", title="Sales by region").code == 0

    record = [one for one in desk.ledger.audit.records(TENANT, OPERATION) if one.type == "command.accepted"][-1]
    stored = desk.ledger.documents.get(TENANT, str(record.detail["content"]))
    assert sha256_hex(stored) == record.detail["content"]
    assert json.loads(stored)["title"] == "Sales by region"


def test_a_draft_can_be_written_in_an_editor(desk: Desk, asked: Proposal) -> None:
    taken(desk).cli.monkeypatch.setenv("EDITOR", f"sed -i.before s/{str(draft()['title']).split()[0]}/Turnover/")

    desk.cli.done("amend", OPERATION, *LEA, "--yes")

    assert str(desk.ledger.drafts.get(TENANT, OPERATION, 2)["title"]).startswith("Turnover")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "the new draft is v1 as it was; nothing was changed"),
        ({"title": ""}, "the new draft: title: "),
        ({"note": "mine"}, "the new draft: note: "),
    ],
)
def test_a_draft_that_is_none_or_the_same_is_not_signed(
    desk: Desk, asked: Proposal, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    taken(desk)

    answer = amended(desk, tmp_path, "--yes", **changes)

    assert answer.code == 1
    assert words in answer.err
    assert desk.ledger.controls.standing(TENANT, OPERATION).draft_version == 1


@pytest.mark.guarantee("G29")
def test_a_release_names_the_latest_version_and_an_old_holder_changes_nothing(
    desk: Desk, asked: Proposal, tmp_path: Path
) -> None:
    taken(desk)
    old = tmp_path / "old.json"
    desk.cli.done("sign", "release", OPERATION, *LEA, "--version", "1", "--out", old)
    assert amended(desk, tmp_path, "--yes", title="Sales by region").code == 0

    wrong = desk.cli("release", OPERATION, *LEA, "--version", "1")
    right = desk.cli.done("release", OPERATION, *LEA, "--version", "2")

    assert "not_this_version: the latest version is v2, you named v1" in wrong.err
    assert "accepted: the agent is in control, version 3, and goes on from v2" in right.out
    assert desk.sent(OPERATION, old.read_text(), "release").ruling == "stale_control"
    assert desk.control(OPERATION).by == "agent"


def test_control_is_handed_to_somebody_who_may_have_it(desk: Desk, asked: Proposal) -> None:
    taken(desk)

    refused = desk.cli("hand-over", OPERATION, *LEA, "--to", "bob")
    done = desk.cli.done("hand-over", OPERATION, *LEA, "--to", "max")

    assert "receiver_refused: bob lacks the role lead" in refused.err
    assert "accepted: max is in control, version 3" in done.out
    assert "not_in_control: max is in control" in desk.cli("grade", OPERATION, *LEA, "--version", "1").err


def test_arguments_are_shown_before_they_are_proposed(desk: Desk, asked: Proposal) -> None:
    taken(desk)

    unknown = desk.cli("propose", OPERATION, *LEA, "--version", "1", "--set", "colour=red", "--yes")
    answer = desk.cli.done("propose", OPERATION, *LEA, "--version", "1", "--set", "name=other.md", "--yes", "--json")
    shown = desk.cli.done("propose", OPERATION, *LEA, "--version", "1", "--set", "name=third.md", "--yes")

    assert unknown.code == 1
    assert "colour" in unknown.err
    assert answer.json()["outcome"]["ruling"] == "accepted"
    assert "CHANGES OF THE ARGUMENTS\n  name\n    - report-7.md\n    + third.md\n" in shown.out
    assert "v1 has not passed the checks and a grade" in shown.err


@pytest.mark.parametrize(
    ("person", "command", "state", "status", "reason", "words"),
    [
        ("rita", "withdraw", State.WITHDRAWN, ApprovalStatus.WITHDRAWN, "withdrawn", "withdrawn by whoever asked"),
        ("lea", "cancel", State.CANCELLED, ApprovalStatus.CANCELLED, "cancelled_by_operator",
         "cancelled by a person who may end runs"),
    ],
)  # fmt: skip
def test_ends_are_told_apart_in_words_and_codes(
    desk: Desk, asked: Proposal, person: str, command: str, state: State, status: ApprovalStatus, reason: str,
    words: str,
) -> None:  # fmt: skip
    answer = desk.cli.done(command, OPERATION, *ACME, "--as", person, "--comment", "no longer wanted")
    desk.stands(OPERATION, state, reason)

    assert "nothing was executed, and nothing will be" in answer.out
    assert status_of(desk, asked) == status
    assert re.search(rf"^ended +{words}$", desk.cli.done("status", OPERATION, *ACME).out, re.MULTILINE)
    assert "comment=no longer wanted" in desk.cli.done("brief", OPERATION, *ACME).out
    again = desk.cli("take-over", OPERATION, *LEA)
    assert f"ended: the run has ended as {state.value}" in again.err


def test_each_command_answers_in_json_as_documented(desk: Desk, asked: Proposal, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text().partition("## `take-over`")[2]
    documented = re.findall(r"^\| `(\w+)` \|", text.partition("## ")[0], re.MULTILINE)

    answer = desk.cli.done("take-over", OPERATION, *LEA, "--json").json()

    assert list(answer) == documented
    assert (answer["decision"], answer["control_version"], answer["sent_as"]) == ("take_over", 1, "update")
    assert "--json: nobody can be shown the difference; give --yes too" in amended(desk, tmp_path, "--json").err


@pytest.mark.guarantee("G47")
def test_a_refusal_by_the_run_itself_is_told_in_one_line_and_recorded(desk: Desk, asked: Proposal) -> None:
    desk.cli.monkeypatch.setattr("countersign.cli.deciding.command_message.require_open", lambda *_: None)

    answer = desk.cli("take-over", OPERATION, *ACME, "--as", "bob")

    assert answer.code == 1
    assert answer.err == "error: refused: role_missing: taking over: the role lead is needed\n"
    assert [one.type for one in desk.ledger.audit.records(TENANT, OPERATION)][-1] == "command.refused"


@pytest.mark.guarantee("G09")
def test_another_tenants_run_looks_like_none(desk: Desk, asked: Proposal) -> None:
    for command in (["take-over"], ["cancel"], ["brief"], ["release", "--version", "1"]):
        theirs = desk.cli(command[0], OPERATION, "--tenant", "globex", *command[1:], "--as", "lea")
        nothing = desk.cli(command[0], "nope", "--tenant", "globex", *command[1:], "--as", "lea")
        assert (theirs.code, theirs.err.replace(OPERATION, "nope")) == (1, nothing.err)


def escalated(desk: Desk, *, deadline: bool = True) -> None:
    """The run was brought before the leads."""
    route = Route(role="lead", severity=Severity.HIGH, within="4h" if deadline else None)
    snapshot = desk.put("{}")
    desk.ledger.approvals.settle(TENANT, "report-7-v1", ApprovalStatus.CANCELLED, now())
    desk.ledger.escalations.open(
        TENANT, OPERATION, Reason.LOW_CONFIDENCE, route, "rubric_failed", 3, "failed", snapshot, now()
    )
    desk.stands(OPERATION, State.ESCALATED, "LOW_CONFIDENCE")


def test_an_escalation_waits_for_whoever_may_answer_it(desk: Desk, asked: Proposal) -> None:
    escalated(desk)

    (one,) = desk.cli.done("inbox", *LEA, "--json").json()
    status = desk.cli.done("status", OPERATION, *ACME).out
    following = desk.cli.done("next", *LEA).out

    assert (one["kind"], one["operation"], one["decisions"]) == ("escalation", OPERATION, [])
    assert [line.split()[2] for line in one["commands"]] == ["take-over", "cancel"]
    assert "nothing waits for bob" in desk.cli.done("inbox", *ACME, "--as", "bob").out
    assert re.search(r"^waits for +role lead, to take it over or end it \(LOW_CONFIDENCE\), until ", status, re.M)
    assert re.search(r"^escalated +LOW_CONFIDENCE \(rubric_failed\), high$", status, re.MULTILINE)
    assert "suggested: read the findings" in following
    assert f"starter.py take-over {OPERATION} --tenant acme --as lea" in following


def test_what_somebody_is_in_control_of_waits_for_them(desk: Desk, asked: Proposal) -> None:
    taken(desk)

    (one,) = desk.cli.done("inbox", *LEA, "--json").json()
    words = {line.split()[2] for line in one["commands"]}

    assert one["kind"] == "in_control"
    assert words == {"amend", "grade", "propose", "release", "hand-over", "cancel"}
    assert "nothing waits for max" in desk.cli.done("inbox", *ACME, "--as", "max").out
    waits = r"^waits for +lea, who is in control$"
    assert re.search(waits, desk.cli.done("status", OPERATION, *ACME).out, re.MULTILINE)


def test_the_brief_tells_an_owner_all_and_what_is_open(desk: Desk, asked: Proposal, tmp_path: Path) -> None:
    escalated(desk)
    taken(desk)
    assert amended(desk, tmp_path, "--yes", title="Sales by region").code == 0

    told = desk.cli.done("brief", OPERATION, *LEA, "--json").json()
    shown = desk.cli.done("brief", OPERATION, *LEA).out

    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text().partition("## `brief`")[2]
    assert set(told) == set(re.findall(r"^\| `(\w+)` \|", text.partition("## ")[0], re.MULTILINE))
    assert [(one["version"], one["author"]) for one in told["drafts"]] == [(1, "agent"), (2, "lea")]
    assert [one["by"] for one in told["control_history"]] == ["agent", "person"]
    assert [one["outcome"] for one in told["escalations"]] == ["taken_over"]
    assert {one["step"]: one["done"] for one in told["plan"]} == {
        "draft": True, "check and grade": False, "propose": False, "approve": False, "execute": False,
    }  # fmt: skip
    assert told["compensation"] == "none needed: nothing was sent"
    assert "release: " in shown
    assert "withdraw: no: only_requester_withdraws" in shown
    assert "LOW_CONFIDENCE (rubric_failed, 3 attempts), high, to role lead" in shown


def test_what_may_be_on_its_way_is_said_and_nobody_turns_it_back(desk: Desk, asked: Proposal) -> None:
    desk.vote(asked, "bob")
    approval = desk.ledger.approvals.get(TENANT, asked.approval_id)
    moment = now()
    held = desk.ledger.executions.claim(approval, asked.action.idempotency_key(), moment, moment + timedelta(minutes=1))
    desk.ledger.executions.unknown(held, "no answer", moment)

    told = desk.cli.done("brief", OPERATION, *ACME).out

    assert "not known: whether it took effect; ask the outside system for the key" in told
    assert f"key {held.key}, attempt 1" in told
    assert "COMPENSATION\n  none yet: whether it took effect is not known" in told
    assert "too_late: its effect may be on its way" in desk.cli("cancel", OPERATION, *LEA).err


def test_where_nothing_was_drafted_yet_the_whole_draft_is_given(desk: Desk, tmp_path: Path) -> None:
    desk.register("other")
    registered = desk.ledger.operations.get(TENANT, "other").model_copy(update={"operation": OPERATION})
    desk.ledger.operations.register(registered)
    desk.carry()
    taken(desk)

    nothing = desk.cli("amend", OPERATION, *LEA, "--yes")
    file = tmp_path / "draft.json"
    file.write_text(json.dumps(draft()))
    answer = desk.cli.done("amend", OPERATION, *LEA, "--draft", file, "--yes")

    assert "nothing was drafted yet" in nothing.err
    assert f"+ {draft()['title']}" in answer.out
    assert "accepted: your draft is v1" in answer.out
