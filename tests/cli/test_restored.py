"""`audit accept-restored` and `audit export` at the terminal: a ledger from a backup goes on by an operator's word,
and whoever has the exported lines needs nothing else of ours to check them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import Any

import jwt
import pytest

from countersign.cli.proving.audit_export import FORM
from countersign.cli.session import Session, SigningKey, now
from countersign.cli.starting.registering import Intent, register
from countersign.domain.audit import AuditRecord, Checkpoint, verify_chain
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.errors import Frozen
from countersign.signing.keys import public_key
from tests.cli.desk import ACME, REQUEST, TENANT, Desk

OPERATION = "report-7"
ACCEPT = ("audit", "accept-restored", *ACME, "--as", "lea", "--reason", "the disk broke")


def asked(desk: Desk) -> None:
    """An operation that rita signed, with a vote of bob's."""
    document = canonical_bytes(REQUEST.model_dump(mode="json", by_alias=True))
    intent = Intent(TENANT, "rita", "report", OPERATION, document)
    register(Session(desk.settings, desk.ledger), intent, SigningKey("rita-1", desk.keys["rita"]))
    desk.vote(desk.asked(OPERATION), "bob", "fine")


@pytest.fixture
def restored(desk: Desk) -> Desk:
    """The ledger of before the vote, beside the checkpoint of after it."""
    file = desk.settings.ledger_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as database, closing(sqlite3.connect(f"{file}.backup")) as backup:
        database.backup(backup)
        asked(desk)
        backup.backup(database)
    return desk


@pytest.mark.guarantee("G43")
def test_a_restored_ledger_is_refused_with_the_way_on_and_goes_on_once_an_operator_has_signed(restored: Desk) -> None:
    cli = restored.cli
    before = len(list(restored.ledger.audit.records(TENANT)))
    for command in (["audit", "verify", *ACME], ["freeze", *ACME, "--reason", "wait", "--as", "lea"]):
        answer = cli(*command)
        assert (answer.code, answer.out) == (1, "")
        assert f"audit record {before + 1} is missing" in answer.err
        assert f"starter.py audit accept-restored --tenant {TENANT} --as OPERATOR --reason TEXT" in answer.err

    accepted = cli.done(*ACCEPT).out

    assert f"records {before + 1} to " in accepted
    assert f"(accepted by lea in record {before + 1})" in accepted
    assert f"starter.py reconcile --tenant {TENANT}" in accepted
    assert f"every effect in tenant {TENANT} from now on, as freeze 1" in accepted
    assert f"starter.py unfreeze 1 --tenant {TENANT} --as ADMIN" in accepted
    (frozen,) = cli.done("freezes", *ACME, "--json").json()
    assert (frozen["in_force"], frozen["tool"], frozen["person"], frozen["reason"]) == (
        True,
        "",
        "lea",
        "the disk broke",
    )
    verified = cli.done("audit", "verify", *ACME).out
    assert f"{TENANT}: {before + 2} records verified" in verified
    assert "nothing is known from " in verified
    (found,) = cli.done("audit", "verify", *ACME, "--json").json()
    assert [(one["first"], one["accepted_by"]) for one in found["lost"]] == [(before + 1, "lea")]
    cli.done("freeze", *ACME, "--reason", "wait", "--as", "lea")


def test_nobody_but_an_operator_accepts_and_only_where_something_is_missing(restored: Desk) -> None:
    for changed, words in (
        (("--as", "ada"), "the role operator is needed"),
        (("--as", "nobody"), "person nobody is not in the directory"),
        (("--reason", " "), "--reason: say why"),
        (("--reason", "x" * 501), "at most 500 are allowed"),
        (("--tenant", "bolt"), "tenant 'bolt' is not there"),
    ):
        answer = restored.cli(*ACCEPT, *changed)
        assert answer.code == 1
        assert words in answer.err
    restored.cli.done(*ACCEPT)
    assert "nothing is missing" in restored.cli(*ACCEPT).err


def test_a_story_from_a_restored_ledger_says_what_is_lost(restored: Desk) -> None:
    restored.cli.done(*ACCEPT)
    asked(restored)
    approval = restored.ledger.approvals.of_operation(TENANT, OPERATION)[0]
    key, moment = approval.proposal.action.idempotency_key(), now()
    with pytest.raises(Frozen):
        restored.ledger.executions.claim(approval, key, moment, moment + timedelta(minutes=1))
    shown = restored.cli.done("rebuild", OPERATION, *ACME).out
    assert "of an earlier ledger were lost; nothing is known from " in shown.partition("WHAT THE LEDGER LACKS")[2]
    frozen = shown.partition("effects.frozen by lea")[2]
    assert "signed by lea with key lea-1" in frozen
    assert "every effect held by lea since " in frozen


@pytest.mark.guarantee("G44")
def test_exported_lines_can_be_checked_with_a_jws_library_and_nothing_of_ours(desk: Desk) -> None:
    asked(desk)
    out = desk.settings.home / "audit.jsonl"
    desk.cli.done("audit", "export", *ACME, "--out", out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]

    head = lines[0]
    assert (head["export"], head["installation"], head["tenant"]) == (FORM, desk.settings.installation, TENANT)
    checkpoint = Checkpoint.model_validate(claims(head["checkpoint"], head["public_key"]))
    records = [AuditRecord.model_validate(one) for one in lines if "sequence" in one]
    verify_chain(records, tenant=TENANT, origin=head["installation"], checkpoint=checkpoint)
    keys = {key["id"]: key["public_key"] for one in lines if "person" in one for key in one["person"]["keys"]}
    stated = {one["statement"]: one["text"] for one in lines if "statement" in one}
    checked = [(one.type, signer(one, stated, keys)) for one in records if "statement_hash" in one.detail]
    assert checked == [("operation.registered", "rita"), ("decision.accepted", "bob")]


def claims(token: str, key: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jwt.api_jws.decode(token, public_key(key), algorithms=["EdDSA"]))
    return found


def signer(record: AuditRecord, stated: dict[str, str], keys: dict[str, str]) -> str:
    """Who signed the statement that a record names."""
    token = stated[str(record.detail["statement_hash"])]
    assert sha256_hex(token.encode()) == record.detail["statement_hash"]
    return str(claims(token, keys[jwt.get_unverified_header(token)["kid"]])["sub"])


def test_an_export_of_a_record_that_does_not_hold_is_refused(restored: Desk) -> None:
    answer = restored.cli("audit", "export", *ACME)
    assert (answer.code, answer.out) == (1, "")
    assert "is missing" in answer.err


def test_a_restored_tenant_says_so_to_whoever_checks_the_installation(restored: Desk) -> None:
    (audit,) = [one for one in restored.cli("doctor", "--json").json() if one["name"] == "audit"]
    assert not audit["ok"]
    assert "audit accept-restored" in audit["detail"]
