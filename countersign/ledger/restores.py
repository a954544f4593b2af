"""Going on with a ledger that was restored from a backup, behind what it lost (G43).

Apart from the audit log, because here alone a checkpoint goes back: by an operator's signed order that names both ends
of the loss, and with a record that keeps them for whoever verifies the chain later. The same order freezes every effect
of the tenant, since what was done outside in the lost time may be asked for here once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select

from countersign.domain.audit import RESTORED, AuditRecord, Checkpoint, Loss, Restore, RestoreOrder
from countersign.domain.control import OPERATOR
from countersign.domain.errors import Conflict, NotAuthorised
from countersign.domain.values import Sha256
from countersign.ledger.authority import load_persons
from countersign.ledger.columns import moment_text
from countersign.ledger.freezes import put_in_force
from countersign.ledger.messages import keep_statement
from countersign.ledger.store import Store, Writing
from countersign.ledger.tables import audit_records, restores
from countersign.signing.statements import verify_restore

ACCEPTING = 2
"""How many records tell that a loss is accepted: that one, and behind it that every effect is frozen."""


def loss_behind(latest: Sequence[AuditRecord], checkpoint: Checkpoint) -> Loss | None:
    """What a chain lacks of what its checkpoint counts; nothing if it lacks nothing.

    `latest` are its last `ACCEPTING` records, the newest first.

    Where it was said already that so much is lost, and the process was killed before it could write the checkpoint,
    that same loss: it is only to be finished.
    """
    counted = {"counted": checkpoint.count, "counted_head": checkpoint.head}
    last = latest[0]
    said = [
        one for one in latest if one.type == RESTORED and {name: one.detail.get(name) for name in counted} == counted
    ]
    if said:
        kept = {"kept": said[0].sequence - 1, "kept_head": said[0].previous, "since": said[0].detail["since"]}
    elif last.sequence < checkpoint.count:
        kept = {"kept": last.sequence, "kept_head": last.hash, "since": last.recorded_at}
    else:
        return None
    return Loss.model_validate({**kept, **counted})


def go_on(store: Store, tenant: str, loss: Loss, token: str, now: datetime) -> Restore:
    """Let the chain go on behind a loss; as in ports.AuditLog."""
    known = Checkpoint(installation=store.installation, tenant=tenant, count=loss.counted, head=loss.counted_head)
    # Numbered by the record that tells of it: of two operators, one does it.
    number = loss.kept + 1
    with store.writing(tenant) as writing:
        order = _verified(store, writing, loss, token, now)
        restore = Restore(since=min(datetime.fromisoformat(loss.since), now), until=now)
        writing.lock_freezes()
        if writing.insert_once(restores, number=number, since=restore.since, until=restore.until):
            _record(writing, order, restore, token)
            # What the lost records knew of is not known here: nothing more goes out until people have compared.
            put_in_force(writing, order, "", token, restore.until)
            writing.lost = known
            return restore
    return _finished(store, tenant, number, known)


def _finished(store: Store, tenant: str, number: int, known: Checkpoint) -> Restore:
    """Write the checkpoint that an earlier attempt did not come to."""
    # Nothing was written since: the chain was behind its checkpoint.
    newest = select(audit_records.c.sequence, audit_records.c.hash).where(audit_records.c.tenant == tenant)
    said = (restores.c.tenant == tenant) & (restores.c.number == number)
    with store.reading(tenant) as connection:
        head = connection.execute(newest.order_by(audit_records.c.sequence.desc()).limit(1)).one()
        row = connection.execute(select(restores).where(said)).one()
    store.checkpoints.advance(tenant, head.sequence, Sha256(head.hash), known)
    return Restore(since=row.since, until=row.until)


def _verified(store: Store, writing: Writing, loss: Loss, token: str, now: datetime) -> RestoreOrder:
    persons = load_persons(writing.connection, writing.tenant)
    order, signer = verify_restore(token, persons, installation=store.installation, now=now)
    if not signer.may(OPERATOR):
        raise NotAuthorised("role_missing", f"person {signer.id} may not do this: the role {OPERATOR} is needed")
    if not order.names(loss):
        raise Conflict("the order was signed for another loss than there is now; look again and sign a new one")
    return order


def _record(writing: Writing, order: RestoreOrder, restore: Restore, token: str) -> None:
    writing.record(
        RESTORED, "", order.person, restore.until, counted=order.counted, counted_head=order.counted_head,
        since=moment_text(restore.since), until=moment_text(restore.until), order_hash=keep_statement(writing, token),
    )  # fmt: skip
