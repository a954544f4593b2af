"""A ledger restored from an older backup: nothing is written on top of the gap until an operator has signed for it, and
from then on the record itself says what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, Table, delete, insert, select

from countersign.domain.audit import ChainBroken, Checkpoint, Loss, RestoreOrder
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Conflict, CountersignError, NotAuthorised, NotFound, StatementRefused, Unavailable
from countersign.domain.notice import NoticeKind
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from countersign.ledger.tables import audit_records, metadata
from countersign.signing.checkpoints import sign_checkpoint
from countersign.signing.statements import sign_restore
from tests.ledger.builders import (
    INSTALLATION,
    NOW,
    OPERATION,
    SIGNING_KEY,
    TENANT,
    audit_types,
    notices,
    opened,
    operation,
)
from tests.ledger.founding import private_key
from tests.ledger.test_audit_chain import drop_triggers

LATER = NOW + timedelta(minutes=10)
MUCH_LATER = NOW + timedelta(hours=3)
WHY = "the disk of the database broke; the newest backup is of last night"
Rows = Mapping[Table, list[dict[str, Any]]]


def backup(database: Engine) -> Rows:
    """All rows of all tables."""
    with database.begin() as connection:
        return {
            table: [dict(row._mapping) for row in connection.execute(select(table))] for table in metadata.sorted_tables
        }


def restore(database: Engine, kept: Rows) -> None:
    """Put the backup in the place of all that there is."""
    with database.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(delete(table))
        for table, rows in kept.items():
            if rows:
                connection.execute(insert(table), rows)


def signed(loss: Loss, by: str = "otto", **changes: Any) -> str:
    """A person's order to go on behind a loss."""
    fields: dict[str, Any] = {
        "installation": INSTALLATION, "person": by, "key_id": f"{by}-1", "tenant": TENANT,
        **loss.model_dump(exclude={"since"}), "reason": WHY, "issued_at": MUCH_LATER, "id": "a-signed-order-1",
    }  # fmt: skip
    return sign_restore(RestoreOrder(**{**fields, **changes}), private_key(f"{by}-1"))


@pytest.fixture(autouse=True)
def _unguarded(ledger: SqlLedger, database: Engine) -> None:
    """Whoever restores a database is kept by none of its triggers."""
    drop_triggers(database)


@pytest.fixture
def restored(ledger: SqlLedger, database: Engine) -> SqlLedger:
    """A ledger that knew three more records than the backup that lies in its place."""
    ledger.operations.register(operation())
    kept = backup(database)
    ledger.operations.move(TENANT, OPERATION, State.RUNNING, "", LATER)
    ledger.operations.register(operation("lost-1", request=b"another"))
    ledger.operations.register(operation("lost-2", request=b"a third"))
    restore(database, kept)
    return ledger


def loss_of(ledger: SqlLedger) -> Loss:
    loss = ledger.audit.lost(TENANT)
    assert loss is not None
    return loss


@pytest.mark.guarantee("G43")
def test_until_it_is_accepted_nothing_is_written_and_each_refusal_names_the_way_on(restored: SqlLedger) -> None:
    count = len(list(restored.audit.records(TENANT)))
    attempts: list[Callable[[], object]] = [
        lambda: restored.operations.move(TENANT, OPERATION, State.RUNNING, "", LATER),
        lambda: restored.operations.register(operation("new", request=b"new")),
        lambda: restored.audit.append(TENANT, "note.made", "", "rita", {}, LATER),
        lambda: restored.audit.verify(TENANT),
    ]
    for attempt in attempts:
        with pytest.raises(ChainBroken, match=f"audit accept-restored --tenant {TENANT}") as broken:
            attempt()
        assert broken.value.sequence == count + 1
    assert len(list(restored.audit.records(TENANT))) == count
    assert restored.operations.get(TENANT, OPERATION).state == State.CREATED
    assert restored.audit.restores(TENANT) == []


