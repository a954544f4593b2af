"""Edits, withdrawals and broken glass from the command line: shown whole, signed as shown, kept until they are sent."""

from __future__ import annotations

import json
import re
import stat
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.deciding.arguments import editable
from countersign.cli.session import now
from countersign.domain.decision import Statement
from countersign.domain.execution import Receipt
from countersign.domain.policy import BreakGlass, Terms
from countersign.domain.proposal import ApprovalStatus, Proposal
from countersign.domain.strict_json import parse
from countersign.signing.statements import verify_decision
from tests.cli.command_line import Answer
from tests.cli.desk import ACME, TENANT, Desk

OPERATION = "report-7"


def kept_edit(desk: Desk, out: Path, *assignments: str) -> Answer:
    """Bob's edit, signed into a file."""
    sets = [word for assignment in assignments for word in ("--set", assignment)]
    return desk.cli("sign", "edit", OPERATION, *ACME, "--as", "bob", "--out", out, *sets)


def statement_in(desk: Desk, out: Path) -> Statement:
    message = json.loads(out.read_text())
    persons = desk.ledger.directory.persons(TENANT)
    return verify_decision(message["statement"], persons, installation=desk.settings.installation, now=now())[0]


def status_of(desk: Desk, made: Proposal) -> ApprovalStatus:
    return desk.ledger.approvals.get(TENANT, made.approval_id).status


@pytest.mark.guarantee("G14")
def test_an_edit_is_shown_whole_and_what_was_shown_is_signed(desk: Desk, tmp_path: Path) -> None:
    made, out = desk.asked(), tmp_path / "edit.json"

    answer = kept_edit(desk, out, "title=Sales by region")

    statement = statement_in(desk, out)
    edited = desk.stored_action(statement.edited_action)
    assert edited.args == {**made.action.args, "title": "Sales by region"}
    assert (statement.decision, statement.action_hash) == ("edit", made.action_hash)
    assert edited.hash() == statement.edited_action != made.action_hash
    assert "  args.title\n    - Sales\n    + Sales by region" in answer.out
    assert "  - # Sales\n  + # Sales by region" in answer.out
    assert f"{made.action_hash} (votes on it are void with this edit)" in answer.out
    assert statement.edited_action in answer.out
    assert "as your approval of the edited action" in answer.out


@pytest.mark.guarantee("G14")
def test_the_run_takes_the_edit_that_was_signed(desk: Desk, tmp_path: Path) -> None:
    made, out = desk.asked(), tmp_path / "edit.json"
    kept_edit(desk, out, "title=Sales by region")

    outcome = desk.sent(OPERATION, out.read_text())

    assert (outcome.ruling, status_of(desk, made)) == ("accepted", ApprovalStatus.EDITED)


INTERNAL: dict[str, Any] = {
    "args": {"channel": "internal", "name": "report-7.md", "title": "Sales"}, "channel": "internal",
    "target": "internal:report-7.md", "side_effect": "internal_publication",
}  # fmt: skip


def channels_may_be_edited(desk: Desk) -> Terms:
    """The shipped policy's terms, and another channel may be chosen."""
    terms = desk.asked(operation="other").terms
    assert terms.editing is not None
    return terms.model_copy(update={"editing": terms.editing.model_copy(update={"fields": ("channel", "title")})})


@pytest.mark.guarantee("G02")
def test_an_edit_that_raises_the_risk_says_so_and_is_no_approval(desk: Desk, tmp_path: Path) -> None:
    desk.asked(acting=INTERNAL, approvals=1, terms=channels_may_be_edited(desk))

    answer = kept_edit(desk, tmp_path / "edit.json", "channel=public")

    assert "  side_effect\n    - internal_publication\n    + external_publication" in answer.out
    assert "  target\n    - internal:report-7.md\n    + public:report-7.md" in answer.out
    assert re.search(r"raises the risk +side_effect", answer.out)
    assert "as no approval: others must approve it" in answer.out


@pytest.mark.guarantee("G02")
def test_an_edit_that_would_be_granted_by_rule_is_refused_with_that_reason_before_it_is_signed(
    desk: Desk, tmp_path: Path
) -> None:
    desk.asked(terms=channels_may_be_edited(desk))

    answer = kept_edit(desk, tmp_path / "edit.json", "channel=internal")

    assert answer.err == (
        "error: operation report-7: this edit would be refused: edit_refused: the edited action would be granted by"
        " rule, without people, and the policy counts this change as a risk\n"
    )
    assert not (tmp_path / "edit.json").exists()


