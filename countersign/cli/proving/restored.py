"""`audit accept-restored`: an operator signs that a ledger from a backup goes on without its latest records.

Apart from the other audit commands because it is the one that writes, and what it wrote is told by several of them.
"""

from __future__ import annotations

from typing import Any

from countersign.cli import options
from countersign.cli.governing.frozen import Hold
from countersign.cli.rendering import STARTER, fields, say, say_json
from countersign.cli.session import Session, new_id, now, opened, require_tenant, signing_key
from countersign.domain.audit import RESTORED, AuditRecord, Loss, RestoreOrder
from countersign.domain.errors import Conflict
from countersign.domain.values import Value


class Lost(Value):
    """Records that a tenant's chain once had and lacks now."""

    first: int
    last: int
    since: str
    until: str
    """Nothing is known from `since` to `until`."""
    accepted_by: str
    sequence: int
    """The record that says so."""

    def sentence(self) -> str:
        """In one line."""
        records = f"record {self.first}" if self.first == self.last else f"records {self.first} to {self.last}"
        return (
            f"{records} of an earlier ledger were lost; nothing is known from {self.since[:19]}Z to {self.until[:19]}Z"
            f" (accepted by {self.accepted_by} in record {self.sequence})"
        )


def accept_restored(
    tenant: options.Tenant,
    person: options.Signer,
    reason: options.Why,
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Accept, as an operator, that a ledger restored from a backup lacks its latest records, so that it can go on.

    Until then nothing is written. Refused where nothing is missing. Every effect is frozen by the same word: two
    administrators let effects go on (`unfreeze`), once `reconcile` has shown what was done outside meanwhile.
    """
    with opened() as session:
        require_tenant(session, tenant)
        loss = _require_loss(session, tenant)
        token = _signed(session, tenant, person, key, loss, reason)
        session.ledger.audit.restored(tenant, token, now())
        checkpoint = session.ledger.audit.verify(tenant)
        accepted = lost_of(session, tenant)[-1]
        freeze = session.ledger.freezes.of_tenant(tenant)[-1]
    if as_json:
        said = {"accepted": accepted.model_dump(mode="json"), "freeze": freeze.number}
        say_json({**checkpoint.model_dump(mode="json"), **said})
        return
    say(fields([
        ("lost", accepted.sentence()),
        ("verified", f"{checkpoint.count} records, head {checkpoint.head}"),
        ("frozen", f"{Hold(freeze, (), ()).what} in tenant {tenant} from now on, as freeze {freeze.number}"),
        ("next", f"find out what was done outside meanwhile: {STARTER} reconcile --tenant {tenant}"),
        ("then", f"have effects go on: {STARTER} unfreeze {freeze.number} --tenant {tenant} --as ADMIN"),
    ]))  # fmt: skip


def lost_of(session: Session, tenant: str) -> list[Lost]:
    """All that a tenant's chain lacks by its own records, oldest first."""
    return [_lost(one) for one in session.ledger.audit.records(tenant, "") if one.type == RESTORED]


def _lost(record: AuditRecord) -> Lost:
    detail: dict[str, Any] = record.detail
    return Lost(
        first=record.sequence, last=detail["counted"], since=detail["since"], until=detail["until"],
        accepted_by=record.subject, sequence=record.sequence,
    )  # fmt: skip


def _require_loss(session: Session, tenant: str) -> Loss:
    loss = session.ledger.audit.lost(tenant)
    if loss is None:
        raise Conflict(f"tenant {tenant}: nothing is missing behind its last record, so nothing is to be accepted")
    return loss


def _signed(session: Session, tenant: str, person: str, key: options.KeyFile, loss: Loss, reason: str) -> str:
    from countersign.signing.statements import sign_restore

    signing = signing_key(session, tenant, person, key)
    order = RestoreOrder(
        installation=session.settings.installation, person=person, key_id=signing.id, tenant=tenant,
        **loss.model_dump(exclude={"since"}), reason=reason, issued_at=now(), id=new_id(),
    )  # fmt: skip
    return sign_restore(order, signing.private)