@pytest.mark.guarantee("G43")
@pytest.mark.guarantee("G45")
def test_an_operators_order_is_recorded_and_the_chain_goes_on_behind_the_gap(restored: SqlLedger) -> None:
    loss = loss_of(restored)
    assert (loss.counted - loss.kept, loss.since) == (3, "2026-11-30T09:00:00.000000Z")
    token = signed(loss)

    made = restored.audit.restored(TENANT, token, MUCH_LATER)

    assert (made.since, made.until) == (NOW, MUCH_LATER)
    assert restored.audit.restores(TENANT) == [made]
    record = list(restored.audit.records(TENANT))[-2]
    assert (record.type, record.subject, record.sequence) == ("ledger.restored", "otto", loss.kept + 1)
    assert record.detail == {
        "counted": loss.counted, "counted_head": loss.counted_head, "order_hash": sha256_hex(token.encode()),
        "since": "2026-11-30T09:00:00.000000Z", "until": "2026-11-30T12:00:00.000000Z",
    }  # fmt: skip
    assert restored.documents.get(TENANT, sha256_hex(token.encode())) == token.encode()
    restored.operations.move(TENANT, OPERATION, State.RUNNING, "", MUCH_LATER)
    assert restored.audit.verify(TENANT).count == loss.kept + 3
    assert audit_types(restored)[-1] == "run.running"


@pytest.mark.guarantee("G36")
@pytest.mark.guarantee("G45")
def test_every_effect_is_frozen_by_the_same_order_and_people_are_told(restored: SqlLedger) -> None:
    """What the lost records knew of is not known here, so that nothing goes out by itself."""
    token = signed(loss_of(restored))
    restored.audit.restored(TENANT, token, MUCH_LATER)
    (freeze,) = restored.freezes.of_tenant(TENANT)
    assert (freeze.tool, freeze.person, freeze.reason, freeze.since) == ("", "otto", WHY, MUCH_LATER)
    assert freeze.in_force
    record = list(restored.audit.records(TENANT))[-1]
    assert (record.type, record.subject) == ("effects.frozen", "otto")
    assert record.detail["order_hash"] == sha256_hex(token.encode())
    assert [(one.kind, one.code) for one in notices(restored)][-1] == (NoticeKind.FROZEN, "1:all")


@pytest.mark.guarantee("G43")
def test_behind_an_accepted_gap_a_cut_is_found_as_ever(restored: SqlLedger, database: Engine) -> None:
    restored.audit.restored(TENANT, signed(loss_of(restored)), MUCH_LATER)
    count = restored.audit.verify(TENANT).count
    with database.begin() as connection:
        connection.execute(delete(audit_records).where(audit_records.c.sequence == count))
    with pytest.raises(ChainBroken) as broken:
        restored.audit.verify(TENANT)
    assert broken.value.sequence == count


def test_where_nothing_is_missing_nothing_is_accepted(ledger: SqlLedger) -> None:
    before = ledger.audit.verify(TENANT)
    whole = Loss(kept=before.count, kept_head=before.head, counted=before.count + 1, counted_head=before.head, since="")
    assert ledger.audit.lost(TENANT) is None
    with pytest.raises(Conflict, match="nothing is missing"):
        ledger.audit.restored(TENANT, signed(whole), MUCH_LATER)
    assert ledger.audit.verify(TENANT) == before


REFUSED: dict[str, tuple[Callable[[Loss], str], type[CountersignError]]] = {
    "by nobody's key": (lambda loss: signed(loss, key_id="bob-1"), StatementRefused),
    "by a reviewer": (lambda loss: signed(loss, "bob"), NotAuthorised),
    "by an administrator": (lambda loss: signed(loss, "ada"), NotAuthorised),
    "for another installation": (lambda loss: signed(loss, installation="elsewhere"), StatementRefused),
    "for another tenant": (lambda loss: signed(loss, tenant="bolt"), StatementRefused),
    "of the future": (lambda loss: signed(loss, issued_at=MUCH_LATER + timedelta(hours=1)), StatementRefused),
    "for a longer chain": (lambda loss: signed(loss, counted=loss.counted + 1), Conflict),
    "for another chain": (lambda loss: signed(loss, kept_head=loss.counted_head), Conflict),
}


