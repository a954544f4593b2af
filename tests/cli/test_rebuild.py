"""The story of an operation from the ledger alone: whole, each signature and hash looked at again; what was tampered
with, or is not there, is told in plain words."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.cli.proving.rebuild_rows import compared
from countersign.cli.session import Session, SigningKey, new_id, now
from countersign.cli.starting.registering import Intent, register
from countersign.domain.administration import UnfreezeChange
from countersign.domain.canonical import canonical_bytes
from countersign.domain.command import Command
from countersign.domain.decision import Ruling
from countersign.domain.directory import Key
from countersign.domain.draft import Violation
from countersign.domain.errors import Frozen
from countersign.domain.execution import Receipt
from countersign.domain.freeze import FreezeOrder
from countersign.domain.proposal import Proposal
from countersign.domain.rubric import Grade, GraderAnswer, Verdict
from countersign.domain.state import State
from countersign.signing.keys import public_text
from countersign.signing.statements import sign_command, sign_freeze
from tests.cli.command_line import Answer
from tests.cli.desk import ACME, GRADES, REQUEST, TENANT, Desk
from tests.ledger import founding

pytestmark = pytest.mark.long

OPERATION = "report-7"
NAME = (TENANT, OPERATION)
COMMENT = "I counted them myself"
GRADE = Grade(
    verdict=Verdict.SATISFIED, feedback=(),
    answer=GraderAnswer(verdict="satisfied", criteria=GRADES, raw="the raw answer", model="judge-2"),
)  # fmt: skip


@pytest.fixture
def told(desk: Desk) -> Desk:
    """An operation with all that can happen to one: checked twice, taken over and given back, held, published."""
    asked_for(desk)
    desk.register(OPERATION)
    commanded(desk, "take_over", comment="let me see")
    commanded(desk, "release", draft_version=1)
    made = desk.asked(OPERATION, control_version=3)
    control = desk.control(OPERATION).version
    found = Violation(code="value_mismatch", place="body:1:3", expected="42", found="43")
    desk.ledger.drafts.save_checks(*NAME, 1, [found], control, now())
    desk.ledger.drafts.save_checks(*NAME, 1, [], control, now())
    desk.ledger.drafts.save_grade(*NAME, 1, GRADE, "report/1@" + desk.put("the rubric's text"), control, now())
    desk.ledger.audit.append(
        TENANT, "step.failed", OPERATION, "draft",
        {"code": "UNAVAILABLE", "sentence": desk.put("the model was away")}, now(),
    )  # fmt: skip
    desk.stands(OPERATION, State.RUNNING)
    desk.stands(OPERATION, State.WAITING_APPROVAL)
    desk.sent(OPERATION, "not even JSON")
    desk.vote(made, "bob", COMMENT)
    published(desk, made)
    return desk


def asked_for(desk: Desk) -> None:
    """Rita's request, signed by her."""
    document = canonical_bytes(REQUEST.model_dump(mode="json", by_alias=True))
    intent = Intent(TENANT, "rita", "report", OPERATION, document)
    register(Session(desk.settings, desk.ledger), intent, SigningKey("rita-1", desk.keys["rita"]))


def commanded(desk: Desk, kind: Any, comment: str = "", **changes: Any) -> None:
    """A command of Lea's that is accepted."""
    moment = now().replace(microsecond=0)
    command = Command(
        installation=desk.settings.installation, person="lea", key_id="lea-1", tenant=TENANT, operation=OPERATION,
        command=kind, control_version=desk.control(OPERATION).version, issued_at=moment, id=new_id(),
        expires_at=moment + timedelta(hours=1), comment_hash=desk.put(comment) if comment else "", **changes,
    )  # fmt: skip
    body = canonical_bytes({"statement": sign_command(command, desk.keys["lea"])}).decode()
    outcome = desk.sent(OPERATION, body, kind)
    assert outcome.ruling == Ruling.ACCEPTED, outcome


