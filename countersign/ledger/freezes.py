"""Freezes: what holds effects at the gateway, how it is put there by one person, and lifted by a governed change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import Connection, func, select, update

from countersign.domain.administration import ADMINISTRATION, changes_authority
from countersign.domain.audit import RestoreOrder
from countersign.domain.canonical import sha256_hex
from countersign.domain.control import OPERATOR
from countersign.domain.directory import ADMIN
from countersign.domain.errors import InputRefused, NotAuthorised
from countersign.domain.escalation import Severity
from countersign.domain.freeze import Freeze, FreezeOrder, holding
from countersign.domain.notice import Notice, NoticeKind
from countersign.domain.proposal import Proposal
from countersign.ledger.approval_rows import names
from countersign.ledger.authority import Mandate, load_freezes, load_persons, load_policies
from countersign.ledger.messages import keep_statement, statement_hash
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import freezes, holds, tenants
from countersign.signing.statements import verify_freeze


class SqlFreezes:
    """ports.Freezes on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def freeze(self, tenant: str, token: str, now: datetime) -> Freeze:
        """Hold effects; as in ports.Freezes.

        Once this has returned, no claim of an effect that it holds succeeds, unless that may be on its way already.
        """
        order_hash = statement_hash(token)
        with self._store.writing(tenant) as writing:
            _check_known(writing)
            writing.lock_freezes()
            stored = _of_order(writing.connection, tenant, order_hash)
            if stored is not None:
                return stored
            order = self._verified(writing, token, now)
            return put_in_force(writing, order, order.tool, token, now)

    def _verified(self, writing: Writing, token: str, now: datetime) -> FreezeOrder:
        """The order, by whoever may give it as the directory is now."""
        persons = load_persons(writing.connection, writing.tenant)
        order, signer = verify_freeze(token, persons, installation=self._store.installation, now=now)
        policy = load_policies(writing.connection, writing.tenant).get(ADMINISTRATION)
        roles = dict.fromkeys([OPERATOR, *([policy.asked_by] if policy is not None else [])])
        if not any(signer.may(role) for role in roles):
            needed = " or ".join(roles)
            raise NotAuthorised("role_missing", f"person {signer.id} may not freeze: the role {needed} is needed")
        if changes_authority(order.tool):
            raise InputRefused(f"tool {order.tool}: changes of authority are never frozen; choose another tool")
        return order

    def of_tenant(self, tenant: str) -> Sequence[Freeze]:
        """All of a tenant, lifted ones too, oldest first."""
        with self._store.reading(tenant) as connection:
            return load_freezes(connection, tenant)


def put_in_force(writing: Writing, order: FreezeOrder | RestoreOrder, tool: str, token: str, now: datetime) -> Freeze:
    """Freeze on the word of a verified order, which says why; the caller holds the lock of the tenant's freezes."""
    number, by, why = _latest(writing) + 1, order.person, order.reason
    made = Freeze(tenant=writing.tenant, number=number, tool=tool, reason=why, person=by, since=now)
    order_hash = keep_statement(writing, token)
    writing.insert_once(freezes, number=number, order_hash=order_hash, signed_order=token, freeze=made)
    what: dict[str, JsonValue] = {"tool": tool, "reason_hash": sha256_hex(why.encode())}
    writing.record("effects.frozen", "", by, now, number=number, **what, order_hash=order_hash)
    writing.notify(_told(NoticeKind.FROZEN, made, now))
    return made


def lift(writing: Writing, freeze: Freeze, mandate: Mandate) -> None:
    """Lift a freeze that is in force, as two persons decided; the caller holds the directory's lock."""
    lifted = freeze.model_copy(update={"lifted_at": mandate.now, "lifted_by": mandate.basis})
    is_it = (freezes.c.tenant == writing.tenant) & (freezes.c.number == freeze.number)
    writing.connection.execute(update(freezes).where(is_it).values(freeze=lifted))
    mandate.record(writing, "effects.unfrozen", number=freeze.number, tool=freeze.tool)
    writing.notify(_told(NoticeKind.UNFROZEN, lifted, mandate.now))


def held(writing: Writing, proposal: Proposal, now: datetime) -> Freeze | None:
    """The freeze that holds this action's effect, if one does (audit `effect.held`, once for each that did).

    From now on until the end of the transaction nobody freezes: whoever finds nothing here may begin.
    """
    writing.lock_freezes()
    tool = proposal.action.tool
    found = holding(load_freezes(writing.connection, writing.tenant), tool, changes_authority=changes_authority(tool))
    if found is not None and writing.insert_once(holds, number=found.number, approval_id=proposal.approval_id):
        writing.record("effect.held", proposal.operation, "gateway", now, **names(proposal), freeze=found.number)
    return found


def _of_order(connection: Connection, tenant: str, order_hash: str) -> Freeze | None:
    is_it = (freezes.c.tenant == tenant) & (freezes.c.order_hash == order_hash)
    stored: Freeze | None = connection.execute(select(freezes.c.freeze).where(is_it)).scalar()
    return stored


def _latest(writing: Writing) -> int:
    numbers = select(func.max(freezes.c.number)).where(freezes.c.tenant == writing.tenant)
    return writing.connection.execute(numbers).scalar() or 0


def _check_known(writing: Writing) -> None:
    known = select(tenants.c.name).where(tenants.c.name == writing.tenant)
    if writing.connection.execute(known).first() is None:
        raise absent("tenant", writing.tenant)


def _told(kind: NoticeKind, freeze: Freeze, now: datetime) -> Notice:
    return Notice(
        kind=kind,
        tenant=freeze.tenant,
        roles=(OPERATOR, ADMIN),
        severity=Severity.HIGH,
        code=f"{freeze.number}:{freeze.tool or 'all'}",
        at=now,
    )
