"""The audit chain against somebody with full access to the database: whatever is done to it is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from countersign.domain.audit import GENESIS, ChainBroken, Checkpoint, link
from countersign.domain.canonical import canonical_bytes
from countersign.domain.errors import NotFound, Unavailable
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from countersign.ledger.tables import audit_records
from countersign.signing.checkpoints import sign_checkpoint, verify_checkpoint
from tests.ledger.builders import INSTALLATION, NOW, OPERATION, SIGNING_KEY, TENANT, audit_types, opened, operation
from tests.ledger.founding import found

LENGTH = 8
Rows = list[dict[str, Any]]


@dataclass
class Chain:
    """A ledger with LENGTH records, its database without the triggers that guard it, and its checkpoint file."""

    ledger: SqlLedger
    database: Engine
    checkpoint: Path
    rows: Rows

    def replace(self, rows: Sequence[dict[str, Any]]) -> None:
        """Put these rows in the place of all records."""
        with self.database.begin() as connection:
            connection.execute(delete(audit_records))
            if rows:
                connection.execute(insert(audit_records), list(rows))

    def first_bad(self, rows: Sequence[dict[str, Any]]) -> int:
        """Which record the verifier names when these rows are all there is; the true ones are put back."""
        self.replace(rows)
        try:
            with pytest.raises(ChainBroken) as broken:
                self.ledger.audit.verify(TENANT)
            assert str(broken.value.sequence) in broken.value.message
            return broken.value.sequence
        finally:
            self.replace(self.rows)


@pytest.fixture
def chain(empty_ledger: SqlLedger, database: Engine, checkpoints: Path) -> Chain:
    ledger = empty_ledger
    for number in range(1, LENGTH + 1):
        ledger.audit.append(TENANT, "note.made", f"op-{number % 2}", "rita", {"number": number, "text": "数"}, NOW)
    with database.begin() as connection:
        rows = [dict(row._mapping) for row in connection.execute(select(audit_records))]
    drop_triggers(database)
    return Chain(ledger, database, checkpoints / f"{TENANT}.jws", sorted(rows, key=lambda row: row["sequence"]))


def drop_triggers(database: Engine) -> None:
    with database.begin() as connection:
        if database.name == "postgresql":
            connection.execute(text("DROP TRIGGER audit_records_stay ON audit_records"))
        else:
            connection.execute(text("DROP TRIGGER audit_records_no_update"))
            connection.execute(text("DROP TRIGGER audit_records_no_delete"))


def renumbered(rows: Sequence[dict[str, Any]]) -> Rows:
    return [{**row, "sequence": number} for number, row in enumerate(rows, start=1)]


def relinked(rows: Sequence[dict[str, Any]]) -> Rows:
    """The rows with all hashes made to fit again, as a forger who knows the rules does it."""
    linked, head = [], GENESIS
    for number, row in enumerate(rows, start=1):
        fields = {name: value for name, value in row.items() if name not in ("previous", "hash")}
        record = link({**fields, "sequence": number, "detail": json.loads(row["detail"])}, head)
        linked.append({**record.model_dump(), "detail": canonical_bytes(record.detail).decode()})
        head = record.hash
    return linked


every_record = st.integers(1, LENGTH)
thorough = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_the_true_chain_verifies_and_its_checkpoint_is_up_to_date(chain: Chain) -> None:
    verified = chain.ledger.audit.verify(TENANT)
    assert (verified.count, verified.head) == (LENGTH, chain.rows[-1]["hash"])
    assert verify_checkpoint(chain.checkpoint.read_text(), SIGNING_KEY.public_key()) == verified


def test_records_come_in_order_all_or_of_one_operation(chain: Chain) -> None:
    assert [record.sequence for record in chain.ledger.audit.records(TENANT)] == list(range(1, LENGTH + 1))
    assert [record.sequence for record in chain.ledger.audit.records(TENANT, "op-1")] == [1, 3, 5, 7]


@pytest.mark.guarantee("G42")
@thorough
@given(at=every_record, field=st.sampled_from(["recorded_at", "type", "operation", "subject", "detail", "origin",
       "previous", "hash"]), value=st.text("abc:\"{}", max_size=8))  # fmt: skip
def test_a_changed_record_is_named(chain: Chain, at: int, field: str, value: str) -> None:
    rows = [dict(row) for row in chain.rows]
    rows[at - 1][field] += value or "x"
    assert chain.first_bad(rows) == at


@pytest.mark.guarantee("G42")
@pytest.mark.parametrize(
    "detail", ["", "null", "[]", '{"number":1,"number":3,"text":"数"}', '{"number": 3,"text":"数"}', "{"]
)
def test_a_detail_that_reads_the_same_or_not_at_all_is_a_change_too(chain: Chain, detail: str) -> None:
    rows = [dict(row) for row in chain.rows]
    rows[2]["detail"] = detail
    assert chain.first_bad(rows) == 3


@pytest.mark.guarantee("G42")
@thorough
@given(at=st.integers(1, LENGTH - 1), close_gap=st.booleans())
def test_a_deleted_record_is_named(chain: Chain, at: int, close_gap: bool) -> None:
    rows = [row for row in chain.rows if row["sequence"] != at]
    assert chain.first_bad(renumbered(rows) if close_gap else rows) == at


@pytest.mark.guarantee("G42")
@thorough
@given(at=every_record, copied=every_record)
def test_an_inserted_or_repeated_record_is_named(chain: Chain, at: int, copied: int) -> None:
    rows = renumbered([*chain.rows[:at], chain.rows[copied - 1], *chain.rows[at:]])
    # A copy right before its original stands in the right place itself; then the original is the one too many.
    assert chain.first_bad(rows) == (at + 2 if copied == at + 1 else at + 1)


@pytest.mark.guarantee("G42")
def test_a_record_before_the_first_is_found(chain: Chain) -> None:
    with chain.database.begin() as connection:
        connection.execute(text("UPDATE audit_records SET sequence = 0 WHERE sequence = 1"))
    with pytest.raises(ChainBroken) as broken:
        chain.ledger.audit.verify(TENANT)
    assert broken.value.sequence == 1


@pytest.mark.guarantee("G42")
@thorough
@given(st.lists(every_record, min_size=2, max_size=2, unique=True))
def test_swapped_records_are_found_at_the_first_of_them(chain: Chain, pair: list[int]) -> None:
    rows = [dict(row) for row in chain.rows]
    one, other = pair[0] - 1, pair[1] - 1
    rows[one], rows[other] = rows[other], rows[one]
    assert chain.first_bad(renumbered(rows)) == min(pair)


@pytest.mark.guarantee("G43")
@thorough
@given(left=st.integers(0, LENGTH - 1))
def test_a_cut_tail_or_nothing_left_is_found_and_the_first_missing_named(chain: Chain, left: int) -> None:
    assert chain.first_bad(chain.rows[:left]) == left + 1


@pytest.mark.guarantee("G43")
@thorough
@given(at=every_record)
def test_a_chain_made_anew_from_one_record_on_does_not_fit_the_checkpoint(chain: Chain, at: int) -> None:
    rows = [dict(row) for row in chain.rows]
    rows[at - 1]["subject"] = "eve"
    assert chain.first_bad(relinked(rows)) == LENGTH


@pytest.mark.guarantee("G44")
def test_records_of_another_installation_or_tenant_are_not_taken_for_ours(chain: Chain) -> None:
    foreign = [{**row, "origin": "elsewhere"} for row in chain.rows]
    assert chain.first_bad(relinked(foreign)) == 1


@pytest.mark.guarantee("G43")
def test_nothing_is_appended_to_a_cut_chain_so_that_regrowth_cannot_hide_the_cut(chain: Chain) -> None:
    found(chain.ledger)
    chain.ledger.operations.register(operation())
    with chain.database.begin() as connection:
        connection.execute(delete(audit_records).where(audit_records.c.sequence > 5))
    with pytest.raises(ChainBroken) as broken:
        chain.ledger.operations.move(TENANT, OPERATION, State.RUNNING, "", NOW)
    assert broken.value.sequence == 6
    assert chain.ledger.operations.get(TENANT, OPERATION).state == State.CREATED
    with pytest.raises(ChainBroken):
        chain.ledger.audit.verify(TENANT)


@pytest.mark.guarantee("G43")
def test_nothing_is_appended_to_a_chain_that_was_made_anew(chain: Chain) -> None:
    longer = relinked([*chain.rows, {**chain.rows[0], "subject": "eve"}])
    chain.replace(relinked([{**longer[0], "subject": "eve"}, *longer[1:]]))
    with pytest.raises(ChainBroken) as broken:
        chain.ledger.audit.append(TENANT, "note.made", "", "rita", {}, NOW)
    assert broken.value.sequence == LENGTH


@pytest.mark.guarantee("G43")
def test_a_missing_checkpoint_is_said_in_plain_words_and_nothing_is_written_without_it(chain: Chain) -> None:
    chain.checkpoint.unlink()
    for attempt in (
        lambda: chain.ledger.audit.verify(TENANT),
        lambda: chain.ledger.audit.append(TENANT, "note.made", "", "rita", {}, NOW),
    ):
        with pytest.raises(ChainBroken, match="is missing while tenant acme has 8 audit records"):
            attempt()


@pytest.mark.guarantee("G43")
def test_a_tenant_whose_records_were_all_taken_away_is_still_a_tenant_to_verify(chain: Chain) -> None:
    chain.replace([])
    assert chain.ledger.directory.tenants() == [TENANT]
    with pytest.raises(ChainBroken):
        chain.ledger.audit.verify(TENANT)


@pytest.mark.guarantee("G43")
def test_records_and_checkpoint_of_a_tenant_with_operations_cannot_both_vanish(chain: Chain) -> None:
    found(chain.ledger)
    chain.ledger.operations.register(operation())
    chain.replace([])
    chain.checkpoint.unlink()
    with pytest.raises(ChainBroken, match="operations"):
        chain.ledger.audit.verify(TENANT)


def test_a_tenant_that_never_was_is_no_verified_one(chain: Chain) -> None:
    with pytest.raises(NotFound):
        chain.ledger.audit.verify("nope")


FORGED: dict[str, Callable[[Checkpoint], str]] = {
    "by another key": lambda true: sign_checkpoint(true, Ed25519PrivateKey.generate()),
    "of another tenant": lambda true: sign_checkpoint(true.model_copy(update={"tenant": "bolt"}), SIGNING_KEY),
    "of another installation": lambda true: sign_checkpoint(
        true.model_copy(update={"installation": "elsewhere"}), SIGNING_KEY
    ),
    "empty": lambda true: "",
    "no JWS": lambda true: "a.b.c",
    "without signature": lambda true: sign_checkpoint(true, SIGNING_KEY).rsplit(".", 1)[0] + ".",
    "of another form": lambda true: "é" * 20,
}


@pytest.mark.guarantee("G44")
@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_checkpoint_proves_nothing(chain: Chain, forged: Callable[[Checkpoint], str]) -> None:
    true = chain.ledger.audit.verify(TENANT)
    chain.checkpoint.write_text(forged(true))
    with pytest.raises(ChainBroken, match=r"checkpoint .*acme\.jws"):
        chain.ledger.audit.verify(TENANT)
    with pytest.raises(ChainBroken):
        chain.ledger.audit.append(TENANT, "note.made", "", "rita", {}, NOW)


def test_an_older_checkpoint_is_caught_up_by_the_next_record(chain: Chain) -> None:
    """As after a process that was killed between its commit and its checkpoint."""
    older = Checkpoint(installation=INSTALLATION, tenant=TENANT, count=3, head=chain.rows[2]["hash"])
    chain.checkpoint.write_text(sign_checkpoint(older, SIGNING_KEY))
    assert chain.ledger.audit.verify(TENANT).count == LENGTH
    chain.ledger.audit.append(TENANT, "note.made", "", "rita", {}, NOW)
    assert verify_checkpoint(chain.checkpoint.read_text(), SIGNING_KEY.public_key()).count == LENGTH + 1


def test_a_checkpoint_never_goes_backwards(chain: Chain) -> None:
    before = chain.checkpoint.read_text()
    chain.ledger._store.checkpoints.advance(TENANT, 3, chain.rows[2]["hash"])
    assert chain.checkpoint.read_text() == before


@pytest.mark.guarantee("G42")
@pytest.mark.parametrize("statement", ["UPDATE audit_records SET subject = 'eve'", "DELETE FROM audit_records"])
def test_the_database_itself_refuses_to_change_records(
    empty_ledger: SqlLedger, database: Engine, statement: str
) -> None:
    ledger = empty_ledger
    ledger.audit.append(TENANT, "note.made", "", "rita", {}, NOW)
    with pytest.raises(DBAPIError, match="never changed"), database.begin() as connection:
        connection.execute(text(statement))
    assert ledger.audit.verify(TENANT).count == 1


@pytest.mark.guarantee("G45")
def test_where_the_record_cannot_be_written_nothing_happens(ledger: SqlLedger, database: Engine) -> None:
    ledger.operations.register(operation())
    before = ledger.audit.verify(TENANT)
    break_audit(database)
    with pytest.raises(Unavailable, match="no more records"):
        ledger.operations.move(TENANT, OPERATION, State.RUNNING, "", NOW)
    with pytest.raises(Unavailable, match="no more records"):
        ledger.operations.register(operation("another"))
    assert ledger.operations.get(TENANT, OPERATION).state == State.CREATED
    assert [one.operation for one in ledger.operations.list(TENANT)] == [OPERATION]
    assert ledger.audit.verify(TENANT) == before


def break_audit(database: Engine) -> None:
    with database.begin() as connection:
        if database.name == "postgresql":
            connection.execute(
                text("CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS "
                     "$$ BEGIN RAISE EXCEPTION 'no more records'; END $$")
            )  # fmt: skip
            call = "EXECUTE FUNCTION broken()"
        else:
            call = "BEGIN SELECT RAISE(ABORT, 'no more records'); END"
        connection.execute(text(f"CREATE TRIGGER broken BEFORE INSERT ON audit_records FOR EACH ROW {call}"))


@pytest.mark.guarantee("G45")
def test_where_the_checkpoint_cannot_be_kept_the_next_step_is_refused(
    ledger: SqlLedger, ledger_url: str, checkpoints: Path
) -> None:
    """A folder in the file's place stands for a disk that takes no more files, for root too."""
    ledger.operations.register(operation())
    (checkpoints / f"{TENANT}.new").mkdir()
    with pytest.raises(Unavailable, match="checkpoint"):
        ledger.operations.move(TENANT, OPERATION, State.RUNNING, "", NOW)
    ledger.operations.move(TENANT, OPERATION, State.RUNNING, "", NOW)  # recorded before its checkpoint failed
    with pytest.raises(Unavailable, match="checkpoint"):
        ledger.operations.move(TENANT, OPERATION, State.FAILED, "later", NOW)
    assert ledger.operations.get(TENANT, OPERATION).state == State.RUNNING
    (checkpoints / f"{TENANT}.new").rmdir()
    ledger.operations.move(TENANT, OPERATION, State.FAILED, "later", NOW)
    assert audit_types(ledger) == ["operation.registered", "run.running", "run.failed"]
    other = opened(ledger_url, checkpoints)
    assert other.audit.verify(TENANT) == ledger.audit.verify(TENANT)
    other.close()


def test_an_update_that_hides_a_record_from_its_operation_is_found(chain: Chain) -> None:
    with chain.database.begin() as connection:
        connection.execute(update(audit_records).where(audit_records.c.sequence == 3).values(operation="elsewhere"))
    with pytest.raises(ChainBroken) as broken:
        chain.ledger.audit.verify(TENANT)
    assert broken.value.sequence == 3