def published(desk: Desk, made: Proposal) -> None:
    """The effect, held by a freeze at first."""
    order = FreezeOrder(
        installation=desk.settings.installation, person="lea", key_id="lea-1", tenant=TENANT, tool="",
        reason="the feed is wrong", issued_at=now().replace(microsecond=0), id=new_id(),
    )  # fmt: skip
    freeze = desk.ledger.freezes.freeze(TENANT, sign_freeze(order, desk.keys["lea"]), now())
    approval = desk.ledger.approvals.get(TENANT, made.approval_id)
    key, until = made.action.idempotency_key(), now() + timedelta(seconds=27)
    with pytest.raises(Frozen):
        desk.ledger.executions.claim(approval, key, now(), until)
    founding.apply(desk.ledger, UnfreezeChange(freeze=freeze.number), "thaw", now=now())  # type: ignore[arg-type]
    execution = desk.ledger.executions.claim(approval, key, now(), until)
    receipt = Receipt(
        channel="public", key=execution.key, reference="published/public/report-7.md",
        content_hash=made.action.content_hash, detail="HTTP 201",
    )  # fmt: skip
    desk.ledger.executions.finish(execution, receipt, now())
    desk.stands(OPERATION, State.EXECUTING)
    desk.stands(OPERATION, State.SUCCEEDED)


def story(desk: Desk, code: int = 0) -> Answer:
    answer = desk.cli("rebuild", OPERATION, *ACME)
    assert (answer.code, answer.err) == (code, "")
    return answer


def facts(desk: Desk) -> dict[str, Any]:
    found = desk.cli("rebuild", OPERATION, *ACME, "--json").json()
    assert isinstance(found, dict)
    return found


def entry(desk: Desk, type: str, place: int = -1) -> dict[str, Any]:
    """The story's record of a type, the last one unless another is meant."""
    found: dict[str, Any] = [one for one in facts(desk)["entries"] if one["type"] == type][place]
    return found


@pytest.mark.guarantee("G47")
def test_every_record_of_the_operation_is_told_in_order_by_its_number(told: Desk) -> None:
    shown = story(told).out
    records = list(told.ledger.audit.records(TENANT, OPERATION))
    lines = re.findall(r"^#(\d+) (\S+) (\S+) by (\S+)$", shown, re.MULTILINE)
    of_freeze = [one for one in told.ledger.audit.records(TENANT, "") if one.type == "effects.frozen"]
    in_order = sorted([*records, *of_freeze], key=lambda one: one.sequence)
    assert lines == [(str(one.sequence), f"{one.recorded_at[:19]}Z", one.type, one.subject) for one in in_order]
    for value in (value for one in records for value in one.detail.values() if isinstance(value, str)):
        assert value in shown
    count = told.ledger.audit.verify(TENANT).count
    assert f"{count} records of tenant acme verified" in shown


@pytest.mark.guarantee("G15")
def test_all_that_was_written_shown_and_sent_is_there_word_for_word(told: Desk) -> None:
    shown = story(told).out
    for words in (
        REQUEST.question, "Sales were {{c1}}.", "body:1:3: value_mismatch: expected 42, found 43",
        "v1: the deterministic checks found nothing", "the rubric's text", "satisfied by model judge-2",
        "the raw answer",
        "clear-conclusion: met", COMMENT, "let me see", "the model was away", "the feed is wrong",
        "public confirmed it as published/public/report-7.md", "HTTP 201", "lifted by thaw",
        "operation  report-7 of tenant acme (report)", "state      SUCCEEDED",
    ):  # fmt: skip
        assert words in shown
    made = told.ledger.approvals.of_operation(*NAME)[0].proposal
    for line in told.ledger.documents.get(TENANT, made.document).decode().split("\n"):
        assert f"    | {line}\n" in shown
    policy = told.ledger.directory.policies(TENANT)["report"]
    assert f"policy report/{policy.version} {policy.label().rpartition('@')[2]}:" in shown
    assert re.search(r"^    action sha256:.*:\n    \| \{\n    \|   \"tenant\"", shown, re.MULTILINE)


@pytest.mark.guarantee("G18")
def test_each_signature_is_looked_at_again_and_its_key_traced_to_its_record(told: Desk) -> None:
    added = {
        one.detail["key_id"]: one.sequence
        for one in told.ledger.audit.records(TENANT) if one.type == "directory.key_added"
    }  # fmt: skip
    for type, person in (
        ("operation.registered", "rita"), ("command.accepted", "lea"), ("decision.accepted", "bob"),
        ("effects.frozen", "lea"),
    ):  # fmt: skip
        key = f"{person}-1"
        expected = f"signed by {person} with key {key} (added by record {added[key]}); the signature holds"
        assert entry(told, type)["proof"] == expected


