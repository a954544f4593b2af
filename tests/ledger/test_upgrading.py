"""A ledger that was made by the first version of the tables is brought up to date with all that it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from pydantic_core import to_json
from sqlalchemy import Connection, Engine, text

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Conflict, NotAuthorised
from countersign.domain.policy import Terms
from countersign.domain.proposal import ApprovalStatus, Rejection
from countersign.ledger import SqlLedger, schema
from countersign.ledger.engines import make_engine
from countersign.ports import Written
from tests.ledger.asking import a_call, ask
from tests.ledger.builders import NOW, OPERATION, ROOM, TENANT, VIEW, draft, opened, operation, person, proposal
from tests.ledger.founding import added, enrolment, founders, key

OLD_MOMENT = "2026-11-30T09:00:00.000000Z"
OLD_HASH = "sha256:" + "1" * 64
"""Hash of an action in the form of before: not what the same action has now."""


@pytest.fixture
def ledger_url(bare_ledger_url: str) -> str:
    """Without any tables yet."""
    return bare_ledger_url


@pytest.fixture
def old_database(ledger_url: str) -> Engine:
    """A database with the tables of revision 0001."""
    engine = make_engine(ledger_url)
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        _fill(connection)
    return engine


def _insert(connection: Connection, table: str, **values: Any) -> None:
    names = {f'"{name}"': f":{name}" for name in values}
    connection.execute(text(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(names.values())})"), values)


def _fill(connection: Connection) -> None:
    """What revision 0001 held of a granted report and a rejected one."""
    for name, role in (("rita", "requester"), ("bob", "reviewer")):
        _insert(connection, "persons", tenant=TENANT, id=name, roles=json.dumps([role]), active=True)
    _insert(connection, "keys", tenant=TENANT, id="bob-1", person="bob", key=key("bob-1").model_dump_json())
    for name, status, decision in (("one", "granted", "approve"), ("two", "rejected", "reject")):
        fields = operation(f"op-{name}").model_dump(mode="json", exclude={"follows"}) | {"registered_at": OLD_MOMENT}
        _insert(connection, "operations", **fields)
        _insert_approval(connection, name, f"op-{name}", status=status)
        vote = {"person": "bob", "decision": decision, "statement_id": f"statement-{name}", "statement": "a.b.c",
                "comment_hash": "", "decided_at": "2026-11-30T09:00:00Z"}  # fmt: skip
        _insert(connection, "votes", tenant=TENANT, approval_id=name, person="bob", number=1, vote=json.dumps(vote))


def _insert_approval(connection: Connection, name: str, operation: str, number: int = 1, **changes: str) -> None:
    values = {"status": "superseded", "opened_at": OLD_MOMENT, **changes}
    _insert(
        connection, "approvals", tenant=TENANT, approval_id=name, operation=operation, run_id="run-1",
        approval_version=number, number=number, proposal=_old_proposal(name, operation), view=OLD_HASH, **values,
    )  # fmt: skip


def _old_proposal(name: str, operation: str) -> str:
    added_since = {"case", "authors", "edited_from", "asked_again", "live", "cost", "spent", "floor", "terms",
                   "earlier_rejection", "control_version", "proposed_by"}  # fmt: skip
    fields = proposal(name, operation=operation).model_dump(mode="json", exclude=added_since)
    del fields["action"]["amount"]
    del fields["assessment"]["needs"][0]["distinct"]
    fields["action"]["schema_version"] = "1"
    return json.dumps({**fields, "action_hash": OLD_HASH})


@pytest.fixture
def upgraded(old_database: Engine, ledger_url: str, checkpoints: Path) -> SqlLedger:
    """The same, opened by this program."""
    old_database.dispose()
    return opened(ledger_url, checkpoints)


def test_what_was_there_is_found_again(upgraded: SqlLedger) -> None:
    assert upgraded.directory.tenants() == [TENANT]
    assert upgraded.directory.person(TENANT, "bob") == person("bob", keys=(key("bob-1"),))
    approval = upgraded.approvals.get(TENANT, "one")
    assert (approval.status, approval.proposal.case, approval.proposal.terms) == (
        ApprovalStatus.GRANTED, "report", Terms()
    )  # fmt: skip
    assert [(vote.person, vote.assurance) for vote in approval.votes] == [("bob", "signed")]
    assert approval.votes[0].decided_at == NOW
    upgraded.close()


def test_each_operations_approvals_and_executions_keep_the_order_they_were_opened_in(
    old_database: Engine, ledger_url: str, checkpoints: Path
) -> None:
    """Also where the clock of the run that asked later was behind; what is opened from now on comes after all."""
    with old_database.begin() as connection:
        _insert_approval(connection, "second", "op-one", 2, opened_at="2026-11-29T09:00:00.000000Z")
        _insert_approval(connection, "a-third", "op-one", 3)
        for turn, (name, digit) in enumerate({"a-third": "2", "second": "3"}.items(), start=1):
            _insert(
                connection, "executions", tenant=TENANT, key=name, operation="op-one", approval_id=name,
                action_hash=f"sha256:{digit * 64}", status="not_sent", attempt=1, turn=turn,
                claimed_until=OLD_MOMENT, reason="",
            )  # fmt: skip
    old_database.dispose()
    ledger = opened(ledger_url, checkpoints)
    ledger.approvals.open(proposal("fourth", operation="op-one", version=4), "run-1", VIEW, NOW, ROOM)
    in_order = ["one", "second", "a-third", "fourth"]
    assert [one.proposal.approval_id for one in ledger.approvals.of_operation(TENANT, "op-one")] == in_order
    latest = ledger.executions.get(TENANT, "op-one")
    assert latest is not None
    assert latest.key == "second"
    ledger.close()


@pytest.mark.guarantee("G13")
def test_an_upgraded_tenant_starts_with_an_open_set_up(upgraded: SqlLedger) -> None:
    assert upgraded.directory.set_up_open(TENANT)
    with pytest.raises(NotAuthorised):
        upgraded.operations.register(operation())
    newcomers = [one for one in founders() if one.id not in ("rita", "bob")]
    upgraded.directory.set_up(TENANT, enrolment(*newcomers), "setup", NOW)
    upgraded.close()


@pytest.mark.guarantee("G04")
def test_the_keys_of_before_are_held_to_one_person_each(upgraded: SqlLedger) -> None:
    taken = key("rita-1", public_key=key("bob-1").public_key)
    with pytest.raises(Exception, match="registered already"):
        upgraded.directory.set_up(TENANT, added("rita", taken), "setup", NOW)
    upgraded.close()


@pytest.mark.guarantee("G04")
def test_a_ledger_in_which_one_key_speaks_for_two_persons_is_not_taken_over(
    old_database: Engine, ledger_url: str, checkpoints: Path
) -> None:
    with old_database.begin() as connection:
        shared = key("rita-1", public_key=key("bob-1").public_key).model_dump_json()
        _insert(connection, "keys", tenant=TENANT, id="rita-1", person="rita", key=shared)
    with pytest.raises(Conflict, match="public_key"):
        opened(ledger_url, checkpoints)
    with old_database.connect() as connection:
        assert schema.revision(connection) == "0001"


def test_a_rejection_of_before_is_known_again(upgraded: SqlLedger) -> None:
    again = proposal(operation=OPERATION).action
    assert upgraded.approvals.rejection_like(again, NOW) == Rejection(
        operation="op-two", person="bob", at=NOW, comment_hash=""
    )
    upgraded.close()


@pytest.mark.guarantee("G14")
def test_a_grant_of_before_is_not_one_of_the_action_as_it_is_hashed_now(upgraded: SqlLedger) -> None:
    proposal = upgraded.approvals.get(TENANT, "one").proposal
    assert proposal.action_hash == OLD_HASH != proposal.action.hash()
    upgraded.close()


def test_a_withdrawal_of_before_is_no_vote_any_more_and_what_was_signed_is_kept(
    old_database: Engine, ledger_url: str, checkpoints: Path
) -> None:
    """As it lay in revision 0002, behind its wall."""
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    with old_database.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT set_config('countersign.tenant', :tenant, true)"), {"tenant": TENANT})
        connection.execute(text("UPDATE approvals SET status = 'withdrawn' WHERE approval_id = 'two'"))
        connection.execute(
            text("UPDATE votes SET vote = replace(vote, '\"reject\"', '\"withdraw\"') WHERE approval_id = 'two'")
        )
    old_database.dispose()
    ledger = opened(ledger_url, checkpoints)
    withdrawn = ledger.approvals.get(TENANT, "two")
    assert (withdrawn.status, withdrawn.votes) == (ApprovalStatus.WITHDRAWN, ())
    assert ledger.documents.get(TENANT, sha256_hex(b"a.b.c")) == b"a.b.c"
    assert [vote.person for vote in ledger.approvals.get(TENANT, "one").votes] == ["bob"]
    ledger.close()


@pytest.fixture
def at_0004(old_database: Engine, ledger_url: str, checkpoints: Path) -> SqlLedger:
    """What a ledger of revision 0004 held, opened by this program."""
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    with old_database.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
        before = schema.revision(connection)
    old_database.dispose()
    assert before == "0004"
    return opened(ledger_url, checkpoints)


def test_an_operation_of_before_has_asked_nothing_and_can_ask_and_spend_from_now_on(at_0004: SqlLedger) -> None:
    assert at_0004.questions.of_operation(TENANT, "op-one") == []
    assert at_0004.model_calls.of_operation(TENANT, "op-one") == []
    asked = ask(at_0004, operation="op-one")
    assert at_0004.questions.pending(TENANT) == [asked.question]
    assert at_0004.model_calls.begin(a_call(operation="op-one")).number == 1
    assert at_0004.approvals.get(TENANT, "one").status == ApprovalStatus.GRANTED
    at_0004.close()


def test_every_draft_of_before_is_the_agents(old_database: Engine, ledger_url: str, checkpoints: Path) -> None:
    with old_database.begin() as connection:
        _insert(
            connection, "drafts", tenant=TENANT, operation="op-one", version=1, hash=OLD_HASH,
            draft=to_json(draft()).decode(), model="offline", written_at=OLD_MOMENT,
        )  # fmt: skip
    old_database.dispose()
    ledger = opened(ledger_url, checkpoints)
    assert ledger.drafts.written(TENANT, "op-one", 1) == Written(draft=draft(), model="offline", author="agent")
    assert ledger.drafts.authors(TENANT, "op-one") == ()
    ledger.close()