@pytest.mark.guarantee("G18")
@pytest.mark.guarantee("G43")
@pytest.mark.parametrize("name", REFUSED)
def test_an_order_that_is_not_an_operators_for_this_very_loss_changes_nothing(restored: SqlLedger, name: str) -> None:
    order, error = REFUSED[name]
    loss = loss_of(restored)
    with pytest.raises(error):
        restored.audit.restored(TENANT, order(loss), MUCH_LATER)
    assert loss_of(restored) == loss
    assert restored.audit.restores(TENANT) == []


@pytest.mark.guarantee("G42")
def test_a_chain_that_does_not_hold_by_itself_is_not_accepted(restored: SqlLedger, database: Engine) -> None:
    loss = loss_of(restored)
    with database.begin() as connection:
        connection.execute(audit_records.update().where(audit_records.c.sequence == 2).values(subject="eve"))
    with pytest.raises(ChainBroken) as broken:
        restored.audit.restored(TENANT, signed(loss), MUCH_LATER)
    assert broken.value.sequence == 2


@pytest.mark.guarantee("G37")
@pytest.mark.parametrize("lost", [1, 3])
def test_killed_before_the_checkpoint_it_is_finished_by_a_repeat(
    ledger: SqlLedger, database: Engine, checkpoints: Path, lost: int
) -> None:
    """A folder in the file's place stands for a disk that takes no more files."""
    ledger.operations.register(operation())
    kept = backup(database)
    for number in range(lost):
        ledger.audit.append(TENANT, "note.made", "", "rita", {"number": number}, LATER)
    restore(database, kept)
    loss = loss_of(ledger)
    (checkpoints / f"{TENANT}.new").mkdir()
    with pytest.raises(Unavailable, match="checkpoint"):
        ledger.audit.restored(TENANT, signed(loss), MUCH_LATER)
    (checkpoints / f"{TENANT}.new").rmdir()
    with pytest.raises(ChainBroken):
        ledger.audit.append(TENANT, "note.made", "", "rita", {}, MUCH_LATER)

    assert loss_of(ledger) == loss
    again = ledger.audit.restored(TENANT, signed(loss, id="a-signed-order-2"), MUCH_LATER + timedelta(hours=1))

    assert ledger.audit.restores(TENANT) == [again]
    assert (again.since, again.until) == (NOW, MUCH_LATER)
    assert audit_types(ledger).count("ledger.restored") == 1
    assert ledger.audit.verify(TENANT).count == loss.kept + 2
    assert len(ledger.freezes.of_tenant(TENANT)) == 1
    assert ledger.audit.lost(TENANT) is None


def test_a_ledger_can_be_restored_more_than_once(restored: SqlLedger, database: Engine) -> None:
    restored.audit.restored(TENANT, signed(loss_of(restored)), MUCH_LATER)
    kept = backup(database)
    restored.operations.move(TENANT, OPERATION, State.RUNNING, "", MUCH_LATER)
    restore(database, kept)
    again = MUCH_LATER + timedelta(days=1)

    restored.audit.restored(TENANT, signed(loss_of(restored), issued_at=again, id="a-signed-order-2"), again)

    assert [(one.since, one.until) for one in restored.audit.restores(TENANT)] == [
        (NOW, MUCH_LATER),
        (MUCH_LATER, again),
    ]
    restored.audit.verify(TENANT)


def test_a_tenant_of_which_nothing_is_left_can_only_begin_anew(ledger: SqlLedger, checkpoints: Path) -> None:
    gone = Checkpoint(installation=INSTALLATION, tenant="bolt", count=3, head=ledger.audit.verify(TENANT).head)
    (checkpoints / "bolt.jws").write_text(sign_checkpoint(gone, SIGNING_KEY))
    with pytest.raises(NotFound, match=r"bolt\.jws away"):
        ledger.audit.lost("bolt")


def test_a_second_process_sees_what_was_accepted(restored: SqlLedger, ledger_url: str, checkpoints: Path) -> None:
    other = opened(ledger_url, checkpoints)
    with pytest.raises(ChainBroken):
        other.audit.append(TENANT, "note.made", "", "rita", {}, LATER)
    restored.audit.restored(TENANT, signed(loss_of(restored)), MUCH_LATER)
    other.audit.append(TENANT, "note.made", "", "rita", {}, MUCH_LATER)
    assert other.audit.verify(TENANT) == restored.audit.verify(TENANT)
    other.close()