def test_a_key_that_was_revoked_later_still_proves_what_it_signed_before(told: Desk) -> None:
    told.change(founding.revoked("bob", "bob-1"))
    assert ", revoked at 20" in entry(told, "decision.accepted")["proof"]
    assert story(told).code == 0


TAMPERED: dict[str, tuple[str, str]] = {
    "a record": ("UPDATE audit_records SET subject = 'eve' WHERE type = 'draft.written'", "was changed: its hash"),
    "the draft": ("UPDATE drafts SET draft = replace(draft, 'Sales were', 'Losses were')", "draft v1 in the ledger is"),
    "what the checks found": (
        "UPDATE draft_checks SET violations = replace(violations, '43', '42')",
        "what the checks found in v1: not in the ledger as it was recorded",
    ),
    "the grade": (
        "UPDATE draft_grades SET grade = replace(grade, 'raw', 'xyz')",
        "what was said of v1 cannot be read any more",
    ),
    "the grader's answer": (
        "UPDATE draft_grades SET grade = replace(grade, 'the raw answer', 'another')",
        "the grade of v1: not in the ledger as it was recorded",
    ),
    "the document": (
        "UPDATE documents SET data = CAST(data || 'x' AS BLOB) WHERE sha256 = :document",
        "was changed in the ledger",
    ),
    "the request": ("UPDATE operations SET requester = 'bob'", "the registration now names bob"),
    "the request's signature": ("UPDATE operations SET statement = 'a.b.c'", "is not the recorded one"),
    "the proposal": (
        "UPDATE approvals SET proposal = replace(proposal, 'public:report-7.md', 'public:other.md')",
        "the action in the ledger is sha256:",
    ),
    "what was shown": (
        'UPDATE approvals SET proposal = replace(proposal, \'"cost":"\', \'"cost":"more \')',
        "the view that was shown is of another proposal",
    ),
    "the receipt": (
        "UPDATE executions SET receipt = replace(receipt, 'report-7.md', 'other.md')",
        "the receipt in the ledger is not the recorded one",
    ),
    "a key": (
        "UPDATE keys SET key = replace(key, (SELECT public_key FROM keys WHERE id = 'bob-1'),"
        " (SELECT public_key FROM keys WHERE id = 'carl-1')) WHERE id = 'bob-1'",
        "the signature does not hold",
    ),
    "a vote": (
        "INSERT INTO votes (tenant, approval_id, person, number, decided_at, vote)"
        " SELECT tenant, approval_id, 'carl', 2, decided_at, replace(replace(vote, 'bob', 'carl'),"
        ' \'"statement_id":"\', \'"statement_id":"x\') FROM votes',
        "on report-7-v1 the vote of carl is in the ledger, and no audit record tells of it",
    ),
}