@pytest.mark.guarantee("G02")
@pytest.mark.parametrize(
    ("person", "said"),
    [("rita", "requester_may_not_decide"), ("ivan", "role_missing"), ("mallory", "mallory is not in the directory")],
)
def test_whoever_may_not_edit_is_told_so_before_their_editor_is_opened(desk: Desk, person: str, said: str) -> None:
    desk.asked()
    desk.cli.monkeypatch.setenv("EDITOR", "no-such-editor-anywhere")

    answer = desk.cli("edit", OPERATION, *ACME, "--as", person)

    assert answer.code == 1
    assert said in answer.err
    assert "EDITOR" not in answer.err


REFUSED = [
    (["title"], "--set: 'title' is no assignment; write FIELD=VALUE"),
    (["=x"], "--set: '=x' is no assignment"),
    (["title=a", "title=b"], "--set: 'title' is set twice"),
    (["title=Sales"], "nothing was changed"),
    (["titel=Sales"], "titel"),
    (["tenant=other"], "tenant"),
    (
        ["channel=press"],
        "channel 'press' is not configured for tenant acme; allowed: internal, messages, payments, public",
    ),
    (["channel=internal"], "channel may not be edited; allowed: name, title"),
    (["name=../etc/passwd"], "name"),
    (["name=Report.md"], "name"),
    (["title="], "title"),
    (["title=Sales of 99 M"], "title"),
    (["title=Sal\x1b[2Jes"], "title"),
]


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(("assignments", "said"), REFUSED, ids=[said[:24] for _, said in REFUSED])
def test_an_edit_that_would_be_refused_is_refused_before_it_is_signed(
    desk: Desk, tmp_path: Path, assignments: list[str], said: str
) -> None:
    desk.asked()

    answer = kept_edit(desk, tmp_path / "edit.json", *assignments)

    assert answer.code == (2 if said.startswith("--set") else 1)
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert said in answer.err
    assert not (tmp_path / "edit.json").exists()


def test_a_policy_without_editing_lets_nothing_be_edited(desk: Desk, tmp_path: Path) -> None:
    terms = desk.asked(operation="other").terms.model_copy(update={"editing": None})
    desk.asked(terms=terms)

    answer = kept_edit(desk, tmp_path / "edit.json", "title=Sales by region")

    assert "this edit would be refused: decision_not_allowed: the policy does not allow this kind of" in answer.err


def an_editor(desk: Desk, folder: Path, body: str) -> None:
    """EDITOR runs a program on the file that it is given."""
    program = folder / "editor.py"
    program.write_text(
        f"import json, os, sys\npath = sys.argv[-1]\ntext = open(path, encoding='utf-8').read()\n{body}\n"
    )
    desk.cli.monkeypatch.delenv("VISUAL", raising=False)
    desk.cli.monkeypatch.setenv("EDITOR", f"'{sys.executable}' '{program}' --wait")


def test_without_set_the_arguments_are_edited_as_json(desk: Desk, tmp_path: Path) -> None:
    desk.asked()
    # As editors do that write a new file and put it in the old one's place.
    an_editor(desk, tmp_path, """
values = json.loads(text); values["title"] = "Sales by region"
open(path + "~", "w").write(json.dumps(values)); os.replace(path + "~", path)""")  # fmt: skip

    assert kept_edit(desk, tmp_path / "edit.json").code == 0
    edited = desk.stored_action(statement_in(desk, tmp_path / "edit.json").edited_action)
    assert edited.args["title"] == "Sales by region"


@pytest.mark.guarantee("G46")
def test_what_is_edited_can_be_read_by_its_owner_only_and_is_gone_afterwards(desk: Desk, tmp_path: Path) -> None:
    desk.asked()
    an_editor(desk, tmp_path, f"""
open({str(tmp_path / "seen")!r}, "w").write(path + " " + oct(os.stat(os.path.dirname(path)).st_mode))""")  # fmt: skip

    answer = kept_edit(desk, tmp_path / "edit.json")

    assert "nothing was changed" in answer.err
    path, mode = (tmp_path / "seen").read_text().split()
    assert stat.S_IMODE(int(mode, 8)) == 0o700
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit(3)", "ended with code 3; nothing was changed"),
        ("open(path, 'w').write('{')", "edited arguments: not acceptable JSON"),
        ("open(path, 'w').write('[]')", "edited arguments: expected a JSON object"),
        ("open(path, 'w').write('{\"title\": 1, \"title\": 2}')", "stands twice"),
        ("os.remove(path)", "it is not there; check the name"),
    ],
)
def test_what_comes_out_of_an_editor_is_read_strictly(desk: Desk, tmp_path: Path, body: str, said: str) -> None:
    desk.asked()
    an_editor(desk, tmp_path, body)

    answer = kept_edit(desk, tmp_path / "edit.json")

    assert answer.code == 1
    assert said in answer.err


