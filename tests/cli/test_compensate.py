"""`compensate`: what can be asked to be taken back, what is refused in one line, and who is seen to follow whom."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.session import Session, now, signing_key
from countersign.cli.standing import effect
from countersign.cli.starting.following import named_after, with_message
from countersign.cli.starting.registering import Intent, register
from countersign.domain.canonical import canonical_bytes
from countersign.domain.compensation import CompensationRequest, MessageRequest, receipt_hash
from countersign.domain.errors import ConfigurationRefused, InputRefused
from countersign.domain.execution import Receipt
from countersign.domain.operation import Operation
from countersign.domain.proposal import Proposal
from countersign.domain.state import State
from tests.cli.command_line import CommandLine
from tests.cli.desk import ACME, REQUEST, TENANT, Desk
from tests.cli.office import Office

UNDO = ("compensate", "report-7", *ACME, "--as", "rita", "--reason", "a wrong figure")
REPORT = (TENANT, "report-7")
SOON = "the operation is registered; give the same command again"


def executed(desk: Desk, operation: str = "report-7", ended: State = State.SUCCEEDED, **changes: Any) -> Receipt:
    """A report that bob let out, with the receipt that the gateway recorded."""
    made = desk.asked(operation, **changes)
    desk.vote(made, "bob")
    return confirmed(desk, made, ended)


def confirmed(desk: Desk, made: Proposal, ended: State = State.SUCCEEDED) -> Receipt:
    approval, key = desk.ledger.approvals.get(TENANT, made.approval_id), made.action.idempotency_key()
    execution = desk.ledger.executions.claim(approval, key, now(), now())
    receipt = Receipt(
        channel="public", key=key, reference=f"/reports/public/{made.operation}.md",
        content_hash=made.action.content_hash,
    )  # fmt: skip
    desk.ledger.executions.finish(execution, receipt, now())
    desk.stands(made.operation, ended)
    return receipt


def followers(desk: Desk) -> list[Operation]:
    return [*desk.ledger.operations.followers(TENANT, "report-7")]


@pytest.mark.guarantee("G38")
def test_what_is_asked_for_is_signed_and_registered_behind_the_receipt(desk: Desk) -> None:
    receipt = executed(desk)
    answer = desk.cli(*UNDO)
    # Nobody is there to start the run; that is said, and the same command goes on from here.
    assert (answer.code, SOON in answer.err) == (1, True)
    (undo,) = followers(desk)
    assert (undo.operation, undo.case, undo.requester) == ("report-7.undo", "compensation", "rita")
    request = CompensationRequest.model_validate_json(desk.ledger.documents.get(TENANT, undo.request_hash))
    assert request == CompensationRequest(
        follows="report-7", receipt_hash=receipt_hash(receipt), reason="a wrong figure"
    )
    assert SOON in desk.cli(*UNDO).err
    assert followers(desk) == [undo]


def test_each_of_two_linked_operations_names_the_other(desk: Desk) -> None:
    executed(desk)
    desk.cli(*UNDO)
    followed_by = r"^followed by +report-7\.undo \(compensation, CREATED\)$"
    for command in ("show", "brief", "timeline"):
        assert re.search(followed_by, desk.cli.done(command, "report-7", *ACME).out, re.MULTILINE)
        follower = desk.cli.done(command, "report-7.undo", *ACME).out
        assert re.search(r"^follows +report-7 \(report, SUCCEEDED\)$", follower, re.MULTILINE)
    link = {"operation": "report-7.undo", "case": "compensation", "state": "CREATED"}
    for command in ("show", "brief"):
        links = desk.cli.done(command, "report-7", *ACME, "--json").json()["links"]
        assert links == {"follows": [], "followed_by": [link]}
    brief = desk.cli.done("brief", "report-7", *ACME).out
    assert (
        "asked for: report-7.undo is CREATED; until one has SUCCEEDED the effect, which is correctable, stands" in brief
    )


def test_the_brief_of_an_effect_names_the_command_that_asks_for_it_back(desk: Desk) -> None:
    executed(desk)
    brief = desk.cli.done("brief", "report-7", *ACME).out
    assert "starter.py compensate report-7 --tenant acme --as PERSON --reason TEXT" in brief


def test_what_was_not_executed_cannot_be_taken_back(desk: Desk) -> None:
    made = desk.asked()
    nothing = desk.cli(*UNDO)
    assert (nothing.code, "report-7 is CREATED: nothing was sent for it, so nothing follows it" in nothing.err) == (
        1, True,
    )  # fmt: skip
    desk.vote(made, "bob")
    approval = desk.ledger.approvals.get(TENANT, made.approval_id)
    execution = desk.ledger.executions.claim(approval, made.action.idempotency_key(), now(), now())
    desk.ledger.executions.unknown(execution, "timeout", now())
    unknown = desk.cli(*UNDO)
    assert "its effect is unknown, and nothing follows it until it is confirmed" in unknown.err
    assert "'report-8' is not there" in desk.cli("compensate", "report-8", *UNDO[2:]).err
    assert followers(desk) == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"reversibility": "irreversible"}, "channel public cannot take back external_publication"),
        ({"acting": {"channel": "gone"}}, "channel 'gone' is not configured for tenant acme"),
        ({"acting": {"channel": ""}}, "changed who may do what, which is not taken back"),
        ({"case": "compensation"}, "took something back itself"),
    ],
)
def test_what_its_channel_cannot_take_back_is_refused(desk: Desk, changes: dict[str, Any], why: str) -> None:
    executed(desk, **changes)
    answer = desk.cli(*UNDO)
    assert (answer.code, why in answer.err) == (1, True), answer.err
    assert answer.err.count("\n") == 1
    assert followers(desk) == []


def test_an_effect_is_taken_back_once_and_asked_about_by_one_operation_at_a_time(desk: Desk) -> None:
    executed(desk)
    desk.cli(*UNDO)
    other = desk.cli(*UNDO[:-1], "another reason")
    assert "is being taken back already, by report-7.undo, which is CREATED" in other.err
    assert "is being taken back already" in desk.cli(*UNDO, "--operation", "another").err
    desk.stands("report-7.undo", State.REJECTED, "rejected")
    assert SOON in desk.cli(*UNDO).err
    assert [one.operation for one in followers(desk)] == ["report-7.undo", "report-7.undo-2"]
    desk.stands("report-7.undo-2", State.SUCCEEDED)
    again = desk.cli(*UNDO)
    assert "did was taken back already, by report-7.undo-2, which is SUCCEEDED; see:" in again.err
    assert len(followers(desk)) == 2


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--as", "bob"), "person bob may not ask for operations of case compensation"),
        (("--reason", " "), "--reason: say why"),
        (("--operation", "Not:legal"), "is not allowed"),
    ],
)
def test_who_may_not_ask_or_does_not_say_why_is_told_so(desk: Desk, options: tuple[str, str], why: str) -> None:
    executed(desk)
    answer = desk.cli(*UNDO, *options)
    assert (answer.code, why in answer.err) == (1, True), answer.err
    assert followers(desk) == []


def intent(operation: str = "refund-7") -> Intent:
    return Intent(TENANT, "rita", "report", operation, canonical_bytes(REQUEST.model_dump(mode="json", by_alias=True)))


def test_a_request_and_its_message_are_signed_and_registered_in_one_go(desk: Desk) -> None:
    session = Session(desk.settings, desk.ledger)
    key = signing_key(session, TENANT, "rita", None)
    both = with_message(session, intent(), "messages")
    assert register(session, both, key).first
    (message,) = desk.ledger.operations.followers(TENANT, "refund-7")
    assert (message.operation, message.case, message.state) == ("refund-7.message", "message", State.CREATED)
    request = MessageRequest.model_validate_json(desk.ledger.documents.get(TENANT, message.request_hash))
    assert request == MessageRequest(follows="refund-7", channel="messages")
    assert message.statement not in ("", desk.ledger.operations.get(TENANT, "refund-7").statement)
    assert register(session, both, key).first is False
    desk.stands("refund-7", State.REJECTED, "rejected")
    assert register(session, both, key).operation.state == State.REJECTED
    (ended,) = desk.ledger.operations.followers(TENANT, "refund-7")
    assert ended.state == State.CANCELLED
    assert "cancelled: what it was to follow came to no effect" in desk.cli.done("status", ended.operation, *ACME).out


def test_what_follows_a_confirmed_effect_is_resumed_however_the_other_one_ended(desk: Desk) -> None:
    executed(desk, ended=State.FAILED)
    desk.cli(*UNDO)
    (undo,) = followers(desk)
    assert undo.state == State.CREATED
    assert SOON in desk.cli("resume", "report-7.undo", *ACME).err


def test_what_follows_nothing_that_is_confirmed_is_not_resumed_and_what_to_do_is_said(desk: Desk) -> None:
    session = Session(desk.settings, desk.ledger)
    register(session, with_message(session, intent(), "messages"), signing_key(session, TENANT, "rita", None))
    waits = desk.cli("resume", "refund-7.message", *ACME)
    assert (waits.code, "resume that one: .venv/bin/python starter.py resume refund-7 --tenant acme" in waits.err) == (
        1, True,
    ), waits.err  # fmt: skip
    desk.stands("refund-7", State.REJECTED, "rejected")
    with closing(sqlite3.connect(desk.settings.ledger_url.removeprefix("sqlite:///"))) as database, database:
        database.execute("UPDATE operations SET state = 'CREATED' WHERE operation = 'refund-7.message'")
    never = desk.cli("resume", "refund-7.message", *ACME)
    assert "nothing was sent for it, so nothing follows it; it has ended, so nothing ever can" in never.err
    assert never.err.endswith("starter.py rebuild refund-7 --tenant acme\n")


@pytest.mark.parametrize(
    ("tool", "word"),
    [
        ("publish_report", "published"),
        ("reverse_effect", "taken back"),
        ("refund_payment", "refunded as"),
        ("send_message", "told as"),
    ],
)
def test_what_was_done_is_called_by_its_own_word(desk: Desk, tool: str, word: str) -> None:
    receipt = executed(desk)
    approval, execution = desk.ledger.approvals.current(*REPORT), desk.ledger.executions.get(*REPORT)
    assert approval is not None
    action = approval.proposal.action.model_copy(update={"tool": tool})
    by_tool = approval.model_copy(update={"proposal": approval.proposal.model_copy(update={"action": action})})
    assert effect(execution, by_tool) == [(word, receipt.reference)]


def test_a_message_that_could_not_be_sent_is_refused_before_anything_is_registered(desk: Desk) -> None:
    session = Session(desk.settings, desk.ledger)
    with pytest.raises(ConfigurationRefused, match="channel 'pigeons' is not configured"):
        with_message(session, intent(), "pigeons")
    with pytest.raises(InputRefused, match="is too long for its message to be called"):
        with_message(session, intent("r" * 60), "messages")
    assert named_after("refund-7", "message") == "refund-7.message"


@pytest.mark.guarantee("G38")
def test_a_published_report_is_taken_back_by_commands(cli: CommandLine, office: Office, tmp_path: Path) -> None:
    data = tmp_path / "sales.csv"
    data.write_text("date,region,amount\n2026-01-05,North,120.50\n2026-01-09,South,80.25\n")
    ask = ("--question", "How did sales develop?", "--data", data, "--channel", "public")
    cli.done("start", *ask, *ACME, "--as", "rita", "--operation", "taken-back")
    cli.done("wait", "taken-back", *ACME, "--until", "WAITING_APPROVAL", "--timeout", "90s")
    cli.done("approve", "taken-back", *ACME, "--as", "bob")
    cli.done("wait", "taken-back", *ACME, "--timeout", "60s")
    report = Path(cli.done("show", "taken-back", *ACME, "--json").json()["execution"]["receipt"]["reference"])
    assert report.is_file()
    wish = ("compensate", "taken-back", *ACME, "--as", "rita", "--reason", "a wrong figure")
    asked = cli.done(*wish, "--json").json()
    assert (asked["operation"], asked["follows"], asked["run"]) == ("taken-back.undo", "taken-back", "started")
    assert cli.done(*wish, "--json").json()["first"] is False
    cli.done("wait", "taken-back.undo", *ACME, "--until", "WAITING_APPROVAL", "--timeout", "60s")
    review = cli.done("show", "taken-back.undo", *ACME, "--review").out
    assert "take back: " in review
    assert json.dumps(str(report))[1:-1] in review
    assert report.is_file()
    cli.done("approve", "taken-back.undo", *ACME, "--as", "bob")
    assert f"taken back: {report}\n" in cli.done("wait", "taken-back.undo", *ACME, "--timeout", "60s").out
    assert re.search(rf"^taken back +{report}$", cli.done("show", "taken-back.undo", *ACME).out, re.MULTILINE)
    assert not report.exists()
    assert "taken-back.undo is SUCCEEDED" in cli.done("brief", "taken-back", *ACME).out