ROWS: dict[str, tuple[str, str]] = {
    "an execution": (
        "UPDATE executions SET key = replace(key, substr(key, 1, 1), 'e')",
        " is not in the ledger, and record ",
    ),
    "where it stands": ("UPDATE operations SET state = 'FAILED'", "state is 'FAILED', and by record "),
    "its case": ("UPDATE operations SET \"case\" = 'refund'", "case is 'refund', and by record "),
    "what it follows": ("UPDATE operations SET follows = 'x'", "follows is 'x', and by record "),
    "when it was registered": (
        "UPDATE operations SET registered_at = replace(registered_at, '202', '201')",
        "registered_at is '201",
    ),
    "who wrote the draft": ("UPDATE drafts SET author = 'eve'", "draft v1: author is 'eve', and by record "),
    "how often it was tried": ("UPDATE executions SET attempt = 7", "attempt is 7, and by record "),
    "that it was executed": (
        "UPDATE executions SET status = 'not_sent'",
        "status is 'not_sent', and by record ",
    ),
    "what the receipt says beside": (
        "UPDATE executions SET receipt = replace(receipt, 'HTTP 201', 'settled by lea')",
        "receipt.detail is ",
    ),
    "that the execution is there": ("DELETE FROM executions", " is not in the ledger, and record "),
    "how the proposal stands": (
        "UPDATE approvals SET status = 'rejected'",
        "proposal report-7-v1: status is 'rejected', and by record ",
    ),
    "what limits count": ("UPDATE approvals SET tool = 'x'", "proposal report-7-v1: tool is 'x', and by record "),
    "that the proposal is there": ("DELETE FROM approvals", "proposal report-7-v1 is not in the ledger, and record "),
    "when the vote was": (
        "UPDATE votes SET decided_at = replace(decided_at, '202', '201')",
        "the vote of bob: decided_at is '201",
    ),
    "that the vote is there": (
        "DELETE FROM votes",
        "on report-7-v1 the vote of bob is not in the ledger, and record ",
    ),
    "who was in control": (
        "UPDATE controls SET control = replace(control, 'lea', 'eve')",
        "control.holder is 'eve', and by record ",
    ),
    "who froze": (
        "UPDATE freezes SET freeze = replace(freeze, 'lea', 'eve')",
        "freeze.person is 'eve', and by record ",
    ),
    "that it was never thawed": (
        "UPDATE freezes SET freeze = replace(freeze, 'thaw', 'melt')",
        "freeze.lifted_by is 'melt', and by record ",
    ),
    "facts": (
        "INSERT INTO facts (tenant, operation, number, hash, gathered_at) SELECT tenant, operation, 1, request_hash,"
        " registered_at FROM operations LIMIT 1",
        "facts 1 is in the ledger, and no audit record tells of it",
    ),
    "a lost time": (
        "INSERT INTO restores SELECT tenant, 5, registered_at, registered_at FROM operations LIMIT 1",
        "the loss accepted in record 5 is in the ledger, and no audit record tells of it",
    ),
    "a settlement": (
        "INSERT INTO settlements (tenant, key, number, person, statement, settlement, spent)"
        " SELECT tenant, key, 1, 'eve', 'a.b.c', '{}', 0 FROM executions",
        "statement 1 is in the ledger, and no audit record tells of it",
    ),
    "that people ended it": (
        "INSERT INTO endings (tenant, operation, ending) SELECT tenant, operation, '{}' FROM operations LIMIT 1",
        "that people ended report-7 is in the ledger, and no audit record tells of it",
    ),
}


@pytest.mark.guarantee("G42")
@pytest.mark.guarantee("G44")
def test_what_was_changed_past_the_audit_is_named_and_the_exit_code_says_so(told: Desk) -> None:
    """One ledger, put back as it was after each change: making it takes most of the time."""
    document = told.ledger.approvals.of_operation(*NAME)[0].proposal.document
    with closing(sqlite3.connect(":memory:")) as kept:
        with closing(database(told)) as now_there:
            now_there.backup(kept)
        for name, (statement, words) in TAMPERED.items():
            change(told, statement, **({"document": document} if ":document" in statement else {}))
            shown = story(told, code=3).out.partition("WHAT DOES NOT FIT")[2]
            assert words in shown, name
            with closing(database(told)) as now_there:
                kept.backup(now_there)
    assert story(told).code == 0


@pytest.mark.guarantee("G42")
def test_every_row_is_held_against_the_records_both_ways(told: Desk) -> None:
    """What was changed, put in or taken away; the rows alone, since a whole story takes its time."""
    records = list(told.ledger.audit.records(TENANT))
    with closing(sqlite3.connect(":memory:")) as kept:
        with closing(database(told)) as now_there:
            now_there.backup(kept)
        for name, (statement, words) in ROWS.items():
            change(told, statement)
            found = compared(told.ledger.audit.rows(*NAME), records, OPERATION).wrong
            assert words in "\n".join(found), name
            with closing(database(told)) as now_there:
                kept.backup(now_there)
    assert compared(told.ledger.audit.rows(*NAME), records, OPERATION).wrong == ()


def database(desk: Desk) -> sqlite3.Connection:
    """The ledger's file."""
    return sqlite3.connect(desk.settings.ledger_url.removeprefix("sqlite:///"))