@pytest.mark.parametrize("typed", ["{", '{"title": "Sales of 99 M", "channel": "public", "name": "report-7.md"}'])
def test_what_was_typed_is_kept_where_it_is_refused(desk: Desk, tmp_path: Path, typed: str) -> None:
    desk.asked()
    an_editor(desk, tmp_path, f"open(path, 'w').write({typed!r})")

    answer = kept_edit(desk, tmp_path / "edit.json")

    kept = Path(re.search(r"; your text is kept in (\S+)\n", answer.err)[1])  # type: ignore[index] # not there: fails
    assert kept.read_text() == typed
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("editor", "said"),
    [("", "EDITOR is not set"), ("no-such-editor-anywhere", "cannot be run"), ("'unclosed", "cannot be run")],
)
def test_an_editor_that_cannot_be_run_is_named(desk: Desk, tmp_path: Path, editor: str, said: str) -> None:
    desk.asked()
    desk.cli.monkeypatch.delenv("VISUAL", raising=False)
    desk.cli.monkeypatch.setenv("EDITOR", editor)

    answer = kept_edit(desk, tmp_path / "edit.json")

    assert answer.code == 1
    assert said in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.guarantee("G15")
def test_nothing_is_hidden_in_an_editor_and_nothing_is_changed_by_it() -> None:
    args = {"title": "Sales \u202egnp\u200b \U000e0041 \\u200b 销售\n", "amount": {"minor": 12}, "list": []}

    text = editable(args)

    assert not set(text) & set("\u202e\u200b\U000e0041")
    assert "销售" in text
    assert parse(text.encode(), where="test") == args


def published(desk: Desk, name: str, text: str) -> None:
    """Something that lies at a name already, as a run of its own published it."""
    made = desk.asked(name.removesuffix(".md"), document=text)
    desk.vote(made, "bob")
    moment = now()
    approval, until = desk.ledger.approvals.get(TENANT, made.approval_id), moment + timedelta(minutes=1)
    held = desk.ledger.executions.claim(approval, made.action.idempotency_key(), moment, until)
    receipt = Receipt(channel="public", key=held.key, reference=name, content_hash=made.action.content_hash)
    desk.ledger.executions.finish(held, receipt, moment)


def test_an_edit_to_a_name_that_is_taken_is_warned_of_and_what_lies_there_is_shown(desk: Desk, tmp_path: Path) -> None:
    published(desk, "taken.md", "# Old\n")
    desk.asked()

    free, taken = (kept_edit(desk, tmp_path / name, f"name={name}") for name in ("free.md", "taken.md"))

    assert "WHAT LIES AT THE TARGET NOW\n  nothing" in free.out
    assert free.err == ""
    assert "WHAT LIES AT THE TARGET NOW\n  - # Old\n  + # Sales\n" in taken.out
    assert taken.err.startswith("warning: something was published at public:taken.md before")


@pytest.mark.guarantee("G02")
@pytest.mark.parametrize("command", ["approve", "reject", "withdraw", "break-glass"])
def test_whoever_may_not_decide_is_told_so_before_anything_is_shown_or_signed(desk: Desk, command: str) -> None:
    desk.asked()

    answer = desk.cli(command, OPERATION, *ACME, "--as", "ivan", "--comment", "why not")

    assert (answer.code, answer.out) == (1, "")
    assert "would be refused: " in answer.err


def test_whoever_has_no_key_here_is_told_so_before_anything_is_shown(desk: Desk, tmp_path: Path) -> None:
    desk.asked()

    answer = desk.cli("approve", OPERATION, *ACME, "--as", "bob", "--key", tmp_path / "none.pem")

    assert (answer.code, answer.out) == (1, "")
    assert "none.pem" in answer.err