def change(desk: Desk, statement: str, **values: str) -> None:
    """Change a row as somebody with the database file can."""
    with closing(database(desk)) as file, file:
        for trigger in ("audit_records_no_update", "audit_records_no_delete"):
            file.execute(f"DROP TRIGGER {trigger}")
        assert file.execute(statement, values).rowcount > 0


@pytest.mark.guarantee("G44")
def test_a_vote_by_a_key_that_somebody_put_into_the_database_proves_nothing(desk: Desk) -> None:
    """The run took it for carl's, as its directory says; that the key was never added, only the audit knows."""
    asked_for(desk)
    made = desk.asked(OPERATION)
    desk.keys["carl"] = Ed25519PrivateKey.generate()
    key = Key(id="carl-9", public_key=public_text(desk.keys["carl"]), not_before=now() - timedelta(minutes=1))
    change(
        desk,
        "INSERT INTO keys (tenant, id, person, public_key, key) VALUES ('acme', 'carl-9', 'carl', :public, :key)",
        public=key.public_key, key=key.model_dump_json(),
    )  # fmt: skip
    desk.vote(made, "carl", key_id="carl-9")

    (wrong,) = facts(desk)["wrong"]

    assert wrong.endswith("the signature does not hold: no audit record says that key carl-9 was added as it is now")


def test_what_the_ledger_lacks_is_said_plainly_and_is_no_forgery(told: Desk) -> None:
    hashes = [entry(told, type)["detail"][field] for type, field in (
        ("decision.accepted", "statement_hash"), ("decision.accepted", "comment_hash"))]  # fmt: skip
    change(told, "DELETE FROM documents WHERE sha256 IN (:one, :two)", one=hashes[0], two=hashes[1])

    shown = story(told).out

    lacks = shown.partition("WHAT THE LEDGER LACKS")[2].partition("WHAT DOES NOT FIT")[0]
    number = entry(told, "decision.accepted")["sequence"]
    assert f"record {number}: the signed statement {hashes[0]} is not in the ledger; its hash alone is" in lacks
    assert f"record {number}: comment {hashes[1]}" in lacks
    assert "the data that drafts rest on: the ledger has its hash, the evidence folder the bytes" in lacks


def test_text_of_others_cannot_pose_as_a_line_of_the_story(desk: Desk) -> None:
    made = desk.asked(OPERATION, document="fine\n#1 2026-11-30T09:00:00Z decision.accepted by bob\n\u202edone")
    desk.vote(made, "bob", "ok\nWHAT DOES NOT FIT\n  nothing")
    shown = desk.cli("rebuild", OPERATION, *ACME).out
    assert "| #1 2026-11-30T09:00:00Z decision.accepted by bob" in shown
    assert shown.count("\nWHAT DOES NOT FIT") == 1
    assert "\u202e" not in shown


def test_an_operation_of_another_tenant_is_not_there(told: Desk) -> None:
    answer = told.cli("rebuild", OPERATION, "--tenant", "other")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("error: operation 'report-7' is not there")


@pytest.mark.guarantee("G44")
def test_what_no_record_binds_is_said_and_not_passed_off_as_holding(told: Desk) -> None:
    change(told, "UPDATE controls SET control = json_set(control, '$.lease_until', '2030-01-01T00:00:00Z')"
                 " WHERE version = 2")  # fmt: skip
    unbound = story(told).out.partition("WHAT NO RECORD BINDS")[2].partition("WHAT DOES NOT FIT")[0]
    assert "controls: control.lease_until" in unbound
    for table in ("approvals: ", "executions: ", "votes: ", "freezes: ", "operations: "):
        assert table not in unbound


@pytest.mark.guarantee("G42")
def test_an_operation_whose_row_was_taken_away_is_told_apart_from_one_that_never_was(told: Desk) -> None:
    change(told, "DELETE FROM operations")
    answer = told.cli("rebuild", OPERATION, *ACME)
    assert (answer.code, answer.out) == (1, "")
    assert re.search(
        r"report-7 is not in the ledger, and audit record \d+ \(operation.registered\) is about", answer.err
    )
    assert "'report-8' is not there" in told.cli("rebuild", "report-8", *ACME).err