def test_an_edit_is_asked_about_and_no_answer_is_a_no(desk: Desk) -> None:
    made = desk.asked()

    answer = desk.cli("edit", OPERATION, *ACME, "--as", "bob", "--set", "title=Sales by region")

    assert answer.code == 1
    assert "CHANGES OF THE ACTION" in answer.out
    assert "not confirmed, nothing was done" in answer.err
    assert status_of(desk, made) == ApprovalStatus.PENDING


def test_json_asks_nothing_so_yes_has_to_be_said(desk: Desk) -> None:
    desk.asked()

    answer = desk.cli("edit", OPERATION, *ACME, "--as", "bob", "--set", "title=Other", "--json")

    assert answer.code == 1
    assert "give --yes too" in answer.err


def test_a_withdrawal_is_signed_by_whoever_asked(desk: Desk, tmp_path: Path) -> None:
    made, out = desk.asked(), tmp_path / "withdraw.json"

    desk.cli.done("sign", "withdraw", OPERATION, *ACME, "--as", "rita", "--out", out, "--comment", "asked too early")

    assert desk.sent(OPERATION, out.read_text(), "withdraw").ruling == "accepted"
    assert status_of(desk, made) == ApprovalStatus.WITHDRAWN
    assert "comment=asked too early" in desk.cli.done("brief", OPERATION, *ACME).out


def explained(desk: Desk) -> str:
    return desk.cli.done("policy", "explain", OPERATION, *ACME).out


def test_others_are_not_called_you(desk: Desk) -> None:
    desk.asked()

    assert re.search(r"cannot +ivan: role_missing: a role that this approval needs is missing\n", explained(desk))
    assert " you " not in explained(desk)


@pytest.mark.guarantee("G11")
def test_glass_is_broken_by_two_with_a_reason_each(desk: Desk, tmp_path: Path) -> None:
    terms = desk.asked(operation="other").terms.model_copy(
        update={"break_glass": BreakGlass(role="reviewer", approvals=2)}
    )
    made = desk.asked(terms=terms, approvals=3)
    assert "in an emergency 2 of role reviewer" in desk.review()

    for person, status in (("bob", ApprovalStatus.PENDING), ("carl", ApprovalStatus.GRANTED)):
        out = tmp_path / f"{person}.json"
        command = ("sign", "break-glass", OPERATION, *ACME, "--as", person, "--out", out)
        assert "--comment" in desk.cli(*command).err
        assert "needs a reason" in desk.cli(*command, "--comment", "  ").err
        shown = desk.cli.done(*command, "--comment", "the site is down").out
        assert f"break glass as {person}" in shown
        assert desk.sent(OPERATION, out.read_text()).ruling == "accepted"
        assert status_of(desk, made) == status
        told = f"{desk.cli.done('status', OPERATION, *ACME).out}{explained(desk)}"
        so_far = {"bob": "1 of 2 of role reviewer; bob", "carl": "2 of 2 of role reviewer; bob, carl"}
        assert re.findall(r"^break glass +(.+)$", told, re.MULTILINE) == [so_far[person]] * 2
    assert "break glass by carl" in desk.review()
    assert "missing" not in explained(desk)


@pytest.mark.guarantee("G04")
def test_an_unsigned_decision_is_refused_where_decisions_are_signed(desk: Desk) -> None:
    desk.asked()

    answer = desk.cli("approve", OPERATION, *ACME, "--as", "bob", "--unsigned")

    assert answer.code == 1
    assert answer.err.startswith("error: --unsigned: decisions must be signed here")


@pytest.mark.guarantee("G04")
def test_an_unsigned_decision_is_not_sent_to_another_machine(desk: Desk) -> None:
    desk.asked()
    desk.cli.monkeypatch.setenv("COUNTERSIGN_PROFILE", "dev")
    desk.cli.monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example.com:7233")

    answer = desk.cli("approve", OPERATION, *ACME, "--as", "bob", "--unsigned")

    assert answer.code == 1
    assert "TEMPORAL_ADDRESS (temporal.example.com)" in answer.err


def test_an_unsigned_decision_on_this_machine_goes_as_far_as_the_server(desk: Desk) -> None:
    desk.asked()
    desk.cli.monkeypatch.setenv("COUNTERSIGN_PROFILE", "dev")

    answer = desk.cli("approve", OPERATION, *ACME, "--as", "bob", "--unsigned")

    assert "you state, unsigned  approve as bob" in answer.out
    assert "no Temporal server answers at 127.0.0.1:1" in answer.err
